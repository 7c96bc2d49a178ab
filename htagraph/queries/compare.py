"""Which ranks take longer for their steps than their peers do, by more than chance.

The step is the unit of evidence: operators of one step share what delays them, so they are no independent draws. The
own time of a rank in a step (`own_steps`) is compared with the median of its peers' in the same step; the median of
these differences over the steps is the rank's excess. It is more than chance if it exceeds the spread of the
differences from step to step, and the differences between the other ranks, too. Where no rank is slow in the median
step, one may be in some (`slow_steps`). What exceeds must be work: of a rank whose transfers take longer, the network
is slow. Where the steps are too few or too different to tell, the ratios of single activities may (`rank_pace`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import exp, lgamma, log, log1p
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.statistics import MAD_TO_DEVIATION, others_median, upper_quantile
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.own_steps import OwnSteps, own_steps
from htagraph.queries.peers import peers, rank_roles
from htagraph.queries.rank_speed import rank_pace, rank_speed

__all__ = ["Excess", "Paces", "SlowRanks", "Speed", "SpeedOf", "excess_of", "slow_among", "slow_ranks", "slow_steps"]

Paces: TypeAlias = Callable[[Array], Sequence[Array]]
"""The paces of some ranks, given by position: time by rank and batch for one kind of work each (`rank_pace`)."""
SpeedOf: TypeAlias = Callable[[Array, Array, bool], Array]
"""What `rank_speed` returns, given positions of ranks, numbers of steps, and whether it is about kernels."""
_CHANCE = 5e-3
"""Probability that a rank of a job is slower than its peers by that much by chance, judged by the spread of its steps.

Chosen: one of 200 jobs passes this test by chance if steps are independent draws, and fewer pass the next one, too.
Doubled, a difference of 4.0 instead of 4.5 standard errors suffices in a job of 4 ranks and 5 steps."""
_CHANCE_OF_TWO = 1e-3
"""The same for two ranks, where no other rank shows how much ranks differ.

Chosen: measured with noise that lasts for several steps, 0 to 6 % of jobs without a slow rank have one, with `_CHANCE`
0 to 12 %. Doubled, 6.0 instead of 7.2 standard errors suffice in a job of 5 steps."""
_CHANCE_BETWEEN = 0.08
"""The same judged by the differences between the other ranks, in a job of several steps.

Chosen: this second test alone need not convince; it protects from ranks that differ for good, or for several steps in a
row. Measured on generated noise: without it 4 to 30 % of jobs whose noise lasts several steps have a false straggler,
with it 0 to 2 %. Doubled, a rank of four must exceed the others by 3.3 instead of 4.8 of their deviations."""
_CHANCE_IN_ONE_STEP = 1e-3
"""The same in a recording of a single step, where the other ranks are all the evidence.

Chosen: as `_CHANCE`. Doubled, a rank of eight must exceed the others by 6.6 instead of 7.7 of their deviations."""
_MIN_ERRORS_TO_NEXT = 2.0
"""Standard errors by which a slow rank's steps exceed those of every other rank, at least: the next may be as slow.

Chosen: few pairs of equally slow ranks differ by more. Doubled, one of two ranks 10 and 13 % slower is missed."""
_CHANCE_BETWEEN_FEW = 0.03
"""The same among few other ranks, whose differences beyond what errors explain add to the error.

Chosen: measured on generated noise, 0 to 1.3 % of jobs of 4 ranks have a false straggler (without this rule 0 to
0.5 %), and slow ranks are found at about four fifths of the difference. Doubled, ranks of a real job that differ by 1 %
for good have one."""
_FEW_PEERS = 3
"""Other ranks up to which their spread alone is no measure of how much ranks differ: of three values it is often far
too small or too large. Chosen; measured as above. Doubled, noise that lasts makes 3.5 % false stragglers of 8 ranks
instead of 1 %."""
_MIN_PEERS_BETWEEN = 2
"""Peers whose differences show how much ranks differ: with one, there is no difference. It cannot be doubled."""
_MIN_STAGES = 3
"""Stages of a single pipeline that can be compared: of two, nobody can tell which one is as it should be. Doubled,
pipelines of three to five stages are not judged."""
_MEDIAN_VARIANCE = 1.57
"""Variance of a median over that of a mean of as many normal values: pi / 2. Doubled, errors are 1.4 times as large."""
_FEW_STEPS = 5
"""Up to so many steps the spread is the standard deviation; beyond, the median deviation, which no outlier changes.

