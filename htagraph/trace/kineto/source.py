"""Files → decompressed bytes, in pieces. The format is detected from the content, never from the suffix."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

from htagraph.core.errors import IssueLog, NotATraceError, TraceError
from htagraph.trace.remote import BLOCK_BYTES, RemotePath, TracePath

try:
    _gzip_engine: Any = importlib.import_module("isal.isal_zlib")
except ImportError:  # no wheel for this machine: the standard library does the same, slower
    _gzip_engine = zlib

__all__ = ["PIECE_BYTES", "SMALL_BYTES", "ahead", "iter_bytes"]

PIECE_BYTES = BLOCK_BYTES
"""Bytes of a piece: one request of a remote file, and one block of `split`. Doubling it doubles the memory for text in
flight."""
_GZIP = b"\x1f\x8b"  # the first bytes of gzip (RFC 1952)
_ZSTD = b"\x28\xb5\x2f\xfd"  # those of a zstd frame (RFC 8878)
SMALL_BYTES = 64 << 10
"""Bytes of a piece when little is wanted: the header alone, or the text just before damage. Chosen: headers of small
jobs fit into one; larger pieces decompress more than is needed, and need one more halving before damage."""
_RAW_WINDOW = -zlib.MAX_WBITS  # zlib's code for "no header and no checksum"
_ZIP_GZIP_WINDOW = zlib.MAX_WBITS | 16  # zlib's code for "expect a gzip header"
_FOREIGN = (
    (b"PK\x03\x04", "a zip archive; unpack it and pass the traces in it"),
    (b"BZh", "compressed with bzip2; decompress it first (bunzip2)"),
    (b"\xfd7zXZ", "compressed with xz; decompress it first (unxz)"),
    (b"PAR1", "a parquet file, not a Kineto trace"),
    (b"SQLite format 3", "an SQLite file (an Nsight Systems export?), not a Kineto trace"),
    (b"\x80\x04", "a pickle (a torch memory snapshot?), not a Kineto trace"),
)


def iter_bytes(
    path: TracePath, log: IssueLog, progress: Callable[[int], None] | None = None, *, piece_bytes: int | None = None,
    start: int = 0,
) -> Iterator[bytes]:  # fmt: skip
    """Yield the decompressed bytes of a file, in pieces.

    A gzip stream that ends early or fails its checksum yields the bytes up to the damage. `progress` is called with the
    number of bytes of the file consumed so far; `start` is the position of the first byte to yield.
    """
    try:
        with path.open(piece_bytes) if isinstance(path, RemotePath) else path.open("rb") as file:
            head = file.read(max(len(magic) for magic, _ in _FOREIGN))
            unpack = next((way for magic, way in ((_GZIP, _gunzip), (_ZSTD, _unzstd)) if head.startswith(magic)), None)
            file.seek(0)
            if not head:
                msg = f"{path}: the file is empty; was the job killed before the profiler exported?"
                raise TraceError(msg)
            size = piece_bytes or PIECE_BYTES
            for piece in _from(start, unpack(file, log, size)) if unpack else _plain(file, path, size, start):
                yield piece
                if progress is not None:
                    progress(file.tell())
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error})"
        raise TraceError(msg) from error


def ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces of a file, the next of which is decompressed while the caller decodes one."""
    piece = next(pieces, None)
    with ThreadPoolExecutor(1, "htagraph-unpack") as pool:
        while piece is not None:  # one that is not full is the last: thousands of small files would start threads
            following = pool.submit(next, pieces, None) if len(piece) >= SMALL_BYTES else None
            yield piece
            piece = following.result() if following else next(pieces, None)


