"""Damaged files of which is known, from their bytes alone, which events are sound: each must be read, or reported lost.

The oracle parses nothing that is damaged: an event is sound if the bytes that were written for it are in the file.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.damage import END, Json, call, document, issues, kernel, kineto_text, op, read

__all__ = ["FORMS", "Losses", "Written", "damaged", "losses", "written"]

_ROUNDS = 66
"""Operators, launches and kernels of a file, of each. Chosen: what follows damage is most of the file."""
_PLACES = ("name", "cat", "ph", "ts")
"""The first keys of an event in a form that no writer here uses: events need not begin with their phase."""


class Written(NamedTuple):
    """A healthy file, and the bytes of each of its events."""

    text: bytes
    events: dict[int, bytes]
    """By their start in nanoseconds, which no two share."""


class Losses(NamedTuple):
    """What became of the sound events of a damaged file."""

    sound: int
    missing: int
    reported: int
    refused: str = ""
    """Why the file was refused, if it was."""

    @property
    def is_silent(self) -> bool:
        """True if more events are missing than are reported."""
        return not self.refused and self.missing > self.reported


def _events() -> list[Json]:
    made = [make(number) for number in range(1, _ROUNDS + 1) for make in (op, call, kernel)]
    for place, event in enumerate(made):
        event["ts"] = 1000 + 10 * place + 0.125
        if place % 5 == 0:
            event["args"]["Process Group Ranks"] = [0, 1, 2, 3]
    return [*made, dict(END)]


def _by_line(events: list[Json]) -> str:
    return document([]).replace("[]", "[\n" + ",\n".join(map(json.dumps, events)) + "\n]")


def _named_first(events: list[Json]) -> str:
    ordered = [{**{key: event[key] for key in _PLACES if key in event}, **event} for event in events]
    return document(ordered, separators=(",", ":"))


FORMS: dict[str, Callable[[list[Json]], str]] = {
    "kineto": kineto_text,
    "compact": lambda events: document(events, separators=(",", ":")),
    "a line each": _by_line,
    "indented": lambda events: document(events, indent=1),
    "name first": _named_first,
}
"""The same events as writers put them into text."""


@cache
def written(form: str) -> Written:
    """Return a healthy file in one of `FORMS`."""
    text = FORMS[form](_events())
    decoder, events = json.JSONDecoder(), {}
    at = text.index("[", text.index('"traceEvents"')) + 1
    while (at := text.find("{", at)) >= 0:
        event, end = decoder.raw_decode(text, at)
        if event["ph"] == "X":
            events[round(1000 * event["ts"])] = text[at:end].encode()
        at = end
        if text[at:].lstrip().startswith("]"):
            break
    return Written(text.encode(), events)


_SIZES = (1, 3, 10, 60, 200, 900)
_PIECES = (
    b'"', b"]", b"[", b"{", b"}", b",", b"]}", b"}]", b"\\", b"\n", b"xyz", b"\n1, 2, 3]}},\n", b"\n]}},\n", b'": {',
    b"\xff\xfe", b"[[[[", b"],", b"[" * 300,
)  # fmt: skip


def damaged(text: bytes, draw: random.Random, times: int) -> bytes:
    """Return a text with so many damages in its events, or, of some files, in the header too."""
    first = text.index(b'"traceEvents"') + len(b'"traceEvents":   [')
    first = first if draw.random() < 0.9 else text.index(b'"baseTime') - 100
    for _ in range(times):
        text = draw.choice(_DAMAGES)(text, draw, draw.randrange(first, len(text)))
    return text


def _deleted(text: bytes, draw: random.Random, at: int) -> bytes:
    return text[:at] + text[at + draw.choice(_SIZES) :]


def _inserted(text: bytes, draw: random.Random, at: int) -> bytes:
    return text[:at] + draw.choice(_PIECES) + text[at:]


def _flipped(text: bytes, draw: random.Random, at: int) -> bytes:
    return text[:at] + bytes([text[at] ^ 1 << draw.randrange(8)]) + text[at + 1 :]


def _without_lines(text: bytes, draw: random.Random, at: int) -> bytes:
    lines = text[at:].split(b"\n")
    gone = draw.choice((1, 1, 2, 5, 12))
    return text[:at] + b"\n".join(lines[:1] + lines[1 + gone :])


def _repeated(text: bytes, draw: random.Random, at: int) -> bytes:
    return text[: at + draw.choice(_SIZES)] + text[at:]


def _zeroed(text: bytes, draw: random.Random, at: int) -> bytes:
    zeros = draw.choice((1, 4, 30, 512))
    return text[:at] + bytes(zeros) + text[at + zeros :]


def _overwritten(text: bytes, draw: random.Random, at: int) -> bytes:
    size = draw.choice(_SIZES) // 3 + 1
    return text[:at] + draw.randbytes(size) + text[at + size :]


def _cut(text: bytes, draw: random.Random, at: int) -> bytes:
    return text[: max(at, len(text) // 4)] if draw.random() < 0.3 else text


_DAMAGES = (_deleted, _inserted, _flipped, _without_lines, _repeated, _zeroed, _overwritten, _cut)
_LOSSES = ("event_unreadable", "phase_missing")
"""Codes of issues that say of events that they were not read."""


def losses(form: str, data: bytes, path: Path) -> Losses:
    """Return what became of the sound events of a damaged file, written to a path.

    Raises:
        Exception: whatever reading raises, but for a refusal.
    """
    from htagraph.core.errors import TraceError

    sound = [start for start, event in written(form).events.items() if event in data]
    path.write_bytes(data)
    try:
        trace = read(path)
    except TraceError as error:
        return Losses(len(sound), len(sound), 0, str(error))
    starts = set(trace.events.start.tolist())
    base = trace.facts.base_ns or 0  # damage may have changed it
    missing = sum(not {start, start + base} & starts for start in sound)
    found = issues(trace)
    return Losses(len(sound), missing, sum(found.get(code, 0) for code in _LOSSES))