Chosen: a median of five deviations is often far too small by chance (measured: 1.8 % false alarms instead of 0.2 % with
two ranks and five steps). Doubled, one outlier in ten steps hides a rank that is 2 % slower."""
_MIN_STEPS_FOR_TREND = 6
"""Steps from which the correlation of one step's difference with the next one's is estimated. Chosen: with fewer the
estimate is mostly chance. Doubled, in jobs of 6 to 11 steps, only the differences between ranks protect from noise that
lasts."""
_MAX_TREND = 0.9
"""The largest correlation of successive steps that is assumed: errors then are 4.4 times as large. Chosen. It cannot be
doubled."""
_LEAST_ERROR = 1e-4
"""The least standard error, as a share of a step: for jobs without any noise. Chosen: below what matters to anybody.
Doubled, a rank without any noise must be 0.1 % slower, which is below what counts as a straggler."""
_MIN_SHARE_IN_WORK = 0.5
"""Share of a rank's excess that remains if transfers take no time, at least: else its network is slow, not the rank.

Chosen: the middle between none and all of it. It cannot be doubled; at 0.9 a slow rank whose transfers vary as much as
a tenth of its excess is missed."""


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
    """By rank: median over the steps where it is slow of the difference to the median of the others, ns; NaN for ranks
    that are not slow."""


class Speed(NamedTuple):
    """How much longer a stage takes for the same work than the others."""

    ratio: float
    """The time for the same work, as a multiple of the others' median."""
    kinds: tuple[str, ...]
    """The kinds of activity that are slower: those of the device, or those of the host."""


@dataclass(frozen=True, eq=False)
class SlowRanks(Excess):
    """The same for all ranks of a job, each compared with the ranks of its role."""

    own: npt.NDArray[np.float64]
    """By rank: median over the steps of what it takes by itself, ns."""
    lasted_ns: float
    """Median time from step to step as recorded, ns; NaN if nothing compares."""
    steps: npt.NDArray[np.int64]
    """Numbers of the steps, the columns of `when`; -1 alone for a job without steps."""
    roles: npt.NDArray[np.int64]
    """By rank: a number shared by ranks that do the same work by design (`rank_roles`)."""
    stage: Speed | None
    """How the slow rank's work compares with that of the other stages, if it is one of a single pipeline."""
    by_step: npt.NDArray[np.float64]
    """By rank and step: what the rank takes by itself, ns; NaN where unknown."""


def slow_ranks(graph: DependencyGraph) -> SlowRanks:
    """Return how much longer each rank takes for its steps than the ranks of its role do, and whether by chance.

    Args:
        graph: the job.
    """
    peer = peers(graph)

    def paces(rows: Array) -> list[Array]:
        return [rank_pace(graph, rows, peer, device=each) for each in (True, False)]

    def speed_of(rows: Array, steps: Array, device: bool) -> Array:  # noqa: FBT001 - a `SpeedOf`
        return rank_speed(graph, rows, steps, device=device)

    return slow_among(own_steps(graph), rank_roles(graph), paces, speed_of)


