"""Alignment of the ranks' sequences of collectives: which belong together, and which element corresponds to which.

Only order and time are used, so it needs no arguments and no known clock offsets. Members of one collective end
together however far apart they arrived: under the right shift the differences of the ends are nearly constant, and no
member starts after another has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Cluster", "Fit", "Track", "cluster", "fit_pair", "pairs", "slope"]

Array: TypeAlias = npt.NDArray[Any]

TOLERANCE_NS: Final = 2_000
"""ns: by which an arrival may seem to come after an end. Files of whole µs and estimated clocks are no more exact.
Doubled, fewer contradictions are seen."""
_FLOOR_NS: Final = 1_000.0
"""ns: differences of ends below this say nothing: the resolution of files of whole µs. Doubled, fits are compared
less sharply."""
_NEAR_SHIFTS: Final = 8
"""Shifts tried around those that put heads or tails together. Chosen: recordings of ranks start within a few
collectives. Doubled, more is tried before every shift is."""
_BLOCK: Final = 256
"""Places compared per shift, from the middle of the shorter sequence. Chosen for time. Doubled, it takes twice as
long."""
_MAX_CELLS: Final = 3_000_000
"""Comparisons at most where every shift is tried: 0.1 s. Chosen for time. Doubled, longer sequences get that far."""
_MIN_AGREEING: Final = 0.98
"""Share of the places side by side that must be of the same operation and size. Chosen: a few are misread. It cannot
be doubled; at 1 one misread name hides a match."""
_MAX_VIOLATED: Final = 0.01
"""Share of collectives that may end on one rank before they start on another. Chosen: damaged records. Doubled,
sequences with 2 % of contradictions are still linked."""
_MIN_PROOF: Final = 6
"""Collectives from which on a fit proves something by itself. Chosen: fewer agree by chance. Doubled, short sequences
are linked last, on clocks that others have shown."""
_MAX_SLOPE: Final = 0.5
"""How much ends may follow arrivals: 0 for members of one collective, 1 for strangers. Chosen: the middle. Doubled,
strangers are linked."""
_CLEAR: Final = 2
"""What `_State._evidence` returns where times say clearly that two clusters are one; a code, no threshold."""
_TYPICAL_SHARE: Final = 0.8
"""Share of the differences of ends that the spread covers; the rest are outliers. Chosen. At 1 one outlier
decides."""
_PRIOR_NS: Final = 1_000_000.0
"""ns: clocks that are off by more are less likely, and fits that need it are taken later. Chosen: NTP keeps hosts
within 1 ms. Doubled, only the order of trial changes."""
_COMPRESSED: Final = 0.25
"""Ends that lie so much closer together than arrivals were brought together by a collective. Chosen. Doubled, chance
brings them together more often."""
_MAX_OFFSET_ERROR_NS: Final = 100_000.0
"""ns: by which two estimates of one clock offset may differ, beside their spreads. Chosen: drift within a window.
Doubled, more groups of doubtful fits are united."""
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
    floor: float = _FLOOR_NS
    """Differences of ends below this are noise, ns."""
    way: int = 0
    """1 for sends, -1 for receives, 0 for anything else; each send pairs with one receive."""

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

    Args:
        a: one track.
        b: another.
        hint: the clock of b less that of a, ns, where it is known.
    """
    if len(b) > len(a):
        turned = fit_pair(b, a, None if hint is None else -hint)
        return turned and Fit(a.number, b.number, -turned.shift, -turned.offset, turned.spread, turned.count)
    apart = len(a) - len(b)
    near = np.arange(-_NEAR_SHIFTS, _NEAR_SHIFTS + 1)
    tried = np.unique(np.concatenate((near, near + apart)))
    if hint is not None:
        tried = np.unique(np.concatenate((tried, _shifts_by_time(a, b, hint))))
    whole = tried[(tried >= 0) & (tried <= apart)]  # of few collectives, those that are compared must not be fewer
    fit = (_best(a, b, whole, hint) if len(b) < _MIN_PROOF else None) or _best(a, b, tried, hint)
    if fit is None and (len(a) + len(b)) * min(len(b), _BLOCK) <= _MAX_CELLS:
        fit = _best(a, b, np.arange(1 - len(b), len(a)), hint)
    return fit


