"""What was enqueued before calls that wait for a device, on few streams and on very many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.graph.evidence import work_before as module
from htagraph.graph.evidence.work_before import last_ends, work_before
from htagraph.graph.rules.host_sync import host_sync
from htagraph.graph.tolerances import LIMITS
from tests.strategies import Json, kernel, launch, runtime
from tests.waiting import by_hand


def streams_and_syncs(count: int) -> list[Json]:
    """Return work on so many streams, with a wait for the device after each, and as many more at the end."""
    events = []
    for i in range(2 * count):
        if i < count:
            events += [launch(10 * i, 1, 2 * i + 1), kernel(f"k{i}", 10 * i + 2, 3, 2 * i + 1, stream=i)]
        events.append(runtime("cudaDeviceSynchronize", 10 * i + 6, 2, 2 * i + 2))
    return events


def test_of_few_streams_the_last_work_of_each_counts() -> None:
    calls = by_hand(streams_and_syncs(5)).calls
    syncs = calls.of_kind(ActivityKind.SYNC)
    source, number = work_before(calls, 0, syncs, calls.thread[syncs])
    pairs = {(int(call), int(work)) for call, work in zip(number, source, strict=True)}
    rows = np.flatnonzero(calls.job.activities.on_device)
    assert pairs == {(call, int(work)) for call in range(10) for work in rows[: call + 1]}


def test_the_last_end_is_that_of_all_work_before_a_call() -> None:
    calls = by_hand(streams_and_syncs(5)).calls
    syncs = calls.of_kind(ActivityKind.SYNC)
    acts = calls.job.activities
    ends = np.sort(acts.end[acts.on_device])
    assert last_ends(calls, 0, syncs).tolist() == [*ends.tolist(), *[int(ends[-1])] * 5]
    assert last_ends(calls, 0, np.zeros(1, np.int64)).tolist() == [np.iinfo(np.int64).min]


def test_of_many_streams_only_new_work_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMITS", replace(LIMITS, tried=1))
    calls = by_hand(streams_and_syncs(5)).calls
    syncs = calls.of_kind(ActivityKind.SYNC)
    source, number = work_before(calls, 0, syncs, calls.thread[syncs])
    rows = np.flatnonzero(calls.job.activities.on_device)
    assert sorted(zip(number.tolist(), source.tolist(), strict=True)) == list(enumerate(rows.tolist()))


def test_edges_of_many_streams_and_waits_grow_with_their_number() -> None:
    edges = [host_sync(by_hand(streams_and_syncs(count))) for count in (140, 280)]
    count = [int((each.kind == EdgeKind.HOST_SYNC).sum()) for each in edges]
    assert count[1] == 2 * count[0]
