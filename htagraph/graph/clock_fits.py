"""Fits of clock offsets: to ends that lie together, and to arrivals that must come before ends.

Times are arrays with a row per collective and a column per clock, ns, nan where a clock has no part in a collective.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "MIN_FOR_DRIFT",
    "RESOLUTION_NS",
    "as_recorded_is_possible",
    "by_ends",
    "feasible_offsets",
    "fitted",
    "islands",
    "limits",
    "middle_of",
    "residuals",
]

Array: TypeAlias = npt.NDArray[Any]

RESOLUTION_NS: Final = 1_000
"""ns: the smallest spread that is assumed. Files of whole µs are no more exact. Doubled, offsets of 1 to 2 µs are taken
as 0."""
_MAX_TURNS: Final = 25
"""Largest number of reweighting rounds. Chosen: it usually converges (no offset moves by 1 ns) after 5 to 10. Doubled,
nothing changes."""
_CLOSE_NS: Final = 300.0
"""ns: residuals below this have equal weight. Chosen: below the spread of any real collective. Doubled, offsets move by
less than 0.3 µs."""
MIN_FOR_DRIFT: Final = 30
"""Collectives that every rank needs before drift is estimated. Chosen: with fewer, drift cannot be distinguished from
noise. Doubled, clocks of short traces get no drift."""
_DRIFT_GAIN: Final = 0.8
"""Drift is accepted only if it reduces the median residual to less than this share. Chosen. It cannot be doubled; at 1,
noise would make clocks drift."""
_MIN_DRIFT_SPREADS: Final = 4.0
"""Drift is accepted only if it moves clocks apart, over the window, by more than this many median residuals. Chosen.
Doubled, slow drift of up to eight residuals stays uncorrected."""
_MAX_SWEEPS: Final = 50
"""Largest number of moves to get every arrival before the ends that wait for it; if they do not suffice, only the ends
count. Chosen. Doubled, only jobs with many skewed ranks change."""
_MIN_ENDS: Final = 3
"""Collectives whose ends say by how much they spread. Chosen: of fewer there is no spread. Doubled, clocks of short
recordings are known as arrivals limit them only."""
_DOUBT_SPREADS: Final = 3.0
"""Spreads of ends by which an offset may be wrong. Measured: ends of real ranks differ, all through a recording, by up
to twice their spread; benchmarks/clocks.py counts how often the truth is within. Doubled, clocks seem less certain."""
_OUTLIERS: Final = 0.01
"""Share of collectives whose arrivals do not count as limits. Chosen: damaged records. Doubled, limits are wider apart
than they have to be in 2 % of collectives."""


def feasible_offsets(end: Array, start: Array) -> npt.NDArray[np.float64]:
    """Return clock offsets, one per column, under which nobody ends before all have arrived, ns; 0 where none exist.

    They are in the middle of all that are possible, relative to the first column.

    Args:
        end: when members ended that wait for others, a row per collective, nan for none.
        start: when members arrived that others wait for, likewise.
    """
    low, high = limits(end, start, 0)
    possible = np.isfinite(low) & np.isfinite(high) & (low <= high + 2 * RESOLUTION_NS)
    return np.where(possible, (np.where(possible, low, 0) + np.where(possible, high, 0)) / 2, 0.0)


def limits(end: Array, start: Array, gauge: int) -> tuple[Array, Array]:
    """Return the least and the largest clock offset of each column against that of column `gauge`, ns.

    Infinite where no chain of collectives limits it. Column a is ahead of column b by at least what its arrivals
    seem to come after the ends of b that waited for them.
    """
    count = end.shape[1]
    least = _least_ahead(end, start)
    high, low = np.full(count, np.inf), np.full(count, -np.inf)
    high[gauge] = low[gauge] = 0.0
    for _ in range(count):
        higher = np.minimum(high, (high[:, None] - least).min(axis=0))
        lower = np.maximum(low, (least + low[None, :]).max(axis=1))
        if np.array_equal(higher, high) and np.array_equal(lower, low):
            break
        high, low = higher, lower
    return low, high


def as_recorded_is_possible(end: Array, start: Array) -> bool:
    """Return whether nobody ends before all have arrived as the clocks were recorded, with no offset at all."""
    return bool((_least_ahead(end, start) <= 2 * RESOLUTION_NS).all())


def _least_ahead(end: Array, start: Array) -> npt.NDArray[np.float64]:
    """Return at [a, b] by how much the clock of a is at least ahead of that of b, ns; -inf where nothing says so."""
    least = np.stack([_largest(start[:, [column]] - end) for column in range(end.shape[1])])
    np.fill_diagonal(least, 0.0)
    return least


def _largest(values: Array) -> npt.NDArray[np.float64]:
    """Return the largest value of each column but for outliers; -inf for a column without any."""
    ordered = np.sort(np.where(np.isfinite(values), values, -np.inf), axis=0)
    left_out = (_OUTLIERS * np.isfinite(values).sum(axis=0)).astype(np.int64)
    return np.asarray(ordered[len(values) - 1 - left_out, np.arange(values.shape[1])])


def islands(present: Array) -> list[list[int]]:
    """Return groups of columns whose ranks share collectives, directly or through other ranks."""
    linked = (present.T.astype(np.float32) @ present.astype(np.float32)) > 0
    left, islands = set(range(present.shape[1])), []
    while left:
        island, edge = set(), {min(left)}
        while edge:
            island |= edge
            edge = {int(column) for column in np.flatnonzero(linked[sorted(edge)].any(axis=0))} - island
        left -= island
        islands.append(sorted(island))
    return islands


def by_ends(end: Array, start: Array, time: Array) -> tuple[Array, Array, Array]:
    """Return (offset, drift, doubt) of each column against the first, as the ends of collectives show them, ns.

    Args:
        end: when members ended.
        start: when they arrived.
        time: when the collectives were, -1 to 1; drift is ns per unit of it.
    """
    offset, drift = fitted(end, time, drifting=False)
    count = np.isfinite(end).sum(axis=0)
    if count.min() >= MIN_FOR_DRIFT:
        both = fitted(end, time, drifting=True)
        before, after = (middle_of(residuals(end, time, *fit)) for fit in ((offset, drift), both))
        if after < _DRIFT_GAIN * before and np.ptp(both[1]) * 2 > _MIN_DRIFT_SPREADS * after:
            offset, drift = both
    offset = _feasible(end, start, time, offset, drift)
    spread = _spread(residuals(end, time, offset, drift))
    offset, drift = _snapped(end, start, time, (offset, drift), spread)
    hops = _hops(np.isfinite(end))
    doubt = np.where(count >= _MIN_ENDS, _DOUBT_SPREADS * (1 + _MIN_ENDS / count) * spread * hops, np.inf)
    return offset, drift, doubt


def _hops(present: Array) -> npt.NDArray[np.float64]:
    """Return over how many links of shared collectives each column is from the first."""
    linked = (present.T.astype(np.float32) @ present.astype(np.float32)) > 0
    hops = np.full(len(linked), np.inf)
    hops[0], edge, far = 0.0, np.array([0]), 0
    while len(edge):
        far += 1
        edge = np.flatnonzero(linked[edge].any(axis=0) & ~np.isfinite(hops))
        hops[edge] = far
    return np.maximum(hops, 1)


def fitted(end: Array, time: Array, *, drifting: bool) -> tuple[Array, Array]:
    """Return each column's offset and drift relative to the first column, by iteratively reweighted least squares.

    The times of the collectives themselves are eliminated, which leaves one unknown per rank, or two with drift.
    """
    known = np.isfinite(end)
    value = np.where(known, end - np.nanmedian(end, axis=1)[:, None], 0.0)
    ranks = end.shape[1]
    powers = (0, 1) if drifting else (0,)
    unknown = np.zeros(2 * ranks)  # the offsets, then the drifts
    weight = known.astype(np.float64)
    free = np.concatenate([np.arange(1, ranks) + power * ranks for power in powers])
    for _ in range(_MAX_TURNS):
        total = weight.sum(axis=1)
        moment = (weight * value).sum(axis=1) / total
        matrix = np.empty((len(powers) * ranks,) * 2)
        right = np.empty(len(powers) * ranks)
        for f in powers:
            block = slice(f * ranks, (f + 1) * ranks)
            right[block] = (weight * (time**f)[:, None] * (value - moment[:, None])).sum(axis=0)
            for g in powers:
                part = weight * (time ** (f + g))[:, None]
                among = part.T @ (weight / total[:, None])
                matrix[block, g * ranks : (g + 1) * ranks] = np.diag(part.sum(axis=0)) - among
        solved = np.zeros(len(unknown))
        solved[free] = np.linalg.lstsq(matrix[np.ix_(free, free)], right[free], rcond=None)[0]
        moved = float(np.abs(solved - unknown).max())
        unknown = solved
        rest = np.abs(residuals(end, time, unknown[:ranks], unknown[ranks:]))
        weight = np.where(known, 1 / np.maximum(rest, _CLOSE_NS), 0.0)
        if moved < 1:
            break
    return unknown[:ranks], unknown[ranks:]


def _corrected(times: Array, time: Array, offset: Array, drift: Array) -> Array:
    return np.asarray(times - offset - drift * time[:, None])


def residuals(end: Array, time: Array, offset: Array, drift: Array) -> npt.NDArray[np.float64]:
    """Return the distance of each end from the median end of its collective, on the common clock, ns."""
    common = _corrected(end, time, offset, drift)
    middle = np.full(len(common), np.nan)
    known = np.isfinite(common).any(axis=1)
    middle[known] = np.nanmedian(common[known], axis=1)
    return np.asarray(common - middle[:, None])


def middle_of(values: Array) -> float:
    """Return the median absolute value, 0 without any."""
    known = np.abs(values[np.isfinite(values)])
    return float(np.median(known)) if len(known) else 0.0


def _spread(residual: Array) -> int:
    """Return how far apart the ends of a collective are, ns: the median range, but at least the resolution."""
    ranges = np.nanmax(residual, axis=1) - np.nanmin(residual, axis=1)
    return max(RESOLUTION_NS, round(float(np.median(ranges))))


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


def _feasible(end: Array, start: Array, time: Array, offset: Array, drift: Array) -> Array:
    """Return the offsets after moving them until no member arrives after another ended, if that is possible."""
    excess = _excess(end, start, time, offset, drift)
    move = np.zeros(len(offset))
    for _ in range(_MAX_SWEEPS):
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
    broken = _excess(end, start, time, snapped, drift).max()
    allowed = max(0.0, float(_excess(end, start, time, offset, drift).max()))
    return (snapped if broken <= allowed else offset), drift
