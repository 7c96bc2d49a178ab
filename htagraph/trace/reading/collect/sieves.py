"""Which complete events of a file keep their rows while it is read: a survey of it, or what lies in windows of time."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.naming import DEVICE_CATEGORIES, FRAME, HOST_CATEGORIES, RUNTIME_CATEGORIES, step_number
from htagraph.trace.reading.collect.columns import Columns
from htagraph.trace.reading.collect.first_of import FirstOf
from htagraph.trace.reading.collect.growing import GrowingTable, as_array
from htagraph.trace.reading.extent import Extent, Extents, merged, overlaps
from htagraph.trace.reading.frames import Frames

__all__ = ["REAL_ID_SHARE", "Launches", "Survey", "Windows"]

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

    def first(self, frames: Frames) -> int:
        """Return when the first activity starts, ns as in the file.

        Args:
            frames: decides whether calls of Python functions are activities.
        """
        valid_from = self.extent.valid_from
        return min((each.first(valid_from) for each in self._counted(frames)), default=self.extent.first)

    def last(self, frames: Frames) -> int:
        """Return when the last activity starts, ns as in the file; arguments as for `first`."""
        return max((each.result().last for each in self._counted(frames)), default=self.extent.last)

    def _counted(self, frames: Frames) -> list[Extents]:
        """Return the times of what are activities."""
        counted = [self._others, self._frames] if frames.holds(self._frames.count) else [self._others]
        return [each for each in counted if each.count]

    def see(self, into: Columns, category: Array, start: Array, duration: Array) -> None:
        """Note the times of complete events, ns as in the file."""
        self._all.see(start, duration)
        for extents, names in ((self._frames, _FRAMES), (self._others, _OTHERS)):
            rows = np.isin(category, [number for name, number in into.categories.items() if name in names])
            extents.see(start[rows], duration[rows])

    def thin(self, into: Columns, *, last: bool) -> None:
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

    Args:
        windows: begin and end of each, ns as in the file.
        extent: times of all complete events of the file.
        marks: positions in the file of the annotations of steps.
    """

    def __init__(self, windows: Array, extent: Extent, marks: Array) -> None:
        self.windows = merged(windows + np.array([-_SLACK_NS, _SLACK_NS]))
        self.extent = extent
        self._marks = marks
        self._launches, self._operators = FirstOf(), FirstOf()
        self._seen, self._limit = 0, _ROWS
        self._with_id = self._copies = self._missing = 0

    def see(self, into: Columns, category: Array, start: Array, duration: Array) -> None:
        """Do nothing: the times are known."""

    @property
    def launches(self) -> Launches:
        """How device work and launches are linked in the whole file, once it is read."""
        return Launches(self._ids_are_real, self._missing, self._launches.repeated)

    @property
    def _ids_are_real(self) -> bool:
        return bool(self._with_id) and self._copies / self._with_id < REAL_ID_SHARE

    def thin(self, into: Columns, *, last: bool) -> None:
        """Drop rows outside of the windows, but device work while its launch may still come."""
        table = into.complete
        if table.count < self._limit and not last:
            return
        early = as_array(table.columns["start"]) < self.extent.valid_from
        if early.any():
            self._seen -= int(np.count_nonzero(early[: self._seen]))
            into.drop(early)
        rows = _Rows.of(into, self.windows)
        self._link(rows)
        keep = ~(rows.host | rows.device) | (rows.host & rows.inside) | np.isin(rows.position, self._marks)
        keep[rows.device] = self._stays(rows, last=last)
        into.drop(~keep)
        self._seen = table.count
        self._limit = max(2 * self._seen, self._seen + _ROWS)

    def _link(self, rows: _Rows) -> None:
        """Note the ids of what is new."""
        new = np.arange(len(rows.position)) >= self._seen
        launches = np.flatnonzero(new & rows.runtime & (rows.correlation > 0))
        self._launches.add(rows.correlation[launches], rows.inside[launches])
        operators = np.flatnonzero(new & rows.operator & (rows.external > 0))
        self._operators.add(rows.external[operators], rows.inside[operators])
        with_id = new & rows.device & (rows.external > 0)
        self._with_id += int(np.count_nonzero(with_id))
        self._copies += int(np.count_nonzero(with_id & (rows.external == rows.correlation)))

    def _stays(self, rows: _Rows, *, last: bool) -> Array:
        """Return which device work is kept."""
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
    def of(cls, into: Columns, windows: Array) -> _Rows:
        table = into.complete
        category = as_array(table.columns["category"])
        sets = (HOST_CATEGORIES, RUNTIME_CATEGORIES, {"cpu_op"}, DEVICE_CATEGORIES)
        host, runtime, operator, device = (
            np.array([name in names for name in into.categories], np.bool_)[category] for names in sets
        )
        start, duration = as_array(table.columns["start"]), np.maximum(as_array(table.columns["duration"]), 0)
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
