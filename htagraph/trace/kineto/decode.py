"""One long JSON document → blocks of decoded events, without ever holding the whole text.

The decoder's types are generated from the models in `events`: one schema. A cut between two events is guessed, not
parsed: the text before a ``{`` that follows ``},`` goes to the decoder. It decodes only if its brackets and quotes
balance, which proves that the cut lies between two elements of the array. If none of a few cuts decodes, the text goes
through `salvage`, event by event: it is damaged, or its last event holds a list of objects.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from htagraph.core.computing import Threads, processors
from htagraph.core.errors import DamagedTraceError, IssueLog, NotATraceError, OtherJsonError
from htagraph.trace.kineto.events import HOST_BACKENDS, BulkField, call_columns, columns
from htagraph.trace.kineto.source import PIECE_BYTES
from htagraph.trace.kineto.times import EXACT_FLOAT_US

if TYPE_CHECKING:
    from htagraph.trace.kept import Frames
    from htagraph.trace.kineto.scan.scanner import Block, Scanned, Scanner

__all__ = [
    "BLOCK_BYTES", "ENVELOPE", "UNDECODABLE", "BlockDecoder", "RawEvent", "attribute", "event_decoder",
    "event_text_decoder", "find_events", "plain_events", "split",
]  # fmt: skip

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions that a decoder raises for text that it cannot read."""
RawEvent = Any  # the generated struct: attributes ph, name, cat, pid, tid, ts, dur, id, args
T = TypeVar("T")
_Label = int | float | str | None  # no list or object: those cannot be dictionary keys
ENVELOPE: list[Any] = [
    ("ph", str, ""), ("name", Any, ""), ("cat", _Label, None), ("pid", _Label, ""), ("tid", _Label, ""),
]  # fmt: skip
"""The fields of an event whose types bulk decoding checks: whoever numbers events alike must refuse others, too."""


class _Sized(Protocol):
    def __len__(self) -> int: ...


S = TypeVar("S", bound=_Sized)
Scan = Callable[[memoryview, int], S | None]
Decode = Callable[[bytes], list[T]]
Ahead = Callable[[Iterator[bytes], bytes, int], Iterator[bytes]]