def _from(start: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces without their first `start` bytes."""
    for piece in pieces:
        if start < len(piece):
            yield piece[start:]
        start = max(0, start - len(piece))


def _plain(file: BinaryIO, path: TracePath, size: int, start: int) -> Iterator[bytes]:
    file.seek(start)
    first = file.read(size)
    if not start:
        _refuse_foreign(first, path)
    while first:
        yield first
        first = file.read(size)


def _gunzip(file: BinaryIO, log: IssueLog, size: int) -> Iterator[bytes]:
    sniffed = False
    pending = _member(b"", file, size)
    while pending:
        if not pending.startswith(_GZIP):
            log.add("gzip_trailing_bytes", "bytes after the end of the gzip stream; ignored")
            return
        start, done = file.tell() - len(pending), 0
        engine: Any = _gzip_engine.decompressobj(_ZIP_GZIP_WINDOW)
        while not engine.eof:
            try:
                piece = engine.decompress(pending, size) if pending else engine.flush()
            except (zlib.error, _gzip_engine.error) as error:
                log.add("gzip_damaged", f"the gzip stream is damaged ({error}); events before the damage were read")
                yield from _before_damage(file, start, done)
                return
            if piece:
                if not sniffed:
                    _refuse_foreign(piece, file.name)
                    sniffed = True
                done += len(piece)
                yield piece
            elif not pending and not engine.eof:
                log.add("gzip_truncated", "the gzip stream ends early; events up to its end were read")
                return
            if not engine.eof:
                pending = engine.unconsumed_tail or file.read(size)
        pending = _member(engine.unused_data, file, size)


def _unzstd(file: BinaryIO, log: IssueLog, size: int) -> Iterator[bytes]:
    import zstandard  # few files need it

    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=False)
    piece = bytearray()
    try:
        while more := reader.read1(SMALL_BYTES):  # one that fails returns nothing of what precedes the damage
            if not piece and reader.tell() == len(more):
                _refuse_foreign(more, file.name)
            piece += more
            if len(piece) >= size:
                yield bytes(piece)
                piece.clear()
    except zstandard.ZstdError as error:
        log.add("zstd_damaged", f"the zstd stream is damaged ({error}); events before the damage were read")
    if piece:
        yield bytes(piece)


def _member(pending: bytes, file: BinaryIO, size: int) -> bytes:
    """Return the beginning of the next gzip member, skipping zeros: some writers pad the end with them."""
    pending = pending.lstrip(b"\0")
    while len(pending) < len(_GZIP) and (more := file.read(size)):
        pending = (pending + more).lstrip(b"\0")
    return pending


def _before_damage(file: BinaryIO, start: int, done: int) -> Iterator[bytes]:
    """Yield the text of the gzip member at `start` from its first `done` bytes on, up to the damage.

    zlib does not return the bytes that it decompressed before it met damage in the same call. So decompress again, in
    steps from a copy of the decompressor, and halve the step until a single byte fails. Raw mode is used, since a wrong
    checksum damages nothing before it.
    """
    file.seek(start)
    engine, pending, step = (zlib.decompressobj(_RAW_WINDOW), _behind_gzip_header(file.read(SMALL_BYTES)), SMALL_BYTES)
    while step and not engine.eof:
        pending = pending or file.read(SMALL_BYTES)
        before = engine.copy()
        try:
            piece = engine.decompress(pending, step)
        except zlib.error:
            engine, step = before, step // 2
            continue
        if not piece and not pending:
            return
        pending = engine.unconsumed_tail
        if len(piece) > done:
            yield piece[done:]
        done = max(0, done - len(piece))


def _behind_gzip_header(data: bytes) -> bytes:
    """Return the compressed data after the header of a gzip member (RFC 1952, which has these offsets and flags)."""
    flags, at = data[3:4], 10
    if not flags:
        return b""
    if flags[0] & 4:  # extra field
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for text in (8, 16):  # file name, comment
        if flags[0] & text:
            at = data.find(b"\0", at) + 1
    return data[at + (flags[0] & 2) :]  # 2: checksum of the header


def _refuse_foreign(head: bytes, path: object) -> None:
    for magic, advice in _FOREIGN:
        if head.startswith(magic):
            msg = f"{path}: {advice}"
            raise NotATraceError(msg)
    if b"\0" in head[:256]:  # protobuf has one in its first fields, JSON has none anywhere
        msg = (
            f"{path}: binary data, not JSON (protobuf or Perfetto-native traces are not read; "
            "export with prof.export_chrome_trace)"
        )
        raise NotATraceError(msg)