def _shifts_by_time(a: Track, b: Track, hint: float) -> Array:
    places = np.linspace(0, len(b) - 1, min(len(b), 5)).astype(np.int64)
    after = np.searchsorted(a.end, b.end[places] - hint)
    return np.concatenate([after - places + step for step in (-1, 0, 1)])


def _best(a: Track, b: Track, shifts: Array, hint: float | None) -> Fit | None:
    """Return the best of some shifts, in a block of places from the middle of the shorter track."""
    overlap = np.minimum(len(a), len(b) + shifts) - np.maximum(0, shifts)
    long = 2 * overlap >= len(b)  # less would prove nothing
    shifts, overlap = shifts[long], overlap[long]
    if not len(shifts):
        return None
    block = min(len(b), _BLOCK)
    place = np.arange(block) + (len(b) - block) // 2
    at = place + shifts[:, None]
    inside = (at >= 0) & (at < len(a))
    at = np.clip(at, 0, len(a) - 1)
    same = inside & (a.label[at] == b.label[place])
    used = same & b.barrier[place] if b.barrier.any() else same
    difference = np.where(used, b.end[place] - a.end[at], np.nan)
    count = used.sum(axis=1)
    middle = _medians(difference, count)
    spread = _quantiles(np.abs(difference - (middle[:, None] if hint is None else hint)), count, _TYPICAL_SHARE)
    offset = middle if hint is None else np.full(len(shifts), hint)
    early = offset[:, None] < b.start[place] - a.end[at] - TOLERANCE_NS
    late = offset[:, None] > b.end[place] - a.start[at] + TOLERANCE_NS
    broken = (used & (early | late) & b.barrier[place]).sum(axis=1)
    agree = same.sum(axis=1) >= _MIN_AGREEING * inside.sum(axis=1)
    good = (count > 0) & agree & (broken <= _MAX_VIOLATED * count)
    cost = np.where(good, (spread + max(a.floor, b.floor)) * (len(b) / overlap) ** 2, np.inf)
    if not np.isfinite(cost.min()):
        return None
    best = int(np.argmin(cost))
    return Fit(a.number, b.number, int(shifts[best]), float(middle[best]), float(spread[best]), int(count[best]))


def _medians(values: Array, count: Array) -> npt.NDArray[np.float64]:
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


def cluster(tracks: Sequence[Track]) -> list[Cluster]:
    """Return which tracks belong together, and how they are aligned; tracks that match no other are left out."""
    state = _State({track.number: track for track in tracks})
    for certain in (True, False):
        options = [(a, b) for a, b in pairs(tracks) if a.certain == certain]
        fits = [fit for a, b in options if (fit := fit_pair(a, b, state.between(a.rank, b.rank))) is not None]
        state.learn(fits)
        weak = [fit for fit in fits if fit.count < _MIN_PROOF]
        for doubtful in (False, True):
            for strong in sorted((fit for fit in fits if fit.count >= _MIN_PROOF), key=_weakness):
                state.join(strong, doubtful=doubtful)
        again = [(state.tracks[fit.first], state.tracks[fit.second]) for fit in weak]
        fits = [fit for a, b in again if (fit := fit_pair(a, b, state.between(a.rank, b.rank))) is not None]
        for fit in sorted(fits, key=lambda fit: (-fit.count, fit.spread)):
            state.join(fit, doubtful=True)
    return [united for united in state.clusters.values() if len(united.shift) > 1]


def _weakness(fit: Fit) -> float:
    """Return how little a fit proves: much spread, few collectives, a clock far off."""
    return (fit.spread + _FLOOR_NS) * (1 + 30 / fit.count) * (1 + min(3.0, abs(fit.offset) / _PRIOR_NS))


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


