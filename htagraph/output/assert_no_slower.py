"""For tests of users: a job must not become slower."""

from __future__ import annotations

import os
from collections.abc import Sequence

from htagraph.analyses.differences.step_change import StepChange, step_change
from htagraph.graph.load import load
from htagraph.trace.discover import runs_of

__all__ = ["assert_no_slower"]


def assert_no_slower(
    before: str | os.PathLike[str],
    after: str | os.PathLike[str],
    *,
    percent: float = 0.0,
    steps: Sequence[int] | None = None,
    ranks: Sequence[int] | None = None,
    strict: bool = False,
) -> StepChange:
    """Fail if the steps of a job take longer than before, by more than a limit and by more than noise.

    Args:
        before: a folder with the traces of a job, or a folder of such folders: several runs of it.
        after: likewise, recorded now.
        percent: how much longer the mean step may take, percent of the step before.
        steps: only from the first to the last of these steps, of both.
        ranks: only these ranks.
        strict: also fail where there are too few steps to tell a change from noise.

    Returns:
        The change of the mean step and its 99 % interval.

    Raises:
        AssertionError: the job is slower, or nothing was recorded of one of them; the message says by how much, and
            what to run to see why.
        HtagraphError: the traces cannot be read.

    Example:
        >>> import htagraph as hg
        >>> hg.assert_no_slower("data/demo", "data/demo").text()
        '+0.0 % ± ... %, within noise'
    """
    sides = [[load(run) for run in runs_of(os.fspath(path))] for path in (before, after)]
    change = step_change(sides[0], sides[1], steps=steps, ranks=ranks)
    if change.fails(longer=change.percent > percent, strict=strict):
        msg = f"step time: {change.text()} (limit +{percent:g} %); why: htagraph diff {before} {after}"
        raise AssertionError(msg)
    return change
