"""The interval of a prediction: doubts that the recording leaves, and how much steps differ from run to run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.computing import ahead, threads_for
from htagraph.core.kinds import ActivityKind
from htagraph.core.statistics import DEVIATIONS_OF_90, SEVERAL, STEP_SPREAD
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.cores import cores_of
from htagraph.queries.replay import predict, without_unexplained
from htagraph.queries.weights import State, initial
from htagraph.trace.readers import setting_for
from htagraph.whatif.cores import with_cores
from htagraph.whatif.interval_cause import IntervalCause
from htagraph.whatif.links import with_shared_link
from htagraph.whatif.readings import DOUBTS, Doubt, Length, Lengths, in_runs, under, without_unexplained_pauses
from htagraph.whatif.run_spread import SHARED, run_spread
from htagraph.whatif.time_taken import possible_savings
from htagraph.whatif.turns import moments_in_turns

if TYPE_CHECKING:
    from htagraph.core.runs import Runs
    from htagraph.whatif.links import Assumed, Sharing

__all__ = [
    "CONSTANTS", "VERY_WIDE", "Interval", "changes_nothing",
    "interval", "spread", "telling",
]  # fmt: skip

_EFFECT_SPREAD = 0.04
"""Relative standard deviation of what a change saves: what is scaled by a factor takes what else depends on it along
(caches, allocations, Python around it). Measured on 60 pairs of recordings whose change saves or costs more than a
tenth: errors are 2 % of the effect in the median and 7.5 % at the 90th percentile, with the spread of runs in them.
Doubled, the interval of a change that saves a third of a job grows from ± 3 % to ± 5 %."""
_UNDER_LOAD = 0.25
"""How much longer the same work may take where a device or core no longer pauses, times the share of time that it did.
 Source: boost clocks of recent devices are up to 500 of 1,980 MHz above the clocks at their power limit. Doubled, a
ceiling of twice the speed has a lower end that is 20 % off, not 11 %."""
_MAX_PERIOD = 3
"""The longest pattern of steps that take turns which is looked for, steps. Chosen: recordings of ten steps show no
longer one. Doubled, long recordings with a pattern of up to 6 steps have narrower intervals."""
_WIDE = 0.1
"""Relative width from which an interval that holds both a gain and a loss is too wide to act on. Chosen: less is close
to how much runs of one job differ. Doubled, a prediction between 9 % slower and 9 % faster passes without a note."""
VERY_WIDE = 0.5
"""Relative width from which any interval is too wide to act on. Chosen: then the job may take a third less or more than
predicted. Doubled, only predictions that are off by a factor of 2 are noted."""
_MOST_TIMES = 1000.0
"""The largest speedup that has an interval. Chosen: a job that takes no time has no ratio. Doubled, nothing changes."""
_TIMES_NEARER = 4
"""A prediction is nearly the best or the worst case if the other end of its interval is this many times as far away.
Chosen: what a recording hides can often only take longer, and chance is the same on both sides. Doubled, fewer notes
say so."""

CONSTANTS: Final = {
    "quantile": DEVIATIONS_OF_90, "shared": SHARED, "effect_spread": _EFFECT_SPREAD,
    "unknown_step_spread": STEP_SPREAD, "unknown_spread": IntervalCause.UNKNOWN_SPREAD,
    "steps_ahead": IntervalCause.STEPS_AHEAD, "steps_differ": IntervalCause.STEPS_DIFFER,
    "under_load": _UNDER_LOAD, "slower_under_load": IntervalCause.SLOWER_UNDER_LOAD,
    "max_period": _MAX_PERIOD, "min_groups": SEVERAL, "wide": _WIDE, "very_wide": VERY_WIDE,
}  # fmt: skip
"""The constants above by name, for code that computes the same interval elsewhere; `run_spread` is the job's own."""


