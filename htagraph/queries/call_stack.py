"""The tree of activities as tables: the stack above one of them, and the device work under each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind
from htagraph.core.parents import deepest_first
from htagraph.graph.dependency_graph import DependencyGraph

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["call_stack", "tree_columns"]

_NEVER = np.iinfo(np.int64).max
"""ns: start of the first kernel where there is none, so that any start is earlier."""


def call_stack(graph: DependencyGraph, activity: int) -> pd.DataFrame:
    """Return the call stack of an activity: everything that encloses it, the outermost first, and the activity itself.

    A kernel or copy is inside its launch; backward work on an autograd engine thread is inside what called the engine.

    Args:
        graph: the job.
        activity: its number.

    Returns:
        One row per level, indexed by ``activity`` (int64): ``depth`` (int64, 0 for the outermost), and the columns of
        `Selection.to_frame`: ``rank`` (int32), ``kind``, ``name``, ``lane`` (str), ``stream`` (int64), ``step``
        (int32), ``start_us``, ``duration_us`` (float64, µs), ``parent``, ``cause`` (int32), ``correlation`` (int64).

    Raises:
        SelectionError: there is no such activity.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> kernel = int(graph.select(kind="kernel", name="*gemm*").activities[0])
        >>> hg.call_stack(graph, kernel)["kind"].tolist()[-2:]
        ['launch', 'computation']
    """
    if not isinstance(activity, int | np.integer) or not 0 <= activity < len(graph.activities):
        msg = f"activity {activity!r}: this graph has activities 0 to {len(graph.activities) - 1}"
        raise SelectionError(msg)
    above = graph.tree.parent
    path = [int(activity)]
    while above[path[-1]] >= 0:
        path.append(int(above[path[-1]]))
    frame = graph.select(activity=path).to_frame().loc[path[::-1]]
    frame.insert(0, "depth", np.arange(len(path)))
    return frame


def tree_columns(graph: DependencyGraph) -> dict[str, Array]:
    """Return for every activity its place in the tree and the device work inside it; times are ns.

    Keys: ``parent``, ``depth``, ``height``, ``kernels``, ``kernel_ns``, ``first_kernel`` and ``last_kernel`` (start of
    the first and end of the last on the common clock; without meaning for activities without device work).
    """
    acts, time = graph.activities, graph.time
    parent = graph.tree.parent
    work = acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER)
    height = np.where(acts.on_device, 0, 1).astype(np.int32)
    kernels = work.astype(np.int64)
    total = np.where(work, acts.duration, 0)
    first, last = np.where(work, time[0::2], _NEVER), np.where(work, time[1::2], -_NEVER)
    for rows in deepest_first(parent):
        above = parent[rows]
        np.maximum.at(height, above, height[rows] + 1)
        np.add.at(kernels, above, kernels[rows])
        np.add.at(total, above, total[rows])
        np.minimum.at(first, above, first[rows])
        np.maximum.at(last, above, last[rows])
    return {
        "parent": parent, "depth": graph.tree.depth, "height": height, "kernels": kernels, "kernel_ns": total,
        "first_kernel": first, "last_kernel": last,
    }  # fmt: skip
