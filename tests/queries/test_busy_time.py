from __future__ import annotations

from hypothesis import given, settings

from htagraph.core.intervals import length
from htagraph.core.kinds import ActivityKind
from htagraph.queries.busy_time import self_time, work_of
from tests import oracles
from tests.strategies import COMMUNICATE, COMPUTE, Json, annotation, kernel, load, op, traces


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
    assert self_time(load(more))[:4].tolist() == [100_000, 10_000, 10_000, 10_000]


def test_device_work_has_its_duration_as_self_time() -> None:
    assert self_time(load([kernel(COMPUTE, 10, 5)])).tolist() == [5000]
