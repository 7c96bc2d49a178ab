"""Criteria of `DependencyGraph.select` as text, such as ``name=*gemm*,rank=0-3``: read and written.

Criteria are ``key=value`` pairs separated by commas. A value may contain colons, and commas, because a new criterion
begins only where a key and ``=`` follow. A value that contains even that goes into double quotes, with ``""`` for a
quote.
"""

from __future__ import annotations

import re
from typing import Any

from htagraph.core.words import nearest_words

__all__ = ["KEYS", "amount", "criteria", "criteria_text", "duration_ns", "numbers"]

_TEXTS = ("kind", "name", "op", "backward_of", "category", "regex", "after", "before")
_NUMBERED = ("rank", "stream", "step", "depth", "activity")
_DURATIONS = ("min_us", "max_us")
_FROM_END = "step_index"
KEYS = (
    *_TEXTS[:4],
    "rank",
    "stream",
    "step",
    _FROM_END,
    "time",
    *_DURATIONS,
    *_TEXTS[4:6],
    "depth",
    "activity",
    *_TEXTS[6:],
)
"""Every criterion of `DependencyGraph.select`, and the two that Python between operators has besides."""
_KEY = re.compile(r"(\w+)=")
_NEXT = re.compile(r",(\w+)=")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"(?=,|$)', re.DOTALL)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_POSITION = re.compile(r"-?\d{1,9}")
_PLAIN = re.compile(r"\d+(\.\d*)?|\.\d+")
_MAX_RANGE = 1_000_000
"""The longest range of numbers, such as 0-7, that an option may have.

Chosen: more ranks, streams and steps than any trace has, and short enough as a list. Doubled, no range of those
changes."""
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)\s*([^\d\s].*)")
_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
"""ns per unit of time."""


def criteria(text: str) -> dict[str, Any]:
    """Return ``name=*gemm*,rank=0,2-3`` as keywords of `DependencyGraph.select`.

    Raises:
        ValueError: a key is unknown or given twice, or a value is empty or no number.

    Example:
        >>> criteria("name=void gemm<float, 4>(int, int),rank=0,2-3")
        {'name': 'void gemm<float, 4>(int, int)', 'rank': [0, 2, 3]}
    """
    given: dict[str, Any] = {}
    at = 0
    while at < len(text) or not given:
        key = _KEY.match(text, at)
        if key is None or key[1] not in KEYS or key[1] in given:
            raise ValueError(_unreadable(text, key[1] if key else text[at:], given))
        value, at = _value(text, key.end())
        if not value and not text.startswith('"', key.end()):  # in quotes it is a name: that of events without one
            msg = f"{text!r}: nothing after {key[0]}"
            raise ValueError(msg)
        given[key[1]] = _typed(key[1], value)
    return given


def _unreadable(text: str, part: str, given: dict[str, Any]) -> str:
    if part in given:
        return f"{text!r}: {part}= is given twice"
    keys = ", ".join(f"{key}=" for key in KEYS)
    nearest = nearest_words(part, KEYS)
    return f"{text!r}: {part!r} is no criterion; choose from {keys}, and quote values that hold a comma and ={nearest}"


def _value(text: str, at: int) -> tuple[str, int]:
    """Return (the value that begins at a position, the position of the next criterion)."""
    quoted = _QUOTED.match(text, at)
    if quoted:
        return quoted[1].replace('""', '"'), quoted.end() + 1
    following = _NEXT.search(text, at)
    end = following.start() if following else len(text)
    return text[at:end], end + 1


def _typed(key: str, value: str) -> Any:  # noqa: ANN401 - what select takes for that key
    if key in _NUMBERED or key == _FROM_END:
        several = numbers(value) if key != _FROM_END else _positions(value)
        return several[0] if len(several) == 1 else several
    if key in _DURATIONS:
        return _us(value)
    if key == "time":
        return _window(value)
    if key == "kind" and "," in value:
        return value.split(",")
    return value


def criteria_text(given: dict[str, Any]) -> str:
    """Return keywords of `DependencyGraph.select` as text that `criteria` reads; None is left out.

    Example:
        >>> criteria_text({"op": "aten::mm", "rank": [0, 2]})
        'op=aten::mm,rank=0,2'
    """
    parts = []
    for key, value in given.items():
        if value is None:
            continue
        between = ".." if key == "time" else ","
        text = between.join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        if key in _TEXTS and (not text or _NEXT.search(text) or text.startswith('"')):
            text = '"' + text.replace('"', '""') + '"'
        parts.append(f"{key}={text}")
    return ",".join(parts)


def numbers(text: str) -> list[int]:
    """Return ``0,3-7`` as a list of numbers.

    Raises:
        ValueError: the text is no list of numbers, or a range is longer than a million.

    Example:
        >>> numbers("0,3-5")
        [0, 3, 4, 5]
    """
    chosen: list[int] = []
    for part in text.split(","):
        ends = _RANGE.fullmatch(part.strip())
        first = int(ends[1]) if ends else 0
        last = int(ends[2] or ends[1]) if ends else -1
        if not first <= last <= first + _MAX_RANGE:
            msg = f"{text!r} is not a list of numbers such as 0,3-7"
            raise ValueError(msg)
        chosen += range(first, last + 1)
    return chosen


def duration_ns(text: str) -> float:
    """Return a duration such as ``12us`` or ``1.5ms`` in ns.

    Raises:
        ValueError: the number or the unit of time is missing.

    Example:
        >>> duration_ns("1.5ms")
        1500000.0
    """
    return amount(text, _NS, "a duration such as 300ns, 12us, 1.5ms or 2s")


def amount(text: str, units: dict[str, float], what: str) -> float:
    """Return a number with a unit, in the unit that counts as 1.

    Args:
        text: such as ``12us``.
        units: how much each unit is.
        what: what it is to be, for the error.

    Raises:
        ValueError: the number or the unit is missing.

    Example:
        >>> amount("2ms", {"ms": 1e6}, "a duration")
        2000000.0
    """
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2] not in units:
        msg = f"{text!r} is not {what}"
        raise ValueError(msg)
    return float(found[1]) * units[found[2]]


def _positions(text: str) -> list[int]:
    """Return ``0,-1`` or ``0-2`` as a list of positions; -1 is the last."""
    parts = [part.strip() for part in text.split(",")]
    return [int(part) for part in parts] if all(map(_POSITION.fullmatch, parts)) else numbers(text)


def _us(text: str) -> float:
    """Return a number of µs, or a duration with a unit, in µs."""
    return float(text) if _PLAIN.fullmatch(text.strip()) else duration_ns(text) / 1000


def _window(text: str) -> tuple[float, float]:
    """Return ``1ms..2ms`` as two moments in µs since the job's first activity."""
    first, dots, last = text.partition("..")
    if not dots:
        msg = f"{text!r} is not a window FROM..TO such as 1.5ms..2ms"
        raise ValueError(msg)
    return _us(first), _us(last)
