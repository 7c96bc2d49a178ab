"""Alignment of the ranks' sequences of collectives: which are compared, and which element corresponds to which.

Only order and time are used, so it needs no arguments and no known clock offsets. Members of one collective end
together however far apart they arrived: under the right shift the differences of the ends are nearly constant, and
no member starts after another has ended. A whole sequence lies beside the others under one shift. Where a record was
lost in the middle, what comes behind it is one place nearer: parts of the sequence show the shift before and behind
the hole, and between them ends tell where it is (`with_broken`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.graph.clock_fits import medians
from htagraph.graph.tolerances import LIMITS

__all__ = ["Cluster", "Fit", "Track", "fit_pair", "pairs", "slope", "with_broken"]


_NOT_ALIKE: Final = 1e15
"""ns: what it costs to put collectives of other kinds, sizes or steps side by side. Chosen: more than any times can
differ by. It may be doubled without effect."""


@dataclass(frozen=True, eq=False)
class Track:
    """A rank's collectives of one stream or one group, in order."""

    number: int
    rank: int
    rows: Array
    """Rows of the members."""
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    """ns since a moment that all tracks share."""
    label: Array
    barrier: Mask
    pool: int
    """Only tracks of one pool can belong together."""
    certain: bool
    """Whether all tracks of the pool do belong together."""
    pairwise: bool = False
    """Whether the track holds sends or receives, so that no more than two tracks belong together."""
    floor: float = LIMITS.resolution_ns
    """Differences of ends below this are noise, ns."""
    way: int = 0
    """1 for sends, -1 for receives, 0 for anything else; each send pairs with one receive."""
    steps: Array | None = None
    """The step of each collective, -1 where it is unknown; None if all are."""
    host: int = -1
    """The number of the rank's host, whose clock is that of the other ranks there; -1 if it is unknown."""
    on_host: bool = False
    """Whether the collectives run on host threads, where members do not end together."""
    part_of: int = -1
    """The number of the track that it is a piece of; -1 for whole ones."""

    @cached_property
    def step(self) -> Array:
        """The step of each collective, -1 where it is unknown."""
        return np.full(len(self.rows), -1, np.int64) if self.steps is None else self.steps

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Fit:
    """How two tracks lie side by side."""

    first: int
    second: int
    shift: int
    """Place in the first less place in the second."""
    offset: float
    """Clock of the second less clock of the first, ns."""
    spread: float
    """Deviation of the differences of ends that four in five do not exceed, ns."""
    count: int
    """Collectives compared."""

    def other_way(self) -> Fit:
        """Return the same alignment with the two tracks exchanged."""
        return Fit(self.second, self.first, -self.shift, -self.offset, self.spread, self.count)


@dataclass(eq=False)
class Cluster:
    """Tracks that belong together: the place of a track's i-th collective is i plus its shift."""

    shift: dict[int, int] = field(default_factory=dict)
    spread: float = -1.0
    """The largest spread of a fit that united it; negative while there is but one track."""


