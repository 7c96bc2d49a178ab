"""Sums of two jobs side by side, against sums written out."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.hta.common.trace import Trace
from htagraph.hta.shapes.diff import DeviceType, brief_frame, compared, events_of, groups_of, ops_summary, steps_of
from tests.hta.shapes.test_job import TWO_STEPS, event, job_of


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return Trace.of(job_of(tmp_path, TWO_STEPS, include_last_profiler_step=True))


def test_steps_are_among_the_symbols(trace: Trace) -> None:
    assert steps_of(trace.symbol_table)[["symbol", "iteration"]].to_numpy().tolist() == [
        ["ProfilerStep#1", 1], ["ProfilerStep#2", 2],
    ]  # fmt: skip


def test_events_are_chosen_by_step_and_device(trace: Trace) -> None:
    frames = {0: trace.get_trace(0)}
    count = {
        kind: len(events_of(frames, [1], kind, trace.symbol_table))
        for kind in (DeviceType.CPU, DeviceType.GPU, DeviceType.ALL)
    }
    assert count == {DeviceType.CPU: 2, DeviceType.GPU: 1, DeviceType.ALL: 3}


def test_a_brief_frame_gives_the_same_sums(trace: Trace) -> None:
    sums = [
        ops_summary(events_of({0: frame}, [1, 2], DeviceType.ALL, trace.symbol_table), trace.symbol_table)
        for frame in (trace.get_trace(0), brief_frame(trace, 0))
    ]
    assert sums[0].equals(sums[1])
    assert sums[0].set_index("name").to_dict()["counts"] == {
        "cudaLaunchKernel": 2, "gemm": 2, "ProfilerStep#1": 1, "ProfilerStep#2": 1,
    }  # fmt: skip


def test_what_one_job_lacks_is_0_there(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Trace.of(job_of(tmp_path / "other", [event("aten::mm", "cpu_op", 0, 3), event("gemm", "cpu_op", 5, 1)]))
    sums = [ops_summary(job.get_trace(0), job.symbol_table) for job in (trace, other)]
    table = compared(sums, ["a", "b"], "name")
    assert list(table.to_dict("index")["aten::mm"].values()) == [0, 0, 1, 3, 1, 3, "+"]
    groups = groups_of(table, ["a", "b"])
    assert (groups["added"], groups["decreased"]) == (["aten::mm"], ["gemm"])
    assert sum(map(len, groups.values())) == len(table)
