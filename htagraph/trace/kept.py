"""Which events of a file are kept while it is read: those in windows of time, calls of Python functions, or none."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import numpy as np

from htagraph.core.arrays import Array, Mask
from htagraph.core.errors import IssueLog, TraceError
from htagraph.core.naming import DEVICE_CATEGORIES, FRAME, HOST_CATEGORIES, RUNTIME_CATEGORIES, step_number
from htagraph.trace.columns import Events, GrowingTable, Interner, as_array
from htagraph.trace.remote import TracePath

__all__ = [
    "HOUR_NS", "MAX_NS", "MOST_FRAMES", "REAL_ID_SHARE", "YEAR_NS", "Extent", "Extents", "FirstOf", "Frames",
    "Launches", "Sieve", "Survey", "Windows", "extent_of", "is_possible", "merged", "overlaps", "refuse_out_of_range",
    "shifted", "valid",
]  # fmt: skip

_SECOND_NS = 1_000_000_000
"""ns."""
HOUR_NS = 3600 * _SECOND_NS
MAX_NS = int(np.iinfo(np.int64).max) // 2 + 1
"""ns since 1970: later times (2116) are refused. Half of what int64 holds, so that the sum of two times fits."""
YEAR_NS = 365 * 24 * HOUR_NS
"""If all starts are below this, times do not count from 1970. Chosen: no recording takes a year, and none is from
1970."""
_LEAST = int(np.iinfo(np.int64).min)
_OUTLIER_SPREADS = 4
"""An event is a clock error of the profiler if it starts more than this many interquartile ranges of all starts, plus
an hour, before the first quartile or behind the third, or lasts longer than all this. Chosen: recordings take minutes,
and known errors (starts at 0, or hours early, durations of centuries) lie far beyond. Doubling it keeps errors in long
recordings: one of 10 minutes has a range of about 5."""


class Extent(NamedTuple):
    """Times of the complete events of a file, ns as in the file."""

    valid_from: int
    """What starts earlier is a clock error of the profiler."""
    valid_to: int
    """What starts later is one too, and what lasts longer than from `valid_from` to here."""
    outliers: int = 0
    """Number of such events."""
    first: int = 0
    """The least start that is valid."""
    last: int = 0
    """The latest start that is valid."""
    longest: int = 0
    """The longest duration that is valid."""
    events: int = 0
    """Number of events."""

    def holds(self, start: Array, duration: Array) -> Mask:
        """Return which events are no clock errors, given their starts and durations, ns."""
        within = (start >= self.valid_from) & (start <= self.valid_to)
        return np.asarray(within & (duration <= self.valid_to - self.valid_from))


class Extents:
    """The extent of the events seen so far: starts are counted by the second.

    Events of more than an hour are kept one by one: their durations may be errors.
    """

    def __init__(self) -> None:
        self._seconds: dict[int, tuple[int, int, int]] = {}
        """Number of starts, least and greatest start by second."""
        self._longest = 0
        self._long = np.zeros((2, 0), np.int64)
        """Starts and durations of events of more than an hour."""

    @property
    def count(self) -> int:
        """Number of events seen."""
        return sum(count for count, *_ in self._seconds.values()) + self._long.shape[1]

    def see(self, start: Array, duration: Array) -> None:
        """Count events, given their starts and durations, ns."""
        long = duration > HOUR_NS
        self._long = np.concatenate([self._long, np.stack([start[long], duration[long]])], axis=1)
        self._longest = max(self._longest, int(duration[~long].max(initial=0)))
        ordered = np.sort(start[~long])
        seconds, first, counts = np.unique(ordered // _SECOND_NS, return_index=True, return_counts=True)
        rows = np.stack([seconds, counts, ordered[first], ordered[first + counts - 1]], axis=1)
        for second, count, least, greatest in rows.tolist():
            known = self._seconds.get(second, (0, least, greatest))
            self._seconds[second] = known[0] + count, min(known[1], least), max(known[2], greatest)

    def result(self) -> Extent:
        """Return the extent of all events seen.

        Example:
            >>> extents = Extents()
            >>> extents.see(np.array([5, *[9000 * 10**9] * 99]), np.zeros(100, np.int64))
            >>> extents.result().outliers
            1
        """
        events = self.count
        if not events:
            return Extent(_LEAST, -_LEAST - 1)
        start, duration = self._long
        # quartiles, not the least start: some files have a start of 0 for all events of a kind
        seconds = sorted(self._seconds)
        if seconds:
            behind = np.cumsum([self._seconds[second][0] for second in seconds])
            low, high = (seconds[np.searchsorted(behind, (behind[-1] - 1) * part // 4, "right")] for part in (1, 3))
        else:  # no others show which durations are right
            low = int(np.sort(start)[(events - 1) // 4]) // _SECOND_NS
            high = int(np.sort(start + duration)[(events - 1) * 3 // 4]) // _SECOND_NS
        slack = _OUTLIER_SPREADS * (high - low) + HOUR_NS // _SECOND_NS
        extent = Extent((low - slack) * _SECOND_NS, (high + slack + 1) * _SECOND_NS - 1, events=events)
        valid = extent.holds(start, duration)
        count = sum(self._seconds[second][0] for second in seconds if low - slack <= second <= high + slack)
        first, last = self.span(extent)
        longest = max(self._longest, int(duration[valid].max(initial=0)))
        return extent._replace(outliers=events - count - int(valid.sum()), first=first, last=last, longest=longest)

    def span(self, extent: Extent) -> tuple[int, int]:
        """Return the least and the latest start of the events that an extent holds; of all events if there is none."""
        start, duration = self._long
        valid = extent.holds(start, duration)
        of_seconds = [row for row in self._seconds.values() if extent.valid_from <= row[1] <= extent.valid_to]
        firsts = [least for _, least, _ in of_seconds] + start[valid].tolist()
        lasts = [greatest for *_, greatest in of_seconds] + start[valid].tolist()
        every = [*start.tolist(), *(least for _, least, _ in self._seconds.values()), 0]
        return min(firsts, default=min(every)), max(lasts, default=max(every))


def extent_of(table: Events) -> Extent:
    """Return the extent of a table's events."""
    extents = Extents()
    extents.see(table.start, table.duration)
    return extents.result()


