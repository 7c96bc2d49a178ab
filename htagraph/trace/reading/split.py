"""One long JSON document → blocks of decoded events, without ever holding the whole text.

A cut between two events is found by looking, not by parsing: the text before a ``{`` that follows ``},`` is handed to
the decoder. It decodes only if its brackets and quotes balance, which proves that the cut lies between two elements of
the array. Where none of a few cuts decodes, the text goes through `salvage`, event by event: it is damaged, or its last
event holds a list of objects.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from htagraph.core.errors import DamagedTraceError, NotATraceError
from htagraph.core.issues import IssueLog
from htagraph.trace.reading.salvage import UNDECODABLE, ends_early, refuse_second_document, salvage, salvage_header

__all__ = ["BLOCK_BYTES", "find_events", "split"]

T = TypeVar("T")
Decode = Callable[[bytes], list[T]]

BLOCK_BYTES = 4 << 20
_BOM = b"\xef\xbb\xbf"
_EVENTS = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
_CUT = re.compile(rb"\}\s*,\s*$")
_PHASE = re.compile(rb'"ph"\s*:\s*"')
_FIRST = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*([^ \t\r\n\xef])")
_KEY_BYTES = 256  # the key of the events and the blanks in it
_BLANK_BYTES = 16 << 20
_CUTS_TRIED = 6
_CUT_BYTES = 256  # the comma and the indentation around it
_ENDS_TRIED = 300
_ENDS_DECODED = 3
_HEADER_SEARCH_BYTES = 256 << 20


def split(
    pieces: Iterator[bytes], decode: Decode[T], header: dict[str, Any], log: IssueLog
) -> Iterator[tuple[int, list[T]]]:
    """Yield (position of the block in the array, decoded events) and fill `header` with every other root key.

    Keys before the events are in `header` when the first block comes, keys after them when the last has come.

    Args:
        pieces: the document's bytes.
        decode: strict decoder of the text of a JSON array of events.
        header: filled in place.
        log: told what was repaired or dropped.

    Raises:
        NotATraceError: the document is JSON of another kind.
        DamagedTraceError: the events cannot be told apart, or several documents share the file.
    """
    buffer, is_list = find_events(pieces, header, log)
    position, closed = 0, False
    for piece in itertools.chain(pieces, (None,)):
        if piece is not None:
            buffer += piece
            if len(buffer) < BLOCK_BYTES:
                continue
            events, buffer, closed = _take_block(buffer, decode, log)
        else:
            events, buffer, closed = _take_end(buffer, decode, log, is_list=is_list)
        if events:
            count = len(events)
            yield position, events
            position += count
        del events  # before the next block: memory that becomes free as a whole does not fragment
        if closed:
            break
    if closed:
        _read_tail(buffer + b"".join(pieces), header, log, is_list=is_list)


def find_events(pieces: Iterator[bytes], header: dict[str, Any], log: IssueLog) -> tuple[bytes, bool]:
    """Return the text right behind the opening bracket of the events, and whether the root is a bare list."""
    buffer = bytearray()  # grows in place: a header may be long, and pieces are short
    for piece in pieces:
        searched = max(0, len(buffer) - _KEY_BYTES)
        buffer += piece
        first = _FIRST.match(buffer)
        if first and first[1] == b"[":
            return bytes(buffer[first.end() :]), True
        if first and first[1] != b"{":
            break
        for found in _EVENTS.finditer(buffer, searched):
            keys = _decode_header(bytes(buffer[: found.start()]), log)
            if keys is not None:
                header.update(keys)
                return bytes(buffer[found.end() :]), False
        if len(buffer) > _HEADER_SEARCH_BYTES or (not first and len(buffer) > _BLANK_BYTES):
            break
    raise _no_events(bytes(buffer), log)


def _decode_header(text: bytes, log: IssueLog) -> dict[str, Any] | None:
    """Return the root keys of the text before the events; None if that text ends inside one of their values."""
    closed = text.removeprefix(_BOM).rstrip().rstrip(b",") + b"}"
    try:
        return dict(json.loads(closed.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        if ends_early(error, cut_word=1):
            return None
    refuse_second_document(text, log)
    log.add("header_damaged", "the header is not valid JSON; only its known keys were read")
    return salvage_header(text, log)


def _no_events(text: bytes, log: IssueLog) -> Exception:
    try:
        root = json.loads(text.removeprefix(_BOM).decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        if text.removeprefix(_BOM).lstrip().startswith(b"{") and b'"schemaVersion"' in text[:4096]:
            return DamagedTraceError(f"{log.file}: the file ends before its events begin (a killed export?)")
        return NotATraceError(f"{log.file}: not JSON; expected a Kineto trace from torch.profiler")
    keys = ", ".join(sorted(root)[:6]) if isinstance(root, dict) else type(root).__name__
    if isinstance(root, dict) and {"schema", "nodes"} <= set(root):
        return NotATraceError(f"{log.file}: a PyTorch execution trace (Chakra host ET), not a Kineto trace")
    return NotATraceError(f"{log.file}: JSON, but without traceEvents (found: {keys}); not a Kineto trace")


def _take_block(buffer: bytes, decode: Decode[T], log: IssueLog) -> tuple[list[T], bytes, bool]:
    """Return (events, text not yet decoded, whether the array ended) for a full buffer in mid-document."""
    for close, cut in itertools.islice(_cuts(buffer), _CUTS_TRIED):
        try:
            return _decode_body(buffer, close, decode), buffer[cut:], False
        except UNDECODABLE:
            continue
    found = salvage(buffer, decode, log, final=False)
    return found.events, found.rest, found.closed


def _take_end(buffer: bytes, decode: Decode[T], log: IssueLog, *, is_list: bool) -> tuple[list[T], bytes, bool]:
    """Return (events, text behind the array, whether the array was closed) for the last buffer."""
    for end in itertools.islice(_ends(buffer, is_list=is_list), _ENDS_DECODED):
        try:
            return _decode_body(buffer, end, decode), buffer[end + 1 :], True
        except UNDECODABLE:
            continue
    found = salvage(buffer, decode, log, final=True)
    if not found.closed:
        log.add("truncated", "the file ends in mid-document; events up to there were read")
    return found.events, found.rest, found.closed


def _ends(buffer: bytes, *, is_list: bool) -> Iterator[int]:
    """Yield positions of ``]`` behind which the document ends as it should, the last first."""
    end = len(buffer)
    for _ in range(_ENDS_TRIED):
        end = buffer.rfind(b"]", 0, end)
        if end < 0:
            return
        if _is_tail(buffer[end + 1 :], is_list=is_list):
            yield end


def _cuts(buffer: bytes) -> Iterator[tuple[int, int]]:
    """Yield (position behind ``}``, position of ``{``) wherever only a comma lies between them, the last first."""
    at = len(buffer)
    while True:
        at = buffer.rfind(b"{", 0, at)
        if at < 0:
            return
        comma = _CUT.search(buffer, max(0, at - _CUT_BYTES), at)
        if comma:
            yield comma.start() + 1, at


def _decode_body(buffer: bytes, end: int, decode: Decode[T]) -> list[T]:
    """Decode the events in buffer[:end]; one copy, since blocks are large."""
    return decode(b"".join((b"[", memoryview(buffer)[:end], b"]")))


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


def _read_tail(tail: bytes, header: dict[str, Any], log: IssueLog, *, is_list: bool) -> None:
    """Add the root keys behind the events to `header`; refuse a file that holds several documents."""
    text = tail.decode("utf-8", "replace").strip()
    if not is_list:
        try:
            keys, end = json.JSONDecoder(strict=False).raw_decode('{"":0' + text)
        except (ValueError, RecursionError) as error:
            if ends_early(error):
                log.add("truncated", "the file ends behind its events, before the closing brace")
            else:
                if _PHASE.search(tail):  # events behind the end of the events
                    raise _several_documents(log) from error
                log.add("header_damaged", "the text behind the events is not valid JSON; only known keys were read")
            header.update(salvage_header(tail, log))
            return
        del keys[""]
        header.update(keys)
        text = text[end - len('{"":0') :].strip()
    if text.startswith(("{", "[")):
        raise _several_documents(log)
    log.add("trailing_bytes", "bytes behind the end of the document; ignored", count=bool(text))


def _several_documents(log: IssueLog) -> DamagedTraceError:
    msg = "the file holds several JSON documents: several ranks wrote to one path; record one file per rank"
    return DamagedTraceError(f"{log.file}: {msg}")
