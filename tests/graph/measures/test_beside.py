"""Whether work runs beside other work, against a comparison of every pair of activities."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings

from htagraph import DependencyGraph
from htagraph.graph.measures.beside import begins_of_work, covered_ns, runs_beside
from htagraph.graph.selection import named
from tests.beside_jobs import GATHER, Step, job_of
from tests.strategies import COMPUTE, COPY, Json, jobs, kernel, load


def slow_covered(graph: DependencyGraph, row: int, begin: int, companions: set[int]) -> int:
    """Return how long any companion on another stream of the device runs from a begin to the end of a row, ns."""
    end = int(graph.time[2 * row + 1])
    lane = graph.lane_of(row)
    spans = [
        (int(graph.time[2 * other]), int(graph.time[2 * other + 1]))
        for other in companions
        if graph.activities.on_device[other]
        and graph.activities.lane[other] != graph.activities.lane[row]
        and (graph.lane_of(other).rank, graph.lane_of(other).device) == (lane.rank, lane.device)
    ]
    marks = sorted({begin, end, *(moment for span in spans for moment in span if begin < moment < end)})
    return sum(
        last - first
        for first, last in itertools.pairwise(marks)
        if any(start <= first and last <= stop for start, stop in spans)
    )


def slow_beside(graph: DependencyGraph, companions: set[int]) -> list[bool]:
    acts = graph.activities
    begin = begins_of_work(graph).tolist()
    beside = [False] * len(acts)
    for row in range(len(acts)):
        own = int(graph.time[2 * row + 1]) - begin[row]
        if acts.on_device[row] and acts.duration[row] > 0:
            covered = slow_covered(graph, row, begin[row], companions)
            beside[row] = covered > 0 and 2 * covered >= own
    matches = graph.matches
    if matches is not None:
        members: dict[int, list[int]] = {}
        for row, collective in zip(matches.activity.tolist(), matches.collective.tolist(), strict=True):
            members.setdefault(collective, []).append(row)
        for rows in members.values():
            for row in rows:
                beside[row] = any(slow_one for slow_one in [beside[other] for other in rows])
    return beside


@given(jobs())
@settings(max_examples=40)
def test_work_runs_beside_what_covers_half_of_it(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    for name in (COMPUTE, COPY):
        companions = named(graph.names, name)[graph.activities.name]
        expected = slow_beside(graph, set(np.flatnonzero(companions).tolist()))
        assert runs_beside(graph, companions).tolist() == expected
        assert graph.select(beside=name).activities.tolist() == np.flatnonzero(expected).tolist()


def test_half_of_the_time_counts_and_less_does_not() -> None:
    half = [kernel(COMPUTE, 0, 10, 1, 7), kernel(COPY, 5, 20, 2, 20)]
    less = [kernel(COMPUTE, 0, 10, 1, 7), kernel(COPY, 6, 20, 2, 20)]
    assert [len(load(events).select(name=COMPUTE, beside=COPY)) for events in (half, less)] == [1, 0]


def test_companions_on_the_same_stream_and_on_hosts_do_not_count() -> None:
    graph = load([kernel(COMPUTE, 0, 10, 1, 7), kernel(COPY, 2, 5, 2, 7)])
    assert not len(graph.select(beside="*"))


def test_a_collective_runs_on_the_devices_of_all_its_ranks() -> None:
    graph = load(job_of([Step(is_slow=True, copies_on=(1,)), Step(is_slow=False)]))
    rows = graph.select(name=GATHER, beside=COPY).activities
    assert graph.activities.rank[rows].tolist() == [0, 1]
    assert set(graph.activities.step[rows].tolist()) == {0}


def test_the_wait_for_the_last_rank_is_no_time_of_the_work() -> None:
    graph = load(job_of([Step(is_slow=False, late_us=2000, copies_on=(0,), copy_after_us=-40)] * 2))
    rows = graph.select(name=GATHER, rank=0).activities
    begin, end = begins_of_work(graph)[rows], graph.time[2 * rows + 1]
    assert ((end - begin) // 1000).tolist() == [500, 500]
    copies = graph.select(name=COPY)
    covered = covered_ns(graph, rows, begin, end, np.isin(np.arange(len(graph.activities)), copies.activities))
    assert (covered == end - begin).all()