BLOCK_BYTES = PIECE_BYTES
"""Bytes of text that are decoded at once: one piece. Doubling it doubles the memory for a block's text and objects."""
_BOM = b"\xef\xbb\xbf"
_EVENTS = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
_PHASE = re.compile(rb'"ph"\s*:\s*"')
_BLANKS = re.compile(rb"[ \t\r\n]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_BETWEEN_BYTES = 256
"""Bytes of ``"traceEvents" : [`` or of a comma, with white space: two pieces may share the former. Chosen: far more
than any writer uses; doubling it changes nothing."""
_MAX_HEADER_BYTES = 32 << 20
"""Bytes in which the events must begin, and bytes behind them that are read. Chosen: far beyond the header of any job.
Doubling it doubles the memory that another kind of JSON file takes before it is refused (up to 0.7 GB)."""
_MAX_HEADER_TRIES = 16
"""Places at which the events might begin. Chosen: in an undamaged file the first one is right, but for keys of the same
name inside others. Doubled, hostile files cost twice the time."""
_MAX_CUTS = 6
"""Cuts of a block that are tried before it is salvaged. Chosen: in an undamaged file a cut fails only if it lies in a
list of objects; doubling it costs six more failed decodings per damaged block."""
_MAX_BRACES = 20_000
"""Opening braces, from the end, before which a block might be cut. Chosen: far more than an event has. Doubled, events
with more braces need no salvaging, and hostile files cost more time."""
_MAX_BRACKETS = 300
"""Closing brackets, from the end, at which the events might end. Chosen: the keys behind the events hold a list per
process group; doubling it finds the end behind twice as many."""
_MAX_ENDS = 3
"""Possible ends of the events that are tried before the block is salvaged. Chosen: in an undamaged file the first one
is right; doubling it costs three more failed decodings of a damaged file."""


class BlockDecoder:
    """Decodes the text of a JSON array of events.

    Times are floats until one would lose nanoseconds; from that block on, they are exact decimals. Arguments of calls
    (`call_columns`) are decoded only if the file's header names a backend that communicates on host threads. The header
    (root keys before the events) is complete when the first block comes; `frames` decides which calls of Python
    functions `scan` leaves without a name.
    """

    def __init__(self, header: Mapping[str, Any] | None = None, frames: Frames | None = None) -> None:
        self._header, self._frames = header, frames
        self.exact = False
        self._begun: dict[int, tuple[int, bool, Future[Scanned]]] = {}
        """Length of a text that is being scanned, whether exactly, and what comes of it, by position."""

    def __call__(self, text: bytes) -> list[RawEvent]:
        """Return the events of a JSON array."""
        if not self.exact:
            events: list[RawEvent] = self._fast.decode(text)
            times = [event.ts for event in events]
            kinds = set(map(type, times))  # one that would lose nanoseconds as a float, or that is text
            self.exact = str in kinds or (
                float in kinds and any(type(t) is float and abs(t) >= EXACT_FLOAT_US for t in times)
            )
            if not self.exact:
                return events
        return self._exact.decode(text)

    def scan(self, text: bytes | memoryview, offset: int) -> Block | None:
        """Return the events of a text that holds events with commas between them; None if it must go to `__call__`.

        `offset` is the position of the text in the document; `exact` reads times as decimals.
        """
        length, exact, begun = self._begun.pop(offset, (0, False, None))
        self._begun = {at: each for at, each in self._begun.items() if at > offset}  # others were cut elsewhere
        is_same = (length, exact) == (len(text), self.exact)
        scanned = begun.result() if begun is not None and is_same else None
        block, too_large = self._scanner.scan(text, offset, exact=self.exact, scanned=scanned)
        if too_large:
            block, _ = self._scanner.scan(text, offset, exact=True)
            self.exact = block is not None  # else `__call__` finds out from which event on
        return block

    def ahead(self, pieces: Iterator[bytes], buffer: bytes, offset: int) -> Iterator[bytes]:
        """Yield pieces of text, while threads scan the blocks into which `split` will probably cut them.

        `buffer` is the text before them that is not yet decoded, and `offset` its position in the document. A block
        that is cut elsewhere after all is scanned when its turn comes.
        """
        waiting, threads = deque[bytes](), processors()
        with Threads(threads, "htagraph-scan") as pool:
            for piece in pieces if threads > 1 else ():
                waiting.append(piece)
                buffer += piece
                if len(buffer) >= BLOCK_BYTES:
                    end, rest = next(_cuts(buffer), (0, 0))
                    if not rest:
                        break
                    scanned = pool.submit(self._scanner.scanned, memoryview(buffer)[:end], exact=self.exact)
                    self._begun[offset] = end, self.exact, scanned
                    buffer, offset = buffer[rest:], offset + rest
                if len(waiting) > threads:
                    yield waiting.popleft()
            yield from itertools.chain(waiting, pieces)

    @cached_property
    def _scanner(self) -> Scanner:
        from htagraph.trace.kineto.scan.scanner import Scanner  # loads compiled code, which small files do not need

        return Scanner(calls=self._of_calls, frames=self._frames)

    @cached_property
    def _fast(self) -> msgspec.json.Decoder[list[RawEvent]]:
        return _decoder(Any, calls=self._of_calls)

    @cached_property
    def _exact(self) -> msgspec.json.Decoder[list[RawEvent]]:
        return _decoder(msgspec.Raw, calls=self._of_calls)

    @cached_property
    def _of_calls(self) -> bool:
        job = str((self._header or {}).get("distributedInfo", ""))
        return any(backend in job for backend in HOST_BACKENDS)


def plain_events(text: bytes, *, exact: bool, calls: bool) -> list[RawEvent]:
    """Return the events of a JSON array; the text is one that the compiled scan has accepted.

    `exact` keeps times as text; `calls` are the arguments of calls of host-side communication.
    """
    decoder = _decoder(msgspec.Raw if exact else Any, calls=calls)
    return decoder.decode(text)


@cache
def _decoder(time: type, *, calls: bool) -> msgspec.json.Decoder[list[RawEvent]]:
    return msgspec.json.Decoder(list[_event_struct(time, calls=calls)])  # type: ignore[misc]


def event_decoder() -> Callable[[bytes], list[dict[str, Any]]]:
    """Return a decoder of complete events as dicts; numbers with a fraction become exact decimals."""
    from decimal import Decimal

    return _numbered_alike(msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal).decode)


