"""Hypotheses about waits: pairing in order, records before a call, and which hypothesis wins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.kinds import ActivityKind
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.waits import (
    Ordered,
    Plausible,
    Site,
    await_rows,
    best,
    records_back,
    returns,
    unresolved_waits,
)
from htagraph.graph.tolerances import LIMITS
from tests.strategies import Json, kernel, launch, runtime, traces
from tests.waiting import by_hand, sync_row


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=14))
def test_the_mth_wait_of_an_epoch_is_paired_with_its_mth_record(rows: list[tuple[bool, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[1])  # positions ascend from epoch to epoch
    waits = [(at, epoch) for at, (is_wait, epoch) in enumerate(rows) if is_wait]
    others = [(at, epoch) for at, (is_wait, epoch) in enumerate(rows) if not is_wait]
    position, epoch, other, other_epoch = (
        np.array(column, np.int64)
        for part in (waits, others)
        for column in ([a for a, _ in part], [e for _, e in part])
    )
    expected = []
    seen: Counter[int] = Counter()
    for at, number in waits:
        same = [record for record, of_epoch in others if of_epoch == number]
        record = same[seen[number]] if seen[number] < len(same) else -1
        expected.append(record if record < at else -1)
        seen[number] += 1
    if not waits:
        return
    own, others_of = Ordered.of(position, epoch), Ordered.of(other, other_epoch)
    match = own.match(others_of)
    assert match.tolist() == expected
    counts = Counter(number for _, number in others)
    equal = np.mean([seen[number] == counts[number] for number in seen]) >= 0.99
    assert own.as_many(others_of) == equal


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_kth_record_back_is_what_a_search_finds(events: list[Json]) -> None:
    calls = Calls.of(by_hand(events))
    kind = calls.job.activities.kind[calls.row]
    at = np.arange(len(calls.row))
    for back, (record, lane) in enumerate(records_back(calls, at)):
        for call in at.tolist():
            thread = calls.thread == calls.thread[call]
            records = np.flatnonzero(thread & (kind == ActivityKind.RECORD) & (at < call))[::-1]
            assert record[call] == (records[back] if back < len(records) else -1)
            if record[call] >= 0:
                launches = np.flatnonzero(thread & (calls.launched >= 0) & (at < record[call]))
                assert lane[call] == (calls.launched[launches[-1]] if len(launches) else -1)


def two_streams() -> tuple[Calls, Site, np.ndarray]:
    """Return calls, of which three wait until the work on the second stream is over, as a site, and the streams."""
    events: list[Json] = []
    for i in range(3):
        at = 1000 * i
        events += [
            launch(at, 1, 4 * i + 1),
            launch(at + 2, 1, 4 * i + 2),
            runtime("cudaEventSynchronize", at + 4, 199, 0),
        ]
        events += [kernel("a", at + 5, 50, 4 * i + 1), kernel("b", at + 6, 194, 4 * i + 2, stream=20)]
    calls = Calls.of(by_hand(events))
    position = calls.of_kind(ActivityKind.SYNC)
    row = calls.row[position]
    acts = calls.job.activities
    return calls, Site(position, acts.end[row], acts.start[row], window=20_000), calls.lanes[0]


def test_the_hypothesis_wins_that_explains_most_and_a_refuted_one_never() -> None:
    calls, site, lanes = two_streams()
    position = site.position
    stream = {int(calls.job.lanes[lane].stream): np.full(len(position), lane) for lane in lanes}
    guesses = [(stream[7], position, Plausible.YES), (stream[20], position, Plausible.NO)]
    answer = best(calls, site, iter(guesses))
    assert answer is not None
    assert (answer.lane.tolist(), answer.explained, answer.unexplained) == (stream[20].tolist(), 3, 0)
    ended_before = Site(position, site.over - 60_000, site.free, site.window)
    assert best(calls, ended_before, iter([(stream[20], position, Plausible.YES)])) is None


@pytest.mark.parametrize("late", [4, 9])
def test_how_soon_a_rank_returns_is_measured_on_its_syncs(late: int) -> None:
    events: list[Json] = []
    for i in range(8):
        at = 1000 * i
        events += [launch(at, 1, i + 1), kernel("a", at + 5, 100, i + 1)]
        events.append(runtime("cudaStreamSynchronize", at + 10, 95 + late, 100 + i))
    calls = Calls.of(by_hand(events))
    assert returns(calls, 0).soonest == 1_000 * late - LIMITS.tick_ns
    assert returns(calls, 0).tolerance == LIMITS.tick_ns


def test_waits_without_an_edge_are_reported_by_rank() -> None:
    job = by_hand([launch(0, 1, 1), kernel("a", 5, 1, 1)])
    issues = unresolved_waits(job, {0: 3}, "some waits")
    assert [(issue.what, issue.count, issue.rank, issue.detail) for issue in issues] == [
        ("waits_unresolved", 3, 0, "some waits; left out")
    ]
    assert unresolved_waits(job, {0: 0}, "some waits") == ()


CALLS = [
    launch(0, 1, 1),
    launch(2, 1, 2),
    runtime("cudaEventRecord", 4, 1, 3),
    runtime("cudaStreamWaitEvent", 6, 1, 4),
    runtime("cudaStreamSynchronize", 8, 9, 5),
]
WORK = [kernel("a", 5, 1, 1), kernel("x", 5, 9, 2, stream=20)]


def test_a_row_names_streams_by_their_lanes_and_calls_by_their_positions() -> None:
    job = by_hand(
        [
            *CALLS,
            *WORK,
            sync_row("Stream Wait Event", 6, 4, stream=20, wait_on_stream=7, wait_on_cuda_event_record_corr_id=3),
            sync_row("Stream Sync", 8, 5, stream=20),
        ]
    )
    rows = await_rows(job.calls)
    side, compute = (next(i for i, lane in enumerate(job.lanes) if lane.stream == number) for number in (20, 7))
    assert rows.awaits_event.tolist() == [True, False]
    assert rows.position.tolist() == [3, 4]
    assert rows.lane.tolist() == [side, side]
    assert rows.record_lane.tolist() == [compute, -1]
    assert rows.record.tolist() == [2, -1]


def test_what_is_not_in_the_file_has_no_lane() -> None:
    job = by_hand([*CALLS, *WORK, sync_row("Stream Sync", 8, 5, stream=99), sync_row("Stream Sync", 8, 5)])
    assert await_rows(job.calls).lane.tolist() == [-1, -1]


def test_without_rows_there_are_none() -> None:
    assert not len(await_rows(by_hand([*CALLS, *WORK]).calls).rank)
