"""Clocks: the error of each rank's clock, estimated from the ends of collectives, and which ranks share one.

All members of a barrier-like collective end almost at once. Robust least squares on
``end = moment + offset + drift * t`` give each clock's error; then the offsets are moved until no member arrives after
another has ended. Recorded times are never edited: the graph adds the correction (`DependencyGraph.time`).

On a host of few ranks each pair is compared for whether it shares a clock. Of many ranks those next to each other in a
collective are: the number of pairs grows with the members of collectives, not with the square of the ranks.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints
from htagraph.graph import clock_fits as fits
from htagraph.graph.clock_fits import BarrierTimes, TimeTable
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.construction.matching.match import Matching

__all__ = ["FROM_ROOT", "TO_ROOT", "Clock", "agreement_ns", "corrected", "estimate_clocks", "shared_clocks"]

FROM_ROOT: Final = ("broadcast", "scatter")
TO_ROOT: Final = ("reduce", "gather")


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

    def common(self, time: Array) -> Ints:
        """Return times of this clock as times of the common clock, ns."""
        drift = np.rint((time - self.reference_ns) * (self.drift_ppm * 1e-6)).astype(np.int64)
        return time - drift - self.offset_ns


def corrected(clocks: Sequence[Clock], rank: Array, time: Array) -> Ints:
    """Return times on the common clock, ns; a rank without a clock is not corrected."""
    out = time.astype(np.int64)
    order = np.argsort(rank, kind="stable")
    ranks = rank[order]
    for clock in clocks:
        if clock.offset_ns or clock.drift_ppm:
            first, last = np.searchsorted(ranks, (clock.rank, clock.rank + 1))
            of_clock = order[first:last]
            out[of_clock] = clock.common(out[of_clock])
    return out


def estimate_clocks(ranks: Sequence[int], matching: Matching) -> tuple[Clock, ...]:
    """Return the clock of every rank, in the order of `ranks`.

    Ranks of one host share its clock, unless collectives contradict that; sends and all-to-alls may show it, too.
    Offsets between other ranks come from the ends of collectives on devices, and are limited by arrivals: nobody
    ends before all have arrived. Where only arrivals tell, they have to do so in both directions, and clocks that
    do not contradict them stay as they are: hosts set theirs by the network, so that an offset of 0 is likelier
    than the middle of a wide range of possible ones. Offsets that are no larger than the spread of the ends are
    taken as 0, so that correct clocks are not changed.
    """
    ranks = [int(rank) for rank in ranks]
    clocks = {rank: Clock(rank) for rank in ranks}
    barriers = _barriers(ranks, matching)
    host = [matching.host.get(rank, -1) for rank in ranks]
    contradicted: set[int] = set()
    if barriers is not None:
        units, contradicted = shared_clocks(host, barriers)
        for island in fits.islands(barriers.presence(units)):
            for clock in _estimate(ranks, [units[number] for number in island], barriers):
                clocks[clock.rank] = clock
    sends = _barriers(ranks, matching, sends=True)
    if sends is not None:
        for number in sorted({each for each in host if each >= 0} - contradicted):
            columns = [column for column, own in enumerate(host) if own == number]
            for island in fits.islands(sends.presence([[column] for column in columns])):
                _share_clock(clocks, ranks, [columns[at] for at in island], sends)
    return tuple(clocks[rank] for rank in ranks)


def _share_clock(clocks: dict[int, Clock], ranks: list[int], columns: list[int], sends: BarrierTimes) -> None:
    """Give ranks of one host one clock that only send to each other, if nothing arrives before it was sent by it."""
    if len(columns) < 2 or any(clocks[ranks[column]].gauge >= 0 for column in columns):
        return
    own = sends.of([[column] for column in columns], sends.shared_rows(columns))
    if not fits.no_offset_is_possible(fits.least_ahead(own.waited, own.start)):
        return
    first = ranks[columns[0]]
    for column in columns:
        uncertainty = 0 if ranks[column] == first else int(LIMITS.resolution_ns)
        clocks[ranks[column]] = Clock(ranks[column], uncertainty_ns=uncertainty, gauge=first)


def agreement_ns(clocks: Sequence[Clock], ranks: Iterable[int]) -> int:
    """Return by how much the common times of some ranks may be wrong against each other, ns; -1 where that is unknown.

    It is unknown where nothing links the clocks of two of the ranks. What a time is compared with should be longer.

    Example:
        >>> clocks = (Clock(0, uncertainty_ns=0, gauge=0), Clock(1, uncertainty_ns=1_500, gauge=0), Clock(2))
        >>> agreement_ns(clocks, (0, 1)), agreement_ns(clocks, (1, 2)), agreement_ns(clocks, (2,))
        (1500, -1, 0)
    """
    wanted = set(ranks)
    at = {rank: bisect_left(clocks, rank, key=attrgetter("rank")) for rank in wanted}
    compared = [clocks[place] for rank, place in at.items() if clocks[place : place + 1] and clocks[place].rank == rank]
    if len(wanted) < 2:
        return 0
    if len(compared) < len(wanted) or len({clock.gauge for clock in compared}) > 1 or compared[0].gauge < 0:
        return -1
    largest = sorted((clock.uncertainty_ns for clock in compared), reverse=True)
    return largest[0] + (largest[1] if all(clock.rank != clock.gauge for clock in compared) else 0)


def _barriers(ranks: list[int], matching: Matching, *, sends: bool = False) -> BarrierTimes | None:
    """Return the times of the barrier-like collectives, or of an even sample of them; None without any.

    A send on a host thread may be over before its receive begins: there only the receive waits. With `sends`, the
    times are those of pairs of a send and a receive, of collectives whose calls name a root, and of all-to-alls, that
    are no barriers. An all-to-all may leave out some pairs; then it ends before some arrive, and shows nothing.
    """
    rows, op, members = np.flatnonzero(matching.collective >= 0), np.array(matching.op, np.str_), matching.members
    way = members.way.copy()
    if len(matching):
        of_kind = matching.barrier[matching.collective[rows]]
        if sends:
            word = op[matching.collective[rows]]
            rooted = np.isin(word, FROM_ROOT + TO_ROOT) & members.on_host[rows] & (members.root[rows] >= 0)
            of_kind = ~of_kind & (np.isin(word, ("send_recv", "all_to_all")) | rooted)
            gives = (members.rank[rows] == members.root[rows]) == np.isin(word, FROM_ROOT)
            way[rows] = np.where(rooted, np.where(gives, 1, -1), way[rows])
        rows = rows[of_kind]
    if not len(rows):
        return None
    which, line = np.unique(matching.collective[rows], return_inverse=True)
    count = len(set(matching.host.values())) + sum(rank not in matching.host for rank in ranks)  # clocks
    step = -(-len(which) // min(LIMITS.collectives, max(LIMITS.clock_cells // count, 1)))
    keep = line.ravel() % step == 0
    rows, line = rows[keep], line.ravel()[keep] // step
    column = np.searchsorted(np.array(ranks), members.rank[rows])
    origin = int(members.start[rows].min())
    on_host = members.on_host[rows]
    pair, way = on_host & np.isin(op[matching.collective[rows]], ("send_recv", *FROM_ROOT, *TO_ROOT)), way[rows]
    end = np.where(on_host, np.nan, members.end[rows] - origin)
    start = np.where(pair & (way <= 0), np.nan, members.start[rows] - origin)
    waited = np.where(pair & (way >= 0), np.nan, members.end[rows] - origin)
    order = np.argsort(line, kind="stable")
    return BarrierTimes(
        line[order], column[order], end[order], start[order], waited[order], ranks=len(ranks), origin=origin
    )


def _estimate(ranks: list[int], units: list[list[int]], barriers: BarrierTimes) -> list[Clock]:
    """Return the clocks of the ranks of some units that collectives link, as far as they are known."""
    columns = sorted(column for unit in units for column in unit)
    rows = barriers.shared_rows(columns)
    if not len(rows):
        return []
    when = _moments(barriers, columns, rows)
    centre, scale = float(np.mean(when)), max(1.0, float(np.ptp(when)) / 2)
    time = (when - centre) / scale
    offset, drift, doubt = _offsets(barriers.of(units, rows), time)
    place = {column: number for number, unit in enumerate(units) for column in unit}
    own = np.array([place[column] for column in columns])
    apart, met = _residuals(barriers, columns, rows, time, (offset[own], drift[own]))
    known = [column for column in columns if np.isfinite(doubt[place[column]])]
    within = _within_host(barriers, units)
    lines = {column: line for line, column in enumerate(columns)}
    out = []
    for column in known if len(known) > 1 else []:
        line, unit = lines[column], place[column]
        out.append(
            Clock(
                ranks[column], round(float(offset[unit])), float(drift[unit] / scale * 1e6),
                max(int(LIMITS.resolution_ns), round(float(doubt[unit]) + within[unit])), round(float(apart[line])),
                ranks[columns[0]], int(met[line]), barriers.origin + round(centre),
            )
        )  # fmt: skip
    return [replace(clock, uncertainty_ns=0) if clock.rank == clock.gauge else clock for clock in out]


def _moments(barriers: BarrierTimes, columns: list[int], rows: Array) -> npt.NDArray[np.float64]:
    """Return when some collectives were, ns since the origin: the mean of all that is known of some ranks."""
    when = np.empty(len(rows))
    for block, times in barriers.blocks(columns, rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            when[block] = np.nanmean(np.concatenate((times.start, times.waited), axis=1), axis=1)
    return when


def _residuals(
    barriers: BarrierTimes, columns: list[int], rows: Array, time: Array, fit: tuple[Array, Array]
) -> tuple[npt.NDArray[np.float64], Ints]:
    """Return (the median distance of each rank's ends from those of their collectives, ns, how many collectives)."""
    lines, values = [np.zeros(0, np.int64)], [np.zeros(0)]
    for block, times in barriers.blocks(columns, rows):
        rest = fits.residuals(times.end, time[block], *fit)
        known = np.nonzero(np.isfinite(rest))
        lines.append(known[1])
        values.append(np.abs(rest[known]))
    some = barriers.members(columns)
    some = some[barriers.present[some] & np.isin(barriers.row[some], rows)]
    met = np.bincount(np.searchsorted(columns, barriers.column[some]), minlength=len(columns))
    return np.nan_to_num(fits.group_medians(np.concatenate(values), np.concatenate(lines), len(columns))), met


def _within_host(barriers: BarrierTimes, units: list[list[int]]) -> npt.NDArray[np.float64]:
    """Return for each unit how far apart its ranks' ends lie, ns: as far as its clocks may differ after all."""
    out = np.zeros(len(units))
    for number, unit in enumerate(units):
        for other in unit[1:]:
            end = barriers.pair(unit[0], other).end
            apart = end[:, 1] - end[:, 0]
            apart = apart[np.isfinite(apart)]
            out[number] = max(out[number], abs(float(np.median(apart))) if len(apart) else 0.0)
    return out


def _offsets(own: TimeTable, time: Array) -> tuple[Array, Array, Array]:
    """Return (offset, drift, doubt) of each unit against the first, ns; the doubt is infinite where it is unknown."""
    units = own.start.shape[1]
    offset, drift, doubt = np.zeros(units), np.zeros(units), np.full(units, np.inf)
    doubt[0] = 0.0
    if units == 1:
        return offset, drift, doubt
    ahead = fits.least_ahead(own.waited, own.start)
    low, high = fits.limits(ahead)
    possible = bool((low <= high + 2 * LIMITS.resolution_ns).all())
    bounded = np.isfinite(low) & np.isfinite(high) & possible
    if not fits.no_offset_is_possible(ahead):
        offset[bounded] = (low[bounded] + high[bounded]) / 2
    doubt[bounded] = np.maximum(high[bounded] - offset[bounded], offset[bounded] - low[bounded])
    rows = np.isfinite(own.end).sum(axis=1) > 1
    linked = next(island for island in fits.islands(np.isfinite(own.end[rows])) if 0 in island) if rows.any() else [0]
    if len(linked) > 1:
        rows &= np.isfinite(own.end[:, linked]).sum(axis=1) > 1
        chosen = np.ix_(rows, linked)
        offset[linked], drift[linked], spread = fits.by_ends(own.end[chosen], own.start[chosen], time[rows])
        allowed = np.maximum(high[linked] - offset[linked], offset[linked] - low[linked])
        allowed = np.where(bounded[linked] & (drift[linked] == 0), np.maximum(allowed, 0), np.inf)
        doubt[linked] = np.minimum(spread, allowed)
        doubt[0] = 0.0
    return offset, drift, doubt


def shared_clocks(host: Sequence[int], barriers: BarrierTimes) -> tuple[list[list[int]], set[int]]:
    """Return the columns grouped by clocks, and the hosts whose ranks some collective shows to have different ones.

    A group are ranks of one host that collectives show to share its clock, or one rank. If a rank's collectives
    contradict that it shares the clock of any other rank of its host, nobody there does. The host of a column is -1 if
    it is unknown.

    Example:
        >>> row, column = np.repeat(np.arange(9), 2), np.tile([0, 1], 9)
        >>> start = 1e6 * row + 5.0 * column
        >>> times = BarrierTimes(row, column, start + 9_000, start, start + 9_000, ranks=2, origin=0)
        >>> shared_clocks([7, 7], times), shared_clocks([7, 8], times)
        (([[0, 1]], set()), ([[0], [1]], set()))
    """
    columns: dict[int, list[int]] = {}
    for column, own in enumerate(host):
        columns.setdefault(own, []).append(column)
    units = [[column] for column in columns.pop(-1, [])]
    contradicted: set[int] = set()
    for own, of_host in columns.items():
        agree, differing = _compared(barriers, _pairs(of_host, barriers))
        if differing:
            contradicted.add(own)
        groups = _groups(of_host, agree)
        # neighbours did not tell whether groups share a clock; so many clocks are not those of one host
        if differing and len(of_host) > LIMITS.host_ranks >= len(groups):
            agree += _compared(barriers, combinations([each[0] for each in groups], 2))[0]
        alone = differing.difference(*agree)
        units += _groups(of_host, [] if alone else agree)
    return sorted(units), contradicted


def _pairs(of_host: list[int], barriers: BarrierTimes) -> list[tuple[int, int]]:
    """Return the pairs of ranks of a host that are compared: all, or those near each other in a collective."""
    if len(of_host) <= LIMITS.host_ranks:
        return list(combinations(of_host, 2))
    some = barriers.members(of_host)
    some = some[barriers.present[some]]
    some = some[np.lexsort((barriers.column[some], barriers.row[some]))]
    row, column = barriers.row[some], barriers.column[some]
    found = [np.zeros(0, np.int64)]
    for ahead in range(1, LIMITS.host_neighbours + 1):
        same = row[:-ahead] == row[ahead:]
        found.append(column[:-ahead][same] * barriers.ranks + column[ahead:][same])
    a, b = np.divmod(np.unique(np.concatenate(found)), barriers.ranks)
    return list(zip(a.tolist(), b.tolist(), strict=True))


def _compared(barriers: BarrierTimes, pairs: Iterable[tuple[int, int]]) -> tuple[list[tuple[int, int]], set[int]]:
    """Return (the pairs of ranks that agree with one clock, the ranks that do not agree with some other one)."""
    agree: list[tuple[int, int]] = []
    differing: set[int] = set()
    for a, b in pairs:
        verdict = _one_clock(barriers.pair(a, b))
        if verdict:
            agree.append((a, b))
        elif verdict is False:
            differing |= {a, b}
    return agree, differing


def _groups(columns: list[int], linked: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return columns in groups: those that pairs link, directly or through others, ascending."""
    group = {column: [column] for column in columns}
    for pair in linked:
        small, large = sorted((group[column] for column in pair), key=len)
        if small is not large:
            large += small
            group.update(dict.fromkeys(small, large))
    return [sorted(each) for each in {id(each): each for each in group.values()}.values()]


def _one_clock(pair: TimeTable) -> bool | None:
    """Return whether the collectives of two ranks agree with one clock; None where they do not tell."""
    low, high = fits.limits(fits.least_ahead(pair.waited, pair.start))
    if not (np.isfinite(low[1]) or np.isfinite(high[1])):
        return None
    if low[1] > LIMITS.tick_ns or high[1] < -LIMITS.tick_ns:
        return False
    apart = pair.end[:, 1] - pair.end[:, 0]
    known = np.isfinite(apart)
    apart, when = apart[known], pair.end[known, 0]
    if not len(apart):
        return True if np.isfinite(low[1]) and np.isfinite(high[1]) else None
    middle, trend = float(np.median(apart)), np.zeros(len(apart))
    if len(apart) >= LIMITS.for_drift:
        trend = np.polyval(np.polyfit(when - when.mean(), apart - middle, 1), when - when.mean())
    spread = max(LIMITS.resolution_ns, float(np.quantile(np.abs(apart - middle - trend), LIMITS.typical)))
    if max(abs(middle), float(np.ptp(trend))) <= LIMITS.spreads * spread:
        return True
    return False if len(apart) >= LIMITS.often else None