def slow_among(times: OwnSteps, of_ranks: tuple[Array, Array], paces: Paces, speed_of: SpeedOf) -> SlowRanks:
    """Return what `slow_ranks` does, of a job whose work is compared elsewhere.

    Args:
        times: how long each rank takes for each step by itself.
        of_ranks: the role and the pipeline of each rank (`rank_roles`).
        paces: compares single activities of ranks.
        speed_of: compares stages of a pipeline.
    """
    whole = _nothing(*times.own.shape)
    roles, pipeline = of_ranks
    stages: dict[int, Speed] = {}
    for number in np.unique(roles).tolist():
        rows = np.flatnonzero(roles == number)
        if len(rows) > 1:
            of_role = excess_of(times.own[rows], times.work[rows])
            _put(whole, rows, _by_pace(of_role, [] if of_role.slow.any() else paces(rows)))
    for number in np.unique(pipeline).tolist():
        rows = np.flatnonzero(pipeline == number)
        if len(rows) >= _MIN_STAGES and np.isnan(whole.excess[rows]).all():
            of_stages, speed = _of_stages(speed_of, rows, times.steps)
            _put(whole, rows, of_stages)
            stages |= dict.fromkeys(rows[of_stages.slow].tolist(), speed)
    if int(whole.slow.sum()) > 1:  # of several roles, only the rank that takes longest can hold up the job
        whole.slow[:] &= whole.in_slow == whole.in_slow[whole.slow].max()
        whole.when[~whole.slow] = False
    return SlowRanks(
        whole.excess, whole.error, whole.slow, whole.when, np.where(whole.slow, whole.in_slow, np.nan),
        _row_medians(times.own), _median(times.lasted), times.steps, roles,
        stages.get(int(whole.slow.argmax())) if whole.slow.any() else None, times.own,
    )  # fmt: skip


def _nothing(ranks: int, steps: int) -> Excess:
    """Return the excess of ranks with which nothing compares."""
    unknown = np.full((3, ranks), np.nan)
    return Excess(unknown[0], unknown[1], np.zeros(ranks, np.bool_), np.zeros((ranks, steps), np.bool_), unknown[2])


def _put(whole: Excess, rows: Array, part: Excess) -> None:
    """Write the excess of some ranks to their rows."""
    for field in fields(Excess):
        getattr(whole, field.name)[rows] = getattr(part, field.name)


def _of_stages(speed_of: SpeedOf, rows: Array, steps: Array) -> tuple[Excess, Speed]:
    """Return the excess of the stages of a single pipeline, which differ by design: by how fast they do like work.

    Also how fast the slow one is, which says nothing if none is slow.
    """
    both = []
    for kinds, device in ((("computation", "memory"), True), (("host",), False)):
        speed = speed_of(rows, steps, device)
        excess = excess_of(speed)
        own = _row_medians(speed)
        at = int(excess.slow.argmax())
        both.append((excess, Speed(float(own[at] / np.median(np.delete(own, at))), kinds)))
    return max(both, key=lambda each: (each[0].slow.any(), np.isfinite(each[0].excess).any()))


def excess_of(own: Array, work: Array | None = None) -> Excess:
    """Return how much longer each of some ranks takes for its steps than the others, and whether by chance.

    Args:
        own: own time by rank and step, ns; NaN where unknown. A rank that lacks most steps is left out, and so is a
            step that one of the others lacks.
        work: the same as if transfers took no time, ns; None where none are part of `own`.

    Example:
        >>> excess_of(np.array([[50.0, 52, 51], [51, 50, 52], [1010, 1012, 1009]])).slow.tolist()
        [False, False, True]
    """
    result = _nothing(*own.shape)
    known = np.isfinite(own)
    ranks = np.flatnonzero(known.mean(axis=1) > 0.5) if own.shape[1] else np.zeros(0, np.int64)
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
        always = bool(in_steps.all())
        result.slow[ranks[at]] = True
        result.when[ranks[at], slice(None) if always else steps[in_steps]] = True
        result.in_slow[ranks[at]] = typical[at] if always else np.median(beyond[at, in_steps])
    return result


def _by_pace(of_role: Excess, paces: Sequence[Array]) -> Excess:
    """Return the excess, with the rank as slow whose pace is slower than its peers', if its steps agree.

    Args:
        of_role: the excess of some ranks, none of them slow.
        paces: time by rank and batch, relative to the ranks' mean, of one kind of work each.
    """
    for pace in paces:
        if pace.shape[1] < 2 or np.isnan(of_role.excess).any():
            continue
        _, _, at, is_slow = _compared(pace, _LEAST_ERROR, means=True)
        if is_slow and of_role.excess[at] == of_role.excess.max() and of_role.excess[at] >= of_role.error[at]:
            of_role.slow[at], of_role.when[at], of_role.in_slow[at] = True, True, of_role.excess[at]
            break
    return of_role


