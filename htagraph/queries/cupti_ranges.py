"""The kernel launch that each CUPTI counter range belongs to, and the operators around a launch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import COUNTER_RANGE, is_kernel_launch, names_that
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.trace.readers import reader_of

__all__ = ["counter_ranges", "operators_around"]


def counter_ranges(graph: DependencyGraph, rank: int) -> pd.DataFrame:
    """Return a rank's counter ranges in the order of time, each with the launch of its kernel.

    CUPTI's range profiler runs one kernel at a time, so the n-th range belongs to the n-th launch. Where the numbers of
    launches and ranges differ, no range has a launch.

    Args:
        graph: the job.
        rank: one of its ranks.

    Returns:
        ``range`` (int64: position in the file's events), ``kernel`` (str), ``launch`` (int64: activity, -1 for none),
        then one column (object) per counter.
    """
    trace = graph.traces.get(rank)
    table = pd.DataFrame({"range": pd.Series(dtype="int64"), "kernel": pd.Series(dtype="str"), "launch": ()})
    if trace is None or not trace.in_categories(COUNTER_RANGE).any():
        return table.astype({"launch": "int64"})
    events = trace.events.take(trace.in_categories(COUNTER_RANGE))
    order = np.argsort(events.start, kind="stable")
    launches = _launches(graph, rank)
    launch = launches if len(launches) == len(events) else np.full(len(events), -1, np.int64)
    counters = reader_of(trace).category_arguments(trace.unchanged_path(), COUNTER_RANGE).reindex(events.index[order])
    kernel = pd.Series([trace.names[name] for name in events.name[order]], dtype="str")
    table = pd.DataFrame({"range": events.index[order].astype(np.int64), "kernel": kernel, "launch": launch})
    return pd.concat([table, counters.reset_index(drop=True)], axis=1)


def operators_around(graph: DependencyGraph, activities: npt.ArrayLike) -> list[list[int]]:
    """Return the operators that enclose each activity on its thread, itself included, outermost first; none for -1."""
    acts = graph.activities
    stacks: list[list[int]] = []
    known: dict[int, list[int]] = {-1: []}  # activities share what encloses them: each is visited once
    for activity in np.asarray(activities, np.int64).tolist():
        unknown, at = [], activity
        while at not in known:
            unknown.append(at)
            at = int(acts.parent[at])
        around = known[at]
        for inner in reversed(unknown):
            around = [*around, inner] if acts.kind[inner] == ActivityKind.OP else around
            known[inner] = around
        stacks.append(around)
    return stacks


def _launches(graph: DependencyGraph, rank: int) -> npt.NDArray[np.int64]:
    """Return the kernel launches of a rank in the order of time, without driver calls inside runtime calls."""
    acts = graph.activities
    of_kernel = names_that(is_kernel_launch, graph.names)
    wanted = of_kernel[acts.name] & (acts.kind == ActivityKind.LAUNCH)
    rows = np.arange(len(acts))[acts.of_rank(rank)]
    parent = acts.parent[rows]
    rows = rows[wanted[rows] & ~((parent >= 0) & wanted[parent])]
    return rows[np.argsort(acts.start[rows], kind="stable")]