def fit_pair(a: Track, b: Track, hint: float | None = None) -> Fit | None:
    """Return the best alignment of two tracks, or None if no shift is possible.

    Missing heads and tails of any length cost nothing. Where both ranks number their steps, collectives are side by
    side with those of the same step, unless no such alignment is possible though most of the steps are on both ranks:
    then the numbers are not of one run, and only labels and times count. `hint` is the clock of b less that of a, ns,
    where it is known.
    """
    if len(b) > len(a):
        turned = fit_pair(b, a, None if hint is None else -hint)
        return turned and turned.other_way()
    common = np.flatnonzero((b.step >= 0) & np.isin(b.step, a.step))
    if len(common):
        fit = _best(a, b, _shifts_by_step(a, b), hint, int(common[len(common) // 2]), by_step=True)
        if fit is not None or (hint is None and 2 * len(common) < len(b)):
            return fit
    elif hint is None and (a.step >= 0).any() and (b.step >= 0).any():
        return None  # recorded at different times, or numbered differently: only a known clock can tell
    return _fit_by_time(a, b, hint)


def _fit_by_time(a: Track, b: Track, hint: float | None) -> Fit | None:
    """Return the best alignment by labels and times alone; `a` is not the shorter track."""
    apart = len(a) - len(b)
    near = np.arange(-LIMITS.few, LIMITS.few + 1)
    tried = np.unique(np.concatenate((near, near + apart)))
    if hint is not None:
        tried = np.unique(np.concatenate((tried, _shifts_by_time(a, b, hint))))
    whole = tried[(tried >= 0) & (tried <= apart)]  # of few collectives, those that are compared must not be fewer
    middle = len(b) // 2
    fit = (_best(a, b, whole, hint, middle) if len(b) < LIMITS.proof else None) or _best(a, b, tried, hint, middle)
    if fit is not None:
        return fit
    every = np.arange(1 - len(b), len(a))
    centres = (
        (len(b) // 2,) if len(b) <= LIMITS.places else (len(b) // 2, LIMITS.places // 2, len(b) - LIMITS.places // 2)
    )
    for centre in centres if len(every) * min(len(b), LIMITS.places) <= LIMITS.shift_cells else ():
        fit = _best(a, b, every, hint, centre)
        if fit is not None:
            break
    return fit


def _shifts_by_step(a: Track, b: Track) -> Array:
    """Return shifts that put the first or the last collectives of a common step side by side, and those near."""
    shifts = [np.arange(0)]
    for way in (1, -1):
        (number_a, first_a), (number_b, first_b) = (np.unique(each.step[::way], return_index=True) for each in (a, b))
        first_a, first_b = (first_a, first_b) if way > 0 else (len(a) - 1 - first_a, len(b) - 1 - first_b)
        number, in_a, in_b = np.intersect1d(number_a, number_b, return_indices=True)
        shifts.append((first_a[in_a] - first_b[in_b])[number >= 0])
    exact = np.unique(np.concatenate(shifts))
    near = np.arange(-LIMITS.few, LIMITS.few + 1)
    return np.unique(exact[:, None] + near if len(exact) <= LIMITS.tried else exact)


def _shifts_by_time(a: Track, b: Track, hint: float) -> Array:
    places = np.linspace(0, len(b) - 1, min(len(b), 5)).astype(np.int64)
    after = np.searchsorted(a.end, b.end[places] - hint)
    return np.concatenate([after - places + step for step in (-1, 0, 1)])


def _best(a: Track, b: Track, shifts: Array, hint: float | None, centre: int, *, by_step: bool = False) -> Fit | None:
    """Return the best of some shifts, in a block of places of the shorter track around the place `centre`."""
    overlap = np.minimum(len(a), len(b) + shifts) - np.maximum(0, shifts)
    long = (overlap > 0) if by_step else 2 * overlap >= len(b)  # less would prove nothing
    shifts, overlap = shifts[long], overlap[long]
    if not len(shifts):
        return None
    block = min(len(b), LIMITS.places)
    first = min(max(0, centre - block // 2), len(b) - block)
    sides = _Sides(a, b, slice(first, first + block), hint, by_step)
    parts = (slice(at, at + LIMITS.places) for at in range(0, len(shifts), LIMITS.places))
    options = [best for part in parts if (best := _best_of_part(sides, shifts[part], overlap[part])) is not None]
    return min(options, key=lambda option: option[0])[1] if options else None


@dataclass(frozen=True, eq=False)
class _Sides:
    """Two tracks, and which places of the second one are compared with the first."""

    a: Track
    b: Track
    places: slice
    hint: float | None
    """The clock of the second track less that of the first, ns, where it is known."""
    by_step: bool
    """Whether collectives must be of one step, so that few of them prove enough."""

    def of(self, column: Array, shifts: Array, absent: float) -> Array:
        """Return a column of the first track beside the places: a row per shift; `absent` where it has no such place.

        The rows are cut out of the column, which is faster than to look every entry up. Shifts are ascending.
        """
        at = self.places.start + shifts
        low, high = int(at.min()), int(at.max()) + self.places.stop - self.places.start
        part = np.full(high - low, absent, column.dtype)
        if low < len(column) and high > 0:
            part[max(0, -low) : len(column) - low] = column[max(0, low) : high]
        width, step = self.places.stop - self.places.start, part.itemsize
        return np.asarray(np.ndarray((len(part) - width + 1, width), part.dtype, part, 0, (step, step))[at - low])

    @cached_property
    def common(self) -> int:
        """How many collectives of the two tracks can be side by side if those of each step are."""
        return _common(self.a, self.b)


def _best_of_part(sides: _Sides, shifts: Array, overlap: Array) -> tuple[float, Fit] | None:
    """Return (cost, fit) of the best of some shifts, or None if none is possible."""
    a, b, places = sides.a, sides.b, sides.places
    labels = sides.of(a.label, shifts, int(b.label.min()) - 1)
    inside = np.maximum(0, np.minimum(len(a), places.stop + shifts) - np.maximum(0, places.start + shifts))
    few = (labels[:, :: LIMITS.few] != b.label[places][:: LIMITS.few]).sum(axis=1) - (len(b.label[places]) - inside)
    wanted = (1 - 2 * LIMITS.damaged) * inside
    agree = np.flatnonzero(inside - few >= wanted)  # the others have too many that differ already
    same = labels[agree] == b.label[places]
    enough = same.sum(axis=1) >= wanted[agree]
    agree, same = agree[enough], same[enough]
    if not len(agree):
        return None
    shifts, overlap = shifts[agree], overlap[agree]
    used = same & b.barrier[places] if b.barrier.any() else same
    count = used.sum(axis=1)
    a_end = sides.of(a.end, shifts, 0.0)
    difference = np.where(used, b.end[places] - a_end, np.nan)
    middle = medians(difference, axis=1)
    clock = middle[:, None] if sides.hint is None else sides.hint
    spread = _quantiles(np.abs(difference - clock), count, LIMITS.typical)
    good = (count > 0) & (_broken(sides, shifts, used, a_end, middle) <= LIMITS.damaged * count)
    cost = (spread + max(a.floor, b.floor)) * (len(b) / overlap) ** (1 if sides.by_step else 2)
    if sides.hint is None:
        cost = cost * (1 + np.minimum(LIMITS.far_clocks, np.abs(middle) / LIMITS.host_clocks_ns))
    if sides.by_step:
        near, unlike = _by_step(sides, shifts, same)
        good &= near
        cost = cost * (1 + unlike + np.maximum(0, sides.common - overlap))
    cost = np.where(good, cost, np.inf)
    best = int(np.argmin(cost))
    if not np.isfinite(cost[best]):
        return None
    found = Fit(a.number, b.number, int(shifts[best]), float(middle[best]), float(spread[best]), int(count[best]))
    return float(cost[best]), found


def _broken(sides: _Sides, shifts: Array, used: Array, a_end: Array, middle: Array) -> Array:
    """Return for each shift how many collectives end on one rank before they start on the other."""
    b, places, hint = sides.b, sides.places, sides.hint
    bound = used & b.barrier[places]
    low = np.where(bound, b.start[places] - a_end, -np.inf)
    high = np.where(bound, b.end[places] - sides.of(sides.a.start, shifts, 0.0), np.inf)
    offset = _offsets(middle, low, high, hint, on_host=b.on_host)[:, None]
    return np.asarray(((low > offset + LIMITS.tick_ns) | (high < offset - LIMITS.tick_ns)).sum(axis=1))


def _by_step(sides: _Sides, shifts: Array, same: Array) -> tuple[Array, Array]:
    """Return for each shift (whether most collectives are beside those of their step, how many are not)."""
    a_step, b_step = sides.of(sides.a.step, shifts, -1), sides.b.step[sides.places]
    known = same & (a_step >= 0) & (b_step >= 0)
    apart = np.where(known, a_step - b_step, np.nan)
    return np.abs(medians(apart, axis=1)) < 1, (known & (apart != 0)).sum(axis=1)


def _common(a: Track, b: Track) -> int:
    """Return how many collectives of two tracks can be side by side if those of each step are."""
    (number_a, count_a), (number_b, count_b) = (np.unique(each.step, return_counts=True) for each in (a, b))
    number, in_a, in_b = np.intersect1d(number_a, number_b, return_indices=True)
    return int(np.minimum(count_a[in_a], count_b[in_b])[number >= 0].sum())


def _offsets(middle: Array, low: Array, high: Array, hint: float | None, *, on_host: bool) -> Array:
    """Return for each shift the clock offset under which arrivals are compared with ends, ns.

    On a device, members end together. On host threads they do not: there it is the middle of what the arrivals allow.
    """
    if hint is not None:
        return np.full(len(middle), hint)
    low, high = low.max(axis=1), high.min(axis=1)
    bounded = np.isfinite(low) & np.isfinite(high)
    between = (np.where(bounded, low, 0.0) + np.where(bounded, high, 0.0)) / 2
    return np.where(bounded, between, middle) if on_host else middle


def _quantiles(values: Array, count: Array, share: float) -> npt.NDArray[np.float64]:
    """Return for each row the quantile `share` of its `count` known values; the other values are nan."""
    ordered = np.sort(values, axis=1)
    at = np.maximum(0, np.ceil(share * count).astype(np.int64) - 1)
    return np.where(count > 0, ordered[np.arange(len(values)), at], np.inf)


def slope(ends: Array, arrivals: Array, when: Array) -> tuple[float, float, float, float]:
    """Return how much differences of ends follow those of arrivals, the doubt of that, the spreads of ends, arrivals.

    0 for members of one collective, 1 for others. Both are freed of the clocks' drift and of outliers first.
    """
    third = max(1, len(ends) // 3)
    if len(ends) >= 2 * LIMITS.proof:
        run = np.median(when[-third:]) - np.median(when[:third])
        drift = (np.median(ends[-third:]) - np.median(ends[:third])) / run if run > 0 else 0.0
        ends, arrivals = ends - drift * (when - when[0]), arrivals - drift * (when - when[0])
    ends, arrivals = ends - np.median(ends), arrivals - np.median(arrivals)
    spread, reach = float(np.quantile(np.abs(ends), LIMITS.typical)), float(np.median(np.abs(arrivals)))
    limit = 5 * max(reach, LIMITS.resolution_ns)
    ends, arrivals = np.clip(ends, -limit, limit), np.clip(arrivals, -limit, limit)
    power = float((arrivals * arrivals).sum())
    if not power:
        return 0.0, float("inf"), spread, reach
    doubt = float(np.sqrt((ends * ends).sum() / power / len(ends)))
    return float((ends * arrivals).sum()) / power, doubt, spread, reach


def pairs(tracks: Sequence[Track]) -> list[tuple[Track, Track]]:
    """Return the pairs of tracks of one pool and different ranks that are to be compared."""
    pools: dict[int, list[Track]] = {}
    for track in tracks:
        pools.setdefault(track.pool, []).append(track)
    candidates = []
    for pool in pools.values():
        pool.sort(key=lambda track: (-len(track), track.rank))
        if pool[0].certain and len(pool) > LIMITS.in_a_row:
            candidates += [(pool[0], other) for other in pool[1:]] + list(pairwise(pool[1:]))
        elif len(pool) * (len(pool) - 1) // 2 > LIMITS.track_pairs:
            candidates += _neighbours(pool)
        else:
            candidates += [(a, b) for i, a in enumerate(pool) for b in pool[i + 1 :]]
    return [(a, b) for a, b in candidates if a.rank != b.rank and (a.way == 0 or a.way != b.way)]


def _neighbours(pool: list[Track]) -> list[tuple[Track, Track]]:
    """Return for each of many tracks those whose last ends run most parallel to its own."""
    count = min(LIMITS.tried, *(len(track) for track in pool))
    ends = np.array([track.end[-count:] for track in pool])
    rank, way = (np.array([getattr(track, what) for track in pool]) for what in ("rank", "way"))
    near: set[tuple[int, int]] = set()
    for i in range(len(pool)):
        difference = ends - ends[i]
        difference -= np.median(difference, axis=1)[:, None]
        spread = np.median(np.abs(difference), axis=1)
        spread[(rank == rank[i]) | ((way == way[i]) & (way != 0))] = np.inf
        near |= {(min(i, int(j)), max(i, int(j))) for j in np.argsort(spread)[: LIMITS.track_neighbours]}
    return [(pool[i], pool[j]) for i, j in sorted(near)]


def with_broken(tracks: list[Track], clusters: list[Cluster]) -> tuple[list[Track], list[Cluster]]:
    """Return the tracks and the clusters, with those left out that fit one of their pool in parts.

    Only of tracks that certainly belong together: of a named group, or of ranks that have no other communication. Each
    is added to the cluster of the longest track of its pool in pieces, which are new tracks.
    """
    held = {number for each in clusters for number in each.shift}
    left = [track for track in tracks if track.certain and not track.pairwise and track.number not in held]
    left = [track for track in left if len(track) >= 2 * LIMITS.proof]
    tracks, clusters = list(tracks), list(clusters)
    for pool in sorted({track.pool for track in left}):
        own = [each for each in clusters if any(tracks[number].pool == pool for number in each.shift)]
        if len(own) > 1:
            continue  # nobody can tell to which of them
        alone = sorted((track for track in left if track.pool == pool), key=lambda track: (-len(track), track.rank))
        if not own:
            if len(alone) < 2:
                continue
            own = [Cluster({alone.pop(0).number: 0})]
        _extend(tracks, own[0], alone)
        if len(own[0].shift) > 1 and own[0] not in clusters:
            clusters.append(own[0])
    return tracks, clusters


def _extend(tracks: list[Track], fellows: Cluster, alone: Sequence[Track]) -> None:
    """Add tracks in pieces to a cluster whose longest track they fit; the pieces are appended to `tracks`."""
    longest = max((tracks[number] for number in fellows.shift), key=len)
    ranks = {tracks[number].rank for number in fellows.shift}
    for track in alone:
        place = _places(longest, track) if track.rank not in ranks else None
        if place is None:
            continue
        ranks.add(track.rank)
        apart = place - np.arange(len(track))
        for piece in np.split(np.arange(len(track)), np.flatnonzero(np.diff(apart)) + 1):
            number = len(tracks)
            tracks.append(replace(_slice(track, piece), number=number, part_of=track.number))
            fellows.shift[number] = int(place[piece[0]]) + fellows.shift[longest.number]


def _slice(track: Track, rows: Array) -> Track:
    """Return some consecutive collectives of a track as a track."""
    return replace(
        track, rows=track.rows[rows], start=track.start[rows], end=track.end[rows], label=track.label[rows],
        barrier=track.barrier[rows], steps=None if track.steps is None else track.steps[rows],
    )  # fmt: skip


def _places(a: Track, b: Track) -> Ints | None:
    """Return the place in `a` of each collective of `b`, ascending; None where its parts do not fit."""
    parts = np.array_split(np.arange(len(b)), max(2, min(LIMITS.few, len(b) // LIMITS.proof)))
    hint = 0.0 if a.host >= 0 and a.host == b.host else None
    fits = [fit_pair(a, _slice(b, part), hint) for part in parts]
    fits = [fit if fit is not None and fit.first == a.number else None for fit in fits]
    offsets = [fit.offset for fit in fits if fit is not None]
    if not offsets:
        return None
    usual = float(np.median(offsets))
    apart = LIMITS.most * float(np.median(np.diff(b.end)))
    shifts: list[int | None] = [
        fit.shift - int(part[0]) if fit is not None and abs(fit.offset - usual) <= apart + fit.spread else None
        for part, fit in zip(parts, fits, strict=True)
    ]
    place = np.full(len(b), -1, np.int64)
    at = 0
    while at < len(parts):
        stop = at + 1
        if shifts[at] is None:
            while stop < len(parts) and shifts[stop] is None:
                stop += 1
            before, behind = shifts[at - 1] if at else None, shifts[stop] if stop < len(parts) else None
            rows = np.concatenate(parts[at:stop])
            place[rows] = rows + _around_hole(a, b, rows, (before, behind), usual)
        else:
            place[parts[at]] = parts[at] + np.int64(shifts[at] or 0)
        at = stop
    fits_in = place[0] >= 0 and place[-1] < len(a) and (np.diff(place) > 0).all()
    return place if fits_in and (_costs(a, b, np.arange(len(b)), place, usual) < _NOT_ALIKE).all() else None


def _around_hole(a: Track, b: Track, rows: Array, shifts: tuple[int | None, int | None], offset: float) -> Ints:
    """Return the shift of each of some consecutive collectives, which changes once where that costs least.

    `shifts` are those of what comes before and behind, None at the ends of the track; `offset` is the clock of b less
    that of a, ns.
    """
    before, behind = shifts
    if before is None and behind is None:
        return np.zeros(len(rows), np.int64)
    befores = [before] if before is not None else [int(behind or 0) - each for each in range(LIMITS.few + 1)]
    behinds = [behind] if behind is not None else [int(before or 0) + each for each in range(LIMITS.few + 1)]
    best, chosen = np.inf, np.zeros(len(rows), np.int64)
    for first in befores:
        for last in behinds:
            one, other = (_costs(a, b, rows, rows + shift, offset) for shift in (first, last))
            total = np.append(0.0, np.cumsum(one)) + np.append(np.cumsum(other[::-1])[::-1], 0.0)
            cut = int(np.argmin(total))
            if total[cut] < best:
                best, chosen = float(total[cut]), np.where(np.arange(len(rows)) < cut, first, last)
    return chosen


def _costs(a: Track, b: Track, rows: Array, place: Array, offset: float) -> npt.NDArray[np.float64]:
    """Return how far apart the ends of collectives of b and those at some places of a are, ns."""
    inside = (place >= 0) & (place < len(a))
    at = np.clip(place, 0, len(a) - 1)
    alike = inside & (a.label[at] == b.label[rows])
    alike &= (a.step[at] == b.step[rows]) | (a.step[at] < 0) | (b.step[rows] < 0)
    return np.where(alike, np.abs(b.end[rows] - a.end[at] - offset), _NOT_ALIKE)
