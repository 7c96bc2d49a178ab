"""Fits of clock offsets: to ends that lie together, and to arrivals that must come before ends.

Times are arrays with a row per collective and a column per clock, ns, nan where a clock has no part in a collective.
They are kept member by member (`BarrierTimes`): a table of all collectives and all ranks would mostly be empty,
since thousands of ranks form groups of a few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.graph.tolerances import LIMITS

__all__ = [
    "BarrierTimes", "TimeTable", "by_ends", "feasible_offsets", "fitted",
    "group_medians", "islands", "least_ahead", "limits", "medians", "middle_of", "no_offset_is_possible",
    "residuals",
]  # fmt: skip


def feasible_offsets(end: Array, start: Array) -> npt.NDArray[np.float64]:
    """Return clock offsets, one per column, under which nobody ends before all have arrived, ns; 0 where none exist.

    They are in the middle of all that are possible, relative to the first column. Both tables have a row per
    collective, nan for none: when members ended that wait, when those arrived that are awaited.
    """
    low, high = limits(least_ahead(end, start))
    possible = np.isfinite(low) & np.isfinite(high) & (low <= high + 2 * LIMITS.resolution_ns)
    return np.where(possible, (np.where(possible, low, 0) + np.where(possible, high, 0)) / 2, 0.0)


def limits(least: Array) -> tuple[Array, Array]:
    """Return the least and the largest clock offset of each column against the first one, ns, given `least_ahead`.

    Infinite where no chain of collectives limits it. Column a is ahead of column b by at least what its arrivals
    seem to come after the ends of b that waited for them.
    """
    count = len(least)
    high, low = np.full(count, np.inf), np.full(count, -np.inf)
    high[0] = low[0] = 0.0
    for _ in range(count):
        higher = np.minimum(high, (high[:, None] - least).min(axis=0))
        lower = np.maximum(low, (least + low[None, :]).max(axis=1))
        if np.array_equal(higher, high) and np.array_equal(lower, low):
            break
        high, low = higher, lower
    return low, high


def no_offset_is_possible(least: Array) -> bool:
    """Return whether no clock is ahead of another one, given what `least_ahead` returns."""
    return bool((least <= 2 * LIMITS.resolution_ns).all())


def least_ahead(end: Array, start: Array) -> npt.NDArray[np.float64]:
    """Return at [a, b] by how much the clock of a is at least ahead of that of b, ns; -inf where nothing says so.

    Both tables have a row per collective, nan for none: when members ended that wait, when those arrived that are
    awaited.
    """
    several = np.flatnonzero((np.isfinite(end) | np.isfinite(start)).sum(axis=1) > 1)
    if not len(several):
        return np.where(np.eye(end.shape[1], dtype=np.bool_), 0.0, -np.inf)
    several = several[:: max(1, -(-len(several) * end.shape[1] ** 2 // LIMITS.pairs_of_times))]
    end, start = end[several], start[several]
    least = np.stack([_largest(start[:, [column]] - end) for column in range(end.shape[1])])
    np.fill_diagonal(least, 0.0)
    return least


def _largest(values: Array) -> npt.NDArray[np.float64]:
    """Return the largest value of each column but for outliers; -inf for a column without any."""
    known = np.isfinite(values)
    place = len(values) - 1 - (LIMITS.damaged * known.sum(axis=0)).astype(np.int64)
    ordered = np.partition(np.where(known, values, -np.inf), np.unique(place), axis=0)
    return np.asarray(ordered[place, np.arange(values.shape[1])])


def islands(present: Array) -> list[list[int]]:
    """Return groups of columns whose ranks share collectives, directly or through other ranks."""
    met = _distinct_rows(present)
    left, islands = np.ones(present.shape[1], np.bool_), []
    while left.any():
        island = np.isfinite(_links_from(int(left.argmax()), met))
        left &= ~island
        islands.append(np.flatnonzero(island).tolist())
    return islands


def _distinct_rows(present: Array) -> Mask:
    """Return the different rows of a mask: collectives of one group of ranks count once."""
    packed = np.packbits(present, axis=1)
    first = {row.tobytes(): number for number, row in reversed(list(enumerate(packed)))}
    return np.asarray(present[sorted(first.values())], np.bool_)


def _links_from(first: int, met: Array) -> npt.NDArray[np.float64]:
    """Return over how many rows of `met`, which columns share, each column is from the first; infinite if over none."""
    links, unused = np.full(met.shape[1], np.inf), np.ones(len(met), np.bool_)
    links[first], edge, far = 0.0, np.array([first]), 0
    while len(edge):
        far += 1
        reached = np.flatnonzero(unused & met[:, edge].any(axis=1))
        unused[reached] = False
        edge = np.flatnonzero(met[reached].any(axis=0) & ~np.isfinite(links))
        links[edge] = far
    return links


def by_ends(end: Array, start: Array, time: Array) -> tuple[Array, Array, Array]:
    """Return (offset, drift, doubt) of each column against the first, as the ends of collectives show them, ns.

    `time` is when the collectives were, -1 to 1; drift is ns per unit of it.
    """
    offset, drift = fitted(end, time, drifting=False)
    count = np.isfinite(end).sum(axis=0)
    if count.min() >= LIMITS.for_drift:
        both = fitted(end, time, drifting=True)
        before, after = (middle_of(residuals(end, time, *fit)) for fit in ((offset, drift), both))
        if after < LIMITS.gain * before and np.ptp(both[1]) * 2 > LIMITS.spreads * after:
            offset, drift = both
    offset = _feasible(end, start, time, offset, drift)
    rest = residuals(end, time, offset, drift)
    spread = max(LIMITS.resolution_ns, round(float(np.median(np.nanmax(rest, axis=1) - np.nanmin(rest, axis=1)))))
    offset, drift = _snapped(end, start, time, (offset, drift), spread)
    hops = np.maximum(_links_from(0, _distinct_rows(np.isfinite(end))), 1)
    doubt = np.where(count >= LIMITS.often, LIMITS.doubt_spreads * (1 + LIMITS.often / count) * spread * hops, np.inf)
    return offset, drift, doubt


def fitted(end: Array, time: Array, *, drifting: bool) -> tuple[Array, Array]:
    """Return each column's offset and drift relative to the first column, by iteratively reweighted least squares.

    The times of the collectives themselves are eliminated, which leaves one unknown per rank, or two with drift.
    """
    known = np.isfinite(end)
    value = np.where(known, end - medians(end, axis=1)[:, None], 0.0)
    powers = [time**power for power in ((0, 1) if drifting else (0,))]
    solved = np.zeros((2, end.shape[1]))  # the offsets, then the drifts
    weight = known.astype(np.float64)
    for _ in range(LIMITS.rounds):
        before, solved = solved, np.zeros_like(solved)
        right = _pull(weight, powers, value)
        fit = _descended(weight, powers, right, before[: len(powers)])
        solved[: len(powers)] = _by_matrix(weight, powers, right) if fit is None else fit
        rest = np.abs(residuals(end, time, *solved))
        weight = np.where(known, 1 / np.maximum(rest, LIMITS.close_ns), 0.0)
        if float(np.abs(solved - before).max()) < 1:
            break
    return solved[0], solved[1]


def _pull(weight: Array, powers: list[Array], value: Array) -> npt.NDArray[np.float64]:
    """Return how much values pull at each factor of each clock, once their collectives' own times are eliminated."""
    total = weight.sum(axis=1)
    moment = (weight * value).sum(axis=1) / total
    return np.stack([(weight * power[:, None] * (value - moment[:, None])).sum(axis=0) for power in powers])


