"""What cuda_sync rows say, against rows made by hand."""

from __future__ import annotations

from htagraph.graph.evidence.await_rows import await_rows
from tests.strategies import kernel, launch, runtime
from tests.waiting import by_hand, sync_row

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
