"""Alignment of the ranks' sequences of collectives: which are compared, and which element corresponds to which.

Only order and time are used, so it needs no arguments and no known clock offsets. Members of one collective end
together however far apart they arrived: under the right shift the differences of the ends are nearly constant, and
no member starts after another has ended. A whole sequence lies beside the others under one shift. Where records were
lost in the middle, ends tell the place of each one that is left (`with_holes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Mask
from htagraph.graph.clock_fits import medians
from htagraph.graph.tolerances import LIMITS

__all__ = ["Cluster", "Fit", "Track", "fit_pair", "pairs", "slope", "with_holes"]


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
    places: Array | None = None
    """The places of the collectives beside those of another track, where records were lost; None if none were."""

    @cached_property
    def step(self) -> Array:
        """The step of each collective, -1 where it is unknown."""
        return np.full(len(self.rows), -1, np.int64) if self.steps is None else self.steps

    @cached_property
    def place(self) -> Array:
        """The place of each collective, ascending."""
        return np.arange(len(self.rows)) if self.places is None else self.places

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
    """Tracks that belong together: the place of each collective of a track is its own place plus the track's shift."""

    shift: dict[int, int] = field(default_factory=dict)
    spread: float = -1.0
    """The largest spread of a fit that united it; negative while there is but one track."""
    holed: dict[int, Track] = field(default_factory=dict)
    """By number: the tracks in which records are missing, with the places of those that are left."""


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
        places = np.linspace(0, len(b) - 1, min(len(b), 5)).astype(np.int64)
        by_time = np.searchsorted(a.end, b.end[places] - hint) - places
        tried = np.unique(np.concatenate((tried, *(by_time + step for step in (-1, 0, 1)))))
    whole = tried[(tried >= 0) & (tried <= apart)]  # of few collectives, those that are compared must not be fewer
    middle = len(b) // 2
    fit = (_best(a, b, whole, hint, middle) if len(b) < LIMITS.proof else None) or _best(a, b, tried, hint, middle)
    if fit is not None:
        return fit
    every = np.arange(1 - len(b), len(a))
    half = LIMITS.places // 2
    centres = (middle,) if len(b) <= LIMITS.places else (middle, half, len(b) - half)
    for centre in centres if len(every) * min(len(b), LIMITS.places) <= LIMITS.cells else ():
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
    spread = _typical(np.abs(difference - clock), count)
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


def _typical(values: Array, count: Array) -> npt.NDArray[np.float64]:
    """Return for each row what most of its `count` known values do not exceed; the other values are nan."""
    ordered = np.sort(values, axis=1)
    at = np.maximum(0, np.ceil(LIMITS.typical * count).astype(np.int64) - 1)
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
        elif len(pool) * (len(pool) - 1) // 2 > LIMITS.compared:
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


def with_holes(a: Track, b: Track, hint: float | None = None) -> tuple[Track, Fit] | None:
    """Return the second track with the places of its collectives in the first, and how they fit; None if they do not.

    Records may be lost in the middle of either. What is alike and ends together, under the one clock offset that most
    ends agree on, is side by side; what does not end together (an all-to-all) is where its neighbours say. All else is
    left out. `hint` is as in `fit_pair`.
    """
    shifts = np.arange(-LIMITS.few, LIMITS.few + 1)
    shifts = np.unique(np.concatenate((shifts, shifts + len(a) - len(b))))
    if min(len(a), len(b)) < LIMITS.proof or len(b) * len(shifts) > LIMITS.cells:
        return None
    at = np.arange(len(b))[:, None] + shifts
    inside, at = (at >= 0) & (at < len(a)), np.clip(at, 0, len(a) - 1)
    apart = np.where(inside & _alike(a, at, b, np.arange(len(b))[:, None]), b.end[:, None] - a.end[at], np.nan)
    pace = float(np.median(np.diff(b.end)))
    used = b.barrier if b.barrier.any() else np.ones(len(b), np.bool_)
    offset = _offset(apart[used], max(LIMITS.ends_ns, 2 * a.floor, LIMITS.small * pace), hint)
    if offset is None:
        return None
    error = _errors(apart, offset)
    nearest = (np.arange(len(b)), error.argmin(axis=1))
    place, error = at[nearest], error[nearest]
    near = min(
        LIMITS.most * pace, LIMITS.spreads * (float(np.quantile(error[used], LIMITS.typical, method="lower")) + a.floor)
    )
    place = _between(a, b, np.where(used & (error <= near) & (error <= _least(place, error)), place, -1))
    kept = np.flatnonzero(place >= 0)
    if used[kept].sum() < max(LIMITS.proof, LIMITS.nearly_all * used.sum()):
        return None
    ends = b.end[kept] - a.end[place[kept]]
    middle = float(np.median(ends))
    spread = float(np.quantile(np.abs(ends - middle)[used[kept]], LIMITS.typical))
    fit = Fit(a.number, b.number, int(place[0]), middle, spread, len(kept))
    if len(kept) == len(b) and place[-1] - place[0] == len(b) - 1:
        return b, fit
    held = {name: getattr(b, name)[kept] for name in ("rows", "start", "end", "label", "barrier")}
    return replace(b, **held, steps=b.step[kept], places=a.place[place[kept]]), replace(fit, shift=0)


