"""Which sends pair with which receives: a send and its receive end together, after both have started.

Where no argument names the partner, time has to show it beyond doubt. Stages of a pipeline all have as many sends and
receives, as regular as each other: under some clock offset nearly any two of them seem to end together. So clocks are
taken as right where that explains the ends; another offset counts only where what goes there and what comes back
agree on it, and whatever leaves a choice is not linked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

from htagraph.graph.construction.matching.pairs import pairs
from htagraph.graph.construction.matching.sequence_alignment import Cluster, Fit, Track, fit_pair, slope
from htagraph.graph.tolerances import LIMITS

__all__ = ["partners"]

_MIN_TIMES_WORSE: Final = 2.0
"""Times worse that any other partner must be. Chosen. Doubled, fewer pairs are clear, and more are left unlinked."""
_RESOLUTION_NS: Final = 500.0
"""ns: differences of spreads below this say nothing: half a µs of files of whole µs. Doubled, fewer pairs are
clear."""
_MIN_COVERED: Final = 0.75
"""Share of the shorter sequence that must have partners. Chosen: less is another step. It cannot be doubled; at 1 cut
recordings are not linked."""


@dataclass(eq=False)
class _State:
    """What is known so far: what still lacks a partner, the clocks, and who goes with whom."""

    free: dict[int, Track]
    island: dict[int, int]
    """By rank: equal for ranks whose clocks are known against each other."""
    offset: dict[int, float]
    """By rank: what its clock shows more than that of its island, ns."""
    pairs: list[Cluster] = field(default_factory=list)
    """The sequences that were united."""

    def between(self, a: int, b: int) -> float:
        """Return the clock of rank b less that of rank a, ns; 0 where nothing is known."""
        return self.offset[b] - self.offset[a] if self.island[a] == self.island[b] else 0.0

    def take(self, fit: Fit) -> None:
        """Note two sequences as partners."""
        self.pairs.append(Cluster({fit.first: 0, fit.second: fit.shift}, fit.spread))
        del self.free[fit.first], self.free[fit.second]

    def tie(self, a: int, b: int, offset: float) -> None:
        """Note by how much the clock of rank b is ahead of that of rank a."""
        moved, move = self.island[b], self.offset[a] + offset - self.offset[b]
        if self.island[a] == moved:
            return
        for rank in [rank for rank, island in self.island.items() if island == moved]:
            self.offset[rank] += move
            self.island[rank] = self.island[a]


def partners(tracks: Sequence[Track], island: Mapping[int, int]) -> list[Cluster]:
    """Return which sequences of sends pair with which sequences of receives, and how they are aligned.

    Args:
        tracks: sequences of sends or of receives (or of what may be either), corrected for what is known of clocks.
        island: by rank: equal for ranks whose clocks are known against each other.

    Returns:
        Pairs that time leaves no doubt about; the other sequences are left out.
    """
    ranks = sorted({track.rank for track in tracks})
    state = _State({track.number: track for track in tracks}, {r: island[r] for r in ranks}, dict.fromkeys(ranks, 0.0))
    options = [(a, b) for a, b in pairs(tracks) if a.way == -b.way]
    unhinted: dict[tuple[int, int], Fit | None] = {}
    more = True
    while more:
        _take_coinciding(state, options)
        options = _open(state, options)
        more = _take_earned(state, options, unhinted)
        options = _open(state, options)
    return state.pairs


def _open(state: _State, options: Sequence[tuple[Track, Track]]) -> list[tuple[Track, Track]]:
    return [(a, b) for a, b in options if a.number in state.free and b.number in state.free]


def _take_coinciding(state: _State, options: Sequence[tuple[Track, Track]]) -> None:
    """Unite what ends together on the clocks as they are known, or else as they are."""
    fits: list[tuple[float, Fit]] = []
    for a, b in options:
        clock = state.between(a.rank, b.rank)
        fit = fit_pair(a, b, clock)
        spread = _spread(a, b, fit, clock)
        if fit is not None and abs(fit.offset - clock) <= min(LIMITS.ends_ns, 4 * _RESOLUTION_NS + 2 * spread):
            fits.append((fit.spread, fit))
    for (fit,) in _clear([(cost, (fit,)) for cost, fit in fits]):
        a, b = state.free[fit.first], state.free[fit.second]
        state.tie(a.rank, b.rank, 0.0)
        state.take(fit)


def _take_earned(
    state: _State, options: Sequence[tuple[Track, Track]], unhinted: dict[tuple[int, int], Fit | None]
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
            way.setdefault(sends, []).append(fit if a.way > 0 else _turned(fit))
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
            if apart <= _RESOLUTION_NS + 2 * spread and there.count + back.count >= LIMITS.proof:
                agreeing.append((spread + apart, (there, back)))
    return agreeing


def _turned(fit: Fit) -> Fit:
    return replace(fit, first=fit.second, second=fit.first, shift=-fit.shift, offset=-fit.offset)


def _clear(options: Sequence[tuple[float, tuple[Fit, ...]]]) -> list[tuple[Fit, ...]]:
    """Return the options that are much better than any other for one of their sequences, the best first."""
    ordered = sorted(options, key=lambda option: option[0])
    taken: set[int] = set()
    clear = []
    for cost, fits in ordered:
        own = {number for fit in fits for number in (fit.first, fit.second)}
        if own & taken:
            continue
        rivals = [
            other
            for other, others in ordered
            if others is not fits
            and (theirs := {number for fit in others for number in (fit.first, fit.second)}) & own
            and not theirs & taken
        ]
        if all(other + _RESOLUTION_NS >= _MIN_TIMES_WORSE * (cost + _RESOLUTION_NS) for other in rivals):
            clear.append(fits)
        taken |= own  # if it is not clear, none of them is linked
    return clear


def _spread(a: Track, b: Track, fit: Fit | None, clock: float) -> float:
    """Return how the differences of ends vary, ns; -inf where they follow the arrivals, or vary too much."""
    if fit is None:
        return -math.inf
    low, high = max(0, fit.shift), min(len(a), len(b) + fit.shift)
    if high - low < _MIN_COVERED * min(len(a), len(b)):
        return -math.inf  # side by side with another step
    at, place = slice(low, high), slice(low - fit.shift, high - fit.shift)
    apart, late = b.end[place] - a.end[at] - clock, b.start[place] - a.start[at] - clock
    steepness, _, spread, _ = slope(apart, late, a.end[at])
    regular = spread <= 2 * LIMITS.ends_ns and (steepness < LIMITS.slope or spread <= _RESOLUTION_NS)
    return spread if regular else -math.inf
