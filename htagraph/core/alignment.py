"""Which items of one sequence are which items of another one: every possible partner of each, not only the likeliest.

Sequences are whole numbers, equal for items that look alike; positions in time are their order. An item has all
partners that some best alignment gives it: what all its partners share is true of it, whatever the order leaves open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, joined

__all__ = ["Partners", "partners"]

_MOST_CELLS: Final = 100_000_000
"""Cells of a table of two sequences, of 2 bytes each. Chosen: 5,000 kernels beside 20,000, 0.4 GB. Doubled, twice that
memory; pairs of longer sequences that are not equal stay without partners."""
_MOST_WINDOWS: Final = 8
"""Places of a text that are compared with a pattern that is nowhere as it is. Chosen: warm-ups repeat a few times.
Doubled, more places must agree, and it takes twice as long."""
_ENOUGH: Final = 0.5
"""Share of a pattern that must have partners. Chosen: less is another sequence that has common parts. Doubled, no item
may lack a partner."""
_AS_GOOD: Final = 0.95
"""Places whose share is at least this part of the best one's count as well: their partners must agree with the best
one's. Chosen: repeats differ in a few items. It cannot be doubled: at 1, only equally good places count."""


class Partners(NamedTuple):
    """Pairs of an item of a pattern and an item of a text that may be the same, by item and place."""

    item: Ints
    partner: Ints
    share: float
    """How much of the pattern has partners at the best place; 1 where the pattern is in the text as a whole."""


def partners(pattern: Array, lane: Array, text: Array, text_lane: Array) -> Partners:
    """Return all partners that items of a pattern may have in a text.

    Args:
        pattern: the looks of the items that are searched for, in the order of time.
        lane: on which lane each of them is.
        text: the looks of the items of the text, in the order in which they were asked for; -1 for breaks.
        text_lane: on which lane each of them is: items of one lane must keep their order, others need not.

    Returns:
        The pairs. If the text has the pattern's items next to each other and in order, then those of all such places;
        else those of the places that are most like it. No item has a partner that looks different.

    Example:
        >>> one = np.zeros(9, np.int64)
        >>> found = partners(np.array([5, 6]), one[:2], np.array([5, 6, 7, 5, 6]), one[:5])
        >>> found.item.tolist(), found.partner.tolist(), found.share
        ([0, 0, 1, 1], [0, 3, 1, 4], 1.0)
        >>> partners(np.array([5, 5]), one[:2], np.array([4, 5, 7]), one[:3]).item.tolist()  # which of both is unknown
        []
    """
    size = len(pattern)
    starts = _same_items(pattern, text)
    exact = [at for at in starts.tolist() if np.array_equal(text[at : at + size], pattern)]
    windows = [slice(at, at + size) for at in exact or starts.tolist()]
    if not exact:  # the same items in another order: or others are in order, further apart
        windows += _alike(pattern, text)
    places = [_placed(pattern, lane, text, text_lane, window) for window in windows]
    found = [each for each in places if each.share >= _ENOUGH]
    best = max((each.share for each in found), default=0.0)
    good = [(each.item, each.partner) for each in found if each.share >= _AS_GOOD * best]
    item, partner = joined(good, 2)
    pairs = np.unique(item << 32 | partner)  # places may overlap
    return Partners(pairs >> 32, pairs & (1 << 32) - 1, best)


def _same_items(pattern: Array, text: Array) -> Ints:
    """Return where as many items of a text as a pattern has are the same items, in any order.

    Sums of random numbers tell them apart, one per look.
    """
    if not 0 < len(pattern) <= len(text):
        return np.zeros(0, np.int64)
    codes = np.unique(np.concatenate([pattern, text]))
    draws = np.random.default_rng(0).integers(1, 1 << 62, len(codes), np.uint64)
    total = np.append(np.uint64(0), np.cumsum(draws[np.searchsorted(codes, text)], dtype=np.uint64))
    wanted = draws[np.searchsorted(codes, pattern)].sum(dtype=np.uint64)
    return np.flatnonzero(total[len(pattern) :] - total[: -len(pattern)] == wanted)