def _descended(weight: Array, powers: list[Array], right: Array, near: Array) -> npt.NDArray[np.float64] | None:
    """Return the fit by conjugate gradients, a row per power of time and a column per clock; 0 for the first clock.

    It is None where they do not converge, as with clocks that nothing links. The search begins at the fit `near`. Each
    round looks at every end once: no matrix of all pairs of clocks is made.
    """
    total = weight.sum(axis=1)[:, None]
    stiffness = np.stack([(power[:, None] ** 2 * weight * (1 - weight / total)).sum(axis=0) for power in powers])
    stiffness[:, 0] = 1.0
    if stiffness.min() <= 0:
        return None

    def forces(fit: Array) -> Array:
        terms = [power[:, None] * row for power, row in zip(powers, fit, strict=True)]
        out = _pull(weight, powers, np.sum(terms, axis=0))
        out[:, 0] = 0.0  # the first clock stays
        return out

    fit = near.copy()
    rest = right - forces(fit)
    rest[:, 0] = 0.0
    ahead = way = rest / stiffness
    for _ in range(LIMITS.rounds):
        if np.abs(ahead).max() < LIMITS.exact_ns:
            return fit
        answer = forces(way)
        length = (rest * ahead).sum() / (way * answer).sum()
        fit = fit + length * way
        less = rest - length * answer
        behind, ahead = ahead, less / stiffness
        way = ahead + (less * ahead).sum() / (rest * behind).sum() * way
        rest = less
    return None


