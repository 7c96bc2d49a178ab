"""Clocks: the error of each rank's clock, estimated from the ends of collectives.

All members of a barrier-like collective end almost at once. Robust least squares on
``end = moment + offset + drift * t`` give each clock's error; then the offsets are moved until no member arrives after
another has ended. Recorded times are never edited: the graph adds the correction (`DependencyGraph.time`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from htagraph.graph.construction.matching.match import Matching

__all__ = ["Clock", "corrected", "estimate_clocks"]

Array: TypeAlias = npt.NDArray[Any]

_RESOLUTION_NS: Final = 1_000
"""ns: the smallest spread that is assumed. Files of whole µs are no more exact. Doubled, offsets of 1 to 2 µs are taken
as 0."""
_SAMPLE: Final = 20_000
"""The estimate uses at most this many collectives, evenly spread. Chosen for time. Doubled, it takes twice as long."""
_MAX_TURNS: Final = 25
"""Largest number of reweighting rounds. Chosen: it usually converges (no offset moves by 1 ns) after 5 to 10. Doubled,
nothing changes."""
_CLOSE_NS: Final = 300.0
"""ns: residuals below this have equal weight. Chosen: below the spread of any real collective. Doubled, offsets move by
less than 0.3 µs."""
_MIN_FOR_DRIFT: Final = 30
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


@dataclass(frozen=True)
class Clock:
    """One rank's clock against that of `gauge`: common = own - offset_ns - drift_ppm * 1e-6 * (own - reference_ns).

    Example:
        >>> Clock(rank=1, offset_ns=1_000).common(np.array([5_000])).tolist()
        [4000]
    """

    rank: int
    offset_ns: int = 0
    """How far the clock is ahead of the clock of `gauge`, at `reference_ns`."""
    drift_ppm: float = 0.0
    """How much faster the clock runs than that of `gauge`, parts per million."""
    uncertainty_ns: int = -1
    """The offset may be wrong by this much: the spread of the ends; -1 without any collective to estimate it from."""
    residual_ns: int = 0
    """Median distance of this rank's ends from the median end of their collectives, after correction."""
    gauge: int = -1
    """The reference rank: the lowest rank that collectives link to this one; -1 without any."""
    collectives: int = 0
    """How many collectives the estimate uses."""
    reference_ns: int = 0
    """The time on the rank's own clock at which it is ahead by `offset_ns`."""

    def common(self, time: Array) -> npt.NDArray[np.int64]:
        """Return times of this clock as times of the common clock, ns."""
        drift = np.rint((time - self.reference_ns) * (self.drift_ppm * 1e-6)).astype(np.int64)
        return time - drift - self.offset_ns


def corrected(clocks: Sequence[Clock], rank: Array, time: Array) -> npt.NDArray[np.int64]:
    """Return times on the common clock, ns.

    Args:
        clocks: the clocks of the ranks; a rank without one is not corrected.
        rank: the rank on whose clock each time was recorded.
        time: the recorded times, ns.
    """
    out = time.astype(np.int64)
    for clock in clocks:
        of_clock = rank == clock.rank
        out[of_clock] = clock.common(out[of_clock])
    return out


@dataclass(frozen=True, eq=False)
class _Barriers:
    """Times of barrier-like collectives since an origin, ns: a row per collective, a column per rank, nan if absent."""

    end: npt.NDArray[np.float64]
    start: npt.NDArray[np.float64]
    origin: int


def estimate_clocks(ranks: Sequence[int], matching: Matching) -> tuple[Clock, ...]:
    """Return the clock of every rank, in the order of `ranks`.

    Offsets that are no larger than the spread of the ends are taken as 0, so that correct clocks are not changed.

    Args:
        ranks: all ranks of the job.
        matching: the matched collectives.
    """
    ranks = [int(rank) for rank in ranks]
    clocks = {rank: Clock(rank) for rank in ranks}
    barriers = _barriers(ranks, matching)
    if barriers is not None:
        for island in _islands(np.isfinite(barriers.end)):
            if len(island) > 1:
                for clock in _estimate(ranks, island, barriers):
                    clocks[clock.rank] = clock
    return tuple(clocks[rank] for rank in ranks)


