"""The tree of activities: what encloses what on a thread, launches above their work, backward under its caller.

It knows arrays only, so that selections and analyses can share it. A parent is an activity number, -1 for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import is_backward

if TYPE_CHECKING:
    from htagraph.graph.activities import Activities

__all__ = ["ancestors", "around", "deepest_first", "depths", "descendants", "tree_parents"]

Array: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]
_ENCLOSING = (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.PYTHON)


def tree_parents(acts: Activities, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the activity above each one: around it on its thread, or the launch of device work.

    What lies in nothing on a thread of the autograd engine belongs to the innermost operator, annotation, step or
    Python frame around it on the thread that called the engine: in the recording that one stands still meanwhile.

    Args:
        acts: of all ranks.
        names: their texts.
    """
    parents = np.where(acts.parent >= 0, acts.parent, np.where(acts.on_device, acts.cause, -1)).astype(np.int64)
    backward = np.array([is_backward(name) for name in names], np.bool_)
    in_engine = backward[acts.name[: acts.ranked]] & (acts.kind[: acts.ranked] == ActivityKind.OP)
    if not in_engine.any():
        return parents
    engines = np.unique(acts.lane[: acts.ranked][in_engine])
    for rank in np.unique(acts.rank[: acts.ranked][in_engine]).tolist():
        mine = acts.of_rank(rank)
        caller = _caller(acts, mine, engines)
        if caller >= 0:
            _adopt(acts, mine, parents, caller, engines)
    return parents


def _caller(acts: Activities, mine: slice, engines: Array) -> int:
    """Return the lane of the thread that called the engine: the busiest with steps, else without engine; -1 if none."""
    host = ~acts.on_device[mine]
    lane, kind = acts.lane[mine][host], acts.kind[mine][host]
    with_steps = lane[kind == ActivityKind.STEP]
    candidates = lane[np.isin(lane, with_steps)] if len(with_steps) else lane[~np.isin(lane, engines)]
    return int(np.argmax(np.bincount(candidates))) if len(candidates) else -1


def _adopt(acts: Activities, mine: slice, parents: Array, caller: int, engines: Array) -> None:
    """Set the parents of what lies in nothing on the engine's threads of a rank."""
    lane = acts.lane[mine]
    tops = mine.start + np.flatnonzero(np.isin(lane, engines[engines != caller]) & ~acts.on_device[mine])
    tops = tops[(parents[tops] < 0) & (acts.kind[tops] != ActivityKind.BOUNDARY)]
    regions = mine.start + np.flatnonzero((lane == caller) & np.isin(acts.kind[mine], _ENCLOSING))
    if len(tops):
        parents[tops] = around(acts, parents, regions, acts.start[tops], acts.end[tops])


def around(acts: Activities, parents: Array, among: Array, start: Array, end: Array) -> npt.NDArray[np.int64]:
    """Return for each interval the innermost activity of a thread that contains it, -1 for none.

    Args:
        acts: of all ranks.
        parents: their parents.
        among: activities of one thread.
        start: where the intervals begin, ns on the clock of the thread's rank.
        end: where they end.
    """
    if not len(among):
        return np.full(len(start), -1, np.int64)
    among = among[np.lexsort((-acts.end[among], acts.start[among]))]
    at = np.searchsorted(acts.start[among], start, side="right") - 1
    found = np.where(at >= 0, among[np.maximum(at, 0)], -1)
    while True:  # the last to open may be over by then: up, until one reaches far enough
        short = (found >= 0) & (acts.end[found] < end)
        if not short.any():
            return found
        found[short] = parents[found[short]]


def depths(parents: Array) -> npt.NDArray[np.int32]:
    """Return how many activities lie above each one.

    Example:
        >>> import numpy as np
        >>> depths(np.array([-1, 0, 1, -1])).tolist()
        [0, 1, 2, 0]
    """
    jump = np.append(parents, -1)  # the last, which -1 points to, is nothing and leads nowhere
    depth = (jump >= 0).astype(np.int32)
    while (jump >= 0).any():  # each round twice as far up
        depth += depth[jump]
        jump = jump[jump]
    return depth[:-1]


def deepest_first(parents: Array) -> list[npt.NDArray[np.int64]]:
    """Return the activities that have a parent, level by level, the deepest level first."""
    depth = depths(parents)
    rows = np.flatnonzero(depth > 0)
    rows = rows[np.argsort(-depth[rows], kind="stable")]
    return np.split(rows, np.flatnonzero(np.diff(depth[rows])) + 1) if len(rows) else []


def descendants(parents: Array, chosen: Mask) -> Mask:
    """Return which activities are chosen or lie anywhere below a chosen one.

    Example:
        >>> import numpy as np
        >>> descendants(np.array([-1, 0, 1, -1]), np.array([False, True, False, False])).tolist()
        [False, True, True, False]
    """
    jump, inside = np.append(parents, -1), np.append(chosen, False)
    while (jump >= 0).any():
        inside |= inside[jump]
        jump = jump[jump]
    return inside[:-1]


def ancestors(parents: Array, chosen: Mask) -> Mask:
    """Return which activities are chosen or lie anywhere above a chosen one.

    Example:
        >>> import numpy as np
        >>> ancestors(np.array([-1, 0, 1, -1]), np.array([False, True, False, False])).tolist()
        [True, True, False, False]
    """
    above, rows = chosen.copy(), np.flatnonzero(chosen)
    while len(rows):
        rows = np.unique(parents[rows])
        rows = rows[rows >= 0]
        rows = rows[~above[rows]]
        above[rows] = True
    return above
