"""Begins and ends of durations (phases B and E) → complete events.

In Chrome's trace format, durations of a thread enclose one another: an end closes the latest begin on its thread that
is still open. An end may have a name; it then closes the latest open begin of that name. Kineto writes complete events
only; other tools, and scripts that merge traces, write begins and ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from htagraph.core.errors import shown
from htagraph.core.issues import IssueLog
from htagraph.trace.reading.times import decimal_us

__all__ = ["Pair", "PhaseEvent", "completed", "paired", "report_phases"]

_READ = frozenset("XiIsfMCBE")
"""Phases that have rows in columns, or are read again when asked for (counters)."""
_ARROWS = frozenset("t")
"""Steps of arrows: whatever they join is joined by the ends of the arrow too."""
_MAX_SHOWN = 5
"""Phases that are reported one by one. Chosen: few files have more. Doubled, reports of hostile files are longer."""


class PhaseEvent(NamedTuple):
    """A begin or an end of a duration, as in the file."""

    position: int
    """Position in the file's events."""
    phase: str
    """``"B"`` or ``"E"``."""
    name: object
    """``""`` or None for ends without a name."""
    category: object
    pid: object
    tid: object
    time: str
    """µs, decimal."""
    args: Any


class Pair(NamedTuple):
    """A complete event: a begin, and how long it took until its end."""

    begin: PhaseEvent
    duration: str
    """µs, decimal."""


def paired(events: Iterable[PhaseEvent], log: IssueLog) -> list[Pair]:
    """Return the durations that begins and ends make, in the order of the begins in the file.

    Args:
        events: the events of phases B and E of a file, in any order; on ties in time, in the file's order.
        log: receives issues for begins without an end, ends without a begin, and events without a usable time.

    Example:
        >>> begin = PhaseEvent(0, "B", "forward", "cpu_op", 7, 7, "10.5", {})
        >>> end = PhaseEvent(1, "E", "", None, 7, 7, "12", {})
        >>> [(pair.begin.name, pair.duration) for pair in paired([begin, end], IssueLog("a.json"))]
        [('forward', '1.5')]
    """
    events = list(events)
    timed = [(time, event) for event in events if (time := decimal_us(event.time.strip('"'))) is not None]
    timed.sort(key=lambda each: (each[0], each[1].position))
    threads: dict[tuple[str, str], _Thread] = defaultdict(_Thread)
    pairs: list[Pair] = []
    ends = too_long = 0
    for time, event in timed:
        thread = threads[str(event.pid), str(event.tid)]
        if event.phase == "B":
            thread.begin(time, event)
        elif (begun := thread.end(event.name)) is None:
            ends += 1
        elif decimal_us(duration := str(time - begun[0])) is None:
            too_long += 2
        else:
            pairs.append(Pair(begun[1], duration))
    begins = sum(len(thread.open) for thread in threads.values())
    untimed = len(events) - len(timed) + too_long
    log.add("begin_unpaired", "begins of durations (ph B) without an end (ph E) on their thread; left out", begins)
    log.add("end_unpaired", "ends of durations (ph E) without a begin (ph B) on their thread; left out", ends)
    log.add("pair_untimed", "begins and ends of durations (ph B, E) without a time that can be read; left out", untimed)
    return sorted(pairs, key=lambda pair: pair.begin.position)


@dataclass
class _Thread:
    """The begins of one thread that are still open."""

    open: dict[int, tuple[Decimal, PhaseEvent]] = field(default_factory=dict)
    """By number, the earliest first."""
    numbers: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Numbers of begins by name, maybe of some that have ended."""
    count: int = 0

    def begin(self, time: Decimal, event: PhaseEvent) -> None:
        self.open[self.count] = time, event
        self.numbers[str(event.name)].append(self.count)
        self.count += 1

    def end(self, name: object) -> tuple[Decimal, PhaseEvent] | None:
        """Close and return the latest open begin, or the latest of a name."""
        if name in ("", None):
            return self.open.popitem()[1] if self.open else None
        numbers = self.numbers[str(name)]
        while numbers:
            number = numbers.pop()
            if number in self.open:
                return self.open.pop(number)
        return None


def completed(events: Iterable[tuple[int, Any]], log: IssueLog) -> dict[int, Any]:
    """Return decoded begins and ends as decoded complete events, by position of the begin.

    Args:
        events: position and struct of each, with the attributes of an event's envelope.
        log: receives an issue for what stays unpaired.
    """
    by_position = dict(events)
    rows = [
        PhaseEvent(at, each.ph, each.name, each.cat, each.pid, each.tid, _text(each.ts), each.args)
        for at, each in by_position.items()
    ]
    return {
        begin.position: msgspec.structs.replace(
            by_position[begin.position], ph="X", ts=msgspec.Raw(begin.time), dur=msgspec.Raw(duration)
        )
        for begin, duration in paired(rows, log)
    }


def _text(time: object) -> str:
    """Return a decoded time as text; empty if there is none."""
    if time is None:
        return ""
    return bytes(time).decode() if isinstance(time, msgspec.Raw) else str(time)


def report_phases(counts: dict[str, int], log: IssueLog) -> None:
    """Report the events that are in no column because of their phase.

    Args:
        counts: number of events by phase; ``""`` for objects without one.
        log: receives one issue per phase.
    """
    others = {phase: count for phase, count in counts.items() if phase not in _READ | _ARROWS}
    log.add("phase_missing", "objects without a phase (ph), which are no events; left out", others.pop("", 0))
    for phase in list(others)[:_MAX_SHOWN]:
        log.add(
            "phase_unknown", f"events of phase {shown(phase)}, which are no activities; left out", others.pop(phase)
        )
    log.add("phase_unknown", "events of further phases, which are no activities; left out", sum(others.values()))
