"""step_change: by how much steps of some recordings take longer than those of others, and how much of it is noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from htagraph.analyses.differences.compared_parts import parts_of, step_times_ns
from htagraph.analyses.differences.diff import Diff
from htagraph.core.errors import HtagraphError
from htagraph.core.statistics import CHANCE, upper_quantile
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import IntSelector

__all__ = ["StepChange", "change_of_runs", "change_of_times", "step_change", "typical"]

_RUN_SPREAD = 0.004
"""Relative standard deviation of a job's mean step from run to run that no single run shows. Measured on pairs of runs
of one job on one machine (0.2 to 0.9 %, beyond the spread of their steps). Doubled, no interval of single runs is
narrower than ± 2.9 %."""


@dataclass(frozen=True)
class StepChange:
    """By how much the mean step takes longer after than before."""

    before_us: float
    """Mean step of the recordings before, µs."""
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

    @property
    def is_known(self) -> bool:
        """Whether there are enough steps to know how much they differ by chance."""
        return math.isfinite(self.plus_minus_percent)

    @property
    def is_noise(self) -> bool:
        """Whether steps differ as much by chance."""
        return self.is_known and abs(self.percent) <= self.plus_minus_percent

    def fails(self, *, longer: bool, strict: bool) -> bool:
        """Return whether a gate fails: steps are longer than allowed by more than noise, or nothing was recorded."""
        if self.is_empty or not self.is_known:
            return self.is_empty or strict
        return longer and not self.is_noise

    def text(self) -> str:
        """Return the change in words, such as ``+3.1 % ± 4.0 %, within noise``."""
        if self.is_empty:
            return "nothing was recorded in one of the jobs"
        if not self.is_known:
            return f"{self.percent:+.1f} %; too few steps to tell from noise"
        within = ", within noise" if self.is_noise else ""
        return f"{self.percent:+.1f} % ± {self.plus_minus_percent:.1f} %{within}"


def step_change(
    before: Sequence[DependencyGraph],
    after: Sequence[DependencyGraph],
    *,
    steps: IntSelector = None,
    steps_after: IntSelector = None,
    ranks: IntSelector = None,
) -> StepChange:
    """Return by how much the mean step takes longer, and its 99 % interval over steps and runs.

    The time of a step is that from its end to the end of the next one, as `Diff.before_us` has it in the mean. Steps
    and ranks are chosen as in `htagraph.diff`.

    Raises:
        HtagraphError: there is no recording, or a step or rank that one does not have.
    """
    if not before or not after:
        msg = "give at least one recording before and one after"
        raise HtagraphError(msg)
    first = [parts_of(each, after[0], steps, steps_after, ranks)[0] for each in before]
    second = [parts_of(before[0], each, steps, steps_after, ranks)[1] for each in after]
    change = change_of_times(*([step_times_ns(part) / 1000 for part in side] for side in (first, second)))
    return replace(change, is_empty=_is_any_empty([*before, *after]))


def _is_any_empty(recordings: Sequence[DependencyGraph]) -> bool:
    return not all(len(each.activities) for each in recordings)


def change_of_runs(
    result: Diff, before: Sequence[DependencyGraph], after: Sequence[DependencyGraph], *, ranks: IntSelector = None
) -> StepChange:
    """Return the change of the steps that a diff compares, in all runs; of single runs, with the mean of the diff."""
    if not (result.parts[0].steps and result.parts[1].steps):
        none = np.zeros(0)
        change = change_of_times([none], [none])
        return replace(
            change, before_us=result.before_us, after_us=result.after_us, percent=result.change_percent, runs=(1, 1),
            is_empty=_is_any_empty([*before, *after]),
        )  # fmt: skip
    change = step_change(before, after, steps=result.parts[0].steps, steps_after=result.parts[1].steps, ranks=ranks)
    if len(before) + len(after) > 2:
        return change
    return replace(change, before_us=result.before_us, after_us=result.after_us, percent=result.change_percent)


def typical(runs: Sequence[DependencyGraph]) -> DependencyGraph:
    """Return the run whose steps are neither the fastest nor the slowest: that with the median mean step."""
    if len(runs) == 1:
        return runs[0]
    means = [float(step_times_ns(parts_of(each, each, None, None, None)[0]).mean()) for each in runs]
    return runs[int(np.argsort(means, kind="stable")[(len(runs) - 1) // 2])]


def change_of_times(before: Sequence[npt.NDArray[np.float64]], after: Sequence[npt.NDArray[np.float64]]) -> StepChange:
    """Return the change between the step times of runs, µs: an array per run.

    Runs are clusters: the variance of a side's mean is that of the means of its runs, or that of its steps and what
    runs are known to differ by, whichever is larger. The interval is Student's for two means of unequal variance.

    Example:
        >>> import numpy as np
        >>> quiet, slower = np.array([100.0, 101, 99, 100]), np.array([110.0, 111, 109, 110])
        >>> change_of_times([quiet], [slower]).text()
        '+10.0 % ± 3.2 %'
        >>> change_of_times([quiet], [quiet[::-1]]).is_noise
        True
    """
    sides = [[run for run in side if len(run)] for side in (before, after)]
    counts = [sum(map(len, side)) for side in sides]
    means = [float(np.mean([run.mean() for run in side])) if side else math.nan for side in sides]
    percent = 100 * (means[1] / means[0] - 1) if means[0] else math.nan
    width = math.inf
    if min(counts) > 1 and min(means) > 0:
        ratio = means[1] / means[0]
        known = zip(map(_of_mean, sides), means, strict=True)
        parts = [(variance / mean**2, freedom) for (variance, freedom), mean in known]
        error = sum(each for each, _ in parts)
        freedom = error**2 / sum(each**2 / free for each, free in parts)
        width = 100 * ratio * upper_quantile(CHANCE, max(freedom, 1.0)) * math.sqrt(error)
    return StepChange(
        means[0], means[1], percent, width, (len(sides[0]), len(sides[1])), (counts[0], counts[1])
    )  # fmt: skip


def _of_mean(runs: Sequence[npt.NDArray[np.float64]]) -> tuple[float, float]:
    """Return (the variance of the mean of runs, its degrees of freedom)."""
    count = len(runs)
    means = np.array([run.mean() for run in runs])
    freedom = sum(len(run) - 1 for run in runs)
    if freedom:
        spread = sum(float(((run - run.mean()) ** 2).sum()) for run in runs) / freedom
        within = spread * float(np.sum([1 / len(run) for run in runs])) / count**2
    else:
        within, freedom = 0.0, 1
    within += (_RUN_SPREAD * float(means.mean())) ** 2 / count
    between = float(means.var(ddof=1)) / count if count > 1 else 0.0
    return (between, count - 1) if between > within else (within, freedom)
