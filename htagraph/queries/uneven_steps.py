"""Steps that take far longer or shorter than the others: a warm-up, or a step that the recording cuts off."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from htagraph.core.kinds import ActivityKind

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["UnevenSteps", "uneven_steps"]

_TIMES = 2.0
"""How many times as long as the others, or they as it, a step is uneven. Chosen: steps of one job vary by tens of
percent. Doubled, a first step of three times the length passes as one of many."""


class UnevenSteps(NamedTuple):
    """Which steps differ from the others, and how long each kind takes."""

    odd: tuple[int, ...]
    """Numbers of the steps; empty where they are so uneven that none is usual."""
    odd_ns: tuple[int, int]
    """The shortest and the longest of them; of all steps where none is usual."""
    usual_ns: int
    """Median of the others; 0 where none is usual."""


def uneven_steps(graph: DependencyGraph) -> UnevenSteps | None:
    """Return which steps take more than twice or less than half as long as the others; None for none.

    A step takes from the end of the one before to its own end, work on devices included, the first from its start: of
    a host that runs ahead, the time from start to end holds waiting for the steps before. The rank with most steps is
    looked at.

    Example:
        >>> import htagraph as hg
        >>> uneven_steps(hg.load("data/demo")) is None
        True
    """
    acts = graph.activities
    ends = np.flatnonzero(acts.kind == ActivityKind.BOUNDARY)
    if len(ends) < 2:
        return None
    ranks, count = np.unique(acts.rank[ends], return_counts=True)
    ends = ends[acts.rank[ends] == ranks[int(count.argmax())]]
    ends = ends[np.argsort(acts.step[ends], kind="stable")]
    steps = acts.step[ends]
    marks = np.flatnonzero(
        (acts.kind == ActivityKind.STEP) & (acts.step == steps[0]) & (acts.rank == acts.rank[ends[0]])
    )
    lasted = np.diff(graph.time[2 * ends], prepend=graph.time[2 * marks].min())
    return _uneven(steps.astype(np.int64), lasted)


def _uneven(
    steps: np.ndarray[tuple[int], np.dtype[np.int64]], lasted: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> UnevenSteps | None:
    """Return what `uneven_steps` does, of the numbers and lengths, ns, of steps."""
    if lasted.max() <= _TIMES * lasted.min():
        return None
    usual = np.median(lasted)
    odd = (lasted > _TIMES * usual) | (_TIMES * lasted < usual)
    if len(steps) < 3 or 2 * odd.sum() >= len(steps):
        return UnevenSteps((), (int(lasted.min()), int(lasted.max())), 0)
    if not odd.any():
        return None
    some = lasted[odd]
    return UnevenSteps(tuple(steps[odd].tolist()), (int(some.min()), int(some.max())), int(np.median(lasted[~odd])))
