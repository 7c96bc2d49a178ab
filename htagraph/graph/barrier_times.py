"""When the members of barrier-like collectives arrived and ended, kept member by member.

A table of all collectives and all ranks would mostly be empty: thousands of ranks form groups of a few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array

__all__ = ["BarrierTimes", "TimeTable", "group_medians"]


_BLOCK: Final = 1 << 22
"""Cells of a table that are filled at once. Chosen: 32 MiB for each of its times. Doubled, they take twice as much."""


class TimeTable(NamedTuple):
    """Times in ns since an origin: a row per collective, a column per clock, nan where there is none."""

    end: npt.NDArray[np.float64]
    """When members on devices ended, which is together; nan for those on host threads, where ends prove nothing."""
    start: npt.NDArray[np.float64]
    """When members arrived that others wait for."""
    waited: npt.NDArray[np.float64]
    """When members ended that wait for others."""


@dataclass(frozen=True, eq=False)
class BarrierTimes:
    """The members of collectives that some rank cannot end before another arrives, by collective.

    Example:
        >>> one = np.array([1.0, 2.0])
        >>> times = BarrierTimes(np.array([0, 0]), np.array([0, 1]), one + 9, one, one + 9, ranks=2, origin=0)
        >>> times.pair(0, 1).start.tolist()
        [[1.0, 2.0]]
    """

    row: npt.NDArray[np.int64]
    """Of each member: the number of its collective, ascending."""
    column: npt.NDArray[np.int64]
    """Of each member: the number of its rank."""
    end: npt.NDArray[np.float64]
    """As in `TimeTable`, by member; so are the next two."""
    start: npt.NDArray[np.float64]
    waited: npt.NDArray[np.float64]
    ranks: int
    origin: int
    """ns: what times count from."""

    @cached_property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which members tell anything about clocks."""
        return np.asarray(np.isfinite(self.start) | np.isfinite(self.waited))

    @cached_property
    def _of_column(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return (members ordered by rank, where those of each rank begin)."""
        order = np.argsort(self.column, kind="stable")
        return order, np.searchsorted(self.column[order], np.arange(self.ranks + 1))

    def members(self, columns: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the members on some ranks, by collective."""
        order, first = self._of_column
        return np.sort(np.concatenate([order[first[each] : first[each + 1]] for each in columns]))

    def pair(self, a: int, b: int) -> TimeTable:
        """Return the times of the collectives that two ranks share, a column for each."""
        order, first = self._of_column
        one, other = (order[first[each] : first[each + 1]] for each in (a, b))
        _, left, right = np.intersect1d(self.row[one], self.row[other], assume_unique=True, return_indices=True)
        both = np.stack([one[left], other[right]], axis=1)
        return TimeTable(self.end[both], self.start[both], self.waited[both])

    def shared_rows(self, columns: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the collectives in which at least two of some ranks tell anything, ascending."""
        some = self.members(columns)
        rows, count = np.unique(self.row[some[self.present[some]]], return_counts=True)
        return rows[count > 1]

    def presence(self, units: Sequence[Sequence[int]]) -> npt.NDArray[np.bool_]:
        """Return which of some groups of ranks tell anything about which collectives, a row per collective."""
        unit, some = self._units(units)
        some = some[self.present[some]]
        rows, line = np.unique(self.row[some], return_inverse=True)
        out = np.zeros((len(rows), len(units)), np.bool_)
        out[line.ravel(), unit[self.column[some]]] = True
        return out

    def of(self, units: Sequence[Sequence[int]], rows: Array) -> TimeTable:
        """Return some collectives for groups of ranks with one clock: their middle end, last arrival, first end.

        Args:
            units: the ranks of each group, in a column each.
            rows: the collectives, ascending.
        """
        unit, some = self._units(units)
        some = some[np.isin(self.row[some], rows)]
        line = np.searchsorted(rows, self.row[some])
        cell = line * len(units) + unit[self.column[some]]
        size = len(rows) * len(units)
        if all(len(each) == 1 for each in units):
            out = np.full((3, size), np.nan)
            for table, times in zip(out, (self.end, self.start, self.waited), strict=True):
                table[cell] = times[some]
        else:
            out = np.stack([
                group_medians(self.end[some], cell, size), _largest(self.start[some], cell, size),
                -_largest(-self.waited[some], cell, size),
            ])  # fmt: skip
        return TimeTable(*(table.reshape(len(rows), len(units)) for table in out))

    def blocks(self, columns: Sequence[int], rows: Array) -> Iterator[tuple[slice, TimeTable]]:
        """Yield some collectives, a column per rank, in blocks of a size that fits into memory."""
        length = max(1, _BLOCK // max(len(columns), 1))
        for first in range(0, len(rows), length):
            block = slice(first, min(first + length, len(rows)))
            yield block, self.of([[column] for column in columns], rows[block])

    def _units(self, units: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return (the group of each rank, the members on ranks of any group)."""
        unit = np.full(self.ranks, -1, np.int64)
        for number, each in enumerate(units):
            unit[list(each)] = number
        return unit, np.flatnonzero(unit[self.column] >= 0)


def group_medians(values: Array, group: Array, groups: int) -> npt.NDArray[np.float64]:
    """Return the median of the values of each group, leaving out nan; nan for groups without any.

    Example:
        >>> group_medians(np.array([3.0, 1.0, np.nan]), np.array([0, 0, 1]), 2).tolist()
        [2.0, nan]
    """
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.lexsort((values[known], group[known]))]
    size = np.bincount(group[order], minlength=groups)
    first, some = np.cumsum(size) - size, size > 0
    ordered = values[order]
    out = np.full(groups, np.nan)
    out[some] = (ordered[(first + (size - 1) // 2)[some]] + ordered[(first + size // 2)[some]]) / 2
    return out


def _largest(values: Array, cell: Array, size: int) -> npt.NDArray[np.float64]:
    out = np.full(size, -np.inf)
    known = np.isfinite(values)
    np.maximum.at(out, cell[known], values[known])
    out[np.isinf(out)] = np.nan
    return out