def valid(table: Events, extent: Extent) -> Events:
    """Return the events without those whose times are known errors of CUPTI and XPU: 0, hours early, or centuries."""
    good = extent.holds(table.start, table.duration)
    return table if good.all() else table.take(good)


def is_possible(times: Array) -> Mask:
    """Return whether each time, ns, is so far from the ends of int64 that the sum of two times fits; as a mask."""
    return (times > -MAX_NS) & (times < MAX_NS)


def refuse_out_of_range(extent: Extent, base: int, path: TracePath, what: str) -> None:
    """Raise an error for times that int64 ns cannot hold: they would overflow silently."""
    if not -MAX_NS < base + extent.first <= base + extent.last + extent.longest < MAX_NS:
        msg = f"{path}: times beyond the year 2115: {what}"
        raise TraceError(msg)


def shifted(table: Events, base: int) -> Events:
    """Return events whose times, which count from `base`, count from 1970; their columns change no more."""
    if base:
        np.add(table.start, base, out=table.start)
    for column in (table.index, table.name, table.category, table.lane, table.start, table.duration):
        column.flags.writeable = False
    return table


def overlaps(start: Array, duration: Array, windows: Array) -> Mask:
    """Return which events overlap or touch one of some windows.

    Times are in ns; windows (begin, end) ascend and are apart.

    Example:
        >>> overlaps(np.array([0, 5, 7]), np.array([4, 1, 9]), np.array([[6, 7], [20, 30]])).tolist()
        [False, True, True]
    """
    if not len(windows):
        return np.zeros(len(start), np.bool_)
    at = np.searchsorted(windows[:, 1], start)  # the first window that ends at or after the start
    begins = windows[np.minimum(at, len(windows) - 1), 0]
    return np.asarray((at < len(windows)) & (begins <= start + duration))


