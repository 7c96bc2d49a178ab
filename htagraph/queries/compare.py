"""The comparison of peers: which of several units (ranks, stages) takes longer than the others, by more than chance.

A unit is drawn several times: a rank in each step. The step is the unit of evidence: operators of one step share what
delays them, so they are no independent draws. The time of a unit is compared with the median of its peers' in the same
draw; the median of these differences over the draws is the unit's excess. It is more than chance if it exceeds the
spread of the differences from draw to draw, and the differences between the other units, too. Where no unit is slow in
the median draw, one may be in some (`slow_steps`): single steps stand out by more than the largest of all differences
would by chance, and they are of one rank, as delays that strike any rank alike do not strike the same one again and
again, and not at equal distances. What exceeds must be work: of a rank whose transfers take longer, the network is
slow. Where the steps are too few or too different to tell, what they consist of may: work that only one unit does is no
chance where it recurs, and work of one name, or of one side, varies less than a whole step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from math import exp, lgamma, log, log1p
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.statistics import CHANCE, MAD_TO_DEVIATION, MOST, SEVERAL, others_median, upper_quantile

__all__ = ["ENOUGH_STEPS", "MEDIAN_VARIANCE", "SURE_ERRORS", "Excess", "Parts", "compare", "slow_steps"]

Parts: TypeAlias = Callable[[Array], tuple[Array, Array]]
"""What the draws of some units, given by position, consist of, ns: time of work that no other unit does then, by unit
and draw; time of each name of work, by name, unit and draw."""
_CHANCE_OF_LITTLE = 1e-3
"""The probability `CHANCE` where there is half the evidence: two units, where no other shows how much units differ, or
a single draw, where the other units are all the evidence.

Chosen: measured with noise that lasts for several steps, 0 to 6 % of jobs of two ranks without a slow one have one,
with `CHANCE` 0 to 12 %. Doubled, 6.0 instead of 7.2 standard errors suffice in a job of 5 steps."""
_CHANCE_BETWEEN = 0.08
"""The same judged by the differences between the other units, in several draws.

Chosen: this second test alone need not convince; it protects from ranks that differ for good, or for several steps in a
row. Measured on generated noise: without it 4 to 30 % of jobs whose noise lasts several steps have a false straggler,
with it 0 to 2 %. Doubled, a rank of four must exceed the others by 3.3 instead of 4.8 of their deviations."""
_CHANCE_BETWEEN_FEW = 0.03
"""The same among few other ranks, whose differences beyond what errors explain add to the error.

Chosen: measured on generated noise, 0 to 1.3 % of jobs of 4 ranks have a false straggler (without this rule 0 to
0.5 %), and slow ranks are found at about four fifths of the difference. Doubled, ranks of a real job that differ by 1 %
for good have one."""
SURE_ERRORS = 2.0
"""Standard errors by which a slow rank's steps exceed those of every other rank, at least: the next may be as slow.

Chosen: few pairs of equally slow ranks differ by more. Doubled, one of two ranks 10 and 13 % slower is missed."""
_FEW_PEERS = 3
"""Other ranks up to which their spread alone is no measure of how much ranks differ: of three values it is often far
too small or too large. Chosen; measured as above. Doubled, noise that lasts makes 3.5 % false stragglers of 8 ranks
instead of 1 %."""
MEDIAN_VARIANCE = 1.57
"""Variance of a median over that of a mean of as many normal values: pi / 2. Doubled, errors are 1.4 times as large."""
ENOUGH_STEPS = 5
"""Up to so many steps the spread is the standard deviation; beyond, the median deviation, which no outlier changes, and
the correlation of one step's difference with the next one's is estimated, which with fewer is mostly chance.

Chosen: a median of five deviations is often far too small by chance (measured: 1.8 % false alarms instead of 0.2 % with
two ranks and five steps), and ranks that are 2 % slower are found in most jobs of five steps and in few of three.
Doubled, one outlier in ten steps hides such a rank, and recordings of 5 to 9 steps are called too short."""
_MAX_TREND = 0.9
"""The largest correlation of successive steps that is assumed: errors then are 4.4 times as large. Chosen. It cannot be
doubled."""
_LEAST_ERROR = 1e-4
"""The least standard error, as a share of a step: for jobs without any noise. Chosen: below what matters to anybody.
Doubled, a rank without any noise must be 0.1 % slower, which is below what counts as a straggler."""
_CHANCE_OF_DELAYS = 0.01
"""Probability that the largest difference of any rank in any step stands out by chance, and that delays which strike
any rank alike strike this one as often and as evenly.

