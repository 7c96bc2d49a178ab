"""Other files that PyTorch can write beside a trace: the allocator's history, and an execution trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from htagraph.core.errors import HtagraphError
from htagraph.trace.recording.files import rank_of_process, whole
from htagraph.trace.recording.trace_handler import TraceHandler

__all__ = ["execution_trace_into", "memory_snapshot_into"]

_SNAPSHOT_ENTRIES = 100_000
"""Allocations and frees that a snapshot keeps, the last ones. Chosen: as in PyTorch's examples; a large model has some
thousand per step. Doubled, snapshots are up to twice as large."""


def _beside(handler: TraceHandler, suffix: str) -> Path:
    rank = rank_of_process() if handler.rank is None else handler.rank
    return handler.folder / f"rank-{rank}.{suffix}"


@contextmanager
def memory_snapshot_into(torch: Any, handler: TraceHandler) -> Iterator[None]:  # noqa: ANN401
    """Have CUDA's allocator keep its history, and write it at the end, if anything was recorded.

    Raises:
        HtagraphError: there is no CUDA device, or this PyTorch keeps no history.
    """
    memory = torch.cuda.memory
    if not torch.cuda.is_available() or not hasattr(memory, "_record_memory_history"):
        msg = "memory_snapshot=True needs a CUDA device and PyTorch 2.1 or later; use profile_memory=True instead"
        raise HtagraphError(msg)
    memory._record_memory_history(max_entries=_SNAPSHOT_ENTRIES)
    try:
        yield
        if handler.written:
            with whole(_beside(handler, "memory.pickle")) as part:
                memory._dump_snapshot(str(part))
    finally:
        memory._record_memory_history(enabled=None)


@contextmanager
def execution_trace_into(torch: Any, handler: TraceHandler) -> Iterator[Any]:  # noqa: ANN401
    """Give an observer that writes an execution trace of the steps that are recorded.

    Raises:
        HtagraphError: this PyTorch has none that follows the profiler.
    """
    import inspect

    if "execution_trace_observer" not in inspect.signature(torch.profiler.profile.__init__).parameters:
        msg = f"execution_trace=True: the profiler of PyTorch {torch.__version__} cannot; it came with 2.2"
        raise HtagraphError(msg)
    with whole(_beside(handler, "execution_trace.json")) as part:
        observer = torch.profiler.ExecutionTraceObserver()
        observer.register_callback(str(part))
        try:
            yield observer
        finally:
            observer.unregister_callback()