def event_text_decoder() -> Callable[[bytes], list[msgspec.Raw]]:
    """Return a decoder that splits a JSON array into one text per event, numbered as in bulk decoding."""
    return _numbered_alike(msgspec.json.Decoder(list[msgspec.Raw]).decode)


def _numbered_alike(decode: Callable[[bytes], list[T]]) -> Callable[[bytes], list[T]]:
    """Return a decoder that refuses what bulk decoding refuses, so that both number the events alike."""
    strict = BlockDecoder()

    def decode_strictly(text: bytes) -> list[T]:
        strict(text)
        return decode(text)

    return decode_strictly


@cache
def _event_struct(time: type, *, calls: bool) -> type[msgspec.Struct]:
    """Return the struct type of an event: the envelope, and in `args` all arguments that have a column."""
    args = _args_struct(calls=calls)
    absent = msgspec.Raw(b"") if time is msgspec.Raw else None
    envelope = [*ENVELOPE, ("ts", time, absent), ("dur", time, absent), ("id", Any, None), ("args", args, args())]
    return msgspec.defstruct("BulkEvent", envelope, gc=False)


@cache
def _args_struct(*, calls: bool) -> type[msgspec.Struct]:
    keys = {attribute(bulk, i): key for bulk in columns() for i, key in enumerate(bulk.keys)}
    fields: list[Any] = [
        (attribute(bulk, i), Any, bulk.column.missing) for bulk in columns() for i in range(len(bulk.keys))
    ]
    for bulk in call_columns() if calls else ():
        fields.append((attribute(bulk, 0), msgspec.Raw, msgspec.Raw(b"")))  # their text, not decoded
        keys[attribute(bulk, 0)] = bulk.keys[0]
    fields.append(("thread_name", Any, ""))  # the args of metadata events
    keys["thread_name"] = "name"
    return msgspec.defstruct("BulkArgs", fields, rename=keys, gc=False, frozen=True)


def attribute(bulk: BulkField, number: int) -> str:
    """Return the name of an argument under one of its keys, in `args` of an event."""
    return bulk.column.name if number == 0 else f"{bulk.column.name}_{number}"


@dataclass(frozen=True)
class _Reader(Generic[T, S]):
    """Reads a text of events: quickly where `scan` understands it, else with `decode`."""

    decode: Decode[T]
    scan: Scan[S] | None

    def __call__(self, buffer: bytes, end: int, offset: int) -> list[T] | S:
        """Return the events in buffer[:end]; copies the text once only, since blocks are large."""
        text = memoryview(buffer)[:end]
        scanned = self.scan(text, offset) if self.scan else None
        return self.decode(b"".join((b"[", text, b"]"))) if scanned is None else scanned


def split(
    pieces: Iterator[bytes], decode: Decode[T], header: dict[str, Any], log: IssueLog, scan: Scan[S] | None = None,
    ahead: Ahead | None = None,
) -> Iterator[tuple[int, list[T] | S]]:  # fmt: skip
    """Yield (position of the block in the array, decoded events) and fill `header` with every other root key.

    Keys before the events are in `header` when the first block comes, keys after them when the last has come. `scan` is
    a quick decoder of a text without the brackets, given with its position in the document; it returns None where it
    does not understand the text. `ahead` passes the pieces on, and may scan them before their turn.
    """
    buffer, offset, is_list = find_events(pieces, header, log)
    pieces = ahead(pieces, buffer, offset) if ahead else pieces
    read = _Reader(decode, scan)
    position, closed, needed = 0, False, 0
    for piece in itertools.chain(pieces, (None,)):
        if piece is not None:
            buffer += piece
            if len(buffer) < max(BLOCK_BYTES, needed):
                continue
        size = len(buffer)
        events, buffer, closed = _take(buffer, offset, read, log, is_list=None if piece is not None else is_list)
        needed = 2 * len(buffer)  # an event that has not ended is not looked at again for each piece of it
        if events:
            count = len(events)
            yield position, events
            position += count
        offset += size - len(buffer)
        del events  # before the next block is decoded: memory freed as a whole does not fragment
        if closed:
            break
    if closed:
        tail, is_whole = _tail(buffer, pieces)
        if not is_whole:
            detail = f"more than {_MAX_HEADER_BYTES >> 20} MiB of text after the events; what follows was not read"
            log.add("tail_too_long", detail)
        _read_tail(tail, header, log, is_list=is_list)