def _beyond(times: Array) -> npt.NDArray[np.float64]:
    """Return the difference of each time to the median of the other ranks' in that step."""
    step = np.broadcast_to(np.arange(times.shape[1]), times.shape)
    return np.asarray(times - others_median(times.ravel(), step.ravel()).reshape(times.shape))


def _is_work(beyond: Array, beyond_in_work: Array, at: int, steps: Array) -> bool:
    """Return whether what a rank exceeds its peers by in some steps is its work, and not the transfers."""
    return bool(np.median(beyond_in_work[at, steps]) >= _MIN_SHARE_IN_WORK * np.median(beyond[at, steps]))


def _compared(times: Array, floor: float, *, means: bool = False) -> tuple[Array, Array, int, bool]:
    """Return (each rank's typical difference to the others, its error, the slowest rank, whether by more than chance).

    Args:
        times: by rank and step.
        floor: the least error.
        means: whether times are means of many, without outliers: then the mean difference is typical, else the median.
    """
    differences = _beyond(times)
    typical = differences.mean(axis=1) if means else np.median(differences, axis=1)
    errors = _errors(differences, typical, means=means)
    errors = np.maximum(np.where(np.isnan(errors), _between(typical), errors), floor)
    at = int(typical.argmax())
    return typical, errors, at, bool(typical[at] > 0) and _more_than_chance(times, typical, errors, at, floor)


def _errors(differences: Array, typical: Array, *, means: bool) -> npt.NDArray[np.float64]:
    """Return the standard error of each rank's typical difference, ns; NaN for a single step.

    The spread is the rank's own or the median of all ranks', whichever is larger.
    """
    count = differences.shape[1]
    if count < 2:
        return np.full(len(differences), np.nan)
    if means or count <= _FEW_STEPS:
        spread = differences.std(axis=1, ddof=1)
    else:
        spread = MAD_TO_DEVIATION * np.median(np.abs(differences - typical[:, None]), axis=1)
        spread *= np.sqrt(count / (count - 1))
    usual = float(np.median(spread))
    variance = (1.0 if means else _MEDIAN_VARIANCE) / count
    return np.maximum(spread, usual) * np.sqrt(variance) * _lengthened(differences, typical, usual)


def _lengthened(differences: Array, typical: Array, spread: float) -> float:
    """Return the factor of errors where a step's difference resembles the one before: such steps are fewer facts."""
    count = differences.shape[1]
    if count < _MIN_STEPS_FOR_TREND or not spread:
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


def _more_than_chance(times: Array, typical: Array, errors: Array, at: int, floor: float) -> bool:
    """Return whether the rank at a position takes longer than all others by more than chance."""
    size, count = times.shape
    freedom = (count - 1) * max(1.0, (size - 1) / 2)
    if count > 1:
        next_one = float(np.median(times[at] - np.delete(times, at, 0), axis=1).min())
        chance = _CHANCE if size > _MIN_PEERS_BETWEEN else _CHANCE_OF_TWO
        if typical[at] < upper_quantile(chance / size, freedom) * errors[at]:
            return False
        if next_one < _MIN_ERRORS_TO_NEXT * errors[at]:
            return False
    rest = np.delete(typical, at)
    if len(rest) < _MIN_PEERS_BETWEEN:
        return count > 1
    if count == 1 and len(rest) <= _MIN_PEERS_BETWEEN:
        return False
    beyond = float(typical[at] - rest.mean())
    if count > 1 and len(rest) <= _FEW_PEERS:
        return beyond >= _needed_among_few(rest, np.delete(errors, at), max(float(errors[at]), floor), freedom)
    chance = _CHANCE_BETWEEN if count > 1 else _CHANCE_IN_ONE_STEP
    needed = upper_quantile(chance / size, len(rest) - 1) * np.sqrt(1 + 1 / len(rest))
    return bool(beyond >= needed * max(float(rest.std(ddof=1)), floor))


