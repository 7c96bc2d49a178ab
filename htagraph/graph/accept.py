"""Whether a regularity beyond chance is a wait: one likelihood ratio for all waits that only times tell.

A rule proposes which ends may have released the waits of a *role*: operators of one name in one region, a call site,
the pauses between the same moments, on whatever lane. This module says how surely they did. A wait ends within some
reach behind the end that released it. How long the reach is, and how many of its waits a role owes to these ends, is
not known in advance, and none of it is chosen to fit. A wait that was over before the end, or long after it, speaks
against it.

Chance is a moment that lies elsewhere among the ends around it (`behind_ends`), any moment of the time that a stream
was idle (`after_idle`), or work of the thread's own, which lasts as long as that work did other times (`as_own_work`).
Where kernels and calls of several ranks meet, the chance is measured, and the same ratio decides (`of_agreement`).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = [
    "Ends",
    "Odds",
    "after_idle",
    "as_own_work",
    "behind_ends",
    "confidence",
    "is_refuted",
    "likely",
    "median_of_others",
    "of_agreement",
    "of_each",
    "of_recorded",
    "ratio",
    "rung",
    "support",
]

_SHARES = (np.arange(20) + 0.5) / 20
"""Shares of a role's waits that a candidate may have released, none likelier than another before it is looked at."""
_RARE = 25.0
"""So many candidates stand for one that is a wait: a role has several, and most operators wait for nothing."""

Odds: TypeAlias = npt.NDArray[np.float64]
"""By reach and wait: 0 where the wait does not end within the reach, else 1 / (how likely it does so by chance)."""


class Ends(NamedTuple):
    """The ends of some activities, in order: each may have released a thread that went on right behind it."""

    row: Ints
    """The activities, by their end."""
    time: Ints
    """When they ended, ns."""

    @staticmethod
    def of(rows: Array, time: Array) -> Ends:
        """Return the ends of some activities, at some times (ns)."""
        return Ends(rows, time).take(np.argsort(time, kind="stable"))

    def take(self, rows: Array) -> Ends:
        """Return some of the ends, by mask or in their order."""
        return Ends(self.row[rows], self.time[rows])

    def before(self, by: int) -> Ends:
        """Return the ends as if they were sooner, by some ns."""
        return Ends(self.row, self.time - by)

    def last(self, moment: Array) -> Ints:
        """Return the place of the last end up to each moment (ns), or -1."""
        return np.searchsorted(self.time, moment, side="right") - 1

    def between(self, since: Array, until: Array) -> Mask:
        """Return whether any end lies behind a moment and up to another one, ns."""
        return self.last(until) > self.last(since)

    def chance(self, since: Array, until: Array, reach: int, least: Array | int = 0) -> Array:
        """Return the share of each time, at least `least` ns of it, that is at most `reach` ns behind an end in it.

        So likely a moment seems to be released by chance.
        """
        near = np.zeros(len(self.time) + 1, np.int64)  # up to each end; behind the last one comes none
        np.cumsum(np.minimum(np.diff(self.time, append=np.iinfo(np.int64).max), reach), out=near[1:])
        covered = near[self.last(until) + 1] - near[self.last(since) + 1]
        return np.minimum(1, np.maximum(covered, least) / np.maximum(1, until - since))


def behind_ends(ends: Ends, moment: Array, idle: Array, longest: int) -> Odds:
    """Return the odds of waits that went on at some moments (ns), after they were idle, against moments around these.

    Only moments shortly before and after count: operators end in phases of a step, and a thread may wake in the same
    phase without being woken by them.

    Args:
        ends: the ends that may have released the waits, the last one before each.
        moment: when each wait was over, ns.
        idle: how long the thread had been idle by then, ns. A wait ends in the later part of that.
        longest: the longest reach, ns.
    """
    last = ends.last(moment)
    delay = moment - ends.time[last]
    agrees = (last >= 0) & (delay <= LIMITS.most * idle)
    odds = []
    for reach in _reaches(longest):
        around = np.minimum(idle, LIMITS.few * reach)
        chance = ends.chance(moment - around, moment + around, reach, np.clip(delay, 1, reach))
        odds.append(np.where(agrees & (delay <= reach), 1 / chance, 0))
    return np.array(odds)


