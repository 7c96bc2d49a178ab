"""HTA's name lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.hta.shapes.names import (
    device_side,
    in_window,
    is_analysed,
    is_mtia,
    is_step,
    memory_type,
    shorten,
    step_names,
    step_of,
)
from htagraph.trace.columns import Trace
from htagraph.trace.kineto.read import read_trace
from tests.hta.shapes.test_job import TWO_STEPS, event, write


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::fill<float>(float*, int)", "at::native::fill"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("aten::add", "aten::add"),
        ("f<a<b>, c>(int)", "f"),
        ("operator-> x(y)", "x"),
        ("a) b", "a) b"),
        ("(a) b", "b"),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert shorten(name) == short


def test_kinds_of_copies() -> None:
    names = ("Memset (Device)", "Memcpy DtoH (x)", "fill")
    assert [memory_type(name) for name in names] == ["Memset", "Memcpy DtoH", "Memcpy Unknown"]


def test_steps_have_numbers() -> None:
    assert (step_of("ProfilerStep#12"), step_of("ProfilerStep # 3"), step_of("other")) == (12, 3, -1)
    assert [is_step(name) for name in ("ProfilerStep#1", "a ProfilerStep#1")] == [True, False]


def trace_of(tmp_path: Path, events: list[dict[str, object]]) -> Trace:
    return read_trace(Path(write(tmp_path / "a.json", events)), lambda *_: 0)


def test_the_profilers_own_spans_are_not_analysed(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TWO_STEPS)
    assert (~is_analysed(trace)).sum() == 1
    assert step_names(trace) == {"ProfilerStep#1", "ProfilerStep#2"}
    assert not is_mtia(trace)


def test_waits_for_the_device_are_the_devices(tmp_path: Path) -> None:
    events = [event("Event Sync", "cuda_sync", 0, 1), event("aten::mm", "cpu_op", 0, 1),
              event("gemm", "kernel", 0, 1, tid=7, stream=7, correlation=3)]  # fmt: skip
    assert device_side(trace_of(tmp_path, events)).tolist() == [True, False, True]


def test_a_rank_without_steps_keeps_all(tmp_path: Path) -> None:
    assert in_window(trace_of(tmp_path, TWO_STEPS[1:3]), include_last=False).all()
