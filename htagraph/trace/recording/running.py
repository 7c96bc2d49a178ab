"""A profiler of PyTorch while a block runs: ended by the process that began it, whatever ends the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from htagraph.trace.recording.trace_handler import TraceHandler

__all__ = ["running"]


@contextmanager
def running(profiler: Any, handler: TraceHandler) -> Iterator[None]:  # noqa: ANN401
    """Run a profiler while a block runs.

    An error of the block stays the error that is raised, also if the profiler cannot end after it, as after Ctrl-C in
    the middle of its own start; its notes say what was written. A forked process that leaves the block does not end the
    profiler, as the threads that it waits for are in the other process only: it would wait forever.

    Args:
        profiler: the `torch.profiler.profile`.
        handler: what it calls with a recording.
    """
    profiler.__enter__()
    try:
        yield
    except BaseException as error:
        if handler.is_of_this_process():
            _end_after(error, profiler, handler)
        raise
    if handler.is_of_this_process():
        profiler.__exit__(None, None, None)


def _end_after(error: BaseException, profiler: Any, handler: TraceHandler) -> None:  # noqa: ANN401
    before = len(handler.written)
    try:
        profiler.__exit__(type(error), error, error.__traceback__)
    except Exception as another:  # noqa: BLE001 - the error of the job is the one to see
        _note(error, f"htagraph.profile: the recording could not be written: {another}")
    for file in handler.written[before:]:
        _note(error, f"htagraph.profile: {file} has what was recorded until this was raised")


def _note(error: BaseException, text: str) -> None:
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(text)
