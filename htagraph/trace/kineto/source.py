"""Files → decompressed bytes, in pieces. The format is detected from the content, never from the suffix."""

from __future__ import annotations

import importlib
import io
import itertools
import re
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

from htagraph.core import computing
from htagraph.core.computing import Threads
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
_SKIPPED = b"\x50\x2a\x4d\x18"  # those of what pzstd writes before each frame
SMALL_BYTES = 64 << 10
"""Bytes of a piece when little is wanted: the header alone, or the text just before damage. Chosen: headers of small
jobs fit into one; larger pieces decompress more than is needed, and need one more halving before damage."""
_ZIP_GZIP_WINDOW = zlib.MAX_WBITS | 16  # zlib's code for "expect a gzip header"
_JSON_BEGINS = re.compile(rb'(?:\xef\xbb\xbf)?[\0\s]*[{\[][\0\s]*["{]')
_CONTROLS = bytes({*range(0x20), *range(0x7F, 0x100)} - set(b"\t\r\n"))
"""Bytes that are no letter of a JSON text in ASCII."""
_LETTERS_SHARE = 0.75
"""Least share of letters in the first bytes of a damaged text. Chosen: of protobuf's first fields, half are letters at
most. Doubled, no damaged text would be read."""
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
    start: int = 0, check: Callable[[bytes, object], None] | None = None,
) -> Iterator[bytes]:  # fmt: skip
    """Yield the decompressed bytes of a file, in pieces.

    A gzip stream that ends early or fails its checksum yields the bytes up to the damage. `progress` is called with the
    number of bytes of the file consumed so far; `start` is the position of the first byte to yield; `check`, given the
    first bytes and the path, refuses files of other formats: all but JSON, if it is not given.
    """
    try:
        with path.open(piece_bytes) if isinstance(path, RemotePath) else path.open("rb") as file:
            head = file.read(SMALL_BYTES)
            if not head:
                msg = f"{path}: the file is empty; was the job killed before the profiler exported?"
                raise TraceError(msg)
            size = piece_bytes or PIECE_BYTES
            if head.startswith((_GZIP, _ZSTD, _SKIPPED)):
                pieces = _unpacked(file, log, size, is_gzip=head.startswith(_GZIP))
                head = next(pieces, b"")
                pieces = _from(start, itertools.chain((head,), pieces))
            else:
                file.seek(start)
                pieces = iter(lambda: file.read(size), b"")
            (check or _refuse_foreign)(head, path)
            for piece in pieces:
                yield piece
                if progress is not None:
                    progress(file.tell())
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error})"
        raise TraceError(msg) from error


def ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces of a file, the next of which is decompressed while the caller decodes one."""
    piece = next(pieces, None)
    with Threads(1, "htagraph-unpack") as pool:
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


def _joined(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield pieces of at least `size` bytes, but for the last: members and blocks of packed files are short."""
    short, length = list[bytes](), 0
    for piece in pieces:
        short.append(piece)
        length += len(piece)
        if length >= size:
            yield b"".join(short)
            short, length = [], 0
    if short:
        yield b"".join(short)


def _unpacked(file: BinaryIO, log: IssueLog, size: int, *, is_gzip: bool) -> Iterator[bytes]:
    """Yield the text of a packed file. Threads unpack its parts; the rest is unpacked here, from any damage on.

    So what is reported of a damaged file does not depend on its parts. A part is unpacked ahead of its turn by a few
    pieces only: it may be small, and unpack to gigabytes.
    """
    unpack = partial(_gunzip, size=size) if is_gzip else _unzstd

    def begun(part: tuple[int, bytes]) -> tuple[list[bytes], Iterator[bytes], IssueLog]:
        damage = IssueLog("")
        pieces = _joined(unpack(io.BytesIO(part[1]), damage), size)
        return list(itertools.islice(pieces, 4)), pieces, damage  # 16 MiB: more than a frame of pzstd

    at = done = 0
    for (end, _), (first, rest, damage) in computing.ahead(begun, _parts(file, size), computing.threads_for(size)):
        for piece in itertools.chain(first, rest):
            done += len(piece)
            yield piece
        if damage.issues():
            break
        at, done = end, 0
    file.seek(at)
    yield from _from(done, _joined(unpack(file, log), size))