def after_idle(ends: Ends, moment: Array, since: Array, window: int) -> Odds:
    """Return the odds of work that starts at some moments (ns), against any moment since it could have started (ns).

    How soon waiting work starts was measured: there is one reach.

    Args:
        ends: the ends that may have released the work, the last one before each start.
        moment: when each work starts, ns. By the errors of clocks, it may seem to start a tick before an end.
        since: when each work could have started if it waited for no end, ns; before `moment`.
        window: the reach, ns.
    """
    until = moment + LIMITS.tick_ns
    last = ends.last(until)
    end = ends.time[np.maximum(last, 0)] if len(ends.time) else np.zeros_like(moment)
    near = (last >= 0) & support(end, moment, since, window, LIMITS.tick_ns)[1]
    return of_agreement(near, ends.chance(since, until, window, 1))


def of_agreement(agrees: Mask, chance: Array) -> Odds:
    """Return the odds of waits of which it is known how likely each agrees by chance.

    Example:
        >>> of_agreement(np.array([True, False]), np.array([0.25, 0.25])).tolist()
        [[4.0, 0.0]]
    """
    return np.where(agrees, 1 / np.minimum(1.0, chance), 0.0)[None]


def as_own_work(
    lasts: Array,
    until: Array,
    longest: int,
    *,
    fitted: bool,
    possible: Array | bool = True,
) -> Odds:
    """Return the odds of pauses of a role that end where some work does, against work of the thread's own.

    Work of its own ends anywhere within its length; or it lasts about as long as a pause before it. Where all are
    equally long, and so is the work, one agreement means all.

    Args:
        lasts: how long each pause lasts, in their order, ns. Of many pauses, some are looked at, evenly spread.
        until: how long after the beginning of each pause the work ends, ns.
        longest: the longest reach, ns.
        fitted: whether `until` follows from the other pauses: then the first one tells nothing by itself.
        possible: which pauses may have waited for the work, whatever the reach.
    """
    sample = slice(None, None, max(1, -(-len(lasts) // LIMITS.tested)))
    possible = np.broadcast_to(possible, len(lasts))[sample]
    lasts = lasts[sample]
    until = until[sample]
    reaches = _reaches(longest)
    alike = _alike_before(lasts, until, reaches)
    odds = []
    for place, reach in enumerate(reaches):
        anywhere = 2 * reach / np.maximum(1, lasts)
        wider = reach / np.array(reaches[place:])
        chance = np.maximum(anywhere, (alike[place:] * wider[:, None]).max(axis=0))
        agrees = possible & (np.abs(lasts - until) <= reach)
        odds.append(np.where(agrees, 1 / np.minimum(1, chance), 0))
        odds[-1][: int(fitted)] = 1
    return np.array(odds)


def _alike_before(lasts: Array, until: Array, reaches: list[int]) -> Array:
    """Return by reach, for each pause, the share of earlier pauses that would have ended so near its work, too."""
    count = np.arange(len(lasts))
    apart = np.where(count < count[:, None], np.abs(lasts - until[:, None]), np.iinfo(np.int64).max)
    return np.array([(apart <= reach).sum(axis=1) / np.maximum(1, count) for reach in reaches])


def median_of_others(values: Array) -> Array:
    """Return for each of several values the median of all but this value.

    Example:
        >>> median_of_others(np.array([1, 9, 2, 3])).tolist()
        [3.0, 2.0, 3.0, 2.0]
    """
    place = np.empty(len(values), np.int64)
    order = np.argsort(values, kind="stable")
    place[order] = np.arange(len(values))
    middle = ((len(values) - 2) // 2, (len(values) - 1) // 2)
    below, above = (values[order[number + (number >= place)]] for number in middle)
    return (below + above) / 2


def _reaches(longest: int) -> list[int]:
    """Return how far behind an end waits may end, ns: from a tick on, each twice the one before."""
    count = int(np.ceil(np.log2(max(1.0, longest / LIMITS.tick_ns))))
    return [min(LIMITS.tick_ns << number, longest) for number in range(count + 1)]


def ratio(*hypotheses: Odds) -> tuple[float, float]:
    """Return (how many times likelier waits are if a candidate released them than by chance, the share it released).

    A wait that is released ends within the reach, where chance has it with p: 1/p times likelier, and 0 elsewhere.
    With a share s of waits released and the remaining waits left to chance, each contributes 1 - s + s/p, or 1 - s.
    The mean over shares, reaches and hypotheses is the ratio. By chance its mean is 1: it exceeds x once in x times.

    The ratio is given as its natural logarithm.

    Args:
        hypotheses: the odds of the waits, once for each way in which the candidate may have released them.
    """
    log = []
    for odds in hypotheses:
        of_shares = _by_share(odds)
        log.append(of_shares - np.log(of_shares.size * len(hypotheses)))
    total = np.concatenate(log)
    most = float(total.max())
    weight = np.exp(total - most).sum(axis=0)
    return most + float(np.log(weight.sum())), float((weight * _SHARES).sum() / weight.sum())


def _by_share(odds: Odds) -> Odds:
    """Return by reach and share the logarithm of how many times likelier the waits are than by chance."""
    odds = odds[:, :: -(-odds.shape[1] // LIMITS.tested)]  # so many, evenly spread, tell as much; for time
    return np.log(1 - _SHARES + _SHARES * odds[:, :, None]).sum(axis=1)


def confidence(*hypotheses: Odds, alternatives: float = 1, natural: bool = False) -> int:
    """Return how surely a candidate releases a wait of a role, percent, a rung of `Confidence`; 0 if not accepted.

    That is how likely the role waits for the candidate, times the share of its waits that do. It is accepted where this
    is likelier than not.

    Args:
        hypotheses: as `ratio` takes them.
        alternatives: in how many ways else the waits may have agreed with the candidate, or with another one like it.
        natural: whether a wait is as likely as not before times are looked at: nothing else takes so long.
    """
    log, share = ratio(*hypotheses)
    return rung(100 * share * likely(log, alternatives if natural else _RARE * alternatives), Confidence.SEEN)


def of_each(odds: Odds) -> Ints:
    """Return how surely each wait of a role was released by its own candidate, percent, a rung of `Confidence`, or 0.

    Something released each of these waits, this candidate or another one: it is natural, as `confidence` says. A role
    may owe few of its waits to such candidates; a wait that chance does not explain then is one of them.

    Args:
        odds: the odds of the waits.
    """
    log = _by_share(odds)
    total = log - np.log(log.size)
    most = float(total.max())
    weight = np.exp(total - most)
    waits = likely(most + float(np.log(weight.sum())), 1)
    released = _SHARES * odds[:, :, None]
    of_wait = released / (1 - _SHARES + released)
    percent = 100 * waits * (weight[:, None] * of_wait).sum(axis=(0, 2)) / weight.sum()
    return np.array([rung(value, Confidence.SEEN) for value in percent.tolist()], np.int64)


def likely(log: float, candidates: float) -> float:
    """Return how likely a candidate is the one of so many that is a wait, given the logarithm of its ratio."""
    return float(np.exp(-np.logaddexp(0, np.log(candidates) - log)))


def rung(percent: float, most: Confidence) -> int:
    """Return the highest rung of `Confidence` up to a percentage and to `most`; 0 below `Confidence.EVEN`."""
    rungs = (level for level in Confidence if Confidence.EVEN <= level <= min(percent, most))
    return int(max(rungs, default=0))


def of_recorded(over: Array, free: Array, end: Array, window: int, tolerance: int) -> tuple[Odds, Mask]:
    """Return (the odds of recorded waits for some work against any moment of their length, which waits it explains).

    A call waits for work of a device, and how soon it returns at most was measured. One that took visibly long though
    the work was over, or returned long after it, did not wait for it.

    Args:
        over: when each wait was over, ns.
        free: when it would have been if it had waited for nothing, ns.
        end: when the work ended, ns.
        window: the longest reach, ns.
        tolerance: by the errors of clocks, a wait may seem to end so long before the work, ns.
    """
    _, explained = support(end, over, free, window, tolerance)
    lasts = over - free
    visible = lasts > LIMITS.tick_ns
    odds = []
    for reach in _reaches(window):
        chance = np.minimum(1, (reach + tolerance) / np.maximum(1, lasts))
        agrees = explained & (over - end <= reach)
        odds.append(np.where(agrees, 1 / chance, np.where(visible, 0.0, 1.0)))
    return np.array(odds), explained


def support(end: Array, over: Array, free: Array, window: Array | int, tolerance: Array | int) -> tuple[Mask, Mask]:
    """Return (which waits can have been for some work, which waits that work explains).

    A wait that was over before the end of the work refutes it, where the errors of clocks are less than `tolerance`. A
    wait that was over right behind the work, at most `window` later, and would have ended sooner without it (at `free`,
    if it had waited for nothing), supports it. Times are in ns.
    """
    possible = end <= over + tolerance
    return possible, possible & (end > free + LIMITS.tick_ns) & (over - end <= window)


def is_refuted(possible: Mask) -> bool:
    """Return whether more waits of a role were over before the work ended than damaged records do."""
    return bool(np.count_nonzero(possible) < (1 - LIMITS.damaged) * len(possible))