def find_events(pieces: Iterator[bytes], header: dict[str, Any], log: IssueLog) -> tuple[bytes, int, bool]:
    """Return (text behind the opening bracket of the events, its position, True if the root is a bare list)."""
    buffer = bytearray()  # grows in place: a header may be long, and pieces are short
    at = tries = 0
    for piece in pieces:
        searched = max(0, len(buffer) - _BETWEEN_BYTES)
        buffer += piece
        at = _behind_blanks(buffer, at)
        first = bytes(buffer[at : at + 1])
        if first == b"[":
            return bytes(buffer[at + 1 :]), at + 1, True
        if first not in (b"{", b"", _BOM[:1]):
            break
        for key in _EVENTS.finditer(buffer, searched):
            tries += 1
            keys = _decode_header(bytes(buffer[: key.start()]), log) if tries <= _MAX_HEADER_TRIES else None
            if keys is not None:
                header.update(keys)
                return bytes(buffer[key.end() :]), key.end(), False
        if len(buffer) > _MAX_HEADER_BYTES:
            break
    raise _no_events(bytes(buffer), log)


def _behind_blanks(buffer: bytearray, at: int) -> int:
    """Return the position behind the white space that a text begins with, which was known up to `at`."""
    at = max(at, len(_BOM) if buffer.startswith(_BOM) else 0)
    blanks = _BLANKS.match(buffer, at)
    return blanks.end() if blanks else at


def _decode_header(text: bytes, log: IssueLog) -> dict[str, Any] | None:
    """Return the root keys in the text before the events, or None if that text ends inside a value."""
    closed = text.removeprefix(_BOM).rstrip().rstrip(b",") + b"}"
    try:
        plain = closed.decode("utf-8")
        return _encodable(dict(json.loads(plain)), plain)
    except (ValueError, RecursionError) as error:
        from htagraph.trace.kineto.salvage import ends_early, refuse_second_document, salvage_header  # few are damaged

        if ends_early(error, cut_word=1):
            return None
    refuse_second_document(text, log)
    log.add("header_damaged", "the header is not valid JSON; only known keys were read")
    return salvage_header(text, log)


def _encodable(keys: dict[str, Any], text: str) -> dict[str, Any]:
    """Return decoded keys with a question mark for each half of a surrogate pair: such text cannot be written."""
    if not _SURROGATE.search(text):
        return keys
    return dict(json.loads(json.dumps(keys, ensure_ascii=False).encode("utf-8", "replace")))