def _needed_among_few(rest: Array, errors: Array, error: float, freedom: float) -> float:
    """Return by how much a rank must exceed the mean of few others: their differences that errors explain count once.

    Args:
        rest: the other ranks' typical differences.
        errors: their standard errors.
        error: the standard error of the rank's own.
        freedom: degrees of freedom of the errors.

    The degrees of freedom of the sum are Welch's and Satterthwaite's.
    """
    count = len(rest)
    between = max(0.0, float(rest.var(ddof=1) - (errors**2).mean())) * (1 + 1 / count)
    both = between + error**2
    of_both = both**2 / (between**2 / (count - 1) + error**4 / freedom)
    return float(upper_quantile(_CHANCE_BETWEEN_FEW / (count + 1), of_both) * np.sqrt(both))


def _row_medians(values: Array) -> npt.NDArray[np.float64]:
    """Return the median of the known values of each row; NaN without any."""
    return np.array([_median(row) for row in values], np.float64)


def _median(values: Array) -> float:
    """Return the median of the known values; NaN without any."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


_CHANCE_OF_LARGEST = 0.01
"""Probability that the largest difference of any rank in any step stands out by chance. Chosen: what stands out must
also recur. Doubled, a step of ten in a job of four ranks stands out from 4.1 instead of 4.4 deviations."""
_CHANCE_OF_ONE_RANK = 0.01
"""Probability that delays which strike any rank alike strike this one as often and as evenly.

Chosen: with four ranks five delays at any distance, or three at equal distances; with eight ranks four. That a job has
as many delays and all of one rank is rarer than this. Doubled, four delays of one rank of four suffice."""
_MIN_EVEN = 3
"""Delays that are needed: two have a single distance, which is equal to no other. Doubled, a rank must be held up six
times, for which a recording of ten steps has no room."""
_SAME_SIZE = 0.5
"""Share of a rank's median delay from which delays of other ranks count as of the same kind. Chosen. Doubled, smaller
delays of others, which happen in all jobs, are not counted, and a rank is named on weaker evidence."""


def slow_steps(differences: Array, floor: float) -> tuple[int, npt.NDArray[np.bool_]]:
    """Return (the row of the rank that is slow in some steps, or -1; in which steps).

    Args:
        differences: by rank and step: the own time beyond the median of the other ranks', ns.
        floor: the least deviation, ns.

    Example:
        >>> held_up = np.zeros((4, 10))
        >>> held_up[1, [1, 4, 7]] = 52.0
        >>> row, steps = slow_steps(held_up, 1.0)
        >>> row, np.flatnonzero(steps).tolist()
        (1, [1, 4, 7])
    """
    ranks, count = differences.shape
    none = np.zeros(count, np.bool_)
    if count <= _MIN_EVEN:
        return -1, none
    rest = differences - np.quantile(differences, 0.5, axis=1, method="lower")[:, None]
    faster = np.sort(rest, axis=1)[:, : (count - 1) // 2]  # the half without delays
    spread = np.sqrt((faster**2).mean(axis=1))
    spread = np.maximum(np.maximum(spread, np.median(spread)), floor)
    freedom = (count - 1) * max(1.0, (ranks - 1) / 2)
    stands_out = rest > upper_quantile(_CHANCE_OF_LARGEST / rest.size, freedom) * spread[:, None]
    row = int(np.where(stands_out, rest, 0).sum(axis=1).argmax())
    steps = stands_out[row]
    begins = _begins(steps)
    if len(begins) < _MIN_EVEN:
        return -1, none
    alike = stands_out & (rest > _SAME_SIZE * np.median(rest[row][steps]))
    others = sum(len(_begins(each)) for at, each in enumerate(alike) if at != row)
    chance = ranks * _at_least(len(begins), len(begins) + others, 1 / ranks) * _chance_of_distances(begins, count)
    return (row, steps) if chance < _CHANCE_OF_ONE_RANK else (-1, none)


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


def _chance_of_distances(begins: Array, count: int) -> float:
    """Return the probability that as many steps of a recording lie as evenly by chance; 1 unless they are even.

    Even are steps at equal distances with no such step missing at the begin or the end of the recording.
    """
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