def _alike(pattern: Array, text: Array) -> Iterator[slice]:
    """Yield the stretches of a text that have most of a pattern's items, the best first, with a margin around each."""
    size, margin = len(pattern), max(8, len(pattern) // 4)
    wanted, have, common = Counter(pattern.tolist()), Counter[int](), 0
    counts = np.zeros(len(text), np.int64)
    for end, look in enumerate(text.tolist()):
        common += have[look] < wanted[look]
        have[look] += 1
        if end >= size:
            gone = int(text[end - size])
            have[gone] -= 1
            common -= have[gone] < wanted[gone]
        counts[end] = common
    best, given = counts.max(initial=0), 0
    while best and given < _MOST_WINDOWS and counts.max() >= max(_ENOUGH * size, _ENOUGH * best):
        end, given = int(counts.argmax()) + 1, given + 1
        yield slice(max(0, end - size - margin), min(len(text), end + margin))
        counts[max(0, end - max(1, size // 2)) : end + size // 2] = 0


def _placed(pattern: Array, lane: Array, text: Array, text_lane: Array, window: slice) -> Partners:
    """Return the partners at one place.

    Items of one lane of the text keep their order wherever they run, if what looks like them shows that; then the order
    decides. Looks that are on several lanes of the text, or out of order, may be any of those that look alike.
    """
    there, on = text[window], text_lane[window]
    lane_of = {look: set(on[there == look].tolist()) for look in np.unique(there).tolist()}
    own = {look: next(iter(lanes)) for look, lanes in lane_of.items() if len(lanes) == 1 and look >= 0}
    kept = np.array([own.get(look, -1) for look in pattern.tolist()], np.int64)
    parts, matched = [], 0
    for each in sorted(set(own.values())):
        rows, at = np.flatnonzero(kept == each), np.flatnonzero(on == each)
        at = at[[look in own for look in there[at].tolist()]]
        item, partner, length = _ordered(pattern[rows], there[at], lane[rows])
        parts.append((rows[item], at[partner] + window.start))
        matched += length
    for look in (look for look, lanes in lane_of.items() if len(lanes) > 1 and look >= 0):
        rows, at = np.flatnonzero(pattern == look), np.flatnonzero(there == look)
        matched += min(len(rows), len(at))
        if len(rows) <= len(at):  # else some have no partner, and no one knows which
            parts.append((np.repeat(rows, len(at)), np.tile(at, len(rows)) + window.start))
    item, partner = joined(parts, 2)
    return Partners(item, partner, matched / len(pattern))


def _ordered(pattern: Array, text: Array, lane: Array) -> tuple[Array, Array, int]:
    """Return (item, partner, how many have one) of two sequences that keep their order, as far as it shows."""
    if np.array_equal(pattern, text):
        return np.arange(len(pattern)), np.arange(len(text)), len(pattern)
    if not len(pattern) or not len(text) or len(pattern) * len(text) > _MOST_CELLS:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), 0
    if np.array_equal(np.sort(pattern), np.sort(text)):  # the same items, but in another order: only lanes decide
        return *_by_lane(pattern, text, lane), len(pattern)
    return _aligned(pattern, text)


def _by_lane(pattern: Array, text: Array, lane: Array) -> tuple[Array, Array]:
    """Return the pairs of items that are in order on each lane of the pattern.

    Items that look alike and are on one lane are those of the text in their order; others may be any of those that the
    order of their lane allows.
    """
    alone = [look for look in np.unique(pattern).tolist() if len(set(lane[pattern == look].tolist())) == 1]
    parts = [(np.flatnonzero(pattern == look), np.flatnonzero(text == look)) for look in alone]
    for each in np.unique(lane).tolist():
        rows = np.flatnonzero(lane == each)
        item, partner, length = _aligned(pattern[rows], text)
        if length < len(rows):  # not even a lane is in order: all that look alike may be
            item, partner = np.nonzero(pattern[rows][:, None] == text[None, :])
        wide = ~np.isin(pattern[rows[item]], alone)
        parts.append((rows[item[wide]], partner[wide]))
    item, partner = joined(parts, 2)
    return item, partner


def _aligned(pattern: Array, text: Array) -> tuple[Array, Array, int]:
    """Return (item, partner, length) of all longest common subsequences, and of shorter ones that may be the true one.

    What is additional on both sides may look alike by chance: a true alignment is shorter than the longest one by as
    much as is left over on both sides, at most. An item that a longest one leaves out has no partner.
    """
    before = _lengths(pattern, text)
    after = _lengths(pattern[::-1], text[::-1])[::-1, ::-1]
    longest = int(before[-1, -1])
    through = before[:-1, :-1] + after[1:, 1:] + 1
    through[pattern[:, None] != text[None, :]] = -1
    used = np.flatnonzero((through == longest).any(axis=0))
    span = int(used[-1] - used[0] + 1) if len(used) else 0
    slack = min(len(pattern), span) - longest
    skipped: Mask = (before[:-1] + after[1:]).max(axis=1) == longest
    through[skipped] = -1
    item, partner = np.nonzero(through >= max(1, longest - slack))
    return item, partner, longest


def _lengths(pattern: Array, text: Array) -> Array:
    """Return how long the longest common subsequence of each two beginnings is."""
    out = np.zeros((len(pattern) + 1, len(text) + 1), np.int16 if len(pattern) < 1 << 14 else np.int32)
    for row, look in enumerate(pattern.tolist()):
        longer = np.maximum(out[row, 1:], out[row, :-1] + (text == look))
        np.maximum.accumulate(longer, out=out[row + 1, 1:])
    return out
