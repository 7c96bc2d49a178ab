from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from tests.strategies import COMPUTE, jobs, kernel, launch, load, op
from tests.whatif.changes.made import Piece, made, places


def test_every_kernel_takes_what_is_said() -> None:
    graph = load([launch(0, 1, 1), kernel(COMPUTE, 3, 5, 1), launch(1, 1, 2), kernel(COMPUTE, 8, 9, 2)])
    predicted = hg.what_if(graph).set_duration(ns=2_500, name=COMPUTE).run().graph
    kernels = predicted.select(name=COMPUTE).activities
    assert predicted.activities.duration[kernels].tolist() == [2_500, 2_500]


def test_slices_of_an_operator_share_in_proportion() -> None:
    graph = load([op("a", 0, 10), op("b", 6, 2)])  # a: 6 before b, 2 after
    outcome = hg.what_if(graph).set_duration(ns=1_001, name="a").run()
    acts = outcome.graph.activities
    a, b = (graph.select(name=name).activities[0] for name in "ab")
    assert acts.duration[a] == 1_001 + 2_000
    assert acts.start[b] - acts.start[a] == 751


def test_an_operator_without_time_can_be_given_some() -> None:
    graph = load([op("a", 0, 4), op("b", 1, 0), op("c", 9, 1)])
    outcome = hg.what_if(graph).set_duration(ns=500, name="b").run()
    assert outcome.makespan_ns == outcome.baseline_ns + 500


@pytest.mark.slow
@given(jobs(tidy=True), st.integers(0, 10**6))
@settings(max_examples=25)
def test_the_lags_of_each_activity_sum_to_it(made_of: dict[int, list[dict[str, object]]], ns: int) -> None:
    graph = load(made_of)
    if not len(graph.select(kind="op")):
        return
    state = hg.what_if(graph).set_duration(ns=ns, kind="op").state
    mine = np.isin(graph.edges.activity, graph.select(kind="op").activities)
    total = np.bincount(graph.edges.activity[mine], weights=state.lag[mine])
    owners = np.unique(graph.edges.activity[mine])
    assert (total[owners] == ns).all()


def test_a_transfer_is_set_and_its_wait_stays() -> None:
    pieces = [Piece("nccl", 7, 30, rank=0, collective=0), Piece("gemm", 7, 50, rank=1),
              Piece("nccl", 7, 30, rank=1, collective=0)]  # fmt: skip
    graph = made(pieces)
    _, works = places(pieces)
    outcome = hg.what_if(graph).set_duration(ns=7, kind="communication").run()
    ends = outcome.time[2 * np.array(works) + 1]
    assert ends[0] == ends[2] == graph.time[2 * works[2]] + 7
