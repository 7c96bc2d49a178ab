"""Clocks: the error of each rank's clock, estimated from the ends of collectives.

All members of a barrier-like collective end almost at once. Robust least squares on
``end = moment + offset + drift * t`` give each clock's error; then the offsets are moved until no member arrives after
another has ended. Recorded times are never edited: the graph adds the correction (`DependencyGraph.time`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from htagraph.graph.construction.matching.match import Matching

__all__ = ["Clock", "agreement_ns", "corrected", "estimate_clocks", "feasible_offsets"]

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
_TOLERANCE_NS: Final = 2_000
"""ns: by which an arrival may seem to come after an end; as in `matching.sequence_alignment`. Doubled, ranks of one
host whose clocks differ by 4 µs are taken to share one."""
_TYPICAL_SHARE: Final = 0.8
"""Share of the differences of ends that the spread of a pair covers; the rest are outliers. Chosen. At 1 one outlier
decides."""
_MAX_SPREADS: Final = 5.0
"""Ranks of one host share a clock if their ends differ by no more than this many times their spread. Measured: up to
twice on real hosts. Doubled, offsets within a host of up to ten spreads are taken as 0."""
_MIN_FOR_OFFSET: Final = 4
"""Collectives whose ends prove that ranks of one host do not share a clock. Chosen: fewer may agree by chance. Doubled,
short recordings of skewed ranks of one host have unknown clocks."""
_MIN_ENDS: Final = 3
"""Collectives whose ends say by how much they spread. Chosen: of fewer there is no spread. Doubled, clocks of short
recordings are known as arrivals limit them only."""
_DOUBT_SPREADS: Final = 3.0
"""Spreads of ends by which an offset may be wrong. Measured: ends of real ranks differ, all through a recording, by up
to twice their spread; benchmarks/clocks.py counts how often the truth is within. Doubled, clocks seem less certain."""
_OUTLIERS: Final = 0.01
"""Share of collectives whose arrivals do not count as limits. Chosen: damaged records. Doubled, limits are wider apart
than they have to be in 2 % of collectives."""


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
    """The offset may be wrong by this much, as the ends' spread and the arrivals show; -1 where it is unknown."""
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
    """Times of collectives that some rank cannot end before another arrives: a row per collective, a column per rank.

    All are ns since an origin, and nan where a rank is absent.
    """

    end: npt.NDArray[np.float64]
    """Of members on devices, which end together; nan for those on host threads, where ends prove nothing."""
    start: npt.NDArray[np.float64]
    """When members arrived that others wait for."""
    waited: npt.NDArray[np.float64]
    """When members ended that wait for others."""
    origin: int

    def of(self, units: Sequence[list[int]], rows: Array) -> _Barriers:
        """Return some rows for units of columns that share a clock: each unit's middle end, last arrival, first end."""
        parts = ((self.end, np.nanmedian), (self.start, np.nanmax), (self.waited, np.nanmin))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of units that are absent from a collective
            end, start, waited = (
                np.stack([over(times[rows][:, unit], axis=1) for unit in units], axis=1) for times, over in parts
            )
        return _Barriers(end, start, waited, self.origin)

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which ranks have a part in which collectives."""
        return np.asarray(np.isfinite(self.start) | np.isfinite(self.waited))


def estimate_clocks(ranks: Sequence[int], matching: Matching) -> tuple[Clock, ...]:
    """Return the clock of every rank, in the order of `ranks`.

    Ranks of one host share its clock, unless collectives contradict that. Offsets between other ranks come from the
    ends of collectives on devices, and are limited by arrivals: nobody ends before all have arrived. Where only
    arrivals tell, they have to do so in both directions. Offsets that are no larger than the spread of the ends are
    taken as 0, so that correct clocks are not changed.

    Args:
        ranks: all ranks of the job.
        matching: the matched collectives.
    """
    ranks = [int(rank) for rank in ranks]
    clocks = {rank: Clock(rank) for rank in ranks}
    barriers = _barriers(ranks, matching)
    if barriers is not None:
        units = _units([matching.host.get(rank, -1) for rank in ranks], barriers)
        for island in _islands(barriers.of(units, np.arange(len(barriers.start))).present):
            for clock in _estimate(ranks, [units[number] for number in island], barriers):
                clocks[clock.rank] = clock
    return tuple(clocks[rank] for rank in ranks)


def agreement_ns(clocks: Sequence[Clock], ranks: Iterable[int]) -> int:
    """Return by how much the common times of some ranks may be wrong against each other, ns; -1 where that is unknown.

    It is unknown where nothing links the clocks of two of the ranks. What a time is compared with should be longer.

    Args:
        clocks: the clocks of a job, `DependencyGraph.clocks`.
        ranks: the ranks whose times are compared.

    Example:
        >>> clocks = (Clock(0, uncertainty_ns=0, gauge=0), Clock(1, uncertainty_ns=1_500, gauge=0), Clock(2))
        >>> agreement_ns(clocks, (0, 1)), agreement_ns(clocks, (1, 2)), agreement_ns(clocks, (2,))
        (1500, -1, 0)
    """
    wanted = set(ranks)
    compared = [clock for clock in clocks if clock.rank in wanted]
    if len(wanted) < 2:
        return 0
    if len(compared) < len(wanted) or len({clock.gauge for clock in compared}) > 1 or compared[0].gauge < 0:
        return -1
    largest = sorted((clock.uncertainty_ns for clock in compared), reverse=True)
    return largest[0] + (largest[1] if all(clock.rank != clock.gauge for clock in compared) else 0)


def feasible_offsets(end: Array, start: Array) -> npt.NDArray[np.float64]:
    """Return clock offsets, one per column, under which nobody ends before all have arrived, ns; 0 where none exist.

    They are in the middle of all that are possible, relative to the first column.

    Args:
        end: when members ended that wait for others, a row per collective, nan for none.
        start: when members arrived that others wait for, likewise.
    """
    low, high = _limits(end, start, 0)
    possible = np.isfinite(low) & np.isfinite(high) & (low <= high + 2 * _RESOLUTION_NS)
    return np.where(possible, (np.where(possible, low, 0) + np.where(possible, high, 0)) / 2, 0.0)


def _barriers(ranks: list[int], matching: Matching) -> _Barriers | None:
    """Return the times of the barrier-like collectives, or of an even sample of them; None without any.

    A send on a host thread may be over before its receive begins: there only the receive waits.
    """
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
    origin = int(members.start[rows].min())
    on_host = members.on_host[rows]
    pair = on_host & (np.array([matching.op[each] == "send_recv" for each in matching.collective[rows].tolist()]))
    way = members.way[rows]
    end, start, waited = (np.full((int(line.max()) + 1, len(ranks)), np.nan) for _ in range(3))
    end[line, column] = np.where(on_host, np.nan, members.end[rows] - origin)
    start[line, column] = np.where(pair & (way <= 0), np.nan, members.start[rows] - origin)
    waited[line, column] = np.where(pair & (way >= 0), np.nan, members.end[rows] - origin)
    return _Barriers(end, start, waited, origin)


def _units(host: list[int], barriers: _Barriers) -> list[list[int]]:
    """Return the columns grouped by clocks: ranks of one host that collectives show to share its clock, or one rank.

    If a rank's collectives contradict that it shares the clock of any other rank of its host, nobody there does.
    """
    count = len(host)
    agrees = np.zeros((count, count), np.bool_)
    differs = np.zeros(count, np.bool_)
    for a in range(count):
        for b in [b for b in range(a + 1, count) if host[a] == host[b] >= 0]:
            verdict = _one_clock(barriers.of([[a], [b]], np.arange(len(barriers.start))))
            agrees[a, b] = agrees[b, a] = verdict is True
            differs[[a, b]] |= verdict is False
    alone = differs & ~agrees.any(axis=1)
    void = {host[column] for column in np.flatnonzero(alone).tolist()}
    kept = np.array([own not in void for own in host], np.bool_)
    return _islands((agrees & kept[:, None] & kept) | np.eye(count, dtype=np.bool_))


def _one_clock(pair: _Barriers) -> bool | None:
    """Return whether the collectives of two ranks agree with one clock; None where they do not tell."""
    low, high = _limits(pair.waited, pair.start, 0)
    if not (np.isfinite(low[1]) or np.isfinite(high[1])):
        return None
    if low[1] > _TOLERANCE_NS or high[1] < -_TOLERANCE_NS:
        return False
    apart = pair.end[:, 1] - pair.end[:, 0]
    known = np.isfinite(apart)
    apart, when = apart[known], pair.end[known, 0]
    if not len(apart):
        return True if np.isfinite(low[1]) and np.isfinite(high[1]) else None
    middle, trend = float(np.median(apart)), np.zeros(len(apart))
    if len(apart) >= _MIN_FOR_DRIFT:
        trend = np.polyval(np.polyfit(when - when.mean(), apart - middle, 1), when - when.mean())
    spread = max(_RESOLUTION_NS, float(np.quantile(np.abs(apart - middle - trend), _TYPICAL_SHARE)))
    if max(abs(middle), float(np.ptp(trend))) <= _MAX_SPREADS * spread:
        return True
    return False if len(apart) >= _MIN_FOR_OFFSET else None


def _limits(end: Array, start: Array, gauge: int) -> tuple[Array, Array]:
    """Return the least and the largest clock offset of each column against that of column `gauge`, ns.

    Infinite where no chain of collectives limits it. Column a is ahead of column b by at least what its arrivals
    seem to come after the ends of b that waited for them.
    """
    count = end.shape[1]
    least = np.full((count, count), -np.inf)
    for column in range(count):
        least[column] = _largest(start[:, [column]] - end)
    np.fill_diagonal(least, 0.0)
    high, low = np.full(count, np.inf), np.full(count, -np.inf)
    high[gauge] = low[gauge] = 0.0
    for _ in range(count):
        higher = np.minimum(high, (high[:, None] - least).min(axis=0))
        lower = np.maximum(low, (least + low[None, :]).max(axis=1))
        if np.array_equal(higher, high) and np.array_equal(lower, low):
            break
        high, low = higher, lower
    return low, high


def _largest(values: Array) -> npt.NDArray[np.float64]:
    """Return the largest value of each column but for outliers; -inf for a column without any."""
    ordered = np.sort(np.where(np.isfinite(values), values, -np.inf), axis=0)
    left_out = (_OUTLIERS * np.isfinite(values).sum(axis=0)).astype(np.int64)
    return np.asarray(ordered[len(values) - 1 - left_out, np.arange(values.shape[1])])


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


def _estimate(ranks: list[int], units: list[list[int]], barriers: _Barriers) -> list[Clock]:
    """Return the clocks of the ranks of some units that collectives link, as far as they are known."""
    columns = sorted(column for unit in units for column in unit)
    rows = np.flatnonzero(barriers.present[:, columns].sum(axis=1) > 1)
    if not len(rows):
        return []
    own, single = barriers.of(units, rows), barriers.of([[column] for column in columns], rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        when = np.nanmean(np.concatenate((single.start, single.waited), axis=1), axis=1)
    centre, scale = float(np.mean(when)), max(1.0, float(np.ptp(when)) / 2)
    time = (when - centre) / scale
    offset, drift, doubt = _offsets(own, time)
    place = {column: number for number, unit in enumerate(units) for column in unit}
    residual = _residual(single.end, time, *(each[[place[column] for column in columns]] for each in (offset, drift)))
    met = single.present.sum(axis=0)
    known = [column for column in columns if np.isfinite(doubt[place[column]])]
    within = _within_host(single, columns, units)
    out = []
    for column in known if len(known) > 1 else []:
        line, unit = columns.index(column), place[column]
        out.append(
            Clock(
                ranks[column], round(float(offset[unit])), float(drift[unit] / scale * 1e6),
                max(int(_RESOLUTION_NS), round(float(doubt[unit]) + within[unit])), round(_middle(residual[:, line])),
                ranks[columns[0]], int(met[line]), barriers.origin + round(centre),
            )
        )  # fmt: skip
    return [replace(clock, uncertainty_ns=0) if clock.rank == clock.gauge else clock for clock in out]


def _within_host(single: _Barriers, columns: list[int], units: list[list[int]]) -> npt.NDArray[np.float64]:
    """Return for each unit how far apart its ranks' ends lie, ns: as far as its clocks may differ after all."""
    out = np.zeros(len(units))
    for number, unit in enumerate(units):
        own = single.end[:, [columns.index(column) for column in unit]]
        for first in range(1, own.shape[1]):
            apart = own[:, first] - own[:, 0]
            apart = apart[np.isfinite(apart)]
            out[number] = max(out[number], abs(float(np.median(apart))) if len(apart) else 0.0)
    return out


