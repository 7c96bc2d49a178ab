"""Which ranks of one host share its clock, as their collectives show.

On a host of few ranks each pair is compared. Of many ranks those next to each other in a collective are: the number of
pairs grows with the members of collectives, not with the square of the ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from htagraph.graph.barrier_times import BarrierTimes, TimeTable
from htagraph.graph.clock_fits import MIN_FOR_DRIFT, limits
from htagraph.graph.tolerances import LIMITS

__all__ = ["shared_clocks"]


_MIN_FOR_OFFSET: Final = 4
"""Collectives whose ends prove that ranks of one host do not share a clock. Chosen: fewer may agree by chance. Doubled,
short recordings of skewed ranks of one host have unknown clocks."""
_ALL_PAIRS: Final = 64
"""Ranks of a host up to which each pair is compared. Chosen: hosts have up to 16 devices, racks that share a clock 72.
Doubled, hosts of 65 to 128 ranks take up to 32 times as long, and the verdict on them rests on more collectives."""
_NEIGHBOURS: Final = 2
"""Ranks behind each in a collective with which it is compared on larger hosts. Chosen: where every second rank is on
another clock, each still meets its own. Doubled, it takes twice as long."""


def shared_clocks(host: Sequence[int], barriers: BarrierTimes) -> tuple[list[list[int]], set[int]]:
    """Return the columns grouped by clocks, and the hosts whose ranks some collective shows to have different ones.

    A group are ranks of one host that collectives show to share its clock, or one rank. If a rank's collectives
    contradict that it shares the clock of any other rank of its host, nobody there does.

    Args:
        host: the host of each column; -1 if it is unknown.
        barriers: the times of the collectives.

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
        if differing and len(of_host) > _ALL_PAIRS:
            agree += _compared(barriers, _between(_groups(of_host, agree)))[0]
        alone = differing.difference(*agree)
        units += _groups(of_host, [] if alone else agree)
    return sorted(units), contradicted


def _pairs(of_host: list[int], barriers: BarrierTimes) -> list[tuple[int, int]]:
    """Return the pairs of ranks of a host that are compared: all, or those near each other in a collective."""
    if len(of_host) <= _ALL_PAIRS:
        return list(combinations(of_host, 2))
    some = barriers.members(of_host)
    some = some[barriers.present[some]]
    some = some[np.lexsort((barriers.column[some], barriers.row[some]))]
    row, column = barriers.row[some], barriers.column[some]
    found = [np.zeros(0, np.int64)]
    for ahead in range(1, _NEIGHBOURS + 1):
        same = row[:-ahead] == row[ahead:]
        found.append(column[:-ahead][same] * barriers.ranks + column[ahead:][same])
    a, b = np.divmod(np.unique(np.concatenate(found)), barriers.ranks)
    return list(zip(a.tolist(), b.tolist(), strict=True))


def _between(groups: list[list[int]]) -> list[tuple[int, int]]:
    """Return a pair of ranks for each two groups, of which neighbours did not tell that they share a clock.

    Of more groups than `_ALL_PAIRS`, none: that many clocks are not those of one host.
    """
    return list(combinations([each[0] for each in groups], 2)) if len(groups) <= _ALL_PAIRS else []


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
    low, high = limits(pair.waited, pair.start, 0)
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
    if len(apart) >= MIN_FOR_DRIFT:
        trend = np.polyval(np.polyfit(when - when.mean(), apart - middle, 1), when - when.mean())
    spread = max(LIMITS.resolution_ns, float(np.quantile(np.abs(apart - middle - trend), LIMITS.typical)))
    if max(abs(middle), float(np.ptp(trend))) <= LIMITS.spreads * spread:
        return True
    return False if len(apart) >= _MIN_FOR_OFFSET else None
