"""Walks up chains of parents, all at once: arrays that say for each number which one is above it, -1 for none."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["deepest_first", "depths", "nearest", "outermost"]

Array: TypeAlias = npt.NDArray[Any]


def nearest(above: Array, wanted: Array, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the first wanted one on the way up from each row, the row itself included; -1 for none.

    Args:
        above: what lies directly above each one, -1 for nothing; no chain of them is closed.
        wanted: which ones are looked for (bool).
        rows: where to begin; -1 gives -1.

    Example:
        >>> import numpy as np
        >>> nearest(np.array([-1, 0, 1, -1]), np.array([True, False, False, False]), [2, 0, 3, -1]).tolist()
        [0, 0, -1, -1]
    """
    found = np.array(rows, np.int64)
    asking = np.flatnonzero(found >= 0)
    while len(asking):  # each round one level up: as many rounds as the deepest stack has levels
        asking = asking[~wanted[found[asking]]]
        found[asking] = above[found[asking]]
        asking = asking[found[asking] >= 0]
    return found


def outermost(above: Array, wanted: Array) -> npt.NDArray[np.int64]:
    """Return the wanted ones that have no other above them, ascending.

    Example:
        >>> import numpy as np
        >>> outermost(np.array([-1, 0, 1, -1]), np.array([False, True, True, True])).tolist()
        [1, 3]
    """
    rows = np.flatnonzero(wanted)
    return rows[nearest(above, wanted, above[rows]) < 0]


def depths(parents: Array) -> npt.NDArray[np.int32]:
    """Return how many others lie above each one.

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
    """Return those that have a parent, level by level, the deepest level first.

    Example:
        >>> import numpy as np
        >>> [level.tolist() for level in deepest_first(np.array([-1, 0, 1, 0]))]
        [[2], [1, 3]]
    """
    depth = depths(parents)
    rows = np.flatnonzero(depth > 0)
    rows = rows[np.argsort(-depth[rows], kind="stable")]
    return np.split(rows, np.flatnonzero(np.diff(depth[rows])) + 1) if len(rows) else []