def changes_nothing(baseline: DependencyGraph, state: State) -> bool:
    """Return True if a state has the recorded weights, and no model may be off that predicts the same."""
    same = state.graph is baseline and np.array_equal(state.lag, baseline.edges.lag)
    same = same and all((ends == 1).all() for times in state.unsure for ends in (times.low, times.high))
    return same and np.array_equal(state.gap, baseline.gap) and np.array_equal(state.head, baseline.time)


def telling(graph: DependencyGraph, cause: IntervalCause) -> str:
    """Return the recording that shows more, where a cause makes an interval as wide as it is."""
    if cause.telling:
        return cause.telling
    has_stacks = ActivityKind.PYTHON in graph.activities.kind
    if has_stacks:
        return "of the changed job"
    modules = setting_for(graph.traces.values(), "modules")
    return f"with Python stacks ({modules})" if modules else "with Python stacks"


class Interval(NamedTuple):
    """A 90 % interval of a speedup."""

    low: float
    high: float
    cause: IntervalCause
    """The doubt that makes it as wide as it is."""
    same_run: tuple[float, float]
    """The same for the recorded run itself: without how much steps differ from run to run."""

    @property
    def too_wide(self) -> bool:
        """Whether nobody should act on it: it is wide, and holds both a gain and a loss, or it is very wide.

        It is not if only the spread of steps is unknown: what the change does to the recorded run is known anyway.
        """
        if self.cause == IntervalCause.UNKNOWN_SPREAD:
            return False
        width = self.high / self.low - 1
        return width > VERY_WIDE or (width > _WIDE and self.low < 1 < self.high)

    def near_end(self, speedup: float) -> str:
        """Return ``"best"`` or ``"worst"`` if a speedup lies near that end of the interval, else an empty text."""
        above = math.log(self.high / speedup)
        below = math.log(speedup / self.low)
        if min(above, below) * _TIMES_NEARER > max(above, below):
            return ""
        return "best" if above < below else "worst"


def interval(
    baseline: DependencyGraph, links: Assumed, prediction: Lengths, length: Length, runs: Runs | None, *,
    moves: bool,
) -> Interval:  # fmt: skip
    """Return the 90 % interval of a speedup: the range of other readings of the recording, and chance.

    The prediction is how long the changed job takes; `moves` is whether any moment is another one than
    recorded, and `runs` the job in runs where these are known.

    The two are added as independent errors. A ceiling is one-sided: nothing makes it larger. Of the recorded run, a
    change that takes time away saves at least nothing and at most the time taken away. Where no moment changes in any
    reading, the change does nothing, and there is no error. The other readings are `DOUBTS`, `UNKNOWN_SHARING`,
    `UNKNOWN_CORES`, `SHARED_CORES`, `SHARED_INTERPRETER`, `UNEXPLAINED_PAUSES` (which vanish, also before the change),
    `STEPS_AHEAD` and `SLOWER_UNDER_LOAD`.
    """
    state = links.state
    sharing = links.sharing
    # where no moment changes, other readings are looked at moment by moment; transfers that share links have no runs
    alike = runs is not None or np.array_equal(state.graph.awake, baseline.awake)
    of_runs = in_runs(state, length, runs) if moves and alike and not links.may_share else None

    def reading(doubt: Doubt) -> Lengths | None:
        known, found = of_runs(doubt) if of_runs else (False, None)
        other = None if known else under(doubt, state)
        if other is None:
            return found
        graph, time = _moments(other, sharing)
        same.append(not moves and np.array_equal(time, baseline.time))
        return length(graph, time)

    same = [not moves]
    shared = _if_shared(links)
    same += [np.array_equal(schedule.time, baseline.time) for schedule in shared]
    lengths = [(schedule.cause, length(schedule.graph, schedule.time)) for schedule in shared]
    lengths += _with_recorded_waits(with_shared_link(state, sharing), length)
    read = ahead(reading, DOUBTS.values(), 1 if of_runs else threads_for(baseline.vertex_count))
    lengths += [(cause, other) for cause, (_, other) in zip(DOUBTS, read, strict=True) if other]
    before_change = length(baseline, baseline.time)
    recorded = before_change.makespan
    predicted, steps, _ = prediction
    speedup = recorded / predicted
    if all(same):
        return Interval(speedup, speedup, IntervalCause.NONE, (speedup, speedup))
    before = _explained(baseline, sharing, length)
    known, found = of_runs(without_unexplained_pauses) if of_runs else (False, None)
    after = (found or prediction if known else length(*_moments(state, sharing, explained=True))).makespan
    shortest = min((other.makespan for _, other in lengths if other.makespan > 0), default=predicted)
    ratios = _of_readings(prediction, before_change, lengths)
    is_ceiling = bool(state.ceilings)
    ratios += _of_the_change(prediction, before_change, is_ceiling=is_ceiling)
    if not (before > 0 and after > 0):  # pauses that nothing explains are all of the job
        before = recorded
        after = predicted
    of_run = [*ratios, (_saving(before - after, recorded, predicted), IntervalCause.UNEXPLAINED_PAUSES)]
    ratios.append((math.log(predicted * before / (after * recorded)), IntervalCause.UNEXPLAINED_PAUSES))
    limits = None if links.may_share else possible_savings(baseline, state, max(recorded - shortest, 0.0))
    logs = [_saving(saved, recorded, predicted) for saved in limits or ()]
    chance = spread(speedup, steps, run_spread(baseline))
    next_run = _next_run(speedup, ratios, chance, is_ceiling=is_ceiling)
    cause = _cause(ratios, chance, steps)
    return Interval(*next_run, cause, _same_run(speedup, of_run, logs, is_ceiling=is_ceiling))


