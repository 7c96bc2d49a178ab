"""The files of a recording: one per rank, each there whole or not at all."""

from __future__ import annotations

import gzip
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from htagraph.core.errors import HtagraphError, shown

__all__ = ["TraceHandler", "folder_of", "rank_in_group", "rank_of_process", "trace_handler", "whole", "write_packed"]

_LEVEL = 6
"""Level of gzip. Measured on 8.5 MB of `data/gloo_ddp`: 6 takes 0.14 s and 9, Python's own choice, 0.50 s for files
that are a ninth smaller; every rank waits while its file is written. Halved, 0.06 s and a third larger."""
_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Environment variables that say the rank of a process: of torchrun, Slurm, Open MPI, and MPICH."""


def folder_of(out: str | os.PathLike[str]) -> Path:
    """Return the folder for the files of all ranks, made if it is not there, or raise an error before the job runs."""
    if not os.fspath(out):
        msg = "out='': give a folder, such as out='traces'; '.' is the current one"
        raise HtagraphError(msg)
    folder = Path(out).expanduser()
    if not os.fspath(out).isprintable():  # PyTorch drops them from the names of its files
        msg = f"out={shown(os.fspath(out))}: has a line break or another letter that is not shown; give another folder"
        raise HtagraphError(msg)
    if folder.name.endswith((".json", ".gz", ".pickle")):
        msg = f"out={shown(os.fspath(out))}: give a folder: every rank writes a file of its own into it"
        raise HtagraphError(msg)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "is a file" if isinstance(error, FileExistsError) else error.strerror or str(error)
        msg = f"out={shown(os.fspath(out))}: {why}; give a folder that this process may make and write to"
        raise HtagraphError(msg) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        msg = f"out={shown(os.fspath(out))}: this process may not write there; give another folder"
        raise HtagraphError(msg)
    return folder


def rank_of_process() -> int:
    """Return this process's rank: in `torch.distributed` if that is initialized, else in the environment, else 0."""
    rank = rank_in_group()
    return _rank_in_environment() if rank is None else rank


def rank_in_group() -> int | None:
    """Return this process's rank in `torch.distributed`, or None if that is not initialized."""
    try:
        from torch import distributed
    except ImportError:
        return None
    return int(distributed.get_rank()) if distributed.is_available() and distributed.is_initialized() else None


def _rank_in_environment() -> int:
    texts = [os.environ.get(name, "") for name in _RANK_VARIABLES]
    return next((int(text) for text in texts if text.isascii() and text.isdigit()), 0)


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Give a path to write to; it is renamed to the target if it is there and all went well, and removed if not.

    Its name does not end as a trace's does, so that what is half written is not read for a trace.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    process = os.getpid()
    part = target.with_name(f".{target.name}.{process}.part")
    try:
        yield part
        if part.exists() and os.getpid() == process:
            part.replace(target)
    finally:
        if os.getpid() == process:  # one that was forked meanwhile has no part in it
            part.unlink(missing_ok=True)


def write_packed(target: Path, export: Callable[[str], object]) -> None:
    """Write what a function exports as a file of gzip, whole or not at all.

    `export` writes text to the path that it is given.
    """
    with whole(target) as packed:
        plain = packed.with_name(f"{packed.name}.text")
        try:
            export(str(plain))
            with (
                plain.open("rb") as text,
                packed.open("wb") as file,
                gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as pack,
            ):
                shutil.copyfileobj(text, pack)
        finally:
            plain.unlink(missing_ok=True)


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
        rank: the rank of this process; if not given, the rank in `torch.distributed` at the time of writing, else in
            the environment (``RANK``, ``SLURM_PROCID``, ``OMPI_COMM_WORLD_RANK``, ``PMI_RANK``), else 0.

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
