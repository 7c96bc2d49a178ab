from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from htagraph.core.intervals import length
from htagraph.core.kinds import ActivityKind
from htagraph.graph.measures.own_time import work_of, work_times
from tests import oracles
from tests.strategies import COMMUNICATE, COMPUTE, Json, annotation, kernel, launch, load, op, traces


def test_a_rank_with_device_work_is_judged_by_it() -> None:
    work = work_of(load([op("a", 0, 50), kernel(COMPUTE, 10, 5), kernel(COMMUNICATE, 12, 8, stream=20)]), 0)
    assert work.executor == "device"
    assert length(work.by_kind[ActivityKind.COMPUTATION]) == 5000
    assert length(work.by_kind[ActivityKind.COMMUNICATION]) == 8000
    assert work.end - work.start == 10_000


def test_a_rank_without_device_work_is_judged_by_its_threads() -> None:
    events = [annotation("region", 0, 90), op("a", 10, 20), op("inner", 12, 3), op("gloo:all_reduce", 40, 5)]
    work = work_of(load(events), 0)
    assert work.executor == "host"
    assert length(work.by_kind[ActivityKind.COMPUTATION]) == 20_000
    assert length(work.by_kind[ActivityKind.COMMUNICATION]) == 5000
    assert work.end - work.start == 35_000


def test_a_rank_without_anything_has_an_empty_window() -> None:
    work = work_of(load({0: []}), 0)
    assert (work.start, work.end) == (0, 0)
    assert all(length(part) == 0 for part in work.by_kind.values())


@given(traces())
@settings(max_examples=20)
def test_the_work_of_each_kind_is_what_the_slow_sweep_finds(events: list[Json]) -> None:
    done = oracles.works(events)
    by_kind = work_of(load(events), 0).by_kind
    for kind in ("computation", "communication", "memory") if done else ():
        busy = sum(kind in at for at in oracles.kinds_by_moment(done))
        assert length(by_kind[ActivityKind[kind.upper()]]) == 1000 * busy


def test_what_waits_is_its_own_time_as_recorded() -> None:
    """As of a collective on a host thread, whose lag in the graph is its transfer only."""
    late = {0: [op("gloo:all_reduce", 0, 100)], 1: [op("gloo:all_reduce", 90, 10)]}
    more = {rank: [*events, op("gloo:all_reduce", 200, 10)] for rank, events in late.items()}
    assert load(more).own_time[:4].tolist() == [100_000, 10_000, 10_000, 10_000]


def test_device_work_has_its_duration_as_self_time() -> None:
    assert load([kernel(COMPUTE, 10, 5)]).own_time.tolist() == [5000]


def test_kernels_have_their_durations_and_operators_their_self_times() -> None:
    """Of ranks 0 to 2, the last and the first are asked for, in that order."""
    events = {
        rank: [op("outer", 0, 100), op("inner", 10, 40), launch(20, 5, 1), kernel(COMPUTE, 60, 7 + rank, 1)]
        for rank in range(3)
    }
    graph = load(events)
    ranks = np.array([2, 0])
    _, place, time = work_times(graph, ranks, device=True)
    assert dict(zip(place.tolist(), time.tolist(), strict=True)) == {0: 9000.0, 1: 7000.0}
    rows, place, time = work_times(graph, ranks, device=False)
    names = [graph.names[name] for name in graph.activities.name[rows].tolist()]
    assert sorted(zip(place.tolist(), names, time.tolist(), strict=True)) == [
        (0, "inner", 35000.0), (0, "outer", 60000.0), (1, "inner", 35000.0), (1, "outer", 60000.0),
    ]  # fmt: skip