Chosen: a step of ten in a job of four ranks stands out from 4.4 deviations; with four ranks five delays at any
distance suffice, or three at equal distances; with eight ranks four. Doubled, 4.1 deviations suffice, and four delays
of one rank of four."""


@dataclass(frozen=True, eq=False)
class Excess:
    """How much longer some ranks take for their steps than their peers do."""

    excess: npt.NDArray[np.float64]
    """By rank: median over the steps of the difference to the median of the others, ns; NaN where nothing compares."""
    error: npt.NDArray[np.float64]
    """By rank: the standard error of that, ns."""
    slow: npt.NDArray[np.bool_]
    """By rank: whether it is slower than its peers by more than chance; True for one rank at most."""
    when: npt.NDArray[np.bool_]
    """By rank and step: where the slow rank is slow: in all steps, or in those that stand out."""
    in_slow: npt.NDArray[np.float64]
    """By rank: mean over the steps where it is slow of the difference to the median of the others, ns, which is what
    they would save if it took no longer; NaN for ranks that are not slow."""


def compare(
    times: Array, roles: Array | None = None, *, work: Array | None = None, parts: Parts | None = None
) -> Excess:
    """Return how much longer each unit takes than its peers, the other units of its role, and whether by chance.

    Args:
        times: by unit and draw (rank and step), ns; NaN where unknown. A unit that lacks most draws is left out, and so
            is a draw that one of the others lacks.
        roles: by unit, a number shared by the units that do the same work by design; None if all do.
        work: the same times as if transfers took no time, ns; None where none are part of them.
        parts: what the draws consist of; asked where none of a role is slow by its draws.

    Example:
        >>> compare(np.array([[50.0, 52, 51], [51, 50, 52], [1010, 1012, 1009]])).slow.tolist()
        [False, False, True]
    """
    whole = _nothing(*times.shape)
    roles = np.zeros(len(times), np.int64) if roles is None else roles
    for number in np.unique(roles).tolist():
        rows = np.flatnonzero(roles == number)
        if len(rows) > 1:
            of_role = _of_role(times[rows], None if work is None else work[rows])
            if parts is not None and not of_role.slow.any() and np.isfinite(of_role.excess).all():
                _by_parts(of_role, times[rows], (times if work is None else work)[rows], *parts(rows))
            for field in fields(Excess):
                getattr(whole, field.name)[rows] = getattr(of_role, field.name)
    return whole


def _nothing(ranks: int, steps: int) -> Excess:
    """Return the excess of ranks with which nothing compares."""
    unknown = np.full((3, ranks), np.nan)
    return Excess(unknown[0], unknown[1], np.zeros(ranks, np.bool_), np.zeros((ranks, steps), np.bool_), unknown[2])


def _of_role(own: Array, work: Array | None) -> Excess:
    """Return what `compare` does for the units of one role."""
    result = _nothing(*own.shape)
    known = np.isfinite(own)
    ranks = np.flatnonzero(known.mean(axis=1) > MOST) if own.shape[1] else np.zeros(0, np.int64)
    steps = np.flatnonzero(known[ranks].all(axis=0)) if len(ranks) > 1 else np.zeros(0, np.int64)
    if not len(steps):
        return result
    times = own[np.ix_(ranks, steps)]
    usual = float(np.median(times))
    shares = times * (usual / np.median(times, axis=0))  # a rank that takes twice as long does so in short steps, too
    both = [_compared(each, _LEAST_ERROR * usual) for each in (times, shares)]
    typical, errors, at, is_slow = max(both, key=lambda each: (each[3], each[0][each[2]] / each[1][each[2]]))
    result.excess[ranks], result.error[ranks] = typical, errors
    beyond, in_steps = _beyond(times), np.ones(len(steps), np.bool_)
    if not is_slow:
        at, in_steps = slow_steps(beyond, _LEAST_ERROR * usual)
        is_slow = at >= 0
    if is_slow and (work is None or _is_work(beyond, _beyond(work[np.ix_(ranks, steps)]), at, in_steps)):
        result.slow[ranks[at]] = True
        result.when[ranks[at], slice(None) if in_steps.all() else steps[in_steps]] = True
        result.in_slow[ranks[at]] = beyond[at, in_steps].mean()
    return result


def _by_parts(found: Excess, times: Array, work: Array, alone: Array, names: Array) -> None:
    """Mark the unit that is slow by what its draws consist of, if there is one and its work agrees."""
    known = np.flatnonzero(np.isfinite(times).all(axis=0))
    beyond, in_work = _beyond(times[:, known]), _beyond(work[:, known])
    usual = float(np.median(times[:, known])) if len(known) else 0.0
    if usual <= 0:  # steps without any length tell nothing
        return
    scale = usual / np.median(times[:, known], axis=0)
    at, some = _by_extra_work(in_work * scale, alone[:, known] * scale)  # which is work, whatever transfers do
    for find in (_by_name, _by_delays, partial(_by_rare, beyond)) if at < 0 else ():
        at, some = find(found, names[:, :, known], usual)
        at = at if at >= 0 and _is_work(beyond, in_work, at, some) else -1
        if at >= 0:
            break
    if at >= 0:
        found.slow[at], found.in_slow[at] = True, beyond[at, some].mean()
        found.when[at, known[some]] = True


def _by_extra_work(beyond: Array, alone: Array) -> tuple[int, npt.NDArray[np.bool_]]:
    """Return (the unit that is slow by work that no other does, or -1; in which draws)."""
    # only it and more than once; no unit differs as much in the other draws, as units do where draws vary
    own, extra = beyond > 0, _beyond(alone)
    # behind a draw's last collective, it delays the next
    delays = np.concatenate([extra[:, :1], extra[:, :-1]], axis=1)
    own &= np.maximum(extra, delays) >= MOST * beyond
    own &= beyond > MOST * np.where(own, beyond, 0).max(initial=0)
    units = np.flatnonzero(own.any(axis=1))
    if len(units) != 1 or own.sum() < 2:  # once may be chance
        return -1, own[0]
    least = beyond[units[0]][own[units[0]]].min()
    some = beyond[units[0]] >= least
    return (int(units[0]) if np.abs(beyond[:, ~some]).max(initial=0) < least else -1), some


def _by_name(found: Excess, names: Array, usual: float) -> tuple[int, npt.NDArray[np.bool_]]:
    """Return (the unit that takes longer for work of some name and nothing makes up for it, or -1; draws: all)."""
    # what is more than chance is added up over names: what a unit does in one kernel others may do in another
    floor = _LEAST_ERROR * usual
    compared = [_compared(each, floor, tests=len(names)) for each in names]
    sure = [np.where(np.abs(typical) >= SURE_ERRORS * errors, typical, 0) for typical, errors, _, _ in compared]
    total, agrees = np.sum(sure, axis=0), (found.excess == found.excess.max()) & (found.excess >= found.error)
    slow = [at for typical, _, at, is_slow in compared if is_slow and agrees[at] and total[at] >= MOST * typical[at]]
    return max(slow, key=lambda at: float(total[at]), default=-1), np.ones(names.shape[2], np.bool_)


def _by_rare(beyond: Array, _: Excess, names: Array, usual: float) -> tuple[int, npt.NDArray[np.bool_]]:
    """Return (the unit that takes longer for work of some name that all do in few draws, or -1; in which)."""
    for each in names:
        some = each.any(axis=0)
        if 1 < some.sum() <= MOST * len(some) and each[:, some].all():
            compared = _compared(each[:, some], _LEAST_ERROR * usual, tests=len(names))
            at, is_slow = compared[2:]
            if is_slow and 0 < MOST * beyond[at, some].mean() <= compared[0][at]:
                return at, some
    return -1, np.zeros(names.shape[2], np.bool_)


def _by_delays(_: Excess, names: Array, usual: float) -> tuple[int, npt.NDArray[np.bool_]]:
    """Return (the unit that work of some name delays, or -1; in which draws): `slow_steps` by name."""
    for each in names:
        at, some = slow_steps(_beyond(each), _LEAST_ERROR * usual, min(float(np.median(each)) / usual, 1.0))
        if at >= 0:
            return at, some
    return -1, np.zeros(names.shape[2], np.bool_)


def _beyond(times: Array) -> npt.NDArray[np.float64]:
    """Return the difference of each time to the median of the other ranks' in that step."""
    step = np.broadcast_to(np.arange(times.shape[1]), times.shape)
    return np.asarray(times - others_median(times.ravel(), step.ravel()).reshape(times.shape))


