"""Timestamps of every era of Kineto → int64 ns; no floats where a float would lose a nanosecond.

Kineto wrote whole microseconds since the epoch until March 2024, then microseconds with three decimals, for two weeks
with the fraction not zero-padded (``12.5`` meant 12.005 µs), and since then relative to ``baseTimeNanoseconds``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import msgspec
import numpy as np

from htagraph.core.arrays import Ints
from htagraph.core.errors import IssueLog, shown
from htagraph.core.statistics import MOST

__all__ = [
    "EXACT_FLOAT_US", "NO_TIME", "SURE_DIGITS", "FractionStyle", "Pair", "PhaseEvent", "completed", "decimal_us",
    "numbers_to_ns", "padded", "paired", "report_phases", "text_to_ns",
]  # fmt: skip

EXACT_FLOAT_US = 2.0**43
"""µs: below it (102 days), a float64 is within half a nanosecond of the decimal it was read from. A property of float64
(53 bits); with twice the limit, times could be wrong by 1 ns."""

_NS_DIGITS = 3
"""Digits of a fraction of µs that are whole ns."""
_NS_IN_US = 1000
"""ns per µs."""
_LEAST_TRAILING = 1 / 40
"""Least share of fractions that end with 0 in a file without leading zeros. Chosen: a tenth of all numbers of ns does,
so a quarter of this is enough, and one odd event among 40 decides nothing. Doubled, few short files are corrected."""
_FEW_SHORT = 2
"""Short fractions that tell nothing, however few there are in all. Chosen: a tenth of all numbers of ns is short, so
that three of five are with a probability of 0.9 %. Doubled, one odd time decides how a file of five events is read."""
_MOST_PADDED = 1 / 4
"""Most fractions that only a padded writer writes, for each that ends with 0, in a file without leading zeros. Chosen:
a padded writer has as many of both kinds, and an unpadded writer has none but in damaged events. Doubled or halved,
only files of several writers are read differently."""
_ENOUGH_FRACTIONS = 20
"""Fractions that tell whether times were rounded. Chosen: a tenth of whole ns has one or two digits, so that more than
half of 20 have them with a probability of 1 : 10^6. Doubled, fewer short files are said to be rounded."""
_MAX_NS = int(np.iinfo(np.int64).max) - 999
_MAX_US = _MAX_NS // 1000
"""Largest time that is accepted, in ns and µs: what int64 ns can hold, less a µs for the fraction."""
NO_TIME = int(np.iinfo(np.int64).min)
"""ns: stands for a time that is absent, is no number, or that int64 ns cannot hold."""
SURE_DIGITS = len(str(np.iinfo(np.int64).max))
"""Digits of a number that surely fit into 64 bits: longer texts are read as decimals, or refused."""


def numbers_to_ns(values: Sequence[int | float]) -> Ints:
    """Return µs as ns, `NO_TIME` for numbers out of range; floats must lie below `EXACT_FLOAT_US`.

    Example:
        >>> numbers_to_ns([1, 2]).tolist(), numbers_to_ns([12.005, 3]).tolist()
        ([1000, 2000], [12005, 3000])
    """
    array = np.array(values)
    array = array if array.dtype.kind == "i" else array.astype(np.float64)
    good = (array > -_MAX_US) & (array < _MAX_US)
    array = np.where(good, array, 0)
    # convert whole and fraction apart: their sum in ns may need more than the 53 bits of a float, and would be rounded
    whole = array.astype(np.int64) - (array < array.astype(np.int64))
    return np.where(good, whole * 1000 + np.rint((array - whole) * 1000).astype(np.int64), NO_TIME)


@dataclass
class FractionStyle:
    """Evidence, over a whole file, of how the fractions of its times (µs) were written.

    A writer of shortest decimals never ends a fraction with 0; a writer of a fixed number of digits never varies that
    number. Only a writer that lacks leading zeros does both. Times since 1970 that went through float64 are multiples
    of 0.25 µs, so their fractions are short (.25, .5, or .2 in place of .25), but none ends with 0.
    """

    fractions: int = 0
    """Fractions that are not zero."""
    short: int = 0
    """Fractions with one or two digits that are not zero: leading zeros would change their meaning."""
    decimal: int = 0
    """Fractions that only a padded writer writes: with a leading zero, or more than three digits."""
    trailing_zero: int = 0
    """Fractions such as ``120`` or ``10``: a writer of shortest decimals would drop the last zero."""

    def note(self, fraction: str) -> None:
        """Add the evidence in the digits of one fraction."""
        digits = len(fraction)
        self.decimal += digits > _NS_DIGITS or (1 < digits <= _NS_DIGITS and fraction[0] == "0")
        self.trailing_zero += 1 < digits <= _NS_DIGITS and fraction[-1] == "0"

    def note_times(self, padded: Ints, unpadded: Ints) -> None:
        """Count the fractions of times that are given in both readings, ns."""
        self.fractions += int(np.count_nonzero(padded % _NS_IN_US))
        self.short += int(np.count_nonzero(padded != unpadded))

    @property
    def unpadded(self) -> bool:
        """True if ``12.5`` means 12.005 µs in this file."""
        are_trailing = self.trailing_zero > 0 and self.trailing_zero >= _LEAST_TRAILING * self.fractions
        are_padded = self.decimal > _MOST_PADDED * self.trailing_zero
        most_short = max(_FEW_SHORT, MOST * self.fractions)
        return 0 < self.short <= most_short and are_trailing and not are_padded

    @property
    def rounded(self) -> bool:
        """True if times of this file were rounded to few digits, as by float64, before the file was written."""
        return self.fractions >= _ENOUGH_FRACTIONS and self.short > MOST * self.fractions

    def report(self, log: IssueLog) -> None:
        """Report how fractions were read, if not to the ns as written."""
        corrected = "fractions of times lack leading zeros (Kineto of March 2024); times corrected"
        log.add("unpadded_fractions", corrected, int(self.unpadded))
        kept = "times were rounded when the file was rewritten (float64: to 0.25 µs since 1970); read as written"
        log.add("rounded_times", kept, int(self.rounded))


def text_to_ns(texts: Sequence[str], style: FractionStyle) -> tuple[Ints, Ints]:
    """Return (times, times if fractions turn out to be unpadded) in ns, exactly, of decimal texts in µs.

    Texts that are no number, or out of range, give `NO_TIME`.

    Example:
        >>> padded, unpadded = text_to_ns(["1711900000000012.5"], FractionStyle())
        >>> padded[0] % 100_000, unpadded[0] % 100_000
        (np.int64(12500), np.int64(12005))
    """
    padded = np.empty(len(texts), dtype=np.int64)
    unpadded = np.empty(len(texts), dtype=np.int64)
    for i, text in enumerate(texts):
        whole, _, fraction = text.strip('"').partition(".")
        digits = whole.removeprefix("-")
        is_short = len(fraction) <= _NS_DIGITS and len(digits) <= SURE_DIGITS
        plain = is_short and _are_digits(fraction) and _are_digits(digits)
        if plain and abs(base := int(whole) * 1000) < _MAX_NS:
            style.note(fraction)
            sign = -1 if whole.startswith("-") else 1
            padded[i] = base + sign * int(fraction.ljust(_NS_DIGITS, "0"))
            unpadded[i] = base + sign * int(fraction)
        else:
            padded[i] = unpadded[i] = _decimal_to_ns(text.strip('"'), style)
    is_time = padded != NO_TIME
    style.note_times(padded[is_time], unpadded[is_time])
    return padded, unpadded


def padded(text: str) -> str:
    """Return a time in µs as a decimal number, adding the leading zeros that its fraction lacks.

    Example:
        >>> padded("12.5"), padded("12")
        ('12.005', '12')
    """
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction:0>3}" if fraction.isdigit() else text


def _are_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def decimal_us(text: str) -> Decimal | None:
    """Return a time in µs as a number; None for text that is no number, or one out of range.

    Example:
        >>> decimal_us("12.5"), decimal_us("1e300"), decimal_us("soon")
        (Decimal('12.5'), None, None)
    """
    try:
        number = Decimal(text if text.isascii() else "")
        return number if -_MAX_US < number < _MAX_US else None
    except InvalidOperation:  # not a number, or NaN, which cannot be compared
        return None


def _decimal_to_ns(text: str, style: FractionStyle) -> int:
    number = decimal_us(text)
    if number is None:
        return NO_TIME
    if "." in text:
        style.note(text.partition(".")[2])
    return round(number * 1000)


_READ = frozenset("XiIsfMCBE")
"""Phases that have rows in columns, or are read again when asked for (counters)."""
_ARROWS = frozenset("t")
"""Steps of arrows: whatever they join is joined by the ends of the arrow too."""


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

    On ties in time, the file's order counts. Begins without an end, ends without a begin, and events without a usable
    time are reported.

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
    """Return decoded begins and ends as decoded complete events, by position of the begin."""
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
    """Report the events that are in no column because of their phase; that of objects without one is ``""``."""
    others = {phase: count for phase, count in counts.items() if phase not in _READ | _ARROWS}
    log.add("phase_missing", "objects without a phase (ph), which are no events; left out", others.pop("", 0))
    for phase in list(others)[:5]:  # few files have more, and reports of hostile files stay short
        log.add(
            "phase_unknown", f"events of phase {shown(phase)}, which are no activities; left out", others.pop(phase)
        )
    log.add("phase_unknown", "events of further phases, which are no activities; left out", sum(others.values()))