class _State:
    """What is known so far: clusters of tracks, and clock offsets between ranks."""

    def __init__(self, tracks: dict[int, Track]) -> None:
        self.tracks = tracks
        self.clusters = {number: Cluster({number: 0}) for number in tracks}  # by root
        self.root = {number: number for number in tracks}
        self.island = {track.rank: track.rank for track in tracks.values()}
        self.offset = {track.rank: 0.0 for track in tracks.values()}
        self.usual: dict[int, float] = {}  # spread of the middle track's best fit in a pool

    def learn(self, fits: Sequence[Fit]) -> None:
        """Note how closely the tracks of each pool usually end with their best fellows."""
        best: dict[int, float] = {}
        for fit in fits:
            for number in (fit.first, fit.second):
                best[number] = min(fit.spread, best.get(number, fit.spread))
        for pool in {self.tracks[number].pool for number in best}:
            self.usual[pool] = float(np.median([best[n] for n in best if self.tracks[n].pool == pool]))

    def between(self, a: int, b: int) -> float | None:
        """Return the clock of rank b less that of rank a, ns, if it is known."""
        return self.offset[b] - self.offset[a] if self.island[a] == self.island[b] else None

    def join(self, fit: Fit, *, doubtful: bool) -> None:
        """Unite the clusters of the two tracks if all that is known allows it.

        Where times leave it in doubt, ranks that already are of one group are not put into another: of the groups of
        tensor, data and pipeline parallelism, two have at most one rank in common.
        """
        a, b = self.tracks[fit.first], self.tracks[fit.second]
        x, y = self.clusters[self.root[a.number]], self.clusters[self.root[b.number]]
        ranks = [self.tracks[number].rank for each in (x, y) for number in each.shift]
        if x is y or len(set(ranks)) < len(ranks) or (a.pairwise and len(ranks) > 2):
            return
        known = self.between(a.rank, b.rank)
        if known is not None and abs(known - fit.offset) > _MAX_OFFSET_ERROR_NS + 10 * fit.spread:
            return
        move = x.shift[a.number] + fit.shift - y.shift[b.number]
        usual = max(x.spread, y.spread, -1.0 if x.spread >= 0 or y.spread >= 0 else self.usual.get(a.pool, 0.0))
        evidence = self._evidence(x, y, move, fit.offset if known is None else known, (a, b), usual)
        if not evidence or (evidence < _CLEAR and (not doubtful or self._together(x, y))):
            return
        x.spread = max(x.spread, y.spread, fit.spread)
        if known is None:
            self._tie(a.rank, b.rank, fit.offset)
        for number, shift in y.shift.items():
            x.shift[number] = shift + move
            self.root[number] = self.root[a.number]
        del self.clusters[next(root for root, each in self.clusters.items() if each is y)]

    def _tie(self, a: int, b: int, offset: float) -> None:
        correction = self.offset[a] + offset - self.offset[b]
        moved, target = self.island[b], self.island[a]
        for rank, island in self.island.items():
            if island == moved:
                self.offset[rank] += correction
                self.island[rank] = target

    def _together(self, x: Cluster, y: Cluster) -> bool:
        """Return whether a rank of each already are of one group."""
        ranks_x, ranks_y = ({self.tracks[number].rank for number in each.shift} for each in (x, y))
        for other in self.clusters.values():
            ranks = {self.tracks[number].rank for number in other.shift}
            if other is not x and other is not y and ranks & ranks_x and ranks & ranks_y:
                return True
        return False

    def _evidence(
        self, x: Cluster, y: Cluster, move: int, offset: float, pair: tuple[Track, Track], usual: float
    ) -> int:
        """Return whether two clusters can be one: nobody ends before all arrive, and ends do not follow arrivals.

        0 if they cannot, 1 if they can, 2 if times say it clearly.
        """
        a, b = pair
        first, second = self._merged(x, 0, a.rank), self._merged(y, move, b.rank)
        low, high = max(first[0], second[0]), min(first[0] + len(first[1]), second[0] + len(second[1]))
        if high <= low:
            return 0
        (arrive_x, end_x), (arrive_y, end_y) = (
            (each[1][low - each[0] : high - each[0]], each[2][low - each[0] : high - each[0]])
            for each in (first, second)
        )
        known = np.isfinite(end_x) & np.isfinite(end_y)
        if not known.any():
            return _CLEAR if a.certain else 0
        ends = (end_y - end_x)[known] - offset
        arrivals = (arrive_y - arrive_x)[known] - offset
        middle = np.median(ends)
        early, late = arrive_y - end_x - offset, end_y - arrive_x - offset
        broken = ((middle < early - TOLERANCE_NS) | (middle > late + TOLERANCE_NS))[known]
        if broken.sum() > _MAX_VIOLATED * len(broken):
            return 0
        if a.certain:
            return _CLEAR
        return 1 if len(ends) < 3 else _end_together(ends, arrivals, end_x[known], usual, a.pairwise)

    def _merged(self, cluster: Cluster, move: int, rank: int) -> tuple[int, Array, Array]:
        """Return (first place, last arrival, middle end at each place) on the clock of a rank; nan where unknown."""
        low = min(cluster.shift.values()) + move
        high = max(shift + len(self.tracks[number]) for number, shift in cluster.shift.items()) + move
        last = np.full(high - low, np.nan)
        ends = np.full((len(cluster.shift), high - low), np.nan)
        barriers = any(self.tracks[number].barrier.any() for number in cluster.shift)
        for i, (number, shift) in enumerate(cluster.shift.items()):
            track = self.tracks[number]
            off = self.offset[track.rank] - self.offset[rank]
            at = np.arange(len(track)) + shift + move - low
            use = track.barrier if barriers else np.ones(len(track), np.bool_)
            last[at[use]] = np.fmax(last[at[use]], track.start[use] - off)
            ends[i, at[use]] = track.end[use] - off
        count = np.isfinite(ends).sum(axis=0)
        middle = _medians(ends.T, count)
        return low, last, np.where(count > 0, middle, np.nan)