class _SharedSchedule(NamedTuple):
    """A changed job under another reading."""

    cause: IntervalCause
    graph: DependencyGraph
    time: Array
    """When each vertex happens, ns."""


def _if_shared(links: Assumed) -> list[_SharedSchedule]:
    """Return the schedules in which links are shared in another way, or in which work takes turns."""
    state = links.state
    by_links = [_SharedSchedule(IntervalCause.UNKNOWN_SHARING, *_moments(state, sharing)) for sharing in links.others]
    in_turns = moments_in_turns(with_shared_link(state, links.sharing))
    return by_links + [_SharedSchedule(cause, state.graph, time) for cause, time in in_turns.items()]


def _of_the_change(
    prediction: Lengths,
    before_change: Lengths,
    *,
    is_ceiling: bool,
) -> list[tuple[float, IntervalCause]]:
    """Return the logarithms of ratios to the speedup that no other reading gives, each with its cause."""
    speedup = before_change.makespan / prediction.makespan
    ratios = [
        (0.0, IntervalCause.NONE),
        (_ahead(before_change, prediction), IntervalCause.STEPS_AHEAD),
    ]
    if is_ceiling:
        ratios.append((_under_load(speedup), IntervalCause.SLOWER_UNDER_LOAD))
    return ratios


def _moments(state: State, sharing: Sharing, *, explained: bool = False) -> tuple[DependencyGraph, Array]:
    """Return a graph and its moments, ns, with links and cores shared; without unexplained pauses if `explained`."""
    state = with_shared_link(state, sharing)
    if explained:
        state = replace(state, gap=without_unexplained(state.graph, state.gap))
    state = with_cores(state)
    return state.graph, predict(state.graph, state.lag, state.gap, state.head)


def _next_run(
    speedup: float,
    ratios: Sequence[tuple[float, IntervalCause]],
    chance: float,
    *,
    is_ceiling: bool,
) -> tuple[float, float]:
    """Return the interval of the speedup in a run to come; effects do not make a ceiling larger."""
    effect = _effect(speedup)
    without_effect = math.sqrt(max(chance**2 - effect**2, 0.0))
    up = without_effect if is_ceiling else chance
    return _ends(speedup, ratios, chance, up)


def _same_run(
    speedup: float,
    ratios: Sequence[tuple[float, IntervalCause]],
    limits: Sequence[float],
    *,
    is_ceiling: bool,
) -> tuple[float, float]:
    """Return the interval of the speedup in the recorded run, within the limits of what it can save, if there are any.

    Limits are logarithms of their ratios to the speedup.
    """
    effect = _effect(speedup)
    up = 0.0 if is_ceiling else effect
    ends = _ends(speedup, ratios, effect, up)
    return _within(ends, speedup, limits) if limits else ends