def _by_matrix(weight: Array, powers: list[Array], right: Array) -> npt.NDArray[np.float64]:
    """Return the fit by singular values, the smallest one where several fit."""
    ranks, total = weight.shape[1], weight.sum(axis=1)
    matrix = np.empty((len(powers) * ranks,) * 2)
    for f, power in enumerate(powers):
        for g, other in enumerate(powers):
            part = weight * (power * other)[:, None]
            among = part.T @ (weight / total[:, None])
            block = slice(f * ranks, (f + 1) * ranks), slice(g * ranks, (g + 1) * ranks)
            matrix[block] = np.diag(part.sum(axis=0)) - among
    free = np.concatenate([np.arange(1, ranks) + number * ranks for number in range(len(powers))])
    out = np.zeros(right.size)
    out[free] = np.linalg.lstsq(matrix[np.ix_(free, free)], right.ravel()[free], rcond=None)[0]
    return out.reshape(right.shape)


def _corrected(times: Array, time: Array, offset: Array, drift: Array) -> Array:
    return np.asarray(times - offset - drift * time[:, None])


def residuals(end: Array, time: Array, offset: Array, drift: Array) -> npt.NDArray[np.float64]:
    """Return the distance of each end from the median end of its collective, on the common clock, ns."""
    common = _corrected(end, time, offset, drift)
    return np.asarray(common - medians(common, axis=1)[:, None])


