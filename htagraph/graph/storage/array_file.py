"""One file of arrays and a manifest: written beside its place and moved there, mapped into memory when it is read.

Layout: a head of 64 bytes (`_HEAD`: magic word, format, where the manifest is, its digest; then the head's own digest),
the arrays, each on a multiple of 64 bytes, then the manifest: JSON with the caller's part and a row per array. Plain
JSON and plain numbers only, so that reading a file never runs code that it brings.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import StoredGraphError

try:  # three times as fast as zlib
    from isal.isal_zlib import crc32
except ImportError:  # processors that isal has no package for
    from zlib import crc32

__all__ = ["read_file", "refuse", "write_file", "write_whole"]


_MAGIC = b"htagraph"
_FORMAT = 1
"""Number of the layout. It grows with every change after which older files would be misread."""
_HEAD = struct.Struct("<8sQQQ16s")
"""Magic word, format, place and length of the manifest (bytes), digest of the manifest; the head's digest follows."""
_DIGEST_BYTES = 16
"""Bytes of a digest: 128 bits, so that no damage goes unnoticed. Doubled, the head would not fit into `_ALIGNMENT`."""
_ALIGNMENT = 64
"""Bytes: every array begins at a multiple of this, as wide as the widest vectors of a processor, and of a cache line.
Doubled, files grow by 32 bytes per array."""
_PLAIN_KINDS = "biuf"
"""Kinds of numbers that arrays may have: truth, integers, floating point. Objects would be pickled."""


def write_file(path: Path, content: Any, arrays: Sequence[Array], *, durable: bool) -> None:  # noqa: ANN401 - JSON
    """Write arrays of plain numbers and a value of JSON to a file, which is there either whole or as it was.

    The file's folder must be there. Unless the call waits until the disk has the file (`durable`), a crash of the
    machine may leave a damaged file, which `read_file` refuses.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
        TypeError: an array does not hold plain numbers, or the content is not JSON.
    """
    write_whole(path, lambda file: _write(file, content, arrays), durable=durable)


def write_whole(path: Path, write: Callable[[IO[bytes]], object], *, durable: bool) -> None:
    """Write a file beside its place and move it there, so that nobody sees a part of it."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(name, path)  # noqa: PTH105 - the name is text
    except BaseException:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108 - the name is text
        raise


def _write(file: IO[bytes], content: Any, arrays: Sequence[Array]) -> None:  # noqa: ANN401 - JSON
    at, rows = _ALIGNMENT, []
    file.write(bytes(_ALIGNMENT))
    for array in arrays:
        if array.dtype.kind not in _PLAIN_KINDS:
            msg = f"an array of {array.dtype} cannot be stored"
            raise TypeError(msg)
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        file.write(data.data)
        file.write(bytes(-len(data) % _ALIGNMENT))
        rows.append([array.dtype.str, list(array.shape), at, crc32(data)])
        at += len(data) + -len(data) % _ALIGNMENT
    manifest = json.dumps({"content": content, "arrays": rows}, separators=(",", ":")).encode()
    file.write(manifest)
    head = _HEAD.pack(_MAGIC, _FORMAT, at, len(manifest), _digest(manifest))
    file.seek(0)
    file.write(head + _digest(head))


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def read_file(path: Path) -> tuple[Any, list[Array]]:
    """Return the content and the arrays of a file; the arrays are mapped, so that processes share their memory.

    Args:
        path: a file that `write_file` wrote.

    Raises:
        StoredGraphError: the file is damaged or cut short, of another format, or something else; a digest of the
            manifest and a checksum of each array say so.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _ALIGNMENT:
            refuse(path, "is too short")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    magic, number, at, length, digest = _HEAD.unpack_from(mapped)
    if magic != _MAGIC:
        refuse(path, "is no saved graph")
    if _digest(mapped[: _HEAD.size]) != mapped[_HEAD.size : _HEAD.size + _DIGEST_BYTES]:
        refuse(path, "its head is damaged")
    if number != _FORMAT:
        refuse(path, f"has format {number}, this release reads format {_FORMAT}")
    if at + length != size or _digest(mapped[at:]) != digest:
        refuse(path, "its manifest is damaged or cut short")
    manifest = json.loads(mapped[at:])
    data = np.frombuffer(mapped, np.uint8)
    return manifest["content"], [_array(path, data[:at], row) for row in manifest["arrays"]]


def _array(path: Path, data: Array, row: list[Any]) -> Array:
    """Return one array of the mapped bytes; it cannot be written."""
    word, shape, at, checksum = row
    dtype = np.dtype(word)
    if dtype.kind not in _PLAIN_KINDS or not dtype.isnative or at % _ALIGNMENT or min(shape, default=0) < 0:
        refuse(path, "has an array that this machine cannot read")
    part = data[at : at + dtype.itemsize * int(np.prod(shape, dtype=object))]
    if crc32(part) != checksum:
        refuse(path, "an array is damaged")
    return part.view(dtype).reshape(shape)


def refuse(path: Path, why: str) -> NoReturn:
    """Raise the error that says why a file cannot be opened."""
    msg = f"{path}: cannot be opened: {why}; load the traces and save the graph again"
    raise StoredGraphError(msg)
