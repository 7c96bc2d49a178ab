"""Damaged JSON text → the events that can be recovered, one by one, with a report of every repair and loss.

Kineto writes JSON by string formatting, so the kinds of damage are known: unescaped quotes, bare ``inf``, control
characters, bad UTF-8, stray commas, a killed writer, several writers. Each repair here undoes one of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from htagraph.core.errors import DamagedTraceError, IssueLog
from htagraph.trace.kineto.decode import UNDECODABLE

__all__ = [
    "MEANING", "Salvaged", "candidates", "ends_early", "refuse_second_document", "salvage", "salvage_header",
]  # fmt: skip

T = TypeVar("T")
Decode = Callable[[bytes], list[T]]


_BETWEEN = re.compile(r"[ \t\r\n,]*")
_BLANKS = " \t\r\n"
_KEY = re.compile(r'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|s|bp|args)"\s*:', re.ASCII)
_SECOND = r'\{\s*"schemaVersion"|"traceEvents"\s*:\s*\[\s*\{\s*"ph"'
_DOCUMENT = re.compile(_SECOND.encode())
_DOCUMENT_IN_PLAIN = re.compile(_SECOND)
_PHASE = re.compile(r'"ph"\s*:\s*"')
_LETTER = re.compile(r"[^ \t\r\n]")
_HEAD = re.compile(r'\{[^{}\[\]]{0,512}?"ph"\s*:\s*"\w"')
_ROOT_FOLLOWS = re.compile(r'\]\s*(?:,\s*"|\})')
_OBJECTS = re.compile(rb"\}(?=\s*(?:,\s*)?\{)")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]|,', re.DOTALL)
_HEADER_KEYS = (
    "schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "displayTimeUnit",
    "host_name", "traceName", "trace_id",
)  # fmt: skip
_TAIL_CHARS = 4096
"""Characters without an event behind a closing bracket from which on it is taken for the end of the array although the
file goes on. Chosen: hardly an event is longer. Doubled, lists of longer events are not taken for the array."""
_ROOT_KEY = re.compile(r'\]\s*,\s*"(?:' + "|".join(_HEADER_KEYS) + r')"\s*:')
_MAX_LOST_SHARE = 0.5
"""Share of unreadable events in a stretch of text above which the file is refused. Chosen: single writers lose a few
events, interleaved ones most. With 1, a file of which almost nothing is left would be read without an error."""
_LONGEST_WORD = len("-Infinity")  # characters: the longest word that JSON text may be cut within
_MEND_BYTES = 512
"""Bytes of a damaged text that are repaired at first, then 8 times as many. Chosen: most events are shorter. Doubling
it makes damaged events whose end is not known cost twice the time."""
_WINDOW_CHARS = 2 * _MEND_BYTES
"""Characters in which the end of an event is looked for at first, then 8 times as many. Chosen: nearly all events are
shorter. Doubled, each error of the json module costs more time; no result changes."""
_MAX_EVENT_BYTES = 16 << 20
"""Bytes: an event that has not ended after so much text counts as damaged. Chosen: far beyond the events of all traces
in reach. Doubling it doubles the memory for a file with an event that never ends (some 0.5 GB)."""
_MAX_MEND_BYTES = 1 << 20
"""Bytes: a damaged event that has not ended after so much text is not repaired. Chosen: far beyond the damaged events
of all traces in reach. Doubling it doubles the memory that repairing takes (some 100 MB)."""
_MENDED_SHARE = 64
"""Bytes given to repairs per byte of text, after which the rest is read without repairs. Chosen: a text of nothing but
damaged events needs 14, and 60 where their ends are not known. Doubled, hostile texts cost twice."""
_MAX_NESTED_TRIES = 8
"""Values that are tried inside one that is not readable, up to where that became clear. Chosen: an event holds objects
in lists in objects, hardly more. Doubled, hostile texts cost twice."""
_GAP = b"~"  # stands for text that was dropped: no JSON value begins so
_DEEP = 200
"""Levels of brackets within which a text that nests too deeply is taken to have been read in vain. Chosen: a fifth of
what the json module reads. Doubled, values in such a text are tried half as often."""


@dataclass
class Salvaged(Generic[T]):
    """The events in a stretch of the array of events, and the text after them."""

    events: list[T] = field(default_factory=list)
    rest: bytes = b""
    """Text not read: what follows the array if `closed`, else the beginning of an event that has not ended, or a mark
    that one was too long."""
    closed: bool = False
    """True if the array ends in this stretch."""


@dataclass
class _Walk:
    """Where salvaging a text has got to, and what it has cost."""

    plain: str
    """The text, one character per byte."""
    at: int = 0
    lost: int = 0
    foreign: int = 0
    """How many of the lost are JSON, but no objects."""
    resumed: bool = False
    """True if `at` is a guess, after something unreadable."""
    start: int = 0
    """Where the next event probably begins, if it is behind `at`."""
    read: int = 0
    """How far unreadable values were read."""
    tries: int = 0
    """How many unreadable values began before `read`."""
    parts: int = 0
    """How many numbers, texts and lists came after something unreadable, before the next event."""
    mended: int = 0
    """Bytes that were given to repairs."""
    searched: int = 0
    """How far the text was searched for a second document."""
    phase: int = -1
    """Where the next phase of an event is, if behind `at`; the length of the text if there is none."""
    tails: int = 0
    """How many brackets were tried as the end of the array by reading the text behind them as root keys."""
    document: int = -1
    """Where the next document begins, if behind `at`; the length of the text if none does."""


def salvage(text: bytes, decode: Decode[T], log: IssueLog, *, final: bool) -> Salvaged[T]:
    """Return the events in a stretch of the array that does not decode as a whole, in time proportional to the text.

    `text` begins where an event, or the end of the array, is expected. If the file does not end with it (`final`), its
    last event may go on in the next text. Interleaved documents, and more than half of the events unreadable, raise a
    DamagedTraceError.
    """
    salvaged: Salvaged[T] = Salvaged()
    walk = _Walk(text.decode("latin-1"))  # one byte, one character: positions agree
    if text.startswith(_GAP):
        walk.resumed, walk.at = True, _next_start(walk.plain, len(_GAP))
    while True:
        walk.at = _between(walk.plain, walk.at)
        if walk.at == len(text):
            break
        if _is_loose(walk):
            salvaged.closed = _closes(walk, final=final)
            if salvaged.closed or (not final and _may_close_later(walk)):
                break
            _skip_bracket(walk)
            continue
        if walk.resumed and walk.plain[walk.at] != "{":  # a part of the unreadable event, as may be thousands more
            walk.parts += 1
            if walk.parts > _MAX_NESTED_TRIES:
                walk.at = _next_start(walk.plain, walk.at)
                continue
        value = _value(walk.plain, walk.at)
        next_at = value.end or _start_behind(walk, value.read)
        if not value.end and not walk.resumed and (end := _balanced_end(walk.plain, walk.at, next_at)):
            value, next_at = value._replace(incomplete=False, known=True), end
        to_the_end = value.incomplete or next_at == len(walk.plain) != value.end
        if not final and to_the_end and len(walk.plain) - walk.at < _MAX_EVENT_BYTES:  # it may go on in the next text
            break
        salvaged.events += _taken(walk, text, value, next_at, decode, log)
    _refuse_mostly_lost(walk.lost - walk.foreign, len(salvaged.events), log)
    log.add("event_unreadable", "events damaged beyond repair; dropped", walk.lost)
    ends_unreadable = walk.resumed and walk.at == len(text) and not salvaged.closed
    walk.at += salvaged.closed
    salvaged.rest = _GAP if ends_unreadable and not final else text[walk.at :]
    return salvaged


def salvage_header(text: bytes, log: IssueLog) -> dict[str, Any]:
    """Return the known root keys that can still be read from a damaged header."""
    plain = text.decode("utf-8", "replace")
    header: dict[str, Any] = {}
    for key in _HEADER_KEYS:
        start = re.search(rf'"{key}"\s*:\s*', plain)
        if start:
            try:
                header[key] = _whole_value(plain, start.end())
            except (ValueError, RecursionError):
                log.add("header_key_lost", f"header key {key} is unreadable; ignored")
    return header


def _whole_value(plain: str, at: int) -> Any:  # noqa: ANN401 - any JSON
    """Return the value at `at`.

    Raises:
        ValueError: there is no value, or it goes on with text that is no JSON, as a damaged number does.
    """
    value, end = json.JSONDecoder(strict=False).raw_decode(plain, at)
    behind = _LETTER.search(plain, end)
    if behind and behind[0] not in ",}]":
        msg = "a damaged value"
        raise ValueError(msg)
    return value


def refuse_second_document(text: bytes, log: IssueLog) -> None:
    """Raise an error if another JSON document begins inside a damaged text."""
    if _DOCUMENT.search(text, 1):
        raise _second_document(log)


def ends_early(error: Exception, cut_word: int = _LONGEST_WORD) -> bool:
    """Return True if an error of the json module means that the text ends too early.

    `cut_word` is the number of characters at the end that may be the beginning of a word or of an escape.
    """
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or len(error.doc[error.pos :].strip()) <= cut_word


class _Value(NamedTuple):
    """The JSON value at a position."""

    end: int = 0
    """Where it ends; 0 if it cannot be read."""
    is_event: bool = False
    """True if it is an object with a phase."""
    incomplete: bool = False
    """True if the text ends within it."""
    read: int = 0
    """How far the text was read, if the value cannot be."""
    known: bool = False
    """True if it cannot be read, but its brackets and quotes show where it ends."""


def _between(plain: str, at: int) -> int:
    between = _BETWEEN.match(plain, at)
    return between.end() if between else at


def _taken(walk: _Walk, text: bytes, value: _Value, next_at: int, decode: Decode[T], log: IssueLog) -> list[T]:
    """Return the event at `walk.at`, as a list, and move on."""
    first, walk.at = walk.at, next_at
    if value.end and walk.resumed and not value.is_event:  # a part of the unreadable event
        return []
    events = _decoded(text[first:next_at], decode) if value.end else []
    if not events and walk.mended <= _MENDED_SHARE * len(text) + _MAX_MEND_BYTES:
        events, walk.at = _mended(walk, text, (first, next_at), decode, log)
    walk.lost += not events
    walk.foreign += bool(not events and value.end and walk.plain[first] != "{")
    behind = _between(walk.plain, next_at)
    follows = walk.plain[behind : behind + 1] in ("", "]") or "," in walk.plain[next_at:behind]
    walk.resumed = not events and (walk.resumed or not follows or not (value.end or value.known))
    walk.parts = walk.parts if walk.resumed else 0
    return events


def _is_loose(walk: _Walk) -> bool:
    """Return True for a closing bracket, and for an opening one with events inside: events are in no list of events."""
    bracket = walk.plain[walk.at]
    if bracket != "[":
        return bracket == "]"
    phase = _next_phase(walk)
    return phase < len(walk.plain) and walk.plain.find("]", walk.at, phase) < 0


def _next_phase(walk: _Walk) -> int:
    """Return where the next phase of an event is, the length of the text if there is none."""
    if walk.phase < walk.at:
        walk.phase = _search(_PHASE, walk)
    return walk.phase


def _closes(walk: _Walk, *, final: bool) -> bool:
    """Return True if the bracket at `walk.at` ends the array of events; it may be a part of a damaged event.

    Behind the end of the array are root keys and no events, or another document. A bracket with events behind it is
    the end of a list inside an event whose beginning is lost.
    """
    if walk.plain[walk.at] != "]":
        return False
    if walk.tails < _MAX_NESTED_TRIES and _is_tail(walk):
        return True
    end = len(walk.plain)
    if _next_phase(walk) == end:
        is_far = end - walk.at > _TAIL_CHARS and _ROOT_FOLLOWS.match(walk.plain, walk.at) is not None
        return final or is_far
    if walk.document < walk.at:
        walk.document = _search(_DOCUMENT_IN_PLAIN, walk)
    return walk.document < walk.phase


def _is_tail(walk: _Walk) -> bool:
    """Return True if root keys follow the bracket at `walk.at`, up to the end of the document or of the text.

    Behind the end of a document may be another one, but no event.
    """
    if not _ROOT_FOLLOWS.match(walk.plain, walk.at):
        return False
    walk.tails += 1
    root = '{"":0' + walk.plain[walk.at + 1 :]
    try:
        end = json.JSONDecoder(strict=False, parse_int=float).raw_decode(root)[1]
    except (ValueError, RecursionError) as error:
        return ends_early(error) and _ROOT_KEY.match(walk.plain, walk.at) is not None
    behind = root[end:].lstrip()
    return behind[:1] not in tuple("]},") and not _KEY.match(behind)


def _search(pattern: re.Pattern[str], walk: _Walk) -> int:
    """Return where a pattern is next found, the length of the text if nowhere."""
    match = pattern.search(walk.plain, walk.at)
    return match.start() if match else len(walk.plain)


def _may_close_later(walk: _Walk) -> bool:
    """Return True if a bracket that does not end the array may do so by the text that follows this one."""
    return walk.plain[walk.at] == "]" and walk.phase == len(walk.plain) and len(walk.plain) - walk.at <= _TAIL_CHARS


def _skip_bracket(walk: _Walk) -> None:
    """Move from a bracket that is a part of a damaged event to where the next event begins."""
    if not walk.resumed:
        walk.lost += 1
        walk.foreign += 1
    walk.resumed = True
    walk.at = _next_start(walk.plain, walk.at + 1)


def _value(plain: str, at: int) -> _Value:
    """Return the JSON value at `at`.

    Decodes a window of the text that grows as needed: an error of the json module costs time in proportion to its text.
    """
    window = _WINDOW_CHARS
    while True:
        part = plain[at : at + window]
        try:
            value, end = json.JSONDecoder(strict=False, parse_int=float).raw_decode(part)  # int() has a limit of digits
        except RecursionError:
            return _Value(read=at + _deep(part))
        except ValueError as error:
            if not ends_early(error):
                return _Value(read=at + (error.pos if isinstance(error, json.JSONDecodeError) else len(part)))
            if at + window >= len(plain) or window >= _MAX_EVENT_BYTES:
                return _Value(incomplete=True, read=at + len(part))
            window = min(8 * window, _MAX_EVENT_BYTES)
            continue
        return _Value(at + end, isinstance(value, dict) and "ph" in value)


def _deep(part: str) -> int:
    """Return where a text has opened many brackets."""
    depth = 0
    for token in _TOKEN.finditer(part):
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth == _DEEP:
            return token.end()
    return len(part)


def _balanced_end(plain: str, at: int, stop: int) -> int:
    """Return where the element at `at` ends by its brackets and quotes; 0 if they do not balance before `stop`.

    What is wrong inside a text or a number, such as an escape that JSON does not have, does not hide the end. An object
    without the key of an event in front may be a part of the text of one.
    """
    if plain[at] == "{" and not _KEY.match(plain, at):
        return 0
    depth = 0
    for token in _TOKEN.finditer(plain, at, stop):
        first = token[0][0]
        if first == '"' and (len(token[0]) == 1 or token[0][-1] != '"'):
            return 0
        if not depth and first in ",]}":
            return token.start() if token.start() > at else 0
        depth += (first in "[{") - (first in "]}")
        if not depth and first in "]}":
            return token.end()
    return 0


def _start_behind(walk: _Walk, read: int) -> int:
    """Return where the next event probably begins behind a value that cannot be read.

    A value inside it that has no end either is unreadable for the same reason. So only a few are tried.
    """
    walk.tries = walk.tries + 1 if walk.at < walk.read else 0
    walk.read = max(walk.read, read)
    least = walk.at + 1 if walk.tries < _MAX_NESTED_TRIES else max(walk.at + 1, walk.read)
    if walk.start < least:
        walk.start = _next_start(walk.plain, least)
    return walk.start


def _next_start(plain: str, least: int) -> int:
    """Return where the next object begins that has a key of an event.

    The object is on a new line, or behind a bracket, or has a phase.
    """
    for key in _KEY.finditer(plain, least):
        before = _blanks_before(plain, key.start(), least)
        if "\n" in plain[before : key.start()]:
            return key.start()
        if before > least and plain[before - 1] == ",":
            before = _blanks_before(plain, before - 1, least)
        if before > least and plain[before - 1] in "]}":
            return key.start()
        if _HEAD.match(
            plain, key.start()
        ):  # whatever is before it, such as a key without its value: no argument has a phase
            return key.start()
    return len(plain)


def _blanks_before(plain: str, at: int, least: int) -> int:
    while at > least and plain[at - 1] in _BLANKS:
        at -= 1
    return at


def _decoded(body: bytes, decode: Decode[T]) -> list[T]:
    try:
        return decode(b"[" + body + b"]")
    except UNDECODABLE:
        return []


def _mended(walk: _Walk, text: bytes, extent: tuple[int, int], decode: Decode[T], log: IssueLog) -> tuple[list[T], int]:
    """Return (the event that a damaged text holds once repaired, as a list; where the text after that event begins)."""
    if _DOCUMENT.search(text, max(extent[0] + 1, walk.searched), extent[1]):
        raise _second_document(log)
    walk.searched = extent[1]
    for at in _ends_of_objects(text, *extent):
        body = text[extent[0] : at].strip(b" \t\r\n,")
        for names, mended in candidates(body, whole=at == extent[1]):
            walk.mended += len(body)
            end = _value(mended.decode("latin-1"), 0).end
            events = _decoded(mended[:end], decode) if end else []
            if events:
                for name in names:
                    log.add(name, MEANING[name])
                return events, _end_before_repair(text, extent[0], at, mended[end:])
    return [], extent[1]


def _ends_of_objects(text: bytes, first: int, last: int) -> Iterator[int]:
    """Yield a few positions at which an event that begins at `first` may end, each much farther, the last one last."""
    length = _MEND_BYTES
    while length < min(last - first, _MAX_MEND_BYTES):
        brace = _OBJECTS.search(text, first + length, last)
        if not brace:
            break
        yield brace.end()
        length = 8 * max(length, brace.end() - first)
    if last - first <= _MAX_MEND_BYTES:
        yield last


def _end_before_repair(text: bytes, first: int, last: int, left: bytes) -> int:
    """Return where an event ended before its repair, given the repaired text behind it: repairs keep its braces."""
    at = last
    for _ in range(left.count(b"}") + 1):
        at = text.rfind(b"}", first, at)
        if at < 0:
            return last
    return at + 1


def _second_document(log: IssueLog) -> DamagedTraceError:
    msg = "a second JSON document begins inside the first: several ranks wrote to one path at once"
    return DamagedTraceError(f"{log.file}: {msg}; record one file per rank")


def _refuse_mostly_lost(lost: int, readable: int, log: IssueLog) -> None:
    if lost > max(1, _MAX_LOST_SHARE * (lost + readable)):
        msg = (
            f"{log.file}: {lost} of {lost + readable} events in one part of the file are unreadable; "
            "did several processes write to it at once?"
        )
        raise DamagedTraceError(msg)


_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"?'  # to the end of the text if it is not closed, so that no quote is tried twice
_BARE = re.compile(_STRING + rb"|(?<![\w.+-])([-+]?(?:inf|nan|infinity)|N/A)(?=\s*[,}\]])", re.IGNORECASE | re.DOTALL)
_STRAY_COMMA = re.compile(_STRING + rb"|(,)(?=\s*[,}\]])|(?<=[{\[])(\s*,)", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_NAME = re.compile(rb'"name"\s*:\s*"')
_NAME_END = re.compile(rb'"\s*,\s*"(?:ph|cat|pid|tid|ts|dur|s|id|args)"\s*:')
_QUOTE = re.compile(rb'(?<!\\)"')
_ARGS = re.compile(rb',\s*"args"\s*:')
_TWO_BRACES = re.compile(rb"\}(?=\s*(\}))")
_END = re.compile(rb"(?<=\})\s*(?:(?:\}\s*)?\Z|\]\s*(?:[,}]|\Z))")
_SURROGATES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})", re.DOTALL)
_NO_ARGS = re.compile(rb',\s*"args"\s*:\s*(?:(?:null|"[^"]*"|\[\s*\])\s*)?(?=\})')


def candidates(body: bytes, *, whole: bool = True) -> Iterator[tuple[list[str], bytes]]:
    """Yield (codes of the repairs made, repaired text): each repair alone, then two, three and more together.

    Text that may go on behind its end (not `whole`) is not tried without its arguments.
    """
    mends = _MENDS if whole else _MENDS[:-1]
    for name, mend in mends:
        mended = mend(body)
        if mended != body:
            yield [name], mended
    names: list[str] = []
    for name, mend in mends:
        mended = mend(body)
        if mended != body:
            names, body = [*names, name], mended
            yield names, mended


def _escape_name(body: bytes) -> bytes:
    """Return the text with the quotes inside the first name escaped; the name ends before a key of the event."""
    start = _NAME.search(body)
    end = _NAME_END.search(body, start.end()) if start else None
    if not start or not end:
        return body
    return body[: start.end()] + _QUOTE.sub(rb'\\"', body[start.end() : end.start()]) + body[end.start() :]


def _drop_args(body: bytes) -> bytes:
    """Return the text without the arguments of its first event: up to the last two braces that end an event."""
    start = _ARGS.search(body)
    if not start:
        return body
    for braces in reversed(list(_TWO_BRACES.finditer(body, start.end()))):
        if _END.match(body, braces.end(1)):
            body = body[: start.start()] + b"}" + body[braces.end(1) :]
            break
    return _NO_ARGS.sub(b"", body)


_MENDS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("bad_utf8", lambda body: body.decode("utf-8", "replace").encode()),
    ("control_characters", lambda body: _CONTROL.sub(b" ", body)),
    ("non_finite", lambda body: _BARE.sub(lambda match: b'"' + match[1] + b'"' if match[1] else match[0], body)),
    ("stray_comma", lambda body: _STRAY_COMMA.sub(lambda match: b"" if match[1] or match[2] else match[0], body)),
    ("unescaped_quotes", _escape_name),
    ("slashed_quotes", lambda body: body.replace(b'/"', b'\\"')),
    ("lone_surrogate", lambda body: _SURROGATES.sub(lambda match: b"\\ufffd" if match[1] else match[0], body)),
    ("args_dropped", _drop_args),
)
MEANING = {
    "bad_utf8": "text is not valid UTF-8; bad bytes replaced",
    "control_characters": "control characters in a string; replaced by spaces",
    "non_finite": "inf, nan or N/A without quotes; read as text",
    "stray_comma": "an extra comma; ignored",
    "unescaped_quotes": "quotes inside a name are not escaped; repaired",
    "slashed_quotes": 'quotes in args are written /" instead of \\"; repaired',
    "lone_surrogate": "half of a surrogate pair in a text; replaced",
    "args_dropped": "the args of an event are unreadable; the event is kept without them",
}
"""What each repair is, for users, by its code."""
