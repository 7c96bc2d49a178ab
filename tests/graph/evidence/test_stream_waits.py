"""Waits of streams where the trace has the calls but not their streams: against the simulator's truth."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from htagraph.core.kinds import ActivityKind, Provenance
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.stream_waits import SharedByRank, StreamWaits, as_site, stream_waits
from tests.strategies import kernel, launch, runtime
from tests.waiting import MADE, by_hand, hidden, implied, simulated


@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_inferred_waits_are_true(name: str) -> None:
    job, truth = simulated(MADE[name])
    calls = Calls.of(hidden(job))
    for rank in calls.lanes:
        counts: Counter[str] = Counter()
        waits = StreamWaits.concatenate(list(stream_waits(calls, rank, counts)))
        assert counts["inferred"] == len(waits.lane) > 0
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
