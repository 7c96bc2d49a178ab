"""Alignment of the ranks' sequences of collectives: which belong together, and which element corresponds to which.

Only order and time are used, so it needs no arguments and no known clock offsets. Members of one collective end
together however far apart they arrived: under the right shift the differences of the ends are nearly constant, and no
member starts after another has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "FLOOR_NS",
    "MAX_VIOLATED",
    "MIN_PROOF",
    "PRIOR_NS",
    "TOLERANCE_NS",
    "Cluster",
    "Fit",
    "Track",
    "fit_pair",
    "medians",
    "pairs",
    "slope",
]

Array: TypeAlias = npt.NDArray[Any]

TOLERANCE_NS: Final = 2_000
"""ns: by which an arrival may seem to come after an end. Files of whole µs and estimated clocks are no more exact.
Doubled, fewer contradictions are seen."""
FLOOR_NS: Final = 1_000.0
"""ns: differences of ends below this say nothing: the resolution of files of whole µs. Doubled, fits are compared
less sharply."""
_NEAR_SHIFTS: Final = 8
"""Shifts tried around those that put heads or tails together. Chosen: recordings of ranks start within a few
collectives. Doubled, more is tried before every shift is."""
_BLOCK: Final = 256
"""Places compared per shift, from the middle of the shorter sequence. Chosen for time. Doubled, it takes twice as
long."""
_MAX_EXACT: Final = 64
"""Different shifts that steps suggest up to which those near each are tried too. Chosen for time: of one run they are
few. Doubled, sequences with many gaps take twice as long."""
_MAX_CELLS: Final = 3_000_000
"""Comparisons at most where every shift is tried: 0.1 s. Chosen for time. Doubled, longer sequences get that far."""
_MIN_AGREEING: Final = 0.98
"""Share of the places side by side that must be of the same operation and size. Chosen: a few are misread. It cannot
be doubled; at 1 one misread name hides a match."""
MAX_VIOLATED: Final = 0.01
"""Share of collectives that may end on one rank before they start on another. Chosen: damaged records. Doubled,
sequences with 2 % of contradictions are still linked."""
MIN_PROOF: Final = 6
"""Collectives from which on a fit proves something by itself. Chosen: fewer agree by chance. Doubled, short sequences
are linked last, on clocks that others have shown."""
_TYPICAL_SHARE: Final = 0.8
"""Share of the differences of ends that the spread covers; the rest are outliers. Chosen. At 1 one outlier
decides."""
PRIOR_NS: Final = 1_000_000.0
"""ns: clocks that are off by more are less likely, and fits that need it cost more and are taken later. Chosen: NTP
keeps hosts within 1 ms. Doubled, only fits that are about as good change."""
_MAX_PRIOR: Final = 3.0
"""How many times as much a fit costs at most for the clock offset that it needs. Chosen: a clock that was never set may
be off by anything. Doubled, fits that need large offsets must be better by as much."""
_MAX_PAIRS: Final = 3000
"""Pairs of sequences in a pool up to which all are compared, above just neighbours. Chosen for time. Doubled, it
takes twice as long."""
_MAX_CERTAIN: Final = 16
"""Tracks of a pool that surely belong together up to which all pairs are compared; above, each is compared with the
longest and with its neighbour. Chosen for time. Doubled, pools of 17 to 32 tracks take longer."""
_NEIGHBOUR_ENDS: Final = 64
"""How many of the last ends of a track `_neighbours` compares. Chosen for time. Doubled, it takes twice as long."""
_NEIGHBOURS: Final = 6
"""Sequences that each one is compared with in large pools, those that run most parallel. Chosen for time. Doubled, it
takes twice as long."""


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
    barrier: npt.NDArray[np.bool_]
    pool: int
    """Only tracks of one pool can belong together."""
    certain: bool
    """Whether all tracks of the pool do belong together."""
    pairwise: bool = False
    """Whether the track holds sends or receives, so that no more than two tracks belong together."""
    floor: float = FLOOR_NS
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
    then the numbers are not of one run, and only labels and times count.

    Args:
        a: one track.
        b: another.
        hint: the clock of b less that of a, ns, where it is known.
    """
    if len(b) > len(a):
        turned = fit_pair(b, a, None if hint is None else -hint)
        return turned and Fit(a.number, b.number, -turned.shift, -turned.offset, turned.spread, turned.count)
    common = np.flatnonzero((b.step >= 0) & np.isin(b.step, a.step))
    if len(common):
        fit = _best(a, b, _shifts_by_step(a, b), _Terms(hint, int(common[len(common) // 2]), by_step=True))
        if fit is not None or (hint is None and 2 * len(common) < len(b)):
            return fit
    elif hint is None and (a.step >= 0).any() and (b.step >= 0).any():
        return None  # recorded at different times, or numbered differently: only a known clock can tell
    return _fit_by_time(a, b, hint)


def _fit_by_time(a: Track, b: Track, hint: float | None) -> Fit | None:
    """Return the best alignment by labels and times alone; `a` is not the shorter track."""
    apart = len(a) - len(b)
    near = np.arange(-_NEAR_SHIFTS, _NEAR_SHIFTS + 1)
    tried = np.unique(np.concatenate((near, near + apart)))
    if hint is not None:
        tried = np.unique(np.concatenate((tried, _shifts_by_time(a, b, hint))))
    whole = tried[(tried >= 0) & (tried <= apart)]  # of few collectives, those that are compared must not be fewer
    terms = _Terms(hint, len(b) // 2)
    fit = (_best(a, b, whole, terms) if len(b) < MIN_PROOF else None) or _best(a, b, tried, terms)
    if fit is not None:
        return fit
    every = np.arange(1 - len(b), len(a))
    centres = (len(b) // 2,) if len(b) <= _BLOCK else (len(b) // 2, _BLOCK // 2, len(b) - _BLOCK // 2)
    for centre in centres if len(every) * min(len(b), _BLOCK) <= _MAX_CELLS else ():
        fit = _best(a, b, every, replace(terms, centre=centre))
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
    near = np.arange(-_NEAR_SHIFTS, _NEAR_SHIFTS + 1)
    return np.unique(exact[:, None] + near if len(exact) <= _MAX_EXACT else exact)


def _shifts_by_time(a: Track, b: Track, hint: float) -> Array:
    places = np.linspace(0, len(b) - 1, min(len(b), 5)).astype(np.int64)
    after = np.searchsorted(a.end, b.end[places] - hint)
    return np.concatenate([after - places + step for step in (-1, 0, 1)])


@dataclass(frozen=True)
class _Terms:
    """How shifts are compared."""

    hint: float | None
    """The clock of the second track less that of the first, ns, where it is known."""
    centre: int
    """The middle of the block of places of the second track that are compared."""
    by_step: bool = False
    """Whether collectives must be of one step, so that few of them prove enough."""


def _best(a: Track, b: Track, shifts: Array, terms: _Terms) -> Fit | None:
    """Return the best of some shifts, in a block of places of the shorter track."""
    overlap = np.minimum(len(a), len(b) + shifts) - np.maximum(0, shifts)
    long = (overlap > 0) if terms.by_step else 2 * overlap >= len(b)  # less would prove nothing
    shifts, overlap = shifts[long], overlap[long]
    if not len(shifts):
        return None
    block = min(len(b), _BLOCK)
    place = np.arange(block) + min(max(0, terms.centre - block // 2), len(b) - block)
    at = place + shifts[:, None]
    inside = (at >= 0) & (at < len(a))
    at = np.clip(at, 0, len(a) - 1)
    same = inside & (a.label[at] == b.label[place])
    used = same & b.barrier[place] if b.barrier.any() else same
    difference = np.where(used, b.end[place] - a.end[at], np.nan)
    count = used.sum(axis=1)
    middle = medians(difference, count)
    clock = middle[:, None] if terms.hint is None else terms.hint
    spread = _quantiles(np.abs(difference - clock), count, _TYPICAL_SHARE)
    bound = used & b.barrier[place]
    low = np.where(bound, b.start[place] - a.end[at], -np.inf)
    high = np.where(bound, b.end[place] - a.start[at], np.inf)
    offset = _offsets(middle, low, high, terms.hint, on_host=b.on_host)[:, None]
    broken = ((low > offset + TOLERANCE_NS) | (high < offset - TOLERANCE_NS)).sum(axis=1)
    agree = same.sum(axis=1) >= _MIN_AGREEING * inside.sum(axis=1)
    good = (count > 0) & agree & (broken <= MAX_VIOLATED * count)
    cost = (spread + max(a.floor, b.floor)) * (len(b) / overlap) ** (1 if terms.by_step else 2)
    if terms.hint is None:
        cost = cost * (1 + np.minimum(_MAX_PRIOR, np.abs(middle) / PRIOR_NS))
    if terms.by_step:
        apart = np.where(same & (a.step[at] >= 0) & (b.step[place] >= 0), a.step[at] - b.step[place], np.nan)
        good &= np.abs(medians(apart, np.isfinite(apart).sum(axis=1))) < 1
        unpaired = np.maximum(0, _common(a, b) - overlap)
        cost = cost * (1 + (np.isfinite(apart) & (apart != 0)).sum(axis=1) + unpaired)
    cost = np.where(good, cost, np.inf)
    best = int(np.argmin(cost))
    if not np.isfinite(cost[best]):
        return None
    return Fit(a.number, b.number, int(shifts[best]), float(middle[best]), float(spread[best]), int(count[best]))


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


def medians(values: Array, count: Array) -> npt.NDArray[np.float64]:
    """Return the median of each row, of which all but `count` values are nan."""
    ordered = np.sort(values, axis=1)
    rows = np.arange(len(values))
    low, high = np.maximum(0, (count - 1) // 2), np.minimum(values.shape[1] - 1, count // 2)
    return np.where(count > 0, (ordered[rows, low] + ordered[rows, high]) / 2, np.inf)


def _quantiles(values: Array, count: Array, share: float) -> npt.NDArray[np.float64]:
    """Return for each row the quantile `share` of its `count` known values; the other values are nan."""
    ordered = np.sort(values, axis=1)
    at = np.maximum(0, np.ceil(share * count).astype(np.int64) - 1)
    return np.where(count > 0, ordered[np.arange(len(values)), at], np.inf)


def pairs(tracks: Sequence[Track]) -> list[tuple[Track, Track]]:
    """Return the pairs of tracks of one pool and different ranks that are to be compared."""
    pools: dict[int, list[Track]] = {}
    for track in tracks:
        pools.setdefault(track.pool, []).append(track)
    candidates = []
    for pool in pools.values():
        pool.sort(key=lambda track: (-len(track), track.rank))
        if pool[0].certain and len(pool) > _MAX_CERTAIN:
            candidates += [(pool[0], other) for other in pool[1:]] + list(pairwise(pool[1:]))
        elif len(pool) * (len(pool) - 1) // 2 > _MAX_PAIRS:
            candidates += _neighbours(pool)
        else:
            candidates += [(a, b) for i, a in enumerate(pool) for b in pool[i + 1 :]]
    return [(a, b) for a, b in candidates if a.rank != b.rank and (a.way == 0 or a.way != b.way)]


def _neighbours(pool: list[Track]) -> list[tuple[Track, Track]]:
    """Return for each of many tracks those whose last ends run most parallel to its own."""
    count = min(_NEIGHBOUR_ENDS, *(len(track) for track in pool))
    ends = np.array([track.end[-count:] for track in pool])
    rank, way = (np.array([getattr(track, what) for track in pool]) for what in ("rank", "way"))
    near: set[tuple[int, int]] = set()
    for i in range(len(pool)):
        difference = ends - ends[i]
        difference -= np.median(difference, axis=1)[:, None]
        spread = np.median(np.abs(difference), axis=1)
        spread[(rank == rank[i]) | ((way == way[i]) & (way != 0))] = np.inf
        near |= {(min(i, int(j)), max(i, int(j))) for j in np.argsort(spread)[:_NEIGHBOURS]}
    return [(pool[i], pool[j]) for i, j in sorted(near)]


def slope(ends: Array, arrivals: Array, when: Array) -> tuple[float, float, float, float]:
    """Return how much differences of ends follow those of arrivals, the doubt of that, the spreads of ends, arrivals.

    0 for members of one collective, 1 for others. Both are freed of the clocks' drift and of outliers first.
    """
    third = max(1, len(ends) // 3)
    if len(ends) >= 2 * MIN_PROOF:
        run = np.median(when[-third:]) - np.median(when[:third])
        drift = (np.median(ends[-third:]) - np.median(ends[:third])) / run if run > 0 else 0.0
        ends, arrivals = ends - drift * (when - when[0]), arrivals - drift * (when - when[0])
    ends, arrivals = ends - np.median(ends), arrivals - np.median(arrivals)
    spread, reach = float(np.quantile(np.abs(ends), _TYPICAL_SHARE)), float(np.median(np.abs(arrivals)))
    limit = 5 * max(reach, FLOOR_NS)
    ends, arrivals = np.clip(ends, -limit, limit), np.clip(arrivals, -limit, limit)
    power = float((arrivals * arrivals).sum())
    if not power:
        return 0.0, float("inf"), spread, reach
    doubt = float(np.sqrt((ends * ends).sum() / power / len(ends)))
    return float((ends * arrivals).sum()) / power, doubt, spread, reach
