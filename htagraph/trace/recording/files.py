"""The files of a recording: one per rank, each there whole or not at all."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from htagraph.core.errors import HtagraphError, shown

__all__ = ["folder_of", "rank_in_group", "rank_of_process", "whole", "write_packed"]

_LEVEL = 6
"""Level of gzip. Measured on 8.5 MB of `data/gloo_ddp`: 6 takes 0.14 s and 9, Python's own choice, 0.50 s for files
that are a ninth smaller; every rank waits while its file is written. Halved, 0.06 s and a third larger."""
_CHUNK = 2**20
"""Bytes that are compressed at a time. Chosen: large enough that Python's share is small. Doubled, nothing changes."""
_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Environment variables that say the rank of a process: of torchrun, Slurm, Open MPI, and MPICH."""


def folder_of(out: str | os.PathLike[str]) -> Path:
    """Return the folder for the files of all ranks, made if it is not there: what is wrong is said before the job runs.

    Raises:
        HtagraphError: it is empty, named like a file, or is one, or nothing can be written there.
    """
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

    Args:
        target: the file to make; its folder is made too.

    Raises:
        OSError: it cannot be written.
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

    Args:
        target: the file to make.
        export: writes text to the path that it is given.

    Raises:
        OSError: it cannot be written.
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
                shutil.copyfileobj(text, pack, _CHUNK)
        finally:
            plain.unlink(missing_ok=True)
