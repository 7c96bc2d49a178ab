"""Damaged files of which is known, from their bytes alone, which events are sound: each must be read, or reported lost.

The oracle parses nothing that is damaged: an event is sound if the bytes that were written for it are in the file. The
same holds for samples of counters. Perfetto's packets are written in JSON's place by one of the forms.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from htagraph.simulate.next_json import Dialect
from htagraph.simulate.next_pftrace import as_pftrace
from htagraph.trace.pftrace.samples import samples
from tests.damage import BASE_NS, END, Json, call, document, issues, kernel, kineto_text, op, read

__all__ = ["ALL_FORMS", "FORMS", "NATIVE", "Losses", "Written", "damaged", "file_name", "losses", "written"]

_ROUNDS = 66
"""Operators, launches and kernels of a file, of each. Chosen: what follows damage is most of the file."""
_PLACES = ("name", "cat", "ph", "ts")
"""The first keys of an event in a form that no writer here uses: events need not begin with their phase."""


class Written(NamedTuple):
    """A healthy file, and the bytes of each of its events and samples."""

    text: bytes
    events: dict[int, tuple[bytes, ...]]
    """By their start in nanoseconds, which no two share; a slice of Perfetto's has a begin and an end."""
    durations: dict[int, int]
    """Of events, by their start."""
    samples: dict[int, bytes]
    """By their time in nanoseconds, which no two share."""
    header: int
    """Where what is said of all events begins."""
    first: int
    """Where the events begin."""


class Losses(NamedTuple):
    """What became of the sound events of a damaged file."""

    sound: int
    """Events and samples."""
    missing: int
    reported: int
    refused: str = ""
    """Why the file was refused, if it was."""
    wrong: int = 0
    """Sound events that were read with another duration."""
    uncertain: int = 0
    """Events of which is reported that their duration may be wrong."""

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


NATIVE = "pftrace"
"""The form of Perfetto's packets."""
ALL_FORMS = (*FORMS, NATIVE)


def file_name(form: str) -> str:
    """Return the name of a file in one of `ALL_FORMS`."""
    return "rank-0.pftrace" if form == NATIVE else "rank-0.json"


@cache
def written(form: str) -> Written:
    """Return a healthy file in one of `ALL_FORMS`."""
    if form == NATIVE:
        return _written_packets()
    text = FORMS[form](_events())
    decoder, durations = json.JSONDecoder(), {}
    events: dict[int, tuple[bytes, ...]] = {}
    at = text.index("[", text.index('"traceEvents"')) + 1
    while (at := text.find("{", at)) >= 0:
        event, end = decoder.raw_decode(text, at)
        if event["ph"] == "X":
            start = round(1000 * event["ts"])
            events[start] = (text[at:end].encode(),)
            durations[start] = round(1000 * event["dur"])
        at = end
        if text[at:].lstrip().startswith("]"):
            break
    first = text.index('"traceEvents"') + len('"traceEvents":   [')
    return Written(text.encode(), events, durations, {}, text.index('"baseTime') - 100, first)


def _written_packets() -> Written:
    made = _events()
    for event in made[:-1]:
        event["dur"] = min(event["dur"], 27)  # no operator begins where another one ends
    moments = [1000 + 10 * place + 3.5 for place in range(0, len(made), 3)]
    samples = [("power", 0, moment, 1.0 * place) for place, moment in enumerate(moments)]
    text = as_pftrace({"baseTimeNanoseconds": BASE_NS, "traceEvents": made}, Dialect(samples=samples))
    by_time: dict[int, bytes] = {}
    at = 0
    while at < len(text):
        size, start = _length(text, at + 1)
        body = text[start : start + size]
        if body.startswith(b"\x40"):  # the time of a packet; those about tracks and names have none
            time, _ = _length(body, 1)
            by_time.setdefault(time - BASE_NS, text[at : start + size])
        at = start + size
    events: dict[int, tuple[bytes, ...]] = {}
    durations = {}
    for event in made:
        if event["ph"] == "X":
            begin = round(1000 * event["ts"])
            durations[begin] = round(1000 * event["dur"])
            end = begin + durations[begin]
            on_device = event["cat"] == "kernel"
            events[begin] = (by_time[begin],) if on_device else (by_time[begin], by_time[end])
    found = {round(1000 * moment): by_time[round(1000 * moment)] for moment in moments}
    first = min(text.index(packet) for packet in found.values())
    first = min(first, *(text.index(packets[0]) for packets in events.values()))
    return Written(text, events, durations, found, 0, first)


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place, in groups of seven bits, and the place behind it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


_SIZES = (1, 3, 10, 60, 200, 900)
_PIECES = (
    b'"', b"]", b"[", b"{", b"}", b",", b"]}", b"}]", b"\\", b"\n", b"xyz", b"\n1, 2, 3]}},\n", b"\n]}},\n", b'": {',
    b"\xff\xfe", b"[[[[", b"],", b"[" * 300,
)  # fmt: skip


def damaged(healthy: Written, draw: random.Random, times: int) -> bytes:
    """Return a file's text with so many damages in its events, or, of some files, in the header too."""
    text = healthy.text
    first = healthy.first if draw.random() < 0.9 else healthy.header
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
_LOSSES = {
    "event_unreadable",
    "phase_missing",
    # of Perfetto's packets:
    "begin_unpaired",
    "bytes_unreadable",
    "clock_unknown",
    "end_unpaired",
    "packet_not_read",
    "packet_unreadable",
    "phase_unknown",
    "time_corrupt",
    "time_outlier",
    "truncated",
}
"""Codes of issues that say of events or packets that they were not read."""


def losses(form: str, data: bytes, path: Path) -> Losses:
    """Return what became of the sound events and samples of a damaged file, written to a path.

    Raises:
        Exception: whatever reading raises, but for a refusal.
    """
    from htagraph.core.errors import TraceError

    healthy = written(form)
    events = [start for start, pieces in healthy.events.items() if all(piece in data for piece in pieces)]
    sampled = [start for start, piece in healthy.samples.items() if piece in data]
    sound = len(events) + len(sampled)
    path.write_bytes(data)
    try:
        trace = read(path)
        times = samples(trace)["start"].tolist() if sampled else []
    except TraceError as error:
        return Losses(sound, sound, 0, str(error))
    base = trace.facts.base_ns or 0  # damage may have changed it
    read_events = dict(zip(trace.events.start.tolist(), trace.events.duration.tolist(), strict=True))
    missing = wrong = 0
    for start in events:
        durations = [read_events[time] for time in _moments(start, base) if time in read_events]
        missing += not durations
        wrong += bool(durations) and healthy.durations[start] not in durations
    missing += sum(_moments(start, base).isdisjoint(times) for start in sampled)
    found = issues(trace)
    reported = sum(count for code, count in found.items() if code in _LOSSES)
    return Losses(sound, missing, reported, wrong=wrong, uncertain=found.get("end_uncertain", 0))


def _moments(start: int, base: int) -> set[int]:
    """Return the moments that a start may be read as; `base` is when the file says that times begin, maybe damaged."""
    return {start, start + base, start + BASE_NS}