def merged(windows: Array) -> Array:
    """Return windows (begin, end) as the fewest that cover the same, ascending and apart.

    Example:
        >>> merged(np.array([[5, 9], [0, 2], [8, 12]])).tolist()
        [[0, 2], [5, 12]]
    """
    windows = windows[np.argsort(windows[:, 0], kind="stable")]
    if not len(windows):
        return windows
    reach = np.maximum.accumulate(windows[:, 1])
    begins = np.ones(len(windows), np.bool_)
    begins[1:] = windows[1:, 0] > reach[:-1]
    last = np.append(np.flatnonzero(begins)[1:] - 1, len(windows) - 1)
    return np.stack([windows[begins, 0], reach[last]], axis=1)


MOST_FRAMES: Final = 4_000_000
"""Calls of Python functions in one file up to which all are kept unless the caller says otherwise. Chosen: in a graph
they take 1.5 GB, and as text about one. Doubled, both double."""


class Frames:
    """Decides which calls of Python functions of one file become rows.

    What is left out is not numbered, nor is its name kept: names of builtins hold addresses, so a long file has many.

    Args:
        asked: True to keep all, False to keep none, None to keep all of a file with at most `most` of them, else none.
        most: see `asked`.
        windows: keep only those that overlap one of these (begin, end; ns as in the file), ascending and apart.
    """

    def __init__(self, *, asked: bool | None = None, most: int = MOST_FRAMES, windows: Array | None = None) -> None:
        self._asked, self._most, self._windows = asked, most, windows
        self._none = asked is False
        self.kept = 0
        """Number of those that have rows."""
        self.left_out = 0
        """Number of those left out but for `windows`."""

    @property
    def may_leave_out(self) -> bool:
        """Whether any call in the next block may be left out."""
        return self._none or self._windows is not None

    def holds(self, count: int) -> bool:
        """Return whether a file with so many of them keeps them."""
        return self._asked is True or (self._asked is None and count <= self._most)

    def left_out_of(self, is_frame: Mask, start: Array, duration: Array) -> Mask:
        """Return which events of a block are left out; times are in ns, as in the file."""
        if self._none:
            return is_frame
        out = np.zeros(len(is_frame), np.bool_)
        if self._windows is not None and is_frame.any():
            out[is_frame] = ~overlaps(start[is_frame], duration[is_frame], self._windows)
        return out

    def count(self, kept: int, left_out: int) -> bool:
        """Count the calls of a block; return True if those kept are now too many, and must be taken back."""
        self.kept += kept
        self.left_out += left_out if self._none else 0
        if self._asked is not None or self.kept <= self._most:
            return False
        self._none = True
        self.left_out += self.kept
        self.kept = 0
        return True

    def report(self, log: IssueLog) -> None:
        """Report what was left out."""
        if self._asked is None:
            what = f"calls of Python functions, more than {self._most:,}: left out; python=True keeps them"
            log.add("python_left_out", what, self.left_out)
        else:
            log.add("python_not_read", "calls of Python functions; left out as asked", self.left_out)


class FirstOf:
    """A yes or no for each id: that of the first event which has it. Nine bytes per id."""

    def __init__(self) -> None:
        self._ids, self._says = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        self.repeated = 0
        """How many events had the id of an earlier one."""

    def add(self, ids: Array, says: Mask) -> None:
        """Note events in the order of the file.

        Example:
            >>> first = FirstOf()
            >>> first.add(np.array([7, 5, 7]), np.array([True, False, False]))
            >>> first.of(np.array([5, 6, 7]))[1].tolist(), first.repeated
            ([False, False, True], 1)
        """
        distinct, first = np.unique(ids, return_index=True)  # the first of equal ids
        known, _ = self.of(distinct)
        distinct, first = distinct[~known], first[~known]
        self.repeated += len(ids) - len(distinct)
        place = np.searchsorted(self._ids, distinct)
        self._ids = np.insert(self._ids, place, distinct)
        self._says = np.insert(self._says, place, says[first])

    def of(self, ids: Array) -> tuple[Mask, Mask]:
        """Return (which ids are known, what the first event with each says; False where it is not known)."""
        if not len(self._ids):
            return np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.bool_)
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        known = self._ids[at] == ids
        return known, known & self._says[at]


