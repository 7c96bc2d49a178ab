"""trace_handler: what a profiler calls with a finished recording, to have it written as htagraph reads it."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from htagraph.trace.recording.files import folder_of, rank_in_group, rank_of_process, write_packed

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TraceHandler", "trace_handler"]


class TraceHandler:
    """Writes each recording that it is called with into a folder."""

    def __init__(self, folder: Path, rank: int | None) -> None:
        self.folder = folder
        self.rank = rank
        self.written: list[Path] = []
        """The files that were written, in order."""
        self._began, self._process = time.time(), os.getpid()
        self._noted: int | None = None

    def __call__(self, profiler: Any) -> None:  # noqa: ANN401 - torch.profiler.profile
        """Write what a profiler has recorded."""
        if _is_empty(profiler):
            warnings.warn(
                "no file was written: another profiler of PyTorch ran while this one recorded, and there is one at a "
                "time; what this one had recorded is lost", stacklevel=2,
            )  # fmt: skip
            return
        number = len(self.written) + 1
        folder = self.folder if number == 1 else self.folder / f"recording-{number}"
        target = folder / f"rank-{self.rank_now()}.json.gz"
        _warn_if_of_another_process(target, self._began)
        write_packed(target, profiler.export_chrome_trace)
        self.written.append(target)

    def rank_now(self) -> int:
        """Return the rank that files are named after."""
        known = self.rank if self.rank is not None else rank_in_group()
        known = self._noted if known is None else known
        return rank_of_process() if known is None else known

    def is_of_this_process(self) -> bool:
        """Return whether this process made the handler, rather than one that it was forked from."""
        return self._process == os.getpid()

    def noting_rank(self, schedule: Callable[[int], Any]) -> Callable[[int], Any]:
        """Return a profiler's schedule that notes the rank as each step begins.

        A job may leave its process group before the recording is written, and nothing else may know the rank then.
        """

        def noting(step: int) -> Any:  # noqa: ANN401 - torch.profiler.ProfilerAction
            rank = rank_in_group()
            self._noted = self._noted if rank is None else rank
            return schedule(step)

        return noting


def _is_empty(profiler: Any) -> bool:  # noqa: ANN401
    """Return whether a profiler has lost its recording; PyTorch ends the process if that is written."""
    results = getattr(getattr(profiler, "profiler", None), "kineto_results", None)
    start = getattr(results, "trace_start_ns", None)
    return start is not None and start() == 0


def _warn_if_of_another_process(target: Path, began: float) -> None:
    """Warn if a file was written since this process began to record: then two processes have the same rank."""
    if target.exists() and target.stat().st_mtime > began:
        advice = "call init_process_group before, or set RANK"
        warnings.warn(f"{target} was just written by another process and is replaced: {advice}", stacklevel=3)


def trace_handler(out: str | os.PathLike[str] = "traces", *, rank: int | None = None) -> Callable[[Any], None]:
    """Return what `torch.profiler.profile` calls as ``on_trace_ready``: it writes a file per rank, packed and whole.

    For profilers that are set up elsewhere: by hand, or by Lightning, Hugging Face or another framework. A schedule
    that repeats gives several recordings; the second one is written to ``recording-2/`` inside the folder, and so on,
    because files in one folder are one job.

    Args:
        out: the folder, made if it is not there. Files of the same rank in it are replaced.
        rank: the rank of this process; if not given, that of `torch.distributed` at the time of writing, else of the
            environment (``RANK``, ``SLURM_PROCID``, ``OMPI_COMM_WORLD_RANK``, ``PMI_RANK``), else 0.

    Returns:
        A function of the profiler.

    Raises:
        HtagraphError: `out` is no folder that can be written to.

    Example:
        >>> import tempfile
        >>> import htagraph as hg
        >>> handler = hg.trace_handler(tempfile.mkdtemp())
        >>> torch.profiler.profile(record_shapes=True, on_trace_ready=handler)  # doctest: +SKIP
    """
    return TraceHandler(folder_of(out), rank)
