"""Reading a job as HTA does: which events are in its window, which file is which rank, what its frame holds."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htagraph.core.errors import HtagraphError, RankError
from htagraph.hta.common.trace import Trace
from htagraph.hta.shapes.job import HtaJob, open_job

Event = dict[str, Any]


def event(name: str, cat: str, ts: float, dur: float, tid: int = 1, **args: Any) -> Event:
    return {"ph": "X", "name": name, "cat": cat, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def step(number: int, ts: float, dur: float) -> Event:
    return event(f"ProfilerStep#{number}", "user_annotation", ts, dur)


def launch(ts: float, correlation: int) -> Event:
    return event("cudaLaunchKernel", "cuda_runtime", ts, 2, correlation=correlation)


def kernel(ts: float, correlation: int, stream: int = 7) -> Event:
    return event("gemm", "kernel", ts, 5, tid=stream, correlation=correlation, stream=stream, device=0)


TWO_STEPS = [
    event("PyTorch Profiler (0)", "Trace", 90, 100),
    launch(98, 1), kernel(99, 1),
    step(1, 100, 10), launch(101, 2), kernel(112, 2),
    step(2, 110, 10), launch(111, 3), kernel(118, 3),
    kernel(119, 9),
]  # fmt: skip


def write(path: Path, events: list[Event], rank: int | None = 0) -> str:
    header: dict[str, Any] = {"schemaVersion": 1} | ({} if rank is None else {"distributedInfo": {"rank": rank}})
    text = json.dumps(header | {"traceEvents": events}).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


def job_of(tmp_path: Path, events: list[Event], **options: Any) -> HtaJob:
    return open_job({0: write(tmp_path / "a.json", events)}, **options)


def kept(job: HtaJob) -> list[int]:
    return sorted(job.frame(0)["index"])


def test_the_last_step_is_left_out_with_the_work_launched_in_it_and_work_of_unknown_launches(tmp_path: Path) -> None:
    assert kept(job_of(tmp_path, TWO_STEPS)) == [1, 2, 3, 4, 5]


def test_the_last_step_stays_if_asked_for(tmp_path: Path) -> None:
    assert kept(job_of(tmp_path, TWO_STEPS, include_last_profiler_step=True)) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_with_the_last_step_what_the_host_does_behind_it_stays_too(tmp_path: Path) -> None:
    # HTA asks whether the relative start lies before the absolute end of the last step, which is always so
    events = [*TWO_STEPS, event("cudaDeviceSynchronize", "cuda_runtime", 130, 2)]
    assert kept(job_of(tmp_path, events, include_last_profiler_step=True))[-1] == len(events) - 1


def test_with_one_step_or_none_every_event_stays_but_for_the_profilers_own(tmp_path: Path) -> None:
    one = [each for each in TWO_STEPS if each["name"] != "ProfilerStep#2"]
    assert kept(job_of(tmp_path, one)) == list(range(1, len(one)))


def test_the_graph_holds_what_the_frame_holds(tmp_path: Path) -> None:
    job = job_of(tmp_path, TWO_STEPS)
    recorded = job.graph.activities.event[job.graph.activities.event >= 0]
    assert sorted(recorded.tolist()) == kept(job)


def test_the_device_comes_first_where_events_were_left_out(tmp_path: Path) -> None:
    assert job_of(tmp_path, TWO_STEPS).frame(0)["index"].tolist() == [2, 5, 1, 3, 4]


def test_times_count_from_the_first_kept_event_of_any_rank(tmp_path: Path) -> None:
    late = [each | {"ts": each["ts"] + 40} for each in TWO_STEPS]
    job = open_job([write(tmp_path / "a.json", TWO_STEPS, 0), write(tmp_path / "b.json.gz", late, 1)])
    assert job.frame(0)["ts"].min() == 0
    assert job.frame(1)["ts"].min() == 40
    assert job.frame(0)["ts"].dtype == np.int64


def test_partners_are_found_by_correlation(tmp_path: Path) -> None:
    # HTA's own test: launches, a device-wide sync, one without a partner, one without an id
    events = [
        launch(0, 10), event("cudaDeviceSynchronize", "cuda_runtime", 1, 1, correlation=11), launch(2, 12),
        event("aten::mm", "cpu_op", 3, 1), kernel(4, 10),
        event("Context Sync", "cuda_sync", 5, 1, correlation=11, stream=-1), kernel(6, 13), event("b", "cpu_op", 7, 1),
    ]  # fmt: skip
    assert job_of(tmp_path, events).frame(0)["index_correlation"].tolist() == [4, 5, 0, -1, 0, 1, 0, -1]


def test_device_events_have_the_step_of_their_launch_on_stream_0_too(tmp_path: Path) -> None:
    # HTA leaves stream 0 without a step, and so all of AMD's work
    events = [step(1, 100, 10), launch(101, 2), kernel(112, 2, stream=0), step(2, 120, 10)]
    frame = job_of(tmp_path, events).frame(0).set_index("index")
    assert frame.loc[2, "iteration"] == 1


def test_a_file_without_a_rank_is_rank_0_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="says no rank"):
        job = open_job([write(tmp_path / "a.json", TWO_STEPS, None)])
    assert list(job.traces) == [0]


def test_compact_json_says_its_rank_too(tmp_path: Path) -> None:
    text = json.dumps({"distributedInfo": {"rank": 3}, "traceEvents": TWO_STEPS}, separators=(",", ":"))
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    assert list(open_job(None, str(tmp_path)).traces) == [3]


def test_two_files_of_one_rank_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RankError):
        open_job([write(tmp_path / "a.json", TWO_STEPS, 1), write(tmp_path / "b.json", TWO_STEPS, 1)])


@pytest.mark.parametrize("nothing", [{}, []])
def test_no_files_are_an_error(nothing: Any) -> None:
    with pytest.raises(HtagraphError, match="trace_files is empty"):
        open_job(nothing)


def test_ranks_are_rank_0_or_the_lowest(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", TWO_STEPS)
    assert open_job({0: path, 1: path}).ranks() == [0]
    job = open_job({3: path, 1: path})
    assert (job.ranks(), job.ranks([3])) == ([1], [3])
    with pytest.raises(RankError, match="there are ranks 1, 3"):
        job.ranks([0])


def test_what_htas_users_find_as_t(tmp_path: Path) -> None:
    job = job_of(tmp_path, TWO_STEPS)
    t = Trace.of(job)
    assert (t.get_ranks(), t.get_iterations(), t.get_device_type()) == ([0], [1], "NVIDIA GPU")
    assert t.get_trace_duration() == 14
    frame = t.get_trace(0)
    t.symbol_table.add_symbols_to_trace_df(frame, "name")
    assert set(frame["name"]) == {"ProfilerStep#1", "cudaLaunchKernel", "gemm"}
    assert job.frame(0)["name"].dtype.kind == "i", "the caller has a copy"
    assert t.get_raw_trace_for_one_rank(0)["traceEvents"] == TWO_STEPS
    assert t.symbol_table.find_matches(["^gem"]) == [t.symbol_table.sym_index["gemm"]]
    assert len(t.symbol_table.get_profiler_step_ids()) == 2
    with pytest.raises(ValueError, match="rank 4"):
        t.get_trace(4)


def test_the_start_in_unix_time_needs_a_base(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="baseTimeNanoseconds"):
        Trace.of(job_of(tmp_path, TWO_STEPS)).get_trace_start_unixtime_ns(0)
