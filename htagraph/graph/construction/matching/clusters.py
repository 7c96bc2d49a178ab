"""Which sequences of collectives belong together: those that, aligned, end together under one set of clocks.

Ranks of one host share a clock unless the recording contradicts that. Other clocks are learnt from sequences long
enough to prove that they belong together; short ones are united only under clocks that are known, or where no
other choice is left.

Sends pair with receives (`partners`): both end together, after both have started. Where no argument names the partner,
time has to show it beyond doubt. Stages of a pipeline all have as many sends and receives, as regular as each other:
under some clock offset nearly any two of them seem to end together. So clocks are taken as right where that explains
the ends; another offset counts only where what goes there and what comes back agree on it, and whatever leaves a choice
is not linked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from typing import TypeAlias

import numpy as np

from htagraph.core.arrays import Array
from htagraph.graph.clock_fits import medians
from htagraph.graph.construction.matching.alignment import Cluster, Fit, Track, fit_pair, pairs, slope, with_holes
from htagraph.graph.tolerances import LIMITS

__all__ = ["cluster", "partners"]

_Fitted: TypeAlias = Callable[[Track, Track, float | None], Fit | None]
"""`fit_pair`, which remembers what it was asked."""

_CLEAR, _BROUGHT = 2, 3
"""What `_State._evidence` returns where times say clearly that two clusters are one, and where ends lie so much closer
than arrivals that one waited for the other; codes, no thresholds."""


def cluster(tracks: Sequence[Track], island: Mapping[int, int] | None = None, *, lone: bool = True) -> list[Cluster]:
    """Return which tracks belong together, and how they are aligned; tracks that match no other are left out.

    Tracks are corrected for what is known of clocks. Ranks of one `island` have clocks that are known against each
    other; without it, ranks of one host have. The job has no other communication if it is `lone`: only then, and if
    each rank has but one track, may a few collectives unite ranks whose clocks are not known. In a pipeline, stages are
    as alike as replicas.
    """
    fitted = cache(fit_pair)  # some pairs are compared again when more is known
    lone = lone and len({track.rank for track in tracks}) == len(tracks)
    known = _shared_clocks(tracks, fitted) if island is None else {track.rank: island[track.rank] for track in tracks}
    state = _State({track.number: track for track in tracks}, known)
    for certain in (True, False):
        options = [(a, b) for a, b in pairs(tracks) if a.certain == certain]
        fits = [fit for a, b in options if (fit := fitted(a, b, state.between(a.rank, b.rank))) is not None]
        state.learn(fits)
        weak = [fit for fit in fits if fit.count < LIMITS.proof]
        state.join_strong([fit for fit in fits if fit.count >= LIMITS.proof], certain=certain, lone=lone)
        again = [(state.tracks[fit.first], state.tracks[fit.second]) for fit in weak]
        fits = [fit for a, b in again if (fit := fitted(a, b, state.between(a.rank, b.rank))) is not None]
        fits.sort(key=lambda fit: (-fit.count, fit.spread))
        for turn in range(1 if certain or lone else 2):
            if turn:
                state.tie_agreeing(fits)
            for fit in fits:
                if certain or lone or state.knows(fit):
                    state.join(fit, doubtful=True)
    state.join_whole()
    found = [united for united in state.clusters.values() if len(united.shift) > 1]
    for each in found:
        each.holed = {own: state.tracks[own] for own in each.shift if state.tracks[own].places is not None}
    return found


def _weakness(fit: Fit) -> float:
    """Return how little a fit proves: much spread, few collectives, a clock far off."""
    unlikely = min(LIMITS.far_clocks, abs(fit.offset) / LIMITS.host_clocks_ns)
    return (fit.spread + LIMITS.resolution_ns) * (1 + 30 / fit.count) * (1 + unlikely)


def _shared_clocks(tracks: Sequence[Track], fitted: _Fitted) -> dict[int, int]:
    """Return for each rank a number, equal for ranks whose clocks are one: those of a host that nothing contradicts.

    A rank shares the clock of its host if it can have met others there without an offset, about as well as with one. If
    a rank surely ends together with others under some offset, and with none of them without, nobody there shares it.
    """
    agrees: dict[tuple[int, int], bool] = {}
    for a, b in pairs([track for track in tracks if track.host >= 0]):
        pair = (min(a.rank, b.rank), max(a.rank, b.rank))
        if a.host == b.host and not agrees.get(pair, False):
            verdict = _one_clock(a, b, fitted)
            if verdict is not None:
                agrees[pair] = verdict
    host = {track.rank: track.host for track in tracks}
    agreeing = [pair for pair, verdict in agrees.items() if verdict]
    differing = {rank for pair in agrees for rank in pair} - {rank for pair in agreeing for rank in pair}
    void = {host[rank] for rank in differing}
    shared = {rank for pair in agreeing for rank in pair if host[rank] not in void}
    return {rank: -1 - own if rank in shared else rank for rank, own in host.items()}


def _one_clock(a: Track, b: Track, fitted: _Fitted) -> bool | None:
    """Return whether two tracks of one host belong together without a clock offset; None where they say nothing."""
    plain, free = fitted(a, b, 0.0), fitted(a, b, None)
    if free is None:
        return True if plain is not None and a.certain else None
    if plain is not None and (a.on_host or plain.spread <= LIMITS.spreads * (free.spread + LIMITS.resolution_ns)):
        return True
    return False if (a.certain and plain is None) or _proven(a, b, free) else None


def _proven(a: Track, b: Track, fit: Fit) -> bool:
    """Return whether the times of two tracks alone prove that they are members of the same collectives."""
    low, high = max(0, fit.shift), min(len(a), len(b) + fit.shift)
    ends = b.end[low - fit.shift : high - fit.shift] - a.end[low:high]
    arrivals = b.start[low - fit.shift : high - fit.shift] - a.start[low:high]
    if len(ends) < LIMITS.proof:
        return False
    steepness, doubt, spread, reach = slope(ends, arrivals, a.end[low:high])
    return steepness + 2 * doubt < LIMITS.slope and spread < LIMITS.most * reach


class _Clocks:
    """Which clocks are known against each other, and by how much they differ."""

    def __init__(self, island: dict[int, int]) -> None:
        self.island = island  # by rank: equal where the clocks are known against each other
        self.offset = dict.fromkeys(island, 0.0)  # by rank: what its clock shows more than that of its island, ns

    def between(self, a: int, b: int) -> float | None:
        """Return the clock of rank b less that of rank a, ns, if it is known."""
        return self.offset[b] - self.offset[a] if self.island[a] == self.island[b] else None

    def tie(self, a: int, b: int, offset: float) -> None:
        """Note by how much the clock of rank b is ahead of that of rank a."""
        moved, target, move = self.island[b], self.island[a], self.offset[a] + offset - self.offset[b]
        if moved == target:
            return
        for rank in [rank for rank, island in self.island.items() if island == moved]:
            self.offset[rank] += move
            self.island[rank] = target


class _State(_Clocks):
    """What is known so far: clusters of tracks, and clock offsets between ranks."""

    def __init__(self, tracks: dict[int, Track], island: dict[int, int]) -> None:
        super().__init__(island)
        self.tracks = tracks
        self.clusters = {number: Cluster({number: 0}) for number in tracks}  # by root
        self.root = {number: number for number in tracks}
        self.pools: dict[int, list[int]] = {}
        for number, track in tracks.items():
            self.pools.setdefault(track.pool, []).append(number)
        self.off_mesh: list[Fit] = []  # not taken, since other groups speak against them
        self.whole = False  # whether all that keeps to the mesh is united
        self.usual: dict[int, float] = {}  # spread of the middle track's best fit in a pool

    def learn(self, fits: Sequence[Fit]) -> None:
        """Note how closely the tracks of each pool usually end with their best fellows."""
        best: dict[int, float] = {}
        for fit in fits:
            for number in (fit.first, fit.second):
                best[number] = min(fit.spread, best.get(number, fit.spread))
        for pool in {self.tracks[number].pool for number in best}:
            self.usual[pool] = float(np.median([best[n] for n in self.pools[pool] if n in best]))

    def join(self, fit: Fit, *, doubtful: bool) -> None:
        """Unite the clusters of the two tracks if all that is known allows it.

        Ranks of sibling groups work alike, so that their ends are close without any waiting. So groups keep to the mesh
        of tensor, data and pipeline parallelism (`_off_mesh`), unless ends of whole groups were brought together.
        """
        a, b = self.tracks[fit.first], self.tracks[fit.second]
        x, y = self.clusters[self.root[a.number]], self.clusters[self.root[b.number]]
        ranks = [self.tracks[number].rank for each in (x, y) for number in each.shift]
        if x is y or len(set(ranks)) < len(ranks) or (a.pairwise and len(ranks) > 2):
            return
        known = self.between(a.rank, b.rank)
        if known is not None and abs(known - fit.offset) > LIMITS.clock_estimates_ns + 10 * fit.spread:
            return
        move = x.shift[a.number] + fit.shift - y.shift[b.number]
        usual = max(x.spread, y.spread, -1.0 if x.spread >= 0 or y.spread >= 0 else self.usual.get(a.pool, 0.0))
        evidence = self._evidence(x, y, move, fit.offset if known is None else known, (a, b), usual)
        if not evidence or (evidence < _CLEAR and not doubtful):
            return
        if not (a.certain or a.pairwise) and self._off_mesh(x, y) and not (self.whole and evidence == _BROUGHT):
            self.off_mesh.append(fit)
            return
        x.spread = max(x.spread, y.spread, fit.spread)
        if known is None:
            self.tie(a.rank, b.rank, fit.offset)
        del self.clusters[self.root[b.number]]
        for number, shift in y.shift.items():
            x.shift[number] = shift + move
            self.root[number] = self.root[a.number]

    def join_strong(self, fits: Sequence[Fit], *, certain: bool, lone: bool) -> None:
        """Unite what many collectives show, the closest first, then what lacks records in the middle, then the rest."""
        strong, outdone = sorted(fits, key=_weakness), cache(self.outdone)
        for doubtful in (False, True):
            for fit in strong:
                free = certain or lone or self.knows(fit)
                apart = self.root[fit.first] != self.root[fit.second]
                if apart and (self.is_close(fit) or (free and (doubtful or not certain))) and not outdone(fit):
                    self.join(fit, doubtful=doubtful and free)
            if not doubtful:
                self.mend(certain=certain, lone=lone)

    def mend(self, *, certain: bool, lone: bool) -> None:
        """Unite tracks that lack records in the middle with those that they fit best, one after the other."""
        for track in sorted(self.tracks.values(), key=lambda track: (-len(track), track.rank)):
            own, pending = self.clusters[self.root[track.number]], len(self.off_mesh)
            if track.certain != certain or (track.pairwise and not certain) or len(own.shift) > 1:
                continue
            united = [self.clusters[number].shift for number in self.pools[track.pool] if number in self.clusters]
            longest = [max((self.tracks[number] for number in each), key=len) for each in united]
            others = [each for each in longest if each.rank != track.rank]
            others = others[: max(LIMITS.track_neighbours, LIMITS.compared // len(self.clusters))]
            found = [with_holes(other, track, self.between(other.rank, track.rank)) for other in others]
            for holed, fit in sorted((each for each in found if each), key=lambda each: _weakness(each[1])):
                if certain or lone or self.knows(fit) or self.is_close(fit):
                    self.tracks[track.number] = holed
                    self.join(fit, doubtful=False)
                if len(self.clusters[self.root[track.number]].shift) > 1:
                    break
                self.tracks[track.number] = track
            del self.off_mesh[pending:]

    def outdone(self, fit: Fit) -> bool:
        """Return whether two tracks of other lengths fit better as one that lacks records in the middle."""
        a, b = sorted((self.tracks[fit.first], self.tracks[fit.second]), key=len, reverse=True)
        if (a.pairwise and not a.certain) or (len(a) == len(b) and not fit.shift):
            return False
        found = with_holes(a, b, self.between(a.rank, b.rank))
        return found is not None and found[0].places is not None and _weakness(found[1]) < _weakness(fit)

    def knows(self, fit: Fit) -> bool:
        """Return whether the clocks of two tracks' ranks are known against each other."""
        return self.between(self.tracks[fit.first].rank, self.tracks[fit.second].rank) is not None

    def is_close(self, fit: Fit) -> bool:
        """Return whether two tracks end about as close as others do; under some clock offset, any two seem to meet."""
        usual = self.usual.get(self.tracks[fit.first].pool, 0.0)
        return fit.spread <= 3 * usual + 2 * LIMITS.resolution_ns

    def join_whole(self) -> None:
        """Unite what lies across the mesh, such as all ranks of a job, now that the arrivals of whole groups tell."""
        self.whole = True
        for fit in sorted(self.off_mesh, key=_weakness):
            if self.tracks[fit.first].places is None and self.tracks[fit.second].places is None:
                self.join(fit, doubtful=False)

    def tie_agreeing(self, fits: Sequence[Fit]) -> None:
        """Note the clock offset between ranks on which several short fits agree, as long as no other has half as many.

        Fits between the same two sets of ranks with known clocks say the same offset, if they are true.
        """
        between: dict[tuple[int, int], list[tuple[float, Fit]]] = {}
        for fit in fits:
            a, b = (self.tracks[number].rank for number in (fit.first, fit.second))
            if self.island[a] != self.island[b] and fit.count > 1:
                way = 1 if self.island[a] < self.island[b] else -1
                offset = way * (fit.offset + self.offset[a] - self.offset[b])
                pair = (min(self.island[a], self.island[b]), max(self.island[a], self.island[b]))
                between.setdefault(pair, []).append((offset, fit))
        for pair, options in between.items():
            best, count, rival = _agreed(options, self.root)
            a, b = (self.tracks[number].rank for number in (best.first, best.second))
            if count >= LIMITS.proof and 2 * rival <= count and {self.island[a], self.island[b]} == set(pair):
                self.tie(a, b, best.offset)

    def _off_mesh(self, x: Cluster, y: Cluster) -> bool:
        """Return whether a rank of each already are of one group, or of two alike groups at different places.

        Groups of two dimensions of a mesh have at most one rank in common, and those of one dimension join the ranks at
        the same place of each group of the other.
        """
        of_x, of_y = ({self.tracks[number].rank for number in each.shift} for each in (x, y))
        united = [each for each in self.clusters.values() if each is not x and each is not y and len(each.shift) > 1]
        others = [sorted({self.tracks[number].rank for number in each.shift}) for each in united]
        at_x, at_y = (
            [(np.diff(ranks).tolist(), place) for ranks in others for place, rank in enumerate(ranks) if rank in own]
            for own in (of_x, of_y)
        )
        together = any(of_x & {*ranks} and of_y & {*ranks} for ranks in others)
        return together or any(alike == same and place != there for alike, place in at_x for same, there in at_y)

    def _evidence(
        self, x: Cluster, y: Cluster, move: int, offset: float, pair: tuple[Track, Track], usual: float
    ) -> int:
        """Return whether two clusters can be one: nobody ends before all arrive, and ends do not follow arrivals.

        0 if they cannot, 1 if they can, `_CLEAR` if times say it clearly, `_BROUGHT` if more than that.
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
            return _BROUGHT if a.certain else 0
        ends = (end_y - end_x)[known] - offset
        arrivals = (arrive_y - arrive_x)[known] - offset
        middle = 0.0 if a.on_host and self.island[a.rank] == self.island[b.rank] else np.median(ends)
        early, late = arrive_y - end_x - offset, end_y - arrive_x - offset
        broken = ((middle < early - LIMITS.tick_ns) | (middle > late + LIMITS.tick_ns))[known]
        if broken.sum() > LIMITS.damaged * len(broken):
            return 0
        if a.certain:
            return _BROUGHT
        return 1 if len(ends) < 3 else _end_together(ends, arrivals, end_x[known], usual, a.pairwise)

    def _merged(self, cluster: Cluster, move: int, rank: int) -> tuple[int, Array, Array]:
        """Return (first place, last arrival, middle end at each place) on the clock of a rank; nan where unknown."""
        low = min(cluster.shift.values()) + move
        high = max(shift + int(self.tracks[number].place[-1]) for number, shift in cluster.shift.items()) + move + 1
        last = np.full(high - low, np.nan)
        ends = np.full((len(cluster.shift), high - low), np.nan)
        barriers = any(self.tracks[number].barrier.any() for number in cluster.shift)
        for i, (number, shift) in enumerate(cluster.shift.items()):
            track = self.tracks[number]
            off = self.offset[track.rank] - self.offset[rank]
            at = track.place + shift + move - low
            use = track.barrier if barriers else np.ones(len(track), np.bool_)
            last[at[use]] = np.fmax(last[at[use]], track.start[use] - off)
            ends[i, at[use]] = track.end[use] - off
        count = np.isfinite(ends).sum(axis=0)
        middle = medians(ends, axis=0)
        return low, last, np.where(count > 0, middle, np.nan)


def _agreed(options: Sequence[tuple[float, Fit]], root: Mapping[int, int]) -> tuple[Fit, int, int]:
    """Return (the fit whose offset most agree with, the collectives of those, those of the next other offset).

    Collectives of one cluster count once, as its tracks end together anyway.
    """
    counts = []
    for offset, fit in options:
        used: set[int] = set()
        count = 0
        for at, other in options:
            ends = {root[other.first], root[other.second]}
            if abs(at - offset) <= 2 * LIMITS.resolution_ns + fit.spread + other.spread and not used & ends:
                used |= ends
                count += other.count
        counts.append((count, -fit.spread, offset, fit))
    count, _, offset, best = max(counts, key=lambda each: each[:2])
    near = 2 * LIMITS.resolution_ns + best.spread
    rivals = [own for own, _, at, fit in counts if abs(at - offset) > near + fit.spread]
    return best, count, max(rivals, default=0)


def _end_together(ends: Array, arrivals: Array, when: Array, usual: float, pairwise: bool) -> int:  # noqa: FBT001
    """Return whether differences of ends are those of one collective's members: see `_State._evidence`.

    They do not follow the differences of arrivals. Where these say little, and where each side may have waited for
    somebody else, the ends also lie about as close as those of members usually do, or far closer than the arrivals.
    """
    steepness, doubt, spread, reach = slope(ends, arrivals, when)
    if steepness >= LIMITS.slope:
        return 0
    close = spread <= 3 * usual + 2 * LIMITS.resolution_ns
    if pairwise:
        return _BROUGHT * close
    brought = spread < LIMITS.most * reach
    clear = steepness + 2 * doubt < LIMITS.slope and (close or brought)
    if clear and len(ends) >= LIMITS.proof:
        return _BROUGHT if brought else _CLEAR
    return int(clear or spread <= 2 * usual + LIMITS.resolution_ns / 2)


class _Pairing(_Clocks):
    """What is known so far: what still lacks a partner, the clocks, and who goes with whom."""

    def __init__(self, free: dict[int, Track], island: dict[int, int]) -> None:
        super().__init__(island)
        self.free = free
        self.pairs: list[Cluster] = []  # the sequences that were united

    def take(self, fit: Fit) -> None:
        """Note two sequences as partners."""
        self.pairs.append(Cluster({fit.first: 0, fit.second: fit.shift}, fit.spread))
        del self.free[fit.first], self.free[fit.second]


def partners(tracks: Sequence[Track], island: Mapping[int, int]) -> list[Cluster]:
    """Return which sequences of sends pair with which sequences of receives, and how they are aligned.

    Pairs about which time leaves a doubt are left out. `island` is equal for ranks whose clocks are known against each
    other.
    """
    ranks = sorted({track.rank for track in tracks})
    state = _Pairing({track.number: track for track in tracks}, {rank: island[rank] for rank in ranks})
    options = [(a, b) for a, b in pairs(tracks) if a.way == -b.way]
    unhinted: dict[tuple[int, int], Fit | None] = {}
    more = True
    while more:
        _take_coinciding(state, options)
        options = _open(state, options)
        more = _take_earned(state, options, unhinted)
        options = _open(state, options)
    return state.pairs


def _open(state: _Pairing, options: Sequence[tuple[Track, Track]]) -> list[tuple[Track, Track]]:
    return [(a, b) for a, b in options if a.number in state.free and b.number in state.free]


def _take_coinciding(state: _Pairing, options: Sequence[tuple[Track, Track]]) -> None:
    """Unite what ends together on the clocks as they are known, or else as they are."""
    fits: list[tuple[float, Fit]] = []
    for a, b in options:
        clock = state.between(a.rank, b.rank) or 0.0
        fit = fit_pair(a, b, clock)
        spread = _spread(a, b, fit, clock)
        if fit is not None and abs(fit.offset - clock) <= min(LIMITS.ends_ns, 2 * (LIMITS.resolution_ns + spread)):
            fits.append((fit.spread, fit))
    for (fit,) in _clear([(cost, (fit,)) for cost, fit in fits]):
        a, b = state.free[fit.first], state.free[fit.second]
        state.tie(a.rank, b.rank, 0.0)
        state.take(fit)


def _take_earned(
    state: _Pairing, options: Sequence[tuple[Track, Track]], unhinted: dict[tuple[int, int], Fit | None]
) -> bool:
    """Unite two ranks of unknown clocks where their sends and receives agree on an offset; return whether any did."""
    way: dict[tuple[int, int], list[Fit]] = {}
    for a, b in options:
        if state.island[a.rank] == state.island[b.rank] or not a.way:
            continue
        key = (a.number, b.number)
        if key not in unhinted:
            unhinted[key] = fit_pair(a, b)
        fit = unhinted[key]
        if fit is not None and _spread(a, b, fit, fit.offset) >= 0:
            sends = (a.rank, b.rank) if a.way > 0 else (b.rank, a.rank)
            way.setdefault(sends, []).append(fit if a.way > 0 else fit.other_way())
    taken = _clear(_agreeing(way))
    for there, back in taken[:1]:  # then others may coincide
        a, b = state.free[there.first], state.free[there.second]
        state.tie(a.rank, b.rank, (there.offset - back.offset) / 2)
        state.take(there)
        state.take(back)
    return bool(taken)


def _agreeing(way: Mapping[tuple[int, int], list[Fit]]) -> list[tuple[float, tuple[Fit, ...]]]:
    """Return (cost, fits there and back) of what two ranks may send each other, if both imply the same clock offset."""
    agreeing: list[tuple[float, tuple[Fit, ...]]] = []
    for (a, b), fits in way.items():
        for there, back in product(fits, way.get((b, a), []) if a < b else []):
            spread, apart = there.spread + back.spread, abs(there.offset + back.offset)
            if apart <= LIMITS.resolution_ns / 2 + 2 * spread and there.count + back.count >= LIMITS.proof:
                agreeing.append((spread + apart, (there, back)))
    return agreeing


def _clear(options: Sequence[tuple[float, tuple[Fit, ...]]]) -> list[tuple[Fit, ...]]:
    """Return the options that are much better than any other for one of their sequences, the best first."""
    options = sorted(options, key=lambda option: option[0])
    ordered = [(cost, fits, {number for fit in fits for number in (fit.first, fit.second)}) for cost, fits in options]
    taken: set[int] = set()
    clear, half = [], LIMITS.resolution_ns / 2
    for cost, fits, own in ordered:
        if own & taken:
            continue
        rivals = [(other, theirs) for other, others, theirs in ordered if others is not fits and not theirs & taken]
        least = LIMITS.times_worse * (cost + half)
        if all(other + half >= least for other, theirs in rivals if theirs & own):
            clear.append(fits)
        taken |= own  # if it is not clear, none of them is linked
    return clear


def _spread(a: Track, b: Track, fit: Fit | None, clock: float) -> float:
    """Return how the differences of ends vary, ns; -inf where they follow the arrivals, or vary too much."""
    if fit is None:
        return -math.inf
    low, high = max(0, fit.shift), min(len(a), len(b) + fit.shift)
    if high - low < LIMITS.most * min(len(a), len(b)):
        return -math.inf  # side by side with another step
    at, place = slice(low, high), slice(low - fit.shift, high - fit.shift)
    apart, late = b.end[place] - a.end[at] - clock, b.start[place] - a.start[at] - clock
    steepness, _, spread, _ = slope(apart, late, a.end[at])
    regular = spread <= 2 * LIMITS.ends_ns and (steepness < LIMITS.slope or spread <= LIMITS.resolution_ns / 2)
    return spread if regular else -math.inf
