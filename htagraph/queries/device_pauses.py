"""The pauses of a rank's device: when none of its streams was at work, and why."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.idle_cause import binding_kind, pause_cause

__all__ = ["device_pauses"]


def device_pauses(graph: DependencyGraph, rank: int) -> pd.DataFrame:
    """Return each time in which no stream of a rank was at work, with its cause.

    Args:
        graph: the job.
        rank: the rank.

    Returns:
        In the order of time: ``before`` (int64: the work that ended last before it), ``after`` (int64: the work that
        ended it), ``start_us`` (float64: since the job's first activity, on the common clock), ``pause_us`` (float64,
        positive), ``cause`` (str: see `htagraph.queries.idle_cause.pause_cause`). They sum to the idle time of
        ``htagraph.idle_breakdown(graph, by="rank")``.

    Example:
        >>> import htagraph as hg
        >>> table = device_pauses(hg.load("data/demo"), 0)
        >>> round(float(table["pause_us"].sum()), 3)
        3006.414
    """
    acts = graph.activities
    of_rank = acts.of_rank(rank)
    work = of_rank.start + np.flatnonzero(acts.on_device[of_rank])
    work = work[np.argsort(acts.start[work], kind="stable")]
    end = acts.end[work]
    busy_until = np.maximum.accumulate(end)
    last = np.maximum.accumulate(np.where(end == busy_until, np.arange(len(work)), 0))
    pause = acts.start[work[1:]] - busy_until[:-1]
    idle = np.flatnonzero(pause > 0)
    after, free = work[1:][idle], busy_until[:-1][idle]
    begin = graph.time[2 * after] - (acts.start[after] - free) - graph.origin_ns
    return pd.DataFrame({
        "before": work[last[:-1][idle]],
        "after": after,
        "start_us": begin / 1000,
        "pause_us": pause[idle] / 1000,
        "cause": pd.array(pause_cause(graph, binding_kind(graph), after, free), dtype="str"),
    })  # fmt: skip
