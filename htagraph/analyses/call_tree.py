"""The tree of calls: what every activity called, and the device work launched under it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import ADDED, ActivityKind, of_kinds
from htagraph.core.parents import deepest_first
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import columns_of

__all__ = ["call_tree"]

TABLE = Table(
    "Calls",
    Col("rank", "int64"),
    Col("lane kind name", "str"),
    Col("parent", "int64", "activity number, -1 for none"),
    Col("depth", "int64", "number of calls around this one"),
    Col("height", "int64", "0 for device work, else 1, or 1 more than the highest child"),
    Col("kernels", "int64", "number of kernels and copies inside the activity; device work counts itself"),
    Col("kernel_us", doc="sum of the durations of these kernels and copies"),
    Col("kernel_span_us", doc="from the first start to the last end of this device work; NaN without any"),
    Col("first_kernel_us last_kernel_us", doc="that start and that end, since the job's first activity; or NaN"),
    Col("start_us duration_us", doc="the start is on the common clock"),
)


@described(TABLE)
def call_tree(graph: DependencyGraph) -> pd.DataFrame:
    """Return every activity's place in the tree of calls, with the device work launched under it.

    The parent of an activity is the activity that encloses it on its thread. The parent of device work is its launch.
    The parent of an outermost activity on a thread of the autograd engine is the innermost operator, annotation, step
    or Python frame around the call of the engine, on the thread that called the engine. `Selection.descendants` and
    `Selection.ancestors` walk this tree.

    Args:
        graph: the job.

    Returns:
        One row per activity but those that the graph added, indexed by ``activity`` (int64): {columns}.

    Example:
        >>> import htagraph as hg
        >>> tree = hg.call_tree(hg.load("data/demo"))
        >>> forward = tree[tree["name"] == "DistributedDataParallel.forward"]
        >>> bool((forward["kernels"] > 0).all())
        True

    Source: HTA's CallGraph, whose columns are parent, depth, height, num_kernels, kernel_dur_sum, kernel_span,
    first_kernel_start and last_kernel_end.
    """
    acts, tree = graph.activities, _tree_columns(graph)
    rows = np.flatnonzero(~of_kinds(acts.kind, ADDED))
    some = tree["kernels"][rows] > 0
    first, last = tree["first_kernel"][rows], tree["last_kernel"][rows]
    table = TABLE.frame({
        **columns_of(graph, rows, "rank", "lane", "kind", "name", "start_us", "duration_us"),
        **{column: tree[column][rows] for column in ("parent", "depth", "height", "kernels")},
        "kernel_us": tree["kernel_ns"][rows] / 1000,
        "kernel_span_us": np.where(some, last - first, np.nan) / 1000,
        "first_kernel_us": np.where(some, first - graph.origin_ns, np.nan) / 1000,
        "last_kernel_us": np.where(some, last - graph.origin_ns, np.nan) / 1000,
    })  # fmt: skip
    return table.set_axis(pd.Index(rows, name="activity", dtype="int64"))


def _tree_columns(graph: DependencyGraph) -> dict[str, Array]:
    """Return for every activity its place in the tree and the device work inside it; times are ns.

    Keys: ``parent``, ``depth``, ``height``, ``kernels``, ``kernel_ns``, ``first_kernel`` and ``last_kernel`` (start of
    the first and end of the last on the common clock; without meaning for activities without device work).
    """
    acts, time = graph.activities, graph.time
    never = np.iinfo(np.int64).max  # ns; any start is earlier
    parent = graph.tree.parent
    work = acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER)
    height = np.where(acts.on_device, 0, 1).astype(np.int32)
    kernels = work.astype(np.int64)
    total = np.where(work, acts.duration, 0)
    first, last = np.where(work, time[0::2], never), np.where(work, time[1::2], -never)
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