def _offsets(own: _Barriers, time: Array) -> tuple[Array, Array, Array]:
    """Return (offset, drift, doubt) of each unit against the first, ns; the doubt is infinite where it is unknown."""
    units = own.start.shape[1]
    offset, drift, doubt = np.zeros(units), np.zeros(units), np.full(units, np.inf)
    doubt[0] = 0.0
    if units == 1:
        return offset, drift, doubt
    low, high = _limits(own.waited, own.start, 0)
    possible = bool((low <= high + 2 * _RESOLUTION_NS).all())
    bounded = np.isfinite(low) & np.isfinite(high) & possible
    offset[bounded] = (low[bounded] + high[bounded]) / 2
    doubt[bounded] = (high[bounded] - low[bounded]) / 2
    rows = np.isfinite(own.end).sum(axis=1) > 1
    linked = next(island for island in _islands(np.isfinite(own.end[rows])) if 0 in island) if rows.any() else [0]
    if len(linked) > 1:
        rows &= np.isfinite(own.end[:, linked]).sum(axis=1) > 1
        part = _Barriers(own.end[np.ix_(rows, linked)], own.start[np.ix_(rows, linked)],
                         own.waited[np.ix_(rows, linked)], own.origin)  # fmt: skip
        offset[linked], drift[linked], spread = _by_ends(part, time[rows])
        limits = np.maximum(high[linked] - offset[linked], offset[linked] - low[linked])
        limits = np.where(bounded[linked] & (drift[linked] == 0), np.maximum(limits, 0), np.inf)
        doubt[linked] = np.minimum(spread, limits)
        doubt[0] = 0.0
    return offset, drift, doubt


def _by_ends(part: _Barriers, time: Array) -> tuple[Array, Array, Array]:
    """Return (offset, drift, doubt) of each column against the first, as the ends of collectives show them, ns."""
    end, start = part.end, part.start
    offset, drift = _fitted(end, time, drifting=False)
    count = np.isfinite(end).sum(axis=0)
    if count.min() >= _MIN_FOR_DRIFT:
        both = _fitted(end, time, drifting=True)
        before, after = (_middle(_residual(end, time, *fit)) for fit in ((offset, drift), both))
        if after < _DRIFT_GAIN * before and np.ptp(both[1]) * 2 > _MIN_DRIFT_SPREADS * after:
            offset, drift = both
    offset = _feasible(end, start, time, offset, drift)
    spread = _spread(_residual(end, time, offset, drift))
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
    middle = np.full(len(common), np.nan)
    known = np.isfinite(common).any(axis=1)
    middle[known] = np.nanmedian(common[known], axis=1)
    return np.asarray(common - middle[:, None])


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
