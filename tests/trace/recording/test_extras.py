"""The allocator's history and execution traces: refused where PyTorch cannot, written where it can."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from htagraph.core.errors import HtagraphError
from htagraph.trace.recording.extras import execution_trace_into, memory_snapshot_into
from htagraph.trace.recording.trace_handler import TraceHandler


class Memory:
    """An allocator that keeps its history."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def _record_memory_history(self, enabled: Any = "all", max_entries: int = 0) -> None:
        self.asked.append(enabled)

    def _dump_snapshot(self, path: str) -> None:
        Path(path).write_bytes(b"snapshot")


def with_cuda(memory: object, *, available: bool = True) -> Any:
    return types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: available, memory=memory))


def test_a_snapshot_is_written_after_a_recording_and_the_history_ends(tmp_path: Path) -> None:
    memory, handler = Memory(), TraceHandler(tmp_path, 3)
    with memory_snapshot_into(with_cuda(memory), handler):
        handler.written.append(tmp_path / "rank-3.json.gz")
    assert (tmp_path / "rank-3.memory.pickle").read_bytes() == b"snapshot"
    assert memory.asked == ["all", None]


def test_without_a_recording_there_is_no_snapshot(tmp_path: Path) -> None:
    memory = Memory()
    with memory_snapshot_into(with_cuda(memory), TraceHandler(tmp_path, 0)):
        pass
    assert list(tmp_path.iterdir()) == []
    assert memory.asked == ["all", None]


@pytest.mark.parametrize("torch", [with_cuda(Memory(), available=False), with_cuda(object())])
def test_a_snapshot_without_cuda_is_refused(torch: Any, tmp_path: Path) -> None:
    with pytest.raises(HtagraphError, match="needs a CUDA device"):
        memory_snapshot_into(torch, TraceHandler(tmp_path, 0)).__enter__()


def test_an_execution_trace_with_an_old_pytorch_is_refused(tmp_path: Path) -> None:
    torch = types.SimpleNamespace(__version__="2.1", profiler=types.SimpleNamespace(profile=Memory))
    with pytest.raises(HtagraphError, match=r"PyTorch 2\.1 cannot"):
        execution_trace_into(torch, TraceHandler(tmp_path, 0)).__enter__()