def _parts(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield (position behind it, packed bytes) of parts of a packed file, up to what has no size or is no member.

    A part is members that unpack to `size` bytes or more together.
    """
    file.seek(0)
    packed, before, begin, at, most = file.read(size), 0, 0, 0, 0
    while True:
        if len(packed) - at < size and (more := file.read(size)):
            packed, before, begin, at = packed[begin:] + more, before + begin, 0, at - begin
        end, holds = _end_of_member(packed, at)
        is_whole = at < end <= len(packed)
        if begin < at and (most >= size or not is_whole):
            yield before + at, packed[begin:at]
            begin, most = at, 0
        if not is_whole:
            return
        at, most = end, most + holds


def _end_of_member(packed: bytes, at: int) -> tuple[int, int]:
    """Return (position behind a gzip member or zstd frame, bytes that it unpacks to at most); (0, 0) if unknown.

    bgzip writes the size of a member into its header (SAM specification, 4.1). A frame ends behind its last block, each
    of which says its size (RFC 8878, 3.1).
    """
    if packed.startswith(b"\x1f\x8b\x08\x04", at) and packed.startswith(b"\6\0BC\2\0", at + 10):
        return at + int.from_bytes(packed[at + 16 : at + 18], "little") + 1, 64 << 10
    if packed.startswith(_SKIPPED, at):
        length = 8 + int.from_bytes(packed[at + 4 : at + 8], "little")
        return at + length, length
    if not packed.startswith(_ZSTD, at) or at + 4 == len(packed):
        return 0, 0
    flags, most, block = packed[at + 4], 0, 0
    is_single, has_checksum = flags >> 5 & 1, flags >> 2 & 1
    at += 6 - is_single + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
    while not block & 1 and at < len(packed):  # bit 0: the last one; bits 1 and 2: 1 for a byte that is repeated
        block = int.from_bytes(packed[at : at + 3], "little")
        at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        most += 128 << 10
    return (at + 4 * has_checksum, most) if block & 1 else (0, 0)


def _gunzip(file: BinaryIO, log: IssueLog, size: int) -> Iterator[bytes]:
    pending = _member(b"", file)
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
                done += len(piece)
                yield piece
            elif not pending and not engine.eof:
                log.add("gzip_truncated", "the gzip stream ends early; events up to its end were read")
                return
            if not engine.eof:
                pending = engine.unconsumed_tail or file.read(SMALL_BYTES)
        pending = _member(engine.unused_data, file)


def _unzstd(file: BinaryIO, log: IssueLog) -> Iterator[bytes]:
    import zstandard  # few files need it

    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=False)
    try:
        while piece := reader.read1(SMALL_BYTES):  # one that fails returns nothing of what precedes the damage
            yield piece
    except zstandard.ZstdError as error:
        log.add("zstd_damaged", f"the zstd stream is damaged ({error}); events before the damage were read")


def _member(pending: bytes, file: BinaryIO) -> bytes:
    """Return the beginning of the next gzip member, skipping zeros: some writers pad the end with them."""
    pending = pending.lstrip(b"\0")
    while len(pending) < len(_GZIP) and (more := file.read(SMALL_BYTES)):
        pending = (pending + more).lstrip(b"\0")
    return pending


def _before_damage(file: BinaryIO, start: int, done: int) -> Iterator[bytes]:
    """Yield the text of the gzip member at `start` from its first `done` bytes on, up to the damage.

    zlib does not return the bytes that it decompressed before it met damage in the same call. So decompress again, in
    steps, and the step that fails byte by byte: a wrong checksum then fails on its own, behind the text.
    """
    file.seek(start)
    engine, step = zlib.decompressobj(_ZIP_GZIP_WINDOW), io.DEFAULT_BUFFER_SIZE  # unpacks to 8 MiB at most
    while not engine.eof and (packed := file.read(step)):
        before = engine.copy() if step > 1 else engine
        try:
            piece = engine.decompress(packed)
        except zlib.error:
            if step == 1:
                return
            file.seek(file.tell() - len(packed))
            engine, step = before, 1
            continue
        if len(piece) > done:
            yield piece[done:]
        done = max(0, done - len(piece))


def _refuse_foreign(head: bytes, path: object) -> None:
    for magic, advice in _FOREIGN:
        if head.startswith(magic):
            msg = f"{path}: {advice}"
            raise NotATraceError(msg)
    if _is_binary(head[:256]):
        msg = (
            f"{path}: binary data, not JSON (a trace in Perfetto's native format is read if its name ends in .pftrace; "
            "else export with prof.export_chrome_trace)"
        )
        raise NotATraceError(msg)


def _is_binary(head: bytes) -> bool:
    """Return True if the beginning of a file is no text: protobuf has a zero byte in its first fields.

    A damaged text may have some, too: the file still begins as JSON does, and nearly all of its bytes are letters.
    """
    if b"\0" not in head:
        return False
    letters = head.translate(None, _CONTROLS)
    return not _JSON_BEGINS.match(head) or len(letters) < _LETTERS_SHARE * len(head)