def _is_work(beyond: Array, beyond_in_work: Array, at: int, steps: Array) -> bool:
    """Return whether what a rank exceeds its peers by in some steps is its work, and not the transfers."""
    return bool(np.median(beyond_in_work[at, steps]) >= MOST * np.median(beyond[at, steps]))


def _compared(times: Array, floor: float, *, tests: int = 1) -> tuple[Array, Array, int, bool]:
    """Return (each rank's typical difference to the others, its error, the slowest rank, if by more than chance)."""
    # times are by rank and step, `floor` is the least error; of several `tests`, each is as much stricter
    differences = _beyond(times)
    typical = np.median(differences, axis=1)
    errors = _errors(differences, typical)
    errors = np.maximum(np.where(np.isnan(errors), _between(typical), errors), floor)
    at = int(typical.argmax())
    return typical, errors, at, bool(typical[at] > 0) and _more_than_chance(times, typical, (errors, floor), at, tests)


def _errors(differences: Array, typical: Array) -> npt.NDArray[np.float64]:
    """Return the standard error of each rank's typical difference, ns; NaN for a single step."""
    # the spread is the rank's own or the median of all ranks', whichever is larger
    count = differences.shape[1]
    if count < 2:
        return np.full(len(differences), np.nan)
    if count <= ENOUGH_STEPS:
        spread = differences.std(axis=1, ddof=1)
    else:
        spread = MAD_TO_DEVIATION * np.median(np.abs(differences - typical[:, None]), axis=1)
        spread *= np.sqrt(count / (count - 1))
    usual = float(np.median(spread))
    return np.maximum(spread, usual) * np.sqrt(MEDIAN_VARIANCE / count) * _lengthened(differences, typical, usual)