def _barriers(ranks: list[int], matching: Matching) -> _Barriers | None:
    """Return the times of the barrier-like collectives, or of an even sample of them; None without any."""
    rows = np.flatnonzero(matching.collective >= 0)
    if len(matching):
        barrier = matching.barrier
        rows = rows[barrier[matching.collective[rows]]]
    if not len(rows):
        return None
    which, line = np.unique(matching.collective[rows], return_inverse=True)
    step = -(-len(which) // _SAMPLE)
    keep = line.ravel() % step == 0
    rows, line = rows[keep], line.ravel()[keep] // step
    members = matching.members
    column = np.searchsorted(np.array(ranks), members.rank[rows])
    end = np.full((int(line.max()) + 1, len(ranks)), np.nan)
    start = end.copy()
    origin = int(members.start[rows].min())
    end[line, column], start[line, column] = members.end[rows] - origin, members.start[rows] - origin
    return _Barriers(end, start, origin)


def _islands(present: Array) -> list[list[int]]:
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


def _estimate(ranks: list[int], island: list[int], barriers: _Barriers) -> list[Clock]:
    """Return the clocks of the ranks of one group of columns."""
    rows = np.isfinite(barriers.end[:, island]).sum(axis=1) > 1
    end, start = barriers.end[np.ix_(rows, island)], barriers.start[np.ix_(rows, island)]
    when = np.nanmean(end, axis=1)
    centre, scale = float(np.mean(when)), max(1.0, float(np.ptp(when)) / 2)
    time = (when - centre) / scale
    offset, drift = _fitted(end, time, drifting=False)
    count = np.isfinite(end).sum(axis=0)
    if count.min() >= _MIN_FOR_DRIFT:
        both = _fitted(end, time, drifting=True)
        before, after = (_middle(_residual(end, time, *fit)) for fit in ((offset, drift), both))
        if after < _DRIFT_GAIN * before and np.ptp(both[1]) * 2 > _MIN_DRIFT_SPREADS * after:
            offset, drift = both
    offset = _feasible(end, start, time, offset, drift)
    residual = _residual(end, time, offset, drift)
    spread = _spread(residual)
    offset, drift = _snapped(end, start, time, (offset, drift), spread)
    out = []
    for line, column in enumerate(island):
        own = residual[:, line]
        out.append(
            Clock(
                ranks[column], round(float(offset[line])), float(drift[line] / scale * 1e6), spread,
                round(_middle(own)), ranks[island[0]], int(count[line]), barriers.origin + round(centre),
            )
        )  # fmt: skip
    return [replace(clock, uncertainty_ns=0) if clock.rank == clock.gauge else clock for clock in out]


def _fitted(end: Array, time: Array, *, drifting: bool) -> tuple[Array, Array]:
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
        rest = np.abs(_residual(end, time, unknown[:ranks], unknown[ranks:]))
        weight = np.where(known, 1 / np.maximum(rest, _CLOSE_NS), 0.0)
        if moved < 1:
            break
    return unknown[:ranks], unknown[ranks:]


def _corrected(times: Array, time: Array, offset: Array, drift: Array) -> Array:
    return np.asarray(times - offset - drift * time[:, None])


def _residual(end: Array, time: Array, offset: Array, drift: Array) -> npt.NDArray[np.float64]:
    """Return the distance of each end from the median end of its collective, on the common clock, ns."""
    common = _corrected(end, time, offset, drift)
    return np.asarray(np.where(np.isfinite(common), common - np.nanmedian(common, axis=1)[:, None], np.nan))


def _middle(values: Array) -> float:
    """Return the median absolute value, 0 without any."""
    known = np.abs(values[np.isfinite(values)])
    return float(np.median(known)) if len(known) else 0.0


def _spread(residual: Array) -> int:
    """Return how far apart the ends of a collective are, ns: the median range, but at least the resolution."""
    ranges = np.nanmax(residual, axis=1) - np.nanmin(residual, axis=1)
    return max(_RESOLUTION_NS, round(float(np.median(ranges))))


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
