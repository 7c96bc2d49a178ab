from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.queries.weights import State, initial
from htagraph.whatif.growth import Growth, busier_host, expected_last, later_joins, longer_transfers
from htagraph.whatif.layout import group_sizes
from htagraph.whatif.links import link_share, transfers
from tests.reach import DATA, SHARED
from tests.whatif.changes.simulated import recorded, small
from tests.whatif.test_fixed_parts import job


@given(st.integers(2, 64))
def test_the_last_of_normal_draws(count: int) -> None:
    drawn = np.random.default_rng(count).standard_normal((20_000, count)).max(axis=1)
    assert expected_last(count) == pytest.approx(drawn.mean(), rel=0.06)
    assert expected_last(count) > expected_last(count - 1)


ALL_REDUCES = SHARED.parent / "capacity" / "nccl" / "vidur" / "a100_dgx_all_reduce.csv.gz"


@pytest.mark.skipif(not ALL_REDUCES.is_file(), reason="the shared measurements are not here")
def test_all_reduces_of_more_devices_of_a_host_are_as_measured() -> None:
    table = pd.read_csv(ALL_REDUCES)
    table = table[(table["devices_per_node"] == table["num_workers"]) & table["size"].between(8e6, 7e7)]
    took = table.pivot_table("time_stats.all_reduce.median", "size", "num_workers", aggfunc="median").iloc[::20] * 1e6
    errors: dict[bool, list[float]] = {True: [], False: []}
    for few, many in ((2, 4), (2, 8), (4, 8)):
        graph = job(took[few].astype(int).tolist(), took.index.astype(int).tolist())
        state, found = initial(graph), transfers(initial(graph))
        before = np.full(found.matches.count, few)
        for within, error in errors.items():
            grown = longer_transfers(state, Growth(found, before, many * before // few, within=within))
            error += np.abs(_times(grown) / took[many].to_numpy() - 1).tolist()
    assert np.median(errors[True]) <= 0.1
    assert np.median(errors[True]) < np.median(errors[False]), "the latency does not grow as the depth of a tree"


def _times(state: State) -> np.ndarray:
    """Return how long the first rank's transfers take, ns, in their order."""
    edges = transfers(state).edges
    return state.lag[edges[state.graph.activities.rank[state.graph.edges.activity[edges]] == 0]]


def test_one_rank_is_never_late() -> None:
    assert expected_last(1) == 0


def test_transfers_of_devices_grow_by_the_share_that_rings_move() -> None:
    graph, _ = recorded(small("communication_bound"))
    state = hg.what_if(graph).state
    job = transfers(state)
    before = group_sizes(job.matches)
    grown = longer_transfers(state, Growth(job, before, 4 * before))
    ratio = grown.lag[job.edges] / state.lag[job.edges]
    assert np.median(ratio) == pytest.approx(float(link_share("all_reduce", 8) / link_share("all_reduce", 2)), rel=0.05)
    (unsure,) = grown.unsure
    assert (unsure.low <= 1).all()
    assert (unsure.high >= 1).all()


def test_the_same_sizes_change_nothing() -> None:
    state = hg.what_if(hg.load(DATA / "gloo_ddp")).state
    job = transfers(state)
    same = Growth(job, group_sizes(job.matches), group_sizes(job.matches))
    assert np.array_equal(longer_transfers(state, same).lag, state.lag)
    assert np.array_equal(later_joins(state, same).gap, state.gap)
    assert busier_host(state, len(state.graph.ranks)) is state


def test_ranks_of_one_host_wait_for_its_cores() -> None:
    state = hg.what_if(hg.load(DATA / "gloo_ddp")).state
    busier = busier_host(state, 2 * len(state.graph.ranks))
    assert busier.lag.sum() > state.lag.sum()
    assert "one host" in busier.notes[-1]
    assert busier_host(replace(state, graph=recorded(small("gpu_bound"))[0]), 8).notes == ()  # devices have links
