"""How long hosts tune kernels or compile code: in regions whose name says so, and in operators that time kernels.

A library (cuDNN's benchmark mode, MIOpen) tries several kernels in an operator, reads on the device how long each took,
and runs the fastest after that. No name tells that; the readings do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.kinds import OPERATORS, ActivityKind, of_kinds
from htagraph.core.naming import is_timing, names_that
from htagraph.core.statistics import MOST

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["time_in_regions", "time_in_tuned_operators"]

_WITH_OWN_TIME = (
    ActivityKind.LAUNCH,
    ActivityKind.RUNTIME,
    *OPERATORS,
    ActivityKind.PYTHON,
)
_MIN_READINGS = 2
"""How many times an operator reads the time of kernels that are tried out. Chosen: nothing is chosen from one. Doubled,
choices between three kernels count as steady work."""


def time_in_regions(
    graph: DependencyGraph,
    names_region: Callable[[str], bool],
) -> pd.DataFrame:
    """Return all activities of hosts inside regions of some names, unless most steps have a region.

    Args:
        graph: the job.
        names_region: whether a name is that of a region.

    Returns:
        One row per activity: ``activity``, ``time`` (own, ns).

    Example:
        >>> import htagraph as hg
        >>> from htagraph.core.naming import is_tuning
        >>> len(time_in_regions(hg.load("data/demo"), is_tuning))
        0
    """
    acts = graph.activities
    regions = graph.tree.outermost(
        _named(
            graph,
            names_region,
        )
    )
    is_region = marked(
        regions,
        len(acts),
    )
    is_counted = graph.tree.inside(is_region) | is_region
    is_counted &= ~acts.on_device
    is_counted &= of_kinds(
        acts.kind,
        _WITH_OWN_TIME,
    )
    if _recurs(graph, regions):
        is_counted[:] = False
    rows = np.flatnonzero(is_counted)
    return _table(
        rows,
        graph.own_time[rows],
    )


def time_in_tuned_operators(graph: DependencyGraph) -> pd.DataFrame:
    """Return all activities of hosts until an operator has chosen the fastest kernel, unless most steps choose.

    After the last reading of a time, the operator does as every later operator of the name does.

    Args:
        graph: the job.

    Returns:
        One row per activity: ``activity``, ``time`` (ns; own, and of calls that wait for kernels all),
        ``usual`` (the part of the time that follows the choice).

    Example:
        >>> import htagraph as hg
        >>> len(time_in_tuned_operators(hg.load("data/demo")))
        0
    """
    acts = graph.activities
    chosen_at = _chosen_at(graph)
    is_tuned = chosen_at > 0
    is_host = ~acts.on_device & (acts.rank >= 0)
    if _recurs(graph, np.flatnonzero(is_tuned)):
        is_host[:] = False
    rows = np.flatnonzero(is_host)
    operator = graph.tree.nearest(
        is_tuned,
        rows,
    )
    is_before = acts.start[rows] < chosen_at[operator]
    is_before &= operator >= 0
    rows = rows[is_before]
    operator = operator[is_before]
    time = np.where(
        acts.kind[rows] == ActivityKind.SYNC,
        acts.duration[rows],
        graph.own_time[rows],
    )
    is_operator = is_tuned[rows]
    time[is_operator] = 0
    inside = np.bincount(
        operator,
        time,
        len(acts),
    )
    tuned = rows[is_operator]
    until_chosen = chosen_at[tuned] - acts.start[tuned]
    before = until_chosen - inside[tuned].astype(np.int64)
    time[is_operator] = graph.own_time[tuned]
    usual = np.zeros_like(time)
    usual[is_operator] = graph.own_time[tuned] - np.clip(
        before,
        0,
        graph.own_time[tuned],
    )
    table = _table(
        rows,
        time,
    )
    return table.assign(usual=usual)


def _table(rows: Ints, time: Ints) -> pd.DataFrame:
    """Return activities and how much time each takes, ns."""
    return pd.DataFrame(
        {
            "activity": rows,
            "time": time,
        }
    )


def _named(
    graph: DependencyGraph,
    names_region: Callable[[str], bool],
) -> Mask:
    """Return which activities are a host's and have a name of some."""
    acts = graph.activities
    has_name = names_that(
        names_region,
        graph.names,
    )
    is_named = has_name[acts.name]
    return is_named & ~acts.on_device & (acts.rank >= 0)


def _recurs(graph: DependencyGraph, regions: Ints) -> bool:
    """Return whether most steps have some of the regions."""
    steps = np.unique(graph.activities.step[regions])
    step_count = np.count_nonzero(steps >= 0)
    return bool(step_count > max(1, MOST * len(graph.steps)))


def _chosen_at(graph: DependencyGraph) -> Ints:
    """Return when each operator that times kernels reads the last time, ns on the clock of its rank; 0 elsewhere."""
    acts = graph.activities
    readings = np.flatnonzero(
        _named(
            graph,
            is_timing,
        )
    )
    operator = graph.tree.nearest(
        acts.kind == ActivityKind.OP,
        readings,
    )
    readings = readings[operator >= 0]
    operator = operator[operator >= 0]
    count = np.bincount(
        operator,
        minlength=len(acts),
    )
    chosen_at = np.zeros(
        len(acts),
        np.int64,
    )
    np.maximum.at(
        chosen_at,
        operator,
        acts.end[readings],
    )
    chosen_at[count < _MIN_READINGS] = 0
    return chosen_at