def _within(
    ends: tuple[float, float],
    speedup: float,
    logs: Sequence[float],
) -> tuple[float, float]:
    """Return the ends of an interval within limits, given as logarithms of their ratios to the speedup."""
    least = speedup * math.exp(min(logs))
    most = speedup * math.exp(max(logs))
    low = max(ends[0], min(least, speedup))
    high = min(ends[1], max(most, speedup))
    return low, high


def _ends(
    speedup: float,
    ratios: Sequence[tuple[float, IntervalCause]],
    down: float,
    up: float,
) -> tuple[float, float]:
    """Return the ends of an interval of a speedup, given the logarithms of ratios to it, and of chance."""
    least = min(ratios)[0] - down
    most = max(ratios)[0] + up
    return speedup * math.exp(least), speedup * math.exp(most)


def _cause(
    ratios: Sequence[tuple[float, IntervalCause]],
    chance: float,
    steps: Array,
) -> IntervalCause:
    """Return the cause of an interval's width: the reading that is farthest away, or chance."""
    ratio, cause = max(ratios, key=lambda pair: abs(pair[0]))
    if abs(ratio) > chance:
        return cause
    count = int((steps > 0).sum())
    if count > 1:
        return IntervalCause.STEPS_DIFFER
    return IntervalCause.UNKNOWN_SPREAD


def _saving(saved: float, recorded: float, predicted: float) -> float:
    """Return the logarithm of the speedup of a recorded run that saves this much, over the predicted one; times in ns.

    The recorded run has pauses that nothing explains, whatever a change saves beside them.
    """
    left = max(recorded - saved, predicted / _MOST_TIMES)
    return math.log(predicted / left)


def _effect(speedup: float) -> float:
    """Return the half width of a 90 % interval of the logarithm of a speedup, from how far effects are off."""
    return DEVIATIONS_OF_90 * _EFFECT_SPREAD * abs(math.log(speedup))


def _under_load(speedup: float) -> float:
    """Return the logarithm by which a ceiling is missed where other work is slower without pauses; 0 for no gain."""
    if speedup <= 1:
        return 0.0
    paused = 1 - 1 / speedup
    return -math.log1p(_UNDER_LOAD * paused)


def _with_recorded_waits(state: State, length: Length) -> list[tuple[IntervalCause, Lengths]]:
    """Return the cause and the length of a job whose threads wait as long as recorded; nothing if none lacks a core."""
    if cores_of(state.graph) is None:
        return []
    return [(IntervalCause.UNKNOWN_CORES, length(state.graph, predict(state.graph, state.lag, state.gap, state.head)))]


def _of_readings(
    predicted: Lengths,
    recorded: Lengths,
    lengths: Sequence[tuple[IntervalCause, Lengths]],
) -> list[tuple[float, IntervalCause]]:
    """Return the logarithms by which the job, its steps and the printed step are shorter under other readings."""
    ratios: list[tuple[float, IntervalCause]] = []
    for cause, other in lengths:
        if other.makespan > 0:
            ratios.append((math.log(predicted.makespan / other.makespan), cause))
        by_steps = _by_steps(predicted, other, recorded)
        by_usual_step = _by_usual_step(predicted, other)
        ratios += [(by_steps, cause), (by_usual_step, cause)]
    return ratios


def _ahead(recorded: Lengths, predicted: Lengths) -> float:
    """Return the logarithm by which steps shorten more than the job, as other work ends later behind them; else 0."""
    before = recorded.makespan - float(recorded.steps.sum())
    behind = predicted.makespan - float(predicted.steps.sum())
    extra = max(behind - before, 0)
    ratio = -math.log1p(extra / max(float(predicted.steps.sum()), 1.0))
    return ratio if len(predicted.steps) > 1 and ratio < -math.log1p(_WIDE) else 0.0