def _end_together(ends: Array, arrivals: Array, when: Array, usual: float, pairwise: bool) -> int:  # noqa: FBT001
    """Return whether differences of ends are those of one collective's members: 0 no, 1 perhaps, 2 clearly.

    They do not follow the differences of arrivals. Where these say little, and where each side may have waited for
    somebody else, the ends also lie about as close as those of members usually do, or far closer than the arrivals.
    """
    steepness, doubt, spread, reach = slope(ends, arrivals, when)
    if steepness >= _MAX_SLOPE:
        return 0
    close = spread <= 3 * usual + 2 * _FLOOR_NS
    if pairwise:
        return _CLEAR * close
    clear = steepness + 2 * doubt < _MAX_SLOPE and (close or spread < _COMPRESSED * reach)
    return _CLEAR if clear and len(ends) >= _MIN_PROOF else int(clear or spread <= 2 * usual + _FLOOR_NS / 2)


def slope(ends: Array, arrivals: Array, when: Array) -> tuple[float, float, float, float]:
    """Return how much differences of ends follow those of arrivals, the doubt of that, the spreads of ends, arrivals.

    0 for members of one collective, 1 for others. Both are freed of the clocks' drift and of outliers first.
    """
    third = max(1, len(ends) // 3)
    if len(ends) >= 2 * _MIN_PROOF:
        run = np.median(when[-third:]) - np.median(when[:third])
        drift = (np.median(ends[-third:]) - np.median(ends[:third])) / run if run > 0 else 0.0
        ends, arrivals = ends - drift * (when - when[0]), arrivals - drift * (when - when[0])
    ends, arrivals = ends - np.median(ends), arrivals - np.median(arrivals)
    spread, reach = float(np.quantile(np.abs(ends), _TYPICAL_SHARE)), float(np.median(np.abs(arrivals)))
    limit = 5 * max(reach, _FLOOR_NS)
    ends, arrivals = np.clip(ends, -limit, limit), np.clip(arrivals, -limit, limit)
    power = float((arrivals * arrivals).sum())
    if not power:
        return 0.0, float("inf"), spread, reach
    doubt = float(np.sqrt((ends * ends).sum() / power / len(ends)))
    return float((ends * arrivals).sum()) / power, doubt, spread, reach