_MARKED: Final = frozenset({"user_annotation", "cpu_op"})
"""Categories that steps are recorded in."""
_FRAMES: Final = frozenset({FRAME})
_OTHERS: Final = (HOST_CATEGORIES | DEVICE_CATEGORIES) - _FRAMES
_ROWS: Final = 1 << 19
"""Rows that may come before those not kept are dropped. Chosen: they take about 50 MB. Doubled, that doubles."""
_SLACK_NS: Final = 1_000
"""ns: how much earlier and later than a window events may lie and be kept. Times whose fractions lack zeros move by
less once this is known (see `times`), and a child may end 2 ns after its parent. Doubled, a few more rows are kept."""
REAL_ID_SHARE: Final = 0.9
"""If the External id equals the correlation id for at least this share of device work, External ids are copies of
correlation ids (as some Kineto versions write them) and name no operator. Chosen: the share is near 0 or near 1. It
cannot be doubled; at 1, a single odd event would turn copies into ids."""


class Collected(Protocol):
    """The events of a file so far, as sieves see them."""

    names: Interner[str]
    categories: Interner[str]
    complete: GrowingTable

    def drop(self, rows: Array) -> None:
        """Drop complete events, given a mask of them."""


class Sieve(Protocol):
    """Decides which complete events of a file keep their rows."""

    @property
    def extent(self) -> Extent:
        """Times of all complete events of the file."""
        ...

    def see(self, into: Collected, category: Array, start: Array, duration: Array) -> None:
        """Note the times of complete events, ns as in the file, before any is dropped."""

    def thin(self, into: Collected, *, last: bool) -> None:
        """Drop rows that are not to be kept; `last` once there are all."""


class Launches(NamedTuple):
    """What a whole file says of how device work and its launches are linked."""

    external_ids_are_real: bool
    """Whether External ids name operators."""
    missing: int
    """Number of device work whose launch is not in the file."""
    repeated: int
    """Number of launches with the correlation id of an earlier one."""


class Survey:
    """Keeps the annotations of steps alone, and notes the times of all events."""

    def __init__(self) -> None:
        self._all, self._frames, self._others = Extents(), Extents(), Extents()
        self._is_step = np.zeros(0, np.bool_)
        """By number of a name."""

    @property
    def extent(self) -> Extent:
        """Times of all complete events of the file."""
        return self._all.result()

    def span(self, frames: Frames) -> tuple[int, int]:
        """Return when the first activity and the last one start, ns as in the file."""
        counted = [self._others, self._frames] if frames.holds(self._frames.count) else [self._others]
        extent = self.extent
        spans = [each.span(extent) for each in counted if each.count] or [(extent.first, extent.last)]
        return min(first for first, _ in spans), max(last for _, last in spans)

    def see(self, into: Collected, category: Array, start: Array, duration: Array) -> None:
        """Note the times of complete events, ns as in the file."""
        self._all.see(start, duration)
        for extents, names in ((self._frames, _FRAMES), (self._others, _OTHERS)):
            rows = np.isin(category, [number for name, number in into.categories.items() if name in names])
            extents.see(start[rows], duration[rows])

    def thin(self, into: Collected, *, last: bool) -> None:
        """Drop what marks no step."""
        if into.complete.count < _ROWS and not last:
            return
        names = list(into.names)
        new = [step_number(name) is not None for name in names[len(self._is_step) :]]
        self._is_step = np.append(self._is_step, np.array(new, np.bool_))
        rows = {name: as_array(into.complete.columns[name]) for name in ("name", "category")}
        may_mark = np.array([name in _MARKED for name in into.categories], np.bool_)
        into.drop(~(self._is_step[rows["name"]] & may_mark[rows["category"]]))