def _lengthened(differences: Array, typical: Array, spread: float) -> float:
    """Return the factor of errors where a step's difference resembles the one before: such steps are fewer facts."""
    count = differences.shape[1]
    if count <= ENOUGH_STEPS or not spread:
        return 1.0
    rest = np.clip(differences - typical[:, None], -3 * spread, 3 * spread)
    total = float((rest**2).sum())
    trend = float((rest[:, 1:] * rest[:, :-1]).sum()) / total if total else 0.0
    trend = min(max(trend + (1 + 3 * trend) / count, 0.0), _MAX_TREND)  # estimates from few steps are too small
    return float(np.sqrt((1 + trend) / (1 - trend)))


def _between(typical: Array) -> float:
    """Return the deviation of the ranks' typical differences without the largest, ns."""
    rest = np.delete(typical, typical.argmax())
    return float(rest.std(ddof=1)) if len(rest) > 1 else 0.0


def _more_than_chance(times: Array, typical: Array, least: tuple[Array, float], at: int, tests: int) -> bool:
    """Return whether the rank at a position takes longer than all others by more than chance."""
    # `least` are the errors and the least one
    size, count = times.shape
    errors, floor = least
    freedom = (count - 1) * max(1.0, (size - 1) / 2)
    if count > 1:
        next_one = float(np.median(times[at] - np.delete(times, at, 0), axis=1).min())
        chance = CHANCE if size > 2 else _CHANCE_OF_LITTLE
        if typical[at] < upper_quantile(chance / size / tests, freedom) * errors[at]:
            return False
        if next_one < SURE_ERRORS * errors[at]:
            return False
    rest = np.delete(typical, at)
    if len(rest) < 2:
        return count > 1
    if count == 1 and len(rest) <= 2:
        return False
    beyond = float(typical[at] - rest.mean())
    if count > 1 and len(rest) <= _FEW_PEERS:
        return beyond >= _needed_among_few(rest, np.delete(errors, at), max(float(errors[at]), floor), freedom)
    chance = _CHANCE_BETWEEN if count > 1 else _CHANCE_OF_LITTLE
    needed = upper_quantile(chance / size, len(rest) - 1) * np.sqrt(1 + 1 / len(rest))
    return bool(beyond >= needed * max(float(rest.std(ddof=1)), floor))


