"""Damaged JSON text → the events that can be had, one by one, with a report of every repair and loss.

Kineto writes JSON by string formatting, so what breaks is known: unescaped quotes, bare ``inf``, control characters,
bad UTF-8, stray commas, a killed writer, several writers. Each repair here undoes one of these.
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
"""What a decoder raises for text that it cannot read."""

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
_LOST_SHARE = 0.5
_LONGEST_WORD = len("-Infinity")
_WINDOW = 1 << 16
_LARGEST_EVENT = 64 << 20  # an event that has not ended after this much text is taken for damaged


@dataclass
class Salvaged(Generic[T]):
    """What was found in a stretch of the array of events."""

    events: list[T] = field(default_factory=list)
    rest: bytes = b""
    """Text not read: behind the array where `closed`, else the beginning of an event that has not ended."""
    closed: bool = False
    """Whether the array ends in here."""


def salvage(text: bytes, decode: Decode[T], log: IssueLog, *, final: bool) -> Salvaged[T]:
    """Return the events in a stretch of the array that does not decode as a whole.

    Args:
        text: begins where an event, or the end of the array, is expected.
        decode: decoder of the text of a JSON array of events.
        log: told what was repaired or dropped.
        final: whether the file ends with this text; else its last event may go on in the text to come.

    Raises:
        DamagedTraceError: documents are interleaved, or more than half of the events are unreadable.
    """
    found: Salvaged[T] = Salvaged()
    plain = text.decode("latin-1")  # one byte, one character: positions agree
    at = lost = 0
    resumed = False  # whether `at` is a guess, behind something unreadable
    while not found.closed:
        at = _skip(plain, at)
        if at == len(plain):
            break
        if plain[at] == "]":
            found.closed, at = True, at + 1
            break
        end, is_event, incomplete = _object(plain, at)
        next_at = end or _next_start(plain, at)
        if not final and (incomplete or next_at == len(plain) != end) and len(plain) - at < _LARGEST_EVENT:
            break
        if end and resumed and not is_event:  # a part of the unreadable event
            at = end
            continue
        events = _decoded(text[at:end], decode) if end else []
        if events:
            found.events += events
            at, resumed = end, False
            continue
        events, left = _mended(text[at:next_at], decode, log)
        found.events += events
        lost += not events
        if left:  # the body held more than the event that was mended
            text = left + text[next_at:]
            plain, at, resumed = text.decode("latin-1"), 0, False
        else:
            at, resumed = next_at, not events
    _refuse_mostly_lost(lost, len(found.events), log)
    log.add("event_unreadable", "damaged beyond repair; dropped", lost)
    found.rest = text[at:]
    return found


def salvage_header(text: bytes, log: IssueLog) -> dict[str, Any]:
    """Return the known root keys that can still be read from a damaged header."""
    plain = text.decode("utf-8", "replace")
    header: dict[str, Any] = {}
    for key in _HEADER_KEYS:
        found = re.search(rf'"{key}"\s*:\s*', plain)
        if found:
            try:
                header[key], _ = json.JSONDecoder(strict=False).raw_decode(plain, found.end())
            except (ValueError, RecursionError):
                log.add("header_key_lost", f"{key} is unreadable")
    return header


def refuse_second_document(text: bytes, log: IssueLog) -> None:
    """Raise an error if a document begins in a damaged text, behind its first character.

    Raises:
        DamagedTraceError: it does.
    """
    if _DOCUMENT.search(text, 1):
        msg = (
            f"{log.file}: a second document begins inside the first: several ranks wrote to one path at once; "
            "record one file per rank"
        )
        raise DamagedTraceError(msg)


def ends_early(error: Exception, cut_word: int = _LONGEST_WORD) -> bool:
    """Return whether what is wrong with a text is that it stops too soon.

    Args:
        error: what the json module raised.
        cut_word: characters at the end that may be the beginning of a word or of an escape.
    """
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or len(error.doc[error.pos :].strip()) <= cut_word


def _skip(plain: str, at: int) -> int:
    while at < len(plain) and plain[at] in _BETWEEN:
        at += 1
    return at


def _object(plain: str, at: int) -> tuple[int, bool, bool]:
    """Return (end of the JSON value at `at` or 0, whether it has a phase, whether the text ends within it).

    Looks at a window that grows as needed: an error of the json module costs as much as the text it is shown is long.
    """
    window = _WINDOW
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
    found = _START.search(plain, at + 1)
    return found.start(1) if found else len(plain)


def _decoded(body: bytes, decode: Decode[T]) -> list[T]:
    try:
        return decode(b"[" + body + b"]")
    except UNDECODABLE:
        return []


def _mended(body: bytes, decode: Decode[T], log: IssueLog) -> tuple[list[T], bytes]:
    """Return the event that a damaged text holds once one or several of the known damages are undone, and the rest."""
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
    """Yield (repairs made, text): each repair alone, then more and more together."""
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


def _refuse_mostly_lost(lost: int, found: int, log: IssueLog) -> None:
    if lost > max(1, _LOST_SHARE * (lost + found)):
        msg = (
            f"{log.file}: {lost} of {lost + found} events in a stretch of the file are unreadable: "
            "interleaved or overwritten by several writers?"
        )
        raise DamagedTraceError(msg)


def _escape_name(body: bytes) -> bytes:
    def quoted(found: re.Match[bytes]) -> bytes:
        name = re.sub(rb'(?<!\\)"', rb'\\"', found[2])
        return found[1] + name + found[3]

    return _NAME.sub(quoted, body, count=1)


def _quote_bare(body: bytes) -> bytes:
    return _BARE.sub(lambda found: b'"' + found[1] + b'"' if found[1] else found[0], body)


def _drop_stray_commas(body: bytes) -> bytes:
    return _STRAY_COMMA.sub(lambda found: b"" if found[1] or found[2] else found[0], body)


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
    "bad_utf8": "bytes that are not UTF-8; replaced",
    "control_characters": "control characters in a string; replaced by spaces",
    "non_finite": "bare inf, nan or N/A; read as text",
    "stray_comma": "a comma too many; ignored",
    "unescaped_quotes": "quotes inside a name were not escaped; repaired",
    "slashed_quotes": 'quotes in the args were written /" instead of \\"; repaired',
    "args_dropped": "the args of an event are unreadable; the event was kept without them",
}
