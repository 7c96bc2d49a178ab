from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.whatif.growth import Growth, busier_host, expected_last, later_joins, longer_transfers
from htagraph.whatif.layout import group_sizes
from htagraph.whatif.links import link_share, transfers
from tests.reach import DATA
from tests.whatif.changes.simulated import recorded, small


@given(st.integers(2, 64))
def test_the_last_of_normal_draws(count: int) -> None:
    drawn = np.random.default_rng(count).standard_normal((20_000, count)).max(axis=1)
    assert expected_last(count) == pytest.approx(drawn.mean(), rel=0.06)
    assert expected_last(count) > expected_last(count - 1)


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