def _no_events(text: bytes, log: IssueLog) -> Exception:
    if len(text) > _MAX_HEADER_BYTES or not text.strip():
        blank = "there is only white space in it" if text else "nothing can be unpacked from it"
        what = f"no traceEvents in its first {len(text) >> 20} MiB" if text.strip() else blank
        return NotATraceError(f"{log.file}: {what}; not a Kineto trace")
    try:
        root = json.loads(text.removeprefix(_BOM).decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        if text.removeprefix(_BOM).lstrip().startswith(b"{") and b'"schemaVersion"' in text[:4096]:
            return DamagedTraceError(
                f"{log.file}: the file ends before its events begin; was the job killed while the profiler exported?"
            )
        return NotATraceError(f"{log.file}: not JSON; expected a Kineto trace from torch.profiler")
    keys = ", ".join(each[:40] for each in sorted(root)[:6]) if isinstance(root, dict) else type(root).__name__
    if isinstance(root, dict) and {"schema", "nodes"} <= set(root):
        return OtherJsonError(f"{log.file}: a PyTorch execution trace (Chakra host ET), not a Kineto trace")
    lacking = (
        "whose traceEvents are no list"
        if isinstance(root, dict) and "traceEvents" in root
        else f"without traceEvents (found: {keys})"
    )
    return OtherJsonError(f"{log.file}: JSON, but {lacking}; not a Kineto trace from torch.profiler")


def _take(
    buffer: bytes, offset: int, read: _Reader[T, S], log: IssueLog, *, is_list: bool | None
) -> tuple[Any, bytes, bool]:
    """Return (events, text not yet decoded, True if the array ended) for a full buffer, or for the last one.

    `is_list` is None within the document; at its end, whether its root is a list.
    """
    final = is_list is not None
    places, most = (_cuts(buffer), _MAX_CUTS) if is_list is None else (_ends(buffer, is_list=is_list), _MAX_ENDS)
    for end, rest in itertools.islice(places, most):
        try:
            return read(buffer, end, offset), buffer[rest:], final
        except UNDECODABLE:
            continue
    from htagraph.trace.kineto.salvage import salvage  # few files are damaged

    salvaged = salvage(buffer, read.decode, log, final=final)
    if final and not salvaged.closed:
        log.add("truncated", "the file ends early; events up to its end were read")
    return salvaged.events, salvaged.rest, salvaged.closed


def _ends(buffer: bytes, *, is_list: bool) -> Iterator[tuple[int, int]]:
    """Yield (position of ``]``, position behind it) wherever the document ends properly behind it, from the end on."""
    end = len(buffer)
    for _ in range(_MAX_BRACKETS):
        end = buffer.rfind(b"]", 0, end)
        if end < 0:
            return
        if _is_tail(buffer[end + 1 :], is_list=is_list):
            yield end, end + 1


def _cuts(buffer: bytes) -> Iterator[tuple[int, int]]:
    """Yield (position after ``}``, position of ``{``) wherever only a comma is between them, the last one first."""
    at = len(buffer)
    for _ in range(_MAX_BRACES):
        at = buffer.rfind(b"{", 0, at)
        if at < 0:
            return
        first = max(0, at - _BETWEEN_BYTES)
        before = buffer[first:at].rstrip()
        if before.endswith(b",") and (close := before[:-1].rstrip()).endswith(b"}"):
            yield first + len(close), at


def _is_tail(tail: bytes, *, is_list: bool) -> bool:
    stripped = tail.strip()
    if is_list or stripped == b"}":
        return is_list == (not stripped)
    if not stripped.startswith(b","):
        return False
    try:
        json.loads((b'{"":0' + stripped).decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def _tail(buffer: bytes, pieces: Iterator[bytes]) -> tuple[bytes, bool]:
    """Return (the text after the events up to a limit, True if nothing follows it)."""
    tail, is_whole = bytearray(buffer.lstrip()), True
    for piece in pieces:  # all of them, since the last ones may show that the file is damaged
        if len(tail) < _MAX_HEADER_BYTES:
            tail += piece if tail else piece.lstrip()
        else:
            is_whole = is_whole and piece.isspace()
    return bytes(tail), is_whole


def _read_tail(tail: bytes, header: dict[str, Any], log: IssueLog, *, is_list: bool) -> None:
    """Add the root keys after the events to `header`; raise an error if the file holds several documents."""
    text = tail.decode("utf-8", "replace").strip()
    if not is_list:
        try:
            keys, end = json.JSONDecoder(strict=False).raw_decode('{"":0' + text)
        except (ValueError, RecursionError) as error:
            from htagraph.trace.kineto.salvage import ends_early, salvage_header  # few files are damaged

            if ends_early(error) and not log.has("tail_too_long"):
                log.add("truncated", "the file ends after its events, before the closing brace; all events were read")
            elif not ends_early(error):
                if _PHASE.search(tail):  # more events after the end of the array
                    raise _several_documents(log) from error
                log.add("header_damaged", "the text after the events is not valid JSON; only known keys were read")
            header.update(salvage_header(tail, log))
            return
        del keys[""]
        header.update(_encodable(keys, text))
        text = text[end - len('{"":0') :].strip()
    if text.startswith(("{", "[")):
        raise _several_documents(log)
    log.add("trailing_bytes", "bytes after the end of the document; ignored", count=bool(text))


def _several_documents(log: IssueLog) -> DamagedTraceError:
    msg = "the file holds several JSON documents: several ranks wrote to one path; record one file per rank"
    return DamagedTraceError(f"{log.file}: {msg}")