class Windows:
    """Keeps the host events that overlap windows of time, and the device work launched in them.

    Kept are also device work in the windows of which no launch is in the file, annotations of steps, and all that is no
    activity (see `DEVICE_CATEGORIES`, `HOST_CATEGORIES`). An id that several launches have means the first of them.
    `marks` are the positions in the file of the annotations of steps; times are in ns, as in the file.
    """

    def __init__(self, windows: Array, extent: Extent, marks: Array) -> None:
        self.windows = merged(windows + np.array([-_SLACK_NS, _SLACK_NS]))
        self.extent = extent
        self._marks = marks
        self._launches, self._operators = FirstOf(), FirstOf()
        self._seen, self._limit = 0, _ROWS
        self._with_id = self._copies = self._missing = 0

    def see(self, into: Collected, category: Array, start: Array, duration: Array) -> None:
        """Do nothing: the times are known."""

    @property
    def launches(self) -> Launches:
        """How device work and launches are linked in the whole file, once it is read."""
        return Launches(self._ids_are_real, self._missing, self._launches.repeated)

    @property
    def _ids_are_real(self) -> bool:
        return bool(self._with_id) and self._copies / self._with_id < REAL_ID_SHARE

    def thin(self, into: Collected, *, last: bool) -> None:
        """Drop rows outside of the windows, but device work while its launch may still come."""
        table = into.complete
        if table.count < self._limit and not last:
            return
        wrong = ~self.extent.holds(as_array(table.columns["start"]), as_array(table.columns["duration"]))
        if wrong.any():
            self._seen -= int(np.count_nonzero(wrong[: self._seen]))
            into.drop(wrong)
        rows = _Rows.of(into, self.windows)
        self._link(rows)
        keep = ~(rows.host | rows.device) | (rows.host & rows.inside) | np.isin(rows.position, self._marks)
        keep[rows.device] = self._stays(rows, last=last)
        into.drop(~keep)
        self._seen = table.count
        self._limit = max(2 * self._seen, self._seen + _ROWS)

    def _link(self, rows: _Rows) -> None:
        new = np.arange(len(rows.position)) >= self._seen
        launches = np.flatnonzero(new & rows.runtime & (rows.correlation > 0))
        self._launches.add(rows.correlation[launches], rows.inside[launches])
        operators = np.flatnonzero(new & rows.operator & (rows.external > 0))
        self._operators.add(rows.external[operators], rows.inside[operators])
        with_id = new & rows.device & (rows.external > 0)
        self._with_id += int(np.count_nonzero(with_id))
        self._copies += int(np.count_nonzero(with_id & (rows.external == rows.correlation)))

    def _stays(self, rows: _Rows, *, last: bool) -> Array:
        correlation, external, inside = (each[rows.device] for each in (rows.correlation, rows.external, rows.inside))
        known, launched_inside = self._launches.of(correlation)
        known &= correlation > 0
        if not last:
            return ~known | launched_inside
        lost = ~known
        if self._ids_are_real:
            asked, asked_inside = self._operators.of(external)
            asked &= (external > 0) & lost
            launched_inside[asked] = asked_inside[asked]
            lost &= ~asked
        self._missing = int(np.count_nonzero(lost))
        return np.where(lost, inside, launched_inside)


class _Rows(NamedTuple):
    """The complete events so far that have rows."""

    position: Array
    """In the file."""
    host: Array
    runtime: Array
    operator: Array
    device: Array
    inside: Array
    correlation: Array
    external: Array

    @classmethod
    def of(cls, into: Collected, windows: Array) -> _Rows:
        table = into.complete
        category = as_array(table.columns["category"])
        sets = (HOST_CATEGORIES, RUNTIME_CATEGORIES, {"cpu_op"}, DEVICE_CATEGORIES)
        host, runtime, operator, device = (
            np.array([name in names for name in into.categories], np.bool_)[category] for names in sets
        )
        start, duration = as_array(table.columns["start"]), as_array(table.columns["duration"])
        inside = overlaps(start, duration, windows) if table.count else np.zeros(0, np.bool_)
        correlation, external = (_dense(table, name) for name in ("correlation", "external_id"))
        return cls(as_array(table.columns["index"]), host, runtime, operator, device, inside, correlation, external)


def _dense(table: GrowingTable, name: str) -> Array:
    """Return an argument of each row, -1 where it has none."""
    out = np.full(table.count, -1, np.int64)
    if name in table.args:
        rows, values = table.args[name]
        out[as_array(rows)] = as_array(values)
    return out