def medians(values: Array, axis: int) -> npt.NDArray[np.float64]:
    """Return the medians along an axis, leaving out nan; nan where nothing else is.

    They are those of `numpy.nanmedian`, which takes many times as long.

    Example:
        >>> medians(np.array([[1.0, np.nan, 4.0], [np.nan, np.nan, np.nan]]), axis=1).tolist()
        [2.5, nan]
    """
    ordered = np.sort(values, axis=axis)  # nan comes last
    count = np.expand_dims((~np.isnan(values)).sum(axis=axis), axis)
    low, high = np.maximum(0, (count - 1) // 2), np.minimum(count // 2, values.shape[axis] - 1)
    low, high = (np.take_along_axis(ordered, at, axis) for at in (low, high))
    return np.asarray(((low + high) / 2).squeeze(axis))


def middle_of(values: Array) -> float:
    """Return the median absolute value, 0 without any."""
    known = np.abs(values[np.isfinite(values)])
    return float(np.median(known)) if len(known) else 0.0


def _excess(end: Array, start: Array, time: Array, offset: Array, drift: Array) -> npt.NDArray[np.float64]:
    """Return at [a, b] how long, at worst, rank a arrives after rank b has ended, ns; negative if it never does."""
    late, early = (_corrected(times, time, offset, drift) for times in (start, end))
    out = np.zeros((end.shape[1],) * 2)
    with np.errstate(invalid="ignore"):
        for line in range(end.shape[1]):
            gap = late[:, [line]] - early
            out[line] = np.where(np.isfinite(gap), gap, -np.inf).max(axis=0)
    np.fill_diagonal(out, -np.inf)
    return out


def _latest_by_row(end: Array, start: Array, time: Array, offset: Array, drift: Array) -> npt.NDArray[np.float64]:
    """Return for each collective how long its last arrival comes after another member has ended, ns."""
    late, early = (_corrected(times, time, offset, drift) for times in (start, end))
    late, early = np.where(np.isfinite(late), late, -np.inf), np.where(np.isfinite(early), early, np.inf)
    rows, last, first = np.arange(len(late)), late.argmax(axis=1), early.argmin(axis=1)
    latest = late[rows, last] - early[rows, first]
    one = np.flatnonzero(last == first)  # both of one rank: then one of them is the second
    last, first = last[one], first[one]
    late, early = late[one], early[one]
    rows = np.arange(len(one))
    arrival, ended = late[rows, last].copy(), early[rows, first].copy()
    late[rows, last], early[rows, first] = -np.inf, np.inf
    latest[one] = np.maximum(late.max(axis=1) - ended, arrival - early.min(axis=1))
    return np.asarray(latest)


def _feasible(end: Array, start: Array, time: Array, offset: Array, drift: Array) -> Array:
    """Return the offsets after moving them until no member arrives after another ended, if that is possible."""
    latest = _latest_by_row(end, start, time, offset, drift)
    if latest.max(initial=-np.inf) <= 0:
        return offset
    count = max(1, LIMITS.pairs_of_times // end.shape[1] ** 2)
    if len(latest) > count:  # those that show it most
        worst = np.sort(np.argpartition(-latest, count)[:count])
        end, start, time = end[worst], start[worst], time[worst]
    excess = _excess(end, start, time, offset, drift)
    move = np.zeros(len(offset))
    for _ in range(LIMITS.rounds):
        broken = excess - move[:, None] + move[None, :]
        a, b = np.unravel_index(int(np.argmax(broken)), broken.shape)
        if broken[a, b] <= 0:
            break
        half = broken[a, b] / 2 + 0.5
        move[a] += half
        move[b] -= half
    else:
        return offset  # not possible for all collectives: only the ends count
    return np.asarray(offset + move - move[0])


def _snapped(end: Array, start: Array, time: Array, fitted: tuple[Array, Array], spread: int) -> tuple[Array, Array]:
    """Return (offset, drift), with offsets no larger than the spread set to 0 unless an arrival contradicts that."""
    offset, drift = fitted
    if drift.any():
        return offset, drift
    snapped = np.where(np.abs(offset) <= spread, 0.0, offset)
    broken, before = (_latest_by_row(end, start, time, each, drift).max(initial=-np.inf) for each in (snapped, offset))
    return (snapped if broken <= max(0.0, before) else offset), drift


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

    row: Ints
    """Of each member: the number of its collective, ascending."""
    column: Ints
    """Of each member: the number of its rank."""
    end: npt.NDArray[np.float64]
    """As in `TimeTable`, by member; so are the next two."""
    start: npt.NDArray[np.float64]
    waited: npt.NDArray[np.float64]
    ranks: int
    origin: int
    """ns: what times count from."""

    @cached_property
    def present(self) -> Mask:
        """Which members tell anything about clocks."""
        return np.asarray(np.isfinite(self.start) | np.isfinite(self.waited))

    @cached_property
    def _of_column(self) -> tuple[Ints, Ints]:
        """Return (members ordered by rank, where those of each rank begin)."""
        order = np.argsort(self.column, kind="stable")
        return order, np.searchsorted(self.column[order], np.arange(self.ranks + 1))

    def members(self, columns: Sequence[int]) -> Ints:
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

    def shared_rows(self, columns: Sequence[int]) -> Ints:
        """Return the collectives in which at least two of some ranks tell anything, ascending."""
        some = self.members(columns)
        rows, count = np.unique(self.row[some[self.present[some]]], return_counts=True)
        return rows[count > 1]

    def presence(self, units: Sequence[Sequence[int]]) -> Mask:
        """Return which of some groups of ranks tell anything about which collectives, a row per collective."""
        unit, some = self._units(units)
        some = some[self.present[some]]
        rows, line = np.unique(self.row[some], return_inverse=True)
        out = np.zeros((len(rows), len(units)), np.bool_)
        out[line.ravel(), unit[self.column[some]]] = True
        return out

    def of(self, units: Sequence[Sequence[int]], rows: Array) -> TimeTable:
        """Return some collectives for groups of ranks with one clock: their middle end, last arrival, first end."""
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
                group_medians(self.end[some], cell, size), _largest_by_cell(self.start[some], cell, size),
                -_largest_by_cell(-self.waited[some], cell, size),
            ])  # fmt: skip
        return TimeTable(*(table.reshape(len(rows), len(units)) for table in out))

    def blocks(self, columns: Sequence[int], rows: Array) -> Iterator[tuple[slice, TimeTable]]:
        """Yield some collectives, a column per rank, in blocks of a size that fits into memory."""
        length = max(1, LIMITS.cells // max(len(columns), 1))
        for first in range(0, len(rows), length):
            block = slice(first, min(first + length, len(rows)))
            yield block, self.of([[column] for column in columns], rows[block])

    def _units(self, units: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
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


def _largest_by_cell(values: Array, cell: Array, size: int) -> npt.NDArray[np.float64]:
    out = np.full(size, -np.inf)
    known = np.isfinite(values)
    np.maximum.at(out, cell[known], values[known])
    out[np.isinf(out)] = np.nan
    return out