def _needed_among_few(rest: Array, errors: Array, error: float, freedom: float) -> float:
    """Return by how much a rank must exceed the mean of few others: differences that errors explain count once."""
    # the degrees of freedom of the sum are Welch's and Satterthwaite's
    count = len(rest)
    between = max(0.0, float(rest.var(ddof=1) - (errors**2).mean())) * (1 + 1 / count)
    both = between + error**2
    of_both = both**2 / (between**2 / (count - 1) + error**4 / freedom)
    return float(upper_quantile(_CHANCE_BETWEEN_FEW / (count + 1), of_both) * np.sqrt(both))


def slow_steps(differences: Array, floor: float, share: float = 1.0) -> tuple[int, npt.NDArray[np.bool_]]:
    """Return (the row of the rank that is slow in some steps, or -1; in which steps).

    Where the differences are those of one piece of work that takes a `share` of a step: what interrupts a rank hits it
    again with that probability, and what delays this work of any rank is seldom equally long, nor only on this one.

    Example:
        >>> held_up = np.zeros((4, 10))
        >>> held_up[1, [1, 4, 7]] = 52.0
        >>> row, steps = slow_steps(held_up, 1.0)
        >>> row, np.flatnonzero(steps).tolist()
        (1, [1, 4, 7])
    """
    ranks, count = differences.shape
    none = np.zeros(count, np.bool_)
    if count <= SEVERAL:
        return -1, none
    rest = differences - np.quantile(differences, 0.5, axis=1, method="lower")[:, None]
    faster = np.sort(rest, axis=1)[:, : (count - 1) // 2]  # the half without delays
    spread = np.sqrt((faster**2).mean(axis=1))
    spread = np.maximum(np.maximum(spread, np.median(spread)), floor)
    freedom = (count - 1) * max(1.0, (ranks - 1) / 2)
    stands_out = rest > upper_quantile(_CHANCE_OF_DELAYS / rest.size, freedom) * spread[:, None]
    row = int(np.where(stands_out, rest, 0).sum(axis=1).argmax())
    steps = stands_out[row]
    begins = _begins(steps)
    if len(begins) < SEVERAL:
        return -1, none
    alike = stands_out & (rest > MOST * np.median(rest[row][steps]))
    others = sum(len(_begins(each)) for at, each in enumerate(alike) if at != row)
    chance = ranks * _at_least(len(begins), len(begins) + others, 1 / ranks) * _chance_of_distances(begins, count)
    if share < 1 and not others:
        chance *= max(share ** (len(begins) - 1), _chance_of_lengths(rest[row][steps]))
    return (row, steps) if chance < _CHANCE_OF_DELAYS else (-1, none)


def _begins(steps: Array) -> npt.NDArray[np.int64]:
    """Return where runs of True begin: what lasts for several steps is one delay."""
    return np.flatnonzero(steps & ~np.concatenate([[False], steps[:-1]]))


def _at_least(number: int, trials: int, share: float) -> float:
    """Return the probability that at least `number` of independent trials succeed; a share of them, below 1, does."""
    return sum(
        exp(_log_ways(trials, k) + k * log(share) + (trials - k) * log1p(-share)) for k in range(number, trials + 1)
    )


def _log_ways(count: int, number: int) -> float:
    """Return the logarithm of the ways to choose some of so many, whose number of thousands of steps is no float."""
    return lgamma(count + 1) - lgamma(number + 1) - lgamma(count - number + 1)


def _chance_of_lengths(lengths: Array) -> float:
    """Return the probability that delays of any length up to the longest are as equal by chance."""
    spread, number = float(np.ptp(lengths) / lengths.max()), len(lengths)
    return number * spread ** (number - 1) - (number - 1) * spread**number


def _chance_of_distances(begins: Array, count: int) -> float:
    """Return the chance of steps at such equal distances, none missing at begin or end; 1 unless they are even."""
    number, first, last = len(begins), int(begins[0]), int(begins[-1])
    distances = np.unique(np.diff(begins))
    if len(distances) > 1 or first >= distances[0] or last + distances[0] < count:
        return 1.0
    distance = np.arange(2, count)
    # the first of them, such that as many of the same distance follow until the end, and none comes before
    earliest = np.maximum(count - number * distance, 0)
    latest = np.minimum(count - 1 - (number - 1) * distance, distance - 1)
    even = int(np.maximum(latest - earliest + 1, 0).sum())
    return min(1.0, 2 * even * exp(-_log_ways(count, number)))  # two ways to be conspicuous: often, or evenly
