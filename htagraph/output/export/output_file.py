"""A file that appears at its place when it is complete, gzipped if its name says so."""

from __future__ import annotations

import gzip
import importlib
import os
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, cast

from htagraph.core.errors import TraceError
from htagraph.trace.remote import TracePath

try:
    _gzip_writer: Any = importlib.import_module("isal.igzip").IGzipFile
except ImportError:  # no wheel for this machine: the standard library does the same, slower
    _gzip_writer = gzip.GzipFile

__all__ = ["OutputFile"]

_BUFFER_BYTES = 1 << 20
"""Bytes that are written together; chosen. Doubled, half as many writes."""
_GZIP_LEVEL = 2  # of isal's 0 to 3; of zlib's the fast ones


class OutputFile:
    """Writes a file of events, whole or not at all: the base of writers, which say what stands at its end.

    Args:
        target: where to write, gzipped if it ends in ``.gz``; its folder is made.
        sources: files that must not be written over.

    Raises:
        TraceError: the target is one of the sources, or cannot be written.
    """

    def __init__(self, target: str | Path, *, sources: Iterable[TracePath] = ()) -> None:
        self.target = Path(target)
        self._stack = ExitStack()
        _refuse_source(self.target, sources)
        self._place = Path(os.path.realpath(self.target))  # a link stays one, and leads to the new file
        try:
            plain = self._stack.enter_context(self._opened())
        except OSError as error:
            raise self._unwritable(error) from error
        self._file = plain
        if self.target.suffix == ".gz":  # no name and no time in it: the same events give the same bytes
            zipped = _gzip_writer(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=plain, mtime=0)
            self._file = cast("BinaryIO", self._stack.enter_context(zipped))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
            self._stack.close()
            if kind is None:
                self._appear()
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            if self._part is not None:
                self._part.unlink(missing_ok=True)

    def _finish(self) -> None:
        """Write what stands behind the events."""

    def _write(self, data: bytes | memoryview) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise self._unwritable(error) from error

    def _opened(self) -> BinaryIO:
        """Open a file to be renamed in the end; a device or a pipe itself, which no file may replace."""
        self._part: Path | None = None
        place = self._place
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if place.exists() and not place.is_file():
            return place.open("wb", buffering=_BUFFER_BYTES)
        handle, part = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        self._part = Path(part)
        return os.fdopen(handle, "wb", buffering=_BUFFER_BYTES)

    def _appear(self) -> None:
        if self._part is not None:
            self._part.chmod(0o666 & ~_umask())  # temporary files are for their owner only
            self._part.replace(self._place)

    def _unwritable(self, error: OSError) -> TraceError:
        return TraceError(f"{self.target}: cannot be written ({error.strerror or error})")


def _refuse_source(target: Path, sources: Iterable[TracePath]) -> None:
    for source in sources:
        if isinstance(source, Path) and target.exists() and source.exists() and target.samefile(source):
            msg = f"{target}: is the trace itself; write to another file"
            raise TraceError(msg)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