def _by_steps(predicted: Lengths, other: Lengths, recorded: Lengths) -> float:
    """Return the logarithm by which steps are shorter under another reading; it turns no gain into a loss.

    The job's beginning and end count for the makespan, and a long run has hardly any of these. Steps run ahead of work
    of other threads, until queues are full, while the makespan stays. No gain is none of the job and none of its steps:
    where steps shorten more than the job, their time as recorded is farther away. Without two steps, 0 is returned.
    """
    steps = float(predicted.steps.sum())
    ratio = steps / max(float(other.steps.sum()), 1.0)
    if len(predicted.steps) < 2 or len(other.steps) != len(predicted.steps) or ratio <= 0:
        return 0.0
    speedup = recorded.makespan / predicted.makespan
    if speedup <= 1 or ratio >= 1:
        return math.log(ratio)
    of_steps = steps / max(float(recorded.steps.sum()), 1.0)
    no_gain = min(of_steps, 1 / speedup)
    return max(math.log(ratio), math.log(no_gain))


def _by_usual_step(predicted: Lengths, other: Lengths) -> float:
    """Return the logarithm by which the step that reports print is shorter under another reading."""
    if predicted.usual_step <= 0 or other.usual_step <= 0:
        return 0.0
    return math.log(predicted.usual_step / other.usual_step)


def _explained(baseline: DependencyGraph, sharing: Sharing, length: Length) -> float:
    """Return the makespan of the job as recorded without pauses that nothing explains, ns; found once per job."""
    by_sharing = _EXPLAINED.setdefault(baseline, {})
    if sharing not in by_sharing:
        state = with_shared_link(initial(baseline), sharing)
        state = with_cores(replace(state, gap=without_unexplained(state.graph, state.gap)))
        time = predict(state.graph, state.lag, state.gap, state.head)
        by_sharing[sharing] = length(state.graph, time).makespan
    return by_sharing[sharing]


_EXPLAINED: WeakKeyDictionary[DependencyGraph, dict[Sharing, float]] = WeakKeyDictionary()


def spread(speedup: float, steps: Array, of_runs: float) -> float:
    """Return the half width of a 90 % interval of the logarithm of a speedup, from chance alone.

    `steps` are the predicted times of steps, ns, and `of_runs` is the job's `run_spread`.
    """
    return math.hypot(_of_mean(steps[steps > 0]), DEVIATIONS_OF_90 * of_runs, _effect(speedup))


def _of_mean(steps: Array) -> float:
    """Return the relative half width of a 90 % interval of the difference of two means of that many steps.

    Where few steps leave their spread open, the whole range of the steps is taken: means lie within it. A single one
    has no range, and other jobs show how much it may differ. Steps that take turns (a checkpoint in every third, two
    workers that deliver in turn) have a mean that is known better than from independent steps: then it comes from the
    means of groups of steps.
    """
    widths = []
    for size in range(1, _MAX_PERIOD + 1):
        groups = len(steps) // size
        if groups < (2 if size == 1 else SEVERAL):
            break
        means = steps[: groups * size].reshape(groups, size).mean(axis=1)
        apart = math.hypot(1 / math.sqrt(groups), SHARED)
        error = math.sqrt(2) * apart * float(np.std(means, ddof=1) / np.mean(means))  # of this mean and another's
        widths.append(_student(groups - 1) * error)
    if not widths:
        return DEVIATIONS_OF_90 * math.sqrt(2) * STEP_SPREAD  # of this step and another
    best = min(widths)
    width = best if best < widths[0] / 2 else widths[0]
    return min(width, math.log(float(steps.max() / steps.min())))


def _student(freedom: int) -> float:
    """Return the 95th percentile of Student's t distribution.

    Source: the expansion of Abramowitz and Stegun, 26.7.5, to the second order: within 6 % at 2 degrees of freedom.
    """
    z = DEVIATIONS_OF_90
    linear = (z**3 + z) / 4
    quadratic = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + linear / freedom + quadratic / freedom**2
