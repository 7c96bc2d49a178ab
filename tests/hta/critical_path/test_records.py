"""Which launch stands before each recorded CUDA event, and which behind each wait: against a search row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from htagraph.hta.critical_path.analysis import critical_path_analysis
from htagraph.hta.critical_path.records import record_frame, wait_frame
from tests.hta.critical_path.made import HTA, analysed, job_of, shared
from tests.hta.shapes.test_job import TWO_STEPS
from tests.hta.shapes.test_job import job_of as small

STREAMS = HTA / "critical_path" / "cuda_event_sync_multi_stream.json.gz"


@shared
def test_the_launch_before_a_record_is_the_last_on_its_stream() -> None:
    graph = analysed(STREAMS)
    records, frame = record_frame(graph), job_of(STREAMS).frame(0)
    assert records is not None
    assert len(records)
    work = frame[frame["stream"].ge(0) & frame["index_correlation"].gt(0) & frame["wait_on_stream"].lt(0)]
    rows: Any = records.itertuples()
    for row in rows:
        launches = frame.loc[work[work["stream"].eq(row.stream)]["index_correlation"]]
        before = launches[launches["ts"].le(row.ts)].sort_values("ts", kind="stable")
        assert row.index_previous_launch == (before["index"].iloc[-1] if len(before) else -1)


@shared
def test_the_launch_behind_a_wait_is_the_threads_next_on_its_stream() -> None:
    graph = analysed(STREAMS)
    waits, frame = wait_frame(graph), job_of(STREAMS).frame(0)
    assert waits is not None
    assert len(waits)
    work = frame[frame["stream"].ge(0) & frame["index_correlation"].gt(0) & frame["wait_on_stream"].lt(0)]
    rows: Any = waits.itertuples()
    for row in rows:
        launches = frame.loc[work[work["stream"].eq(row.stream)]["index_correlation"]]
        behind = launches[launches["ts"].ge(row.ts) & launches["tid"].eq(row.tid)].sort_values("ts", kind="stable")
        assert row.index_next_launch == (behind["index"].iloc[0] if len(behind) else -1)


def test_a_trace_without_waits_has_no_table(tmp_path: Path) -> None:
    found = critical_path_analysis(small(tmp_path, TWO_STEPS), 0, "")
    assert found is not None
    assert record_frame(found[0]) is None
    assert wait_frame(found[0]) is None
