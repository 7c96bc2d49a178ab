"""step_change: by how much steps of some recordings take longer than those of others, and how much of it is noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.analyses.differences.compared_parts import ComparedPart, parts_of
from htagraph.core.arrays import Array
from htagraph.core.errors import HtagraphError
from htagraph.core.statistics import CHANCE, SEVERAL, STEP_SPREAD, upper_quantile
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part, lost_between
from htagraph.graph.selection import IntSelector
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.compare import MEDIAN_VARIANCE

if TYPE_CHECKING:
    from htagraph.analyses.differences.diff import Diff

__all__ = ["StepChange", "by_spread", "change_between", "change_of_runs", "change_of_times", "step_change", "typical"]

_RUN_SPREAD = 0.004
"""Relative standard deviation of a job's mean step from run to run that no single run shows. Measured on pairs of runs
of one job on one machine (0.2 to 0.9 %, beyond the spread of their steps). Doubled, no interval of single runs is
narrower than ± 2.9 %."""
_TIMED = frozenset({Part.DEVICE, Part.HOST, Part.MEANING})
"""The parts that the times of steps rest on: steps end with device work, and hosts name them."""
_ENOUGH_TO_RANK = 6
"""Steps of each job from which their order alone can tell a change: all of 6 longer than all of 6 others are chance in
1 of 924 cases. Derived from `CHANCE`; with 5 it is 1 of 252. It cannot be doubled."""


@dataclass(frozen=True)
class StepChange:
    """By how much the usual step takes longer after than before."""

    before_us: float
    """Usual step of the recordings before, µs: the median over steps, and over runs."""
    after_us: float
    percent: float
    """Of the step before."""
    plus_minus_percent: float
    """Half the width of the 99 % interval of `percent`; infinite if there are too few steps to know."""
    runs: tuple[int, int]
    """Recordings before and after."""
    steps: tuple[int, int]
    """Times from step to step before and after, in all recordings."""
    is_empty: bool = False
    """Whether one of the recordings holds no activity."""
    is_incomplete: bool = False
    """Whether one of the recordings lacks a part that the times of steps rest on."""
    is_apart: bool = False
    """Whether each step of one recording is longer than every step of the other, and the usual ones differ by 5 %."""

    @property
    def is_known(self) -> bool:
        """Whether there are enough steps to know how much they differ by chance."""
        return math.isfinite(self.plus_minus_percent) and not self.is_incomplete

    @property
    def is_noise(self) -> bool:
        """Whether steps differ as much by chance."""
        return self.is_known and abs(self.percent) <= self.plus_minus_percent

    @property
    def shows_none(self) -> bool:
        """Whether nothing speaks for a change; of few steps that all lie apart, chance is just not ruled out."""
        return self.is_noise and not self.is_apart

    def cannot_tell(self, limit_percent: float) -> bool:
        """Return whether the recordings do not show if steps take longer by more than a limit.

        Steps then differ by more than the limit, so that even a change as large as the limit would be within noise. Of
        too few steps, a change tells only where it exceeds the limit by more than steps of other jobs differ.
        """
        if not self.is_known and not self.is_incomplete:
            return not self.is_empty and not self._is_beyond(limit_percent)
        blind = self.percent + self.plus_minus_percent > limit_percent and self.plus_minus_percent > limit_percent > 0
        return not self.is_empty and (not self.is_known or (blind and self.is_noise))

    def _is_beyond(self, limit_percent: float) -> bool:
        """Return whether the change exceeds a limit by more than single steps of other jobs differ."""
        width = upper_quantile(CHANCE, 1e6) * math.sqrt(2) * STEP_SPREAD
        least_ratio = (1 + self.percent / 100) * math.exp(-width)
        return 100 * (least_ratio - 1) > limit_percent

    def fails(self, limit_percent: float, *, strict: bool) -> bool:
        """Return whether a gate fails: steps are longer than allowed by more than noise, or nothing was recorded.

        If `strict`, also where the recordings cannot tell.
        """
        if self.is_empty or self.cannot_tell(limit_percent):
            return self.is_empty or strict
        return self.percent > limit_percent and not self.is_noise

    def steps_to_tell(self, limit_percent: float) -> int:
        """Return about how many steps a recording must have to tell a change of a limit from noise."""
        if not self.is_known or limit_percent <= 0:
            return _ENOUGH_TO_RANK
        return max(_ENOUGH_TO_RANK, math.ceil(min(self.steps) * (self.plus_minus_percent / limit_percent) ** 2))

    def text(self) -> str:
        """Return the change in words, such as ``+3.1 % ± 4.0 %, within noise``."""
        if self.is_empty:
            return "nothing was recorded in one of the jobs"
        if self.is_incomplete:
            return "not known: one of the recordings is incomplete"
        if not self.is_known and self._is_beyond(0.0):
            return f"{self.percent:+.1f} %, more than steps of other jobs differ"
        if not self.is_known:
            return f"{self.percent:+.1f} %; too few steps to tell from noise"
        return f"{self.interval()}, within noise" if self.is_noise else self.interval()

    def interval(self) -> str:
        """Return the change and its interval, such as ``+3.1 % ± 4.0 %``, or without one where nobody knows it."""
        return f"{self.percent:+.1f} %" + (f" ± {self.plus_minus_percent:.1f} %" if self.is_known else "")


def step_change(
    before: Sequence[DependencyGraph],
    after: Sequence[DependencyGraph],
    *,
    steps: IntSelector = None,
    steps_after: IntSelector = None,
    ranks: IntSelector = None,
) -> StepChange:
    """Return by how much the usual step takes longer, and its 99 % interval over steps and runs.

    The time of a step is that from its end to the end of the next one, on hosts from begin to begin. Steps and ranks
    are chosen as in `htagraph.diff`.

    Raises:
        HtagraphError: there is no recording, or a step or rank that one does not have.
    """
    if not before or not after:
        msg = "give at least one recording before and one after"
        raise HtagraphError(msg)
    first = [parts_of(each, after[0], steps, steps_after, ranks)[0] for each in before]
    second = [parts_of(before[0], each, steps, steps_after, ranks)[1] for each in after]
    change = change_of_times(*([_times_us(part) for part in side] for side in (first, second)))
    return _marked(change, before, after)


def _times_us(part: ComparedPart) -> npt.NDArray[np.float64]:
    return part.step_lengths(part.graph.time)[1] / 1000


def _marked(change: StepChange, before: Sequence[DependencyGraph], after: Sequence[DependencyGraph]) -> StepChange:
    """Return a change that says whether a recording is empty, or lacks a part that the times of steps rest on."""
    is_empty = not all(len(graph.activities) for graph in (*before, *after))
    lost = {part for earlier in before for later in after for part in lost_between(earlier, later)}
    return replace(change, is_empty=is_empty, is_incomplete=bool(lost & _TIMED))


def change_between(parts: tuple[ComparedPart, ComparedPart]) -> StepChange:
    """Return the change of the usual step between two single recordings."""
    if all(part.steps for part in parts):
        change = change_of_times(*([_times_us(part)] for part in parts))
    else:
        before, after = (part.usual_ns(part.graph.time) / 1000 for part in parts)
        percent = 100 * (after / before - 1) if before else math.inf if after else 0.0
        change = StepChange(before, after, percent, math.inf, (1, 1), (0, 0))
    return _marked(change, [parts[0].graph], [parts[1].graph])


def change_of_runs(
    result: Diff, before: Sequence[DependencyGraph], after: Sequence[DependencyGraph], *, ranks: IntSelector = None
) -> StepChange:
    """Return the change of the steps that a diff compares, in all runs."""
    if len(before) == len(after) == 1 or not (result.parts[0].steps and result.parts[1].steps):
        return _marked(result.change, before, after)
    sides = [
        [_times_us(parts_of(run, run, [each for each in run.steps if each in part.steps], None, ranks)[0])
         for run in runs]
        for part, runs in zip(result.parts, (before, after), strict=True) if part.steps
    ]  # fmt: skip
    return _marked(change_of_times(*sides), before, after)


def typical(runs: Sequence[DependencyGraph]) -> DependencyGraph:
    """Return the run whose steps are neither the fastest nor the slowest: that with the median usual step."""
    if len(runs) == 1:
        return runs[0]
    usual = [float(np.median(_times_us(parts_of(each, each, None, None, None)[0]))) for each in runs]
    return runs[int(np.argsort(usual, kind="stable")[(len(runs) - 1) // 2])]


def change_of_times(before: Sequence[npt.NDArray[np.float64]], after: Sequence[npt.NDArray[np.float64]]) -> StepChange:
    """Return the change between the step times of runs, µs: an array per run.

    Of single runs, the interval is that of the rank test (Mann and Whitney's, on the logarithms), which no outlier
    changes. Where the steps are too few for it, and of several runs, it is Student's for two medians of unequal
    variance. Runs are clusters: the variance of a side is that of the medians of its runs, or that of its steps and
    what runs are known to differ by, whichever is larger.

    Example:
        >>> import numpy as np
        >>> quiet, slower = np.array([100.0, 101, 99, 100]), np.array([110.0, 111, 109, 110])
        >>> change_of_times([quiet], [slower]).text()
        '+10.0 % ± 3.6 %'
        >>> change_of_times([quiet], [quiet[::-1]]).is_noise
        True
    """
    sides = [[run for run in side if len(run)] for side in (before, after)]
    counts = [sum(map(len, side)) for side in sides]
    middles = [float(np.median([np.median(run) for run in side])) if side else math.nan for side in sides]
    ratio = middles[1] / middles[0] if middles[0] else math.nan
    width = math.inf
    if min(counts) > 1 and min(middles) > 0:
        logs = [[np.log(np.maximum(run, np.finfo(float).tiny)) for run in side] for side in sides]
        width = _by_ranks(logs) if max(map(len, sides)) == 1 else math.inf
        width = width if math.isfinite(width) else by_spread([_of_median(side) for side in logs])
        width = 100 * max(ratio, 1.0) * -math.expm1(-width)  # the end towards no change, the same both ways round
    percent = 100 * (ratio - 1)
    apart = False
    if len(sides[0]) == len(sides[1]) == 1 and min(counts) > 1:
        (first,), (second,) = sides
        apart = bool(abs(ratio - 1) >= LIMITS.small and (first.max() < second.min() or second.max() < first.min()))
    return StepChange(
        middles[0], middles[1], percent, width, (len(sides[0]), len(sides[1])), (counts[0], counts[1]), is_apart=apart
    )


def _by_ranks(logs: Sequence[Sequence[Array]]) -> float:
    """Return half the 99 % interval of the ratio of two runs' medians, a logarithm; infinite for too few steps."""
    (before,), (after,) = logs
    pairs = len(before) * len(after)
    normal = upper_quantile(CHANCE, 1e6)
    outside = int(pairs / 2 - normal * math.sqrt(pairs * (len(before) + len(after) + 1) / 12))
    if outside < 1:
        return math.inf
    change = float(np.median(after) - np.median(before))
    apart = np.sort((after[:, None] - before).ravel())
    width = change - apart[outside - 1] if change > 0 else apart[-outside] - change  # the side towards no change
    return math.hypot(max(float(width), 0.0), normal * math.sqrt(2) * _RUN_SPREAD)


def by_spread(parts: Sequence[tuple[float, float]]) -> float:
    """Return half the 99 % interval (Student's) of a difference, given each side's (variance, degrees of freedom)."""
    error = sum(each for each, _ in parts)
    freedom = error**2 / sum(each**2 / free for each, free in parts) if error else 1.0
    return upper_quantile(CHANCE, max(freedom, 1.0)) * math.sqrt(error)


def _of_median(runs: Sequence[Array]) -> tuple[float, float]:
    """Return (the variance of the median of runs, its degrees of freedom); values are logarithms."""
    count = len(runs)
    freedom = sum(len(run) - 1 for run in runs)
    within = 0.0
    if freedom:
        spread = sum(float(((run - run.mean()) ** 2).sum()) for run in runs) / freedom
        few = [1.0 if len(run) < SEVERAL else MEDIAN_VARIANCE for run in runs]  # the median of two is the mean
        within = spread * float(np.sum([each / len(run) for each, run in zip(few, runs, strict=True)])) / count**2
    within += _RUN_SPREAD**2 / count
    between = float(np.var([np.median(run) for run in runs], ddof=1)) / count if count > 1 else 0.0
    return (between, count - 1) if between > within else (within, max(freedom, 1))
