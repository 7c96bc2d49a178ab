"""The content of a file, gunzipped where it is gzip."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Literal

from htagraph.core.errors import DamagedTraceError, TraceError

__all__ = ["content", "kind_of"]

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's code for "expect a gzip header"
_PICKLE = b"\x80"
_HEAD = 4096


def content(path: str | Path) -> bytes:
    """Return what a file holds; gzip is told by its content, whatever the file is called.

    Raises:
        TraceError: the file cannot be read, or is damaged.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error})"
        raise TraceError(msg) from error
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except MemoryError:
        msg = f"{path}: unpacked it does not fit into memory"
        raise TraceError(msg) from None
    except (EOFError, OSError, zlib.error) as error:
        msg = f"{path}: the gzip stream is damaged ({error})"
        raise DamagedTraceError(msg) from error


def kind_of(path: str | Path) -> Literal["snapshot", "timeline", "trace"]:
    """Return what a path is, by how its content begins: a pickle, a list of lists, or anything else, a folder too."""
    if Path(path).exists() and not Path(path).is_file():
        return "trace"  # of a pipe nothing may be read twice
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return "trace"  # reading it as one says what is wrong, here and below
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(_GZIP_WINDOW).decompress(head, _HEAD)
        except zlib.error:
            return "trace"
    if head.startswith(_PICKLE):
        return "snapshot"
    return "timeline" if b"".join(head.split()).startswith(b"[[") else "trace"
