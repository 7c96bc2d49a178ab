"""The content of a file (gunzipped if it is gzip), which kind of profiler file it is, and compressed bytes in files."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Literal

from htagraph.core.errors import DamagedTraceError, TraceError

__all__ = ["MAX_BYTES", "MAX_SIZE", "content", "inflated", "kind_of"]

MAX_BYTES = 1 << 30
"""Bytes of content of a file that is read as a whole. Chosen: far beyond the snapshots and timelines of jobs. Doubled,
a hostile file of a megabyte may take 2 GiB."""
MAX_SIZE = 2**50
"""Bytes: the largest piece of memory that a file may name (1 PB). Chosen: no device has more, and int64 sums of up
to 8,000 such sizes are exact. Doubling it halves that number."""

_GZIP = b"\x1f\x8b"  # the first bytes of gzip (RFC 1952)
_GZIP_WINDOW = zlib.MAX_WBITS | 16  # zlib's code for "expect a gzip header"
_PICKLE = b"\x80"  # the first byte of a pickle of protocol 2 and later


def content(path: str | Path) -> bytes:
    """Return the content of a file, gunzipped if it begins as gzip does, whatever its name is.

    A file that cannot be read, is damaged, or has more than `MAX_BYTES`, raises a TraceError.
    """
    try:
        with Path(path).open("rb") as file:
            is_gzip = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            data = (gzip.GzipFile(fileobj=file) if is_gzip else file).read(MAX_BYTES + 1)
    except MemoryError:
        msg = f"{path}: does not fit into memory"
        raise TraceError(msg) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        msg = f"{path}: the gzip stream is damaged ({error})"
        raise DamagedTraceError(msg) from error
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error})"
        raise TraceError(msg) from error
    if len(data) > MAX_BYTES:
        msg = f"{path}: has more than {MAX_BYTES >> 20:,} MiB of content, the limit for such files"
        raise TraceError(msg)
    return data


def kind_of(path: str | Path) -> Literal["snapshot", "timeline", "trace"]:
    """Return the kind of a profiler file, from how its content begins.

    A pickle is a memory snapshot and a JSON list of lists a memory timeline; anything else counts as a trace, also a
    folder, a pipe and a file that cannot be read: reading it as a trace reports what is wrong.
    """
    if Path(path).exists() and not Path(path).is_file():
        return "trace"  # what is read from a pipe here would be lost
    try:
        with Path(path).open("rb") as file:
            head = file.read(io.DEFAULT_BUFFER_SIZE)
    except (OSError, ValueError):  # ValueError: no path has such characters
        return "trace"
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(_GZIP_WINDOW).decompress(head, io.DEFAULT_BUFFER_SIZE)
        except zlib.error:
            return "trace"
    if head.startswith(_PICKLE):
        return "snapshot"
    return "timeline" if b"".join(head.split()).startswith(b"[[") else "trace"


def inflated(data: bytes, most: int) -> bytes:
    """Return what zlib compressed.

    It raises a ValueError if they end early or would become more, and a zlib.error if zlib did not compress them.

    Example:
        >>> inflated(zlib.compress(b"a" * 9), 9)
        b'aaaaaaaaa'
    """
    stream = zlib.decompressobj()
    raw = stream.decompress(data, most)
    if not stream.eof:
        msg = "the bytes end early, or are too many"
        raise ValueError(msg)
    return raw
