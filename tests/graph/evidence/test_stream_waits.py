"""Waits of streams where the trace has the calls but not their streams: against the simulator's truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from htagraph import EdgeKind
from htagraph.core.kinds import ActivityKind, Provenance
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.stream_waits import SharedByRank, StreamWaits, as_site, idle_ends, stream_waits
from htagraph.graph.rules.event_wait import event_wait
from tests.oracles import edges_by_name
from tests.strategies import Json, kernel, launch, load, runtime
from tests.waiting import MADE, by_hand, hidden, implied, named, simulated, verdict


@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_inferred_waits_are_true(name: str) -> None:
    job, truth = simulated(MADE[name])
    calls = Calls.of(hidden(job))
    for rank in calls.lanes:
        unresolved: Counter[int] = Counter()
        waits = StreamWaits.concatenate(list(stream_waits(calls, rank, unresolved)))
        assert len(waits.lane) > 0
        target = calls.enqueued.first_from(waits.lane, waits.position)
        source = calls.enqueued.last_before(waits.record_lane, waits.record)
        known = (source >= 0) & (target >= 0)
        pairs = set(zip(source[known].tolist(), target[known].tolist(), strict=True))
        wrong = [pair for pair in pairs if not implied(job, pair, truth["event_wait"])]
        assert len(wrong) <= 0.02 * len(pairs)


def test_waits_are_taken_and_joined_by_column() -> None:
    lane, position, record_lane, record = (np.array([i, i + 1]) for i in range(4))
    one = StreamWaits.inferred(lane, position, record_lane, record, 70)
    both = StreamWaits.concatenate([one, one.take(np.array([False, True]))])
    assert both.lane.tolist() == [0, 1, 1]
    assert both.record.tolist() == [3, 4, 4]
    assert set(both.provenance.tolist()) == {Provenance.INFERRED}
    assert StreamWaits.concatenate([]).confidence.tolist() == []


def test_ranks_share_their_main_stream_and_what_is_known_to_be_awaited() -> None:
    events = [launch(0, 1, 1), runtime("cudaEventRecord", 2, 1, 2), runtime("cudaStreamWaitEvent", 4, 1, 3)]
    events += [launch(6, 1, 4), kernel("gemm", 5, 50, 1), kernel("ncclAllReduce", 56, 9, 4, stream=20)]
    calls = Calls.of(by_hand(events))
    shared = SharedByRank.of(calls, 0)
    stream = {lane: calls.job.lanes[lane].stream for lane in shared.streams.tolist()}
    assert stream[shared.main] == 7
    assert [stream[lane] for lane in shared.quiet.tolist()] == [20]
    position = calls.of_kind(ActivityKind.WAIT)
    side = shared.quiet
    target = calls.enqueued.first_from(side, position)
    free = as_site(shared, position, side, target).free
    shared.learn(StreamWaits.inferred(side, position, np.array([shared.main]), position, 80))
    acts = calls.job.activities
    gemm = int(np.flatnonzero(acts.kind == ActivityKind.COMPUTATION)[0])
    assert as_site(shared, position, side, target).free.tolist() == [acts.end[gemm]]
    assert free[0] < acts.end[gemm]


@pytest.mark.parametrize("pause", [3, 16])
def test_a_device_that_is_slow_to_start_waiting_work_is_known_by_its_collectives(pause: float) -> None:
    events = []
    for i in range(4):  # two collectives behind computation; at the end, what awaits the first, then what awaits both
        at, first = 1000 * i, 20 * i
        events += [launch(at, 1, first + 1), kernel("gemm", at + 10, 90, first + 1)]
        for j, name in enumerate(("ncclAllReduce_a", "ncclAllReduce_b")):
            start = at + 100 + pause + 200 * j
            events += [runtime("cudaStreamWaitEvent", at + 2 + 4 * j, 1, first + 2 + 2 * j)]
            events += [
                launch(at + 4 + 4 * j, 1, first + 3 + 2 * j),
                kernel(name, start, 199, first + 3 + 2 * j, stream=20),
            ]
        for j, name in enumerate(("copy a", "copy b")):
            start = at + 299 + 200 * j + 2 * pause
            events += [runtime("cudaStreamWaitEvent", at + 20 + 10 * j, 1, first + 8 + 2 * j)]
            events += [launch(at + 24 + 10 * j, 1, first + 9 + 2 * j), kernel(name, start, 9, first + 9 + 2 * j)]
    job = by_hand(events)
    calls = Calls.of(job)
    assert SharedByRank.of(calls, 0).window == max(10_000, 2000 * pause)
    waits = StreamWaits.concatenate(list(stream_waits(calls, 0, Counter())))
    source = calls.enqueued.last_before(waits.record_lane, waits.record)
    target = calls.enqueued.first_from(waits.lane, waits.position)
    names = [job.names[code] for code in job.activities.name]
    pairs = Counter((names[u], names[v]) for u, v in zip(source, target, strict=True))
    assert pairs["ncclAllReduce_a", "copy a"] == pairs["ncclAllReduce_b", "copy b"] == 4


NONE = np.zeros(0, np.int64)


def idle(until: float, *more: Json) -> list[Json]:
    """Stream 7 is idle from 20 to `until` µs, though what runs then was launched at 2; stream 20 is busy to 1000."""
    events = [launch(0, 1, 1), launch(1, 1, 2), launch(2, 1, 3)]
    works = [kernel("a", 10, 10, 1), kernel("other", 15, 985, 2, stream=20), kernel("b", until, 10, 3)]
    return [*events, *works, *more]


def pairs(events: list[Json]) -> list[tuple[str, str, int]]:
    job = by_hand(events)
    name = [job.names[code] for code in job.activities.name]
    found = zip(*(column.tolist() for column in idle_ends(job.calls, NONE, NONE)), strict=True)
    return [(name[u], name[v], sure) for u, v, sure in found]


def test_a_stream_that_goes_on_just_as_work_of_another_one_ends_waited_for_it() -> None:
    assert pairs(idle(1003)) == [("other", "b", 90)], "by chance once in 98 times"
    assert edges_by_name(load(idle(1003)), EdgeKind.EVENT_WAIT) == [("other.end", "b.start", 3)]


@pytest.mark.parametrize("until", [1030, 990, 60])
def test_work_that_starts_at_another_time_waited_for_something_else(until: float) -> None:
    assert pairs(idle(until)) == []


def test_work_launched_only_then_waited_for_its_launch() -> None:
    events = idle(1003)
    events[2] = launch(995, 1, 3)
    assert pairs(events) == []


def test_work_enqueued_later_cannot_have_been_waited_for() -> None:
    events = idle(1003)
    events[1], events[2] = launch(2, 1, 2), launch(1, 1, 3)
    assert pairs(events) == []


def test_many_ends_on_other_streams_make_it_chance() -> None:
    busy = [event for i in range(60) for event in (launch(1, 0.01, 100 + i), kernel("x", 20 + 16 * i, 9, 100 + i, 30))]
    assert pairs(idle(1003, *busy)) == []


def test_what_is_known_to_be_waited_for_is_not_explained_twice() -> None:
    job = by_hand(idle(1003))
    name = [job.names[code] for code in job.activities.name]
    known = (np.array([name.index("other")]), np.array([name.index("b")]))
    assert len(idle_ends(job.calls, *known)[0]) == 0


def without_calls(job: RecordedJob) -> RecordedJob:
    """Return the job as if the profiler had not recorded calls that record or await events."""
    acts = job.activities
    events = np.isin(acts.kind, [ActivityKind.RECORD, ActivityKind.WAIT])
    kind = np.where(events, ActivityKind.RUNTIME, acts.kind).astype(np.int8)
    return hidden(replace(job, activities=replace(acts, kind=kind)))


def test_collectives_await_what_was_enqueued_before_them_and_what_starts_right_behind_awaits_them() -> None:
    events = [launch(0, 1, 1), launch(5, 1, 2), launch(10, 1, 3), launch(15, 1, 4)]
    events += [kernel("a", 10, 30, 1), kernel("ncclAllReduce", 41, 100, 2, stream=20)]
    events += [kernel("beside", 41, 20, 3), kernel("b", 142, 9, 4)]
    job = by_hand(events)
    edges = event_wait(job)
    assert named(job, edges) == [("a", "ncclAllReduce"), ("ncclAllReduce", "b")]
    assert set(edges.provenance.tolist()) == {Provenance.INFERRED}
    assert edges.confidence.max() < 80


def test_work_that_had_another_reason_to_start_awaits_no_collective() -> None:
    events = [launch(0, 1, 1), launch(5, 1, 2), launch(137, 1, 3)]
    events += [kernel("a", 10, 30, 1), kernel("ncclAllReduce", 41, 100, 2, stream=20), kernel("b", 142, 9, 3)]
    job = by_hand(events)
    assert named(job, event_wait(job)) == [("a", "ncclAllReduce")], "b was only just launched"


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_waits_without_calls_are_true_and_those_that_bind_are_found(name: str) -> None:
    job, truth = simulated(MADE[name])
    found = event_wait(without_calls(job))
    result = verdict(job, found, truth["event_wait"])
    assert result.wrong <= 0.02 * result.truth
    acts = job.activities
    binding = {(u, v) for u, v in truth["event_wait"] if acts.start[v] - acts.end[u] < 2_000}
    assert verdict(job, found, binding).lost <= 0.02 * len(binding)
