"""Damaged JSON text → the events that can be recovered, one by one, with a report of every repair and loss.

Kineto writes JSON by string formatting, so the kinds of damage are known: unescaped quotes, bare ``inf``, control
characters, bad UTF-8, stray commas, a killed writer, several writers. Each repair here undoes one of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from htagraph.core.errors import DamagedTraceError
from htagraph.core.issues import IssueLog

__all__ = ["UNDECODABLE", "Salvaged", "ends_early", "refuse_second_document", "salvage", "salvage_header"]

T = TypeVar("T")
Decode = Callable[[bytes], list[T]]

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions that a decoder raises for text that it cannot read."""

_BETWEEN = " \t\r\n,"
_KEYS = r"(?:ph|name|cat|pid|tid|ts|dur|id|s|bp|args)"
_START = re.compile(r'(?:[}\]]\s*,?\s*|\n\s*)(\{\s*"' + _KEYS + r'"\s*:)')
_DOCUMENT = re.compile(rb'\{\s*"schemaVersion"|"traceEvents"\s*:\s*\[\s*\{\s*"ph"')
_STRING = rb'"(?:[^"\\]|\\.)*"'
_BARE = re.compile(_STRING + rb"|(?<![\w.+-])([-+]?(?:inf|nan|infinity)|N/A)(?=\s*[,}\]])", re.IGNORECASE | re.DOTALL)
_STRAY_COMMA = re.compile(_STRING + rb"|(,)(?=\s*[,}\]])|(?<=[{\[])(\s*,)", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_NAME = re.compile(rb'("name"\s*:\s*")(.*?)("\s*,\s*"(?:ph|cat|pid|tid|ts|dur|s|id|args)"\s*:)', re.DOTALL)
_END = rb"(?=\s*\}?\s*$|\s*\]\s*[,}]|\s*\]\s*$)"
_ARGS = re.compile(rb',\s*"args"\s*:.*\}\s*\}' + _END, re.DOTALL)
_NO_ARGS = re.compile(rb',\s*"args"\s*:\s*(?:null|"[^"]*"|\[\s*\])?\s*(?=\})')
_HEADER_KEYS = (
    "schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "displayTimeUnit",
    "host_name", "traceName", "trace_id",
)  # fmt: skip
_MAX_LOST_SHARE = 0.5
"""Share of unreadable events in a stretch of text above which the file is refused. Chosen: single writers lose a few
events, interleaved ones most. With 1, a file of which almost nothing is left would be read without an error."""
_LONGEST_WORD = len("-Infinity")  # characters: the longest word that JSON text may be cut within
_WINDOW_CHARS = 1 << 16
"""Characters in which the end of an event is looked for at first, then 8 times as many. Chosen: nearly all events are
shorter; a larger window makes each error of the json module cost more time, and changes no result."""
_MAX_EVENT_BYTES = 64 << 20
"""Bytes: an event that has not ended after so much text counts as damaged. Chosen: far beyond the events of all traces
in reach. Doubling it doubles the memory for a file with an event that never ends."""


@dataclass
class Salvaged(Generic[T]):
    """The events in a stretch of the array of events, and the text after them."""

    events: list[T] = field(default_factory=list)
    rest: bytes = b""
    """Text not read: what follows the array if `closed`, else the beginning of an event that has not ended."""
    closed: bool = False
    """True if the array ends in this stretch."""


def salvage(text: bytes, decode: Decode[T], log: IssueLog, *, final: bool) -> Salvaged[T]:
    """Return the events in a stretch of the array that does not decode as a whole.

    Args:
        text: begins where an event, or the end of the array, is expected.
        decode: decoder of the text of a JSON array of events.
        log: receives an issue for every repair and loss.
        final: True if the file ends with this text; otherwise the last event may continue in the next text.

    Raises:
        DamagedTraceError: documents are interleaved, or more than half of the events are unreadable.
    """
    salvaged: Salvaged[T] = Salvaged()
    plain = text.decode("latin-1")  # one byte, one character: positions agree
    at = lost = 0
    resumed = False  # True if `at` is a guess, after something unreadable
    while not salvaged.closed:
        at = _skip(plain, at)
        if at == len(plain):
            break
        if plain[at] == "]":
            salvaged.closed, at = True, at + 1
            break
        end, is_event, incomplete = _object(plain, at)
        next_at = end or _next_start(plain, at)
        if not final and (incomplete or next_at == len(plain) != end) and len(plain) - at < _MAX_EVENT_BYTES:
            break
        if end and resumed and not is_event:  # a part of the unreadable event
            at = end
            continue
        events = _decoded(text[at:end], decode) if end else []
        if events:
            salvaged.events += events
            at, resumed = end, False
            continue
        events, left = _mended(text[at:next_at], decode, log)
        salvaged.events += events
        lost += not events
        if left:  # the text held more than the event that was repaired
            text = left + text[next_at:]
            plain, at, resumed = text.decode("latin-1"), 0, False
        else:
            at, resumed = next_at, not events
    _refuse_mostly_lost(lost, len(salvaged.events), log)
    log.add("event_unreadable", "events damaged beyond repair; dropped", lost)
    salvaged.rest = text[at:]
    return salvaged


def salvage_header(text: bytes, log: IssueLog) -> dict[str, Any]:
    """Return the known root keys that can still be read from a damaged header."""
    plain = text.decode("utf-8", "replace")
    header: dict[str, Any] = {}
    for key in _HEADER_KEYS:
        start = re.search(rf'"{key}"\s*:\s*', plain)
        if start:
            try:
                header[key], _ = json.JSONDecoder(strict=False).raw_decode(plain, start.end())
            except (ValueError, RecursionError):
                log.add("header_key_lost", f"header key {key} is unreadable; ignored")
    return header


def refuse_second_document(text: bytes, log: IssueLog) -> None:
    """Raise an error if another JSON document begins inside a damaged text.

    Raises:
        DamagedTraceError: a document begins after the first character of the text.
    """
    if _DOCUMENT.search(text, 1):
        msg = (
            f"{log.file}: a second JSON document begins inside the first: several ranks wrote to one path at once; "
            "record one file per rank"
        )
        raise DamagedTraceError(msg)


def ends_early(error: Exception, cut_word: int = _LONGEST_WORD) -> bool:
    """Return True if an error of the json module means that the text ends too early.

    Args:
        error: the exception that the json module raised.
        cut_word: number of characters at the end that may be the beginning of a word or of an escape.
    """
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or len(error.doc[error.pos :].strip()) <= cut_word


def _skip(plain: str, at: int) -> int:
    while at < len(plain) and plain[at] in _BETWEEN:
        at += 1
    return at


def _object(plain: str, at: int) -> tuple[int, bool, bool]:
    """Return (end of the JSON value at `at` or 0, True if it has a phase, True if the text ends within it).

    Decodes a window of the text that grows as needed: an error of the json module costs time in proportion to its text.
    """
    window = _WINDOW_CHARS
    while True:
        part = plain[at : at + window]
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(part)
        except (ValueError, RecursionError) as error:
            if not ends_early(error):
                return 0, False, False
            if at + window >= len(plain):
                return 0, False, True
            window *= 8
            continue
        return at + end, isinstance(value, dict) and "ph" in value, False


def _next_start(plain: str, at: int) -> int:
    """Return where the next event probably begins."""
    start = _START.search(plain, at + 1)
    return start.start(1) if start else len(plain)


def _decoded(body: bytes, decode: Decode[T]) -> list[T]:
    try:
        return decode(b"[" + body + b"]")
    except UNDECODABLE:
        return []


def _mended(body: bytes, decode: Decode[T], log: IssueLog) -> tuple[list[T], bytes]:
    """Return (the event that a damaged text holds once repaired, as a list; the text after that event)."""
    refuse_second_document(body, log)
    body = body.strip(_BETWEEN.encode())
    for names, mended in _candidates(body):
        end = _object(mended.decode("latin-1"), 0)[0]
        events = _decoded(mended[:end], decode) if end else []
        if events:
            for name in names:
                log.add(name, _MEANING[name])
            return events, mended[end:].strip(_BETWEEN.encode())
    return [], b""


def _candidates(body: bytes) -> Iterator[tuple[list[str], bytes]]:
    """Yield (names of the repairs made, repaired text): each repair alone, then two, three and more together."""
    for name, mend in _MENDS:
        mended = mend(body)
        if mended != body:
            yield [name], mended
    names: list[str] = []
    for name, mend in _MENDS:
        mended = mend(body)
        if mended != body:
            names, body = [*names, name], mended
            yield names, mended


def _refuse_mostly_lost(lost: int, readable: int, log: IssueLog) -> None:
    if lost > max(1, _MAX_LOST_SHARE * (lost + readable)):
        msg = (
            f"{log.file}: {lost} of {lost + readable} events in one part of the file are unreadable; "
            "did several processes write to it at once?"
        )
        raise DamagedTraceError(msg)


def _escape_name(body: bytes) -> bytes:
    def quoted(match: re.Match[bytes]) -> bytes:
        name = re.sub(rb'(?<!\\)"', rb'\\"', match[2])
        return match[1] + name + match[3]

    return _NAME.sub(quoted, body, count=1)


def _quote_bare(body: bytes) -> bytes:
    return _BARE.sub(lambda match: b'"' + match[1] + b'"' if match[1] else match[0], body)


def _drop_stray_commas(body: bytes) -> bytes:
    return _STRAY_COMMA.sub(lambda match: b"" if match[1] or match[2] else match[0], body)


_MENDS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("bad_utf8", lambda body: body.decode("utf-8", "replace").encode()),
    ("control_characters", lambda body: _CONTROL.sub(b" ", body)),
    ("non_finite", _quote_bare),
    ("stray_comma", _drop_stray_commas),
    ("unescaped_quotes", _escape_name),
    ("slashed_quotes", lambda body: re.sub(rb'/"', rb'\\"', body)),
    ("args_dropped", lambda body: _NO_ARGS.sub(b"", _ARGS.sub(b"}", body))),
)
_MEANING = {
    "bad_utf8": "text is not valid UTF-8; bad bytes replaced",
    "control_characters": "control characters in a string; replaced by spaces",
    "non_finite": "inf, nan or N/A without quotes; read as text",
    "stray_comma": "an extra comma; ignored",
    "unescaped_quotes": "quotes inside a name are not escaped; repaired",
    "slashed_quotes": 'quotes in args are written /" instead of \\"; repaired',
    "args_dropped": "the args of an event are unreadable; the event is kept without them",
}