def _alike(a: Track, at: Array, b: Track, rows: Array) -> Mask:
    """Return which collectives of two tracks can be one by their labels and steps."""
    steps = (a.step[at] == b.step[rows]) | (a.step[at] < 0) | (b.step[rows] < 0)
    return np.asarray((a.label[at] == b.label[rows]) & steps)


def _offset(apart: Array, width: float, hint: float | None) -> float | None:
    """Return the clock offset under which ends lie closest; None where another one does about as well.

    `apart` has the differences of ends, a row per collective and a column per shift, nan for what cannot be one. In
    each column, the offset is tried on which most agree within a width.
    """
    options: list[tuple[float, float]] = []
    for column in apart.T:
        values = np.sort(column[np.isfinite(column)])
        if hint is not None:
            values = values[np.abs(values - hint) <= LIMITS.clock_estimates_ns]
        if len(values):
            behind = np.searchsorted(values, values + width, side="right")
            best = int((behind - np.arange(len(values))).argmax())
            offset = float(np.median(values[best : behind[best]]))
            options.append(
                (float(np.quantile(_errors(apart, offset).min(axis=1), LIMITS.typical, method="lower")), offset)
            )
    least, offset = min(options, default=(np.inf, 0.0))
    rival = min((error for error, other in options if abs(other - offset) > 2 * width), default=np.inf)
    clear = np.isfinite(least) and rival + LIMITS.resolution_ns >= LIMITS.times_worse * (least + LIMITS.resolution_ns)
    return offset if clear else None


def _errors(apart: Array, offset: float) -> Array:
    """Return how far differences are from an offset; infinite where they are unknown."""
    return np.where(np.isfinite(apart), np.abs(apart - offset), np.inf)


def _least(number: Array, value: Array) -> Array:
    """Return for each value the least value of its number."""
    least = np.full(int(number.max()) + 1, np.inf)
    np.minimum.at(least, number, value)
    return least[number]


def _between(a: Track, b: Track, place: Array) -> Array:
    """Return places, ascending, of collectives of b: those known, and those of others that only their order tells."""
    highest = np.maximum.accumulate(np.append(-1, place[:-1]))
    lowest = np.minimum.accumulate(np.append(np.where(place < 0, len(a), place), len(a))[:0:-1])[::-1]
    place = np.where((place > highest) & (place < lowest), place, -1)
    known = np.flatnonzero(place >= 0)
    if not len(known):
        return place
    behind = np.searchsorted(known, np.arange(len(b)))
    before, behind = known[np.maximum(behind - 1, 0)], known[np.minimum(behind, len(known) - 1)]
    shift = place[before] - before
    at = np.arange(len(b)) + shift
    told = (place < 0) & ~b.barrier & (shift == place[behind] - behind) & (at >= 0) & (at < len(a))
    told[told] = _alike(a, at[told], b, np.flatnonzero(told))
    return np.where(told, at, place)
