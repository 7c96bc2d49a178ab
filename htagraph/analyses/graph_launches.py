"""Launches of CUDA and HIP graphs, with the kernels that each replayed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.arrays import inverse_of
from htagraph.core.intervals import group_lengths
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.core.naming import is_graph_launch, is_whole_graph, names_that
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import columns_of

__all__ = ["graph_launches"]

TABLE = Table(
    "CUDA graph launches",
    Col("rank", "int64"),
    Col("launch", "int64", "activity number of the launch call"),
    Col("name", "str"),
    Col("step", "int64", "-1 outside steps"),
    Col("graph_id", "int64", "-1 if the trace does not say"),
    Col("start_us", doc="on the common clock, since the job's first activity"),
    Col("call_us", doc="the call's duration"),
    Col("delay_us", doc="from the call's end to the first kernel; 0 if the kernel started earlier"),
    Col("kernels", "int64", "kernels and copies, 0 if none was recorded"),
    Col("streams", "int64"),
    Col("span_us", doc="from the first kernel's start to the last one's end"),
    Col("busy_us", doc="the part of the span in which a kernel or copy runs"),
    Col("gap_us", doc="the rest of the span, in which the device waited inside the graph"),
    Col("gap_percent", doc="share of the span"),
    Col("communication_us", doc="summed durations of the graph's collectives"),
)


@described(TABLE)
def graph_launches(graph: DependencyGraph) -> pd.DataFrame:
    """Return the host time and the device time of each launch of a CUDA or HIP graph.

    Args:
        graph: the job.

    Returns:
        One row per call, by rank and start: {columns}. Without kernels the delay and the percentage are NaN, the
        other times 0. A graph that was recorded as a whole has a delay and a span, and what else depends on its kernels
        is NaN or 0.

    Example:
        >>> import htagraph as hg
        >>> hg.graph_launches(hg.load("data/demo")).shape[0]
        0
    """
    acts, edges = graph.activities, graph.edges
    by_name = names_that(is_graph_launch, graph.names)
    pairs = np.flatnonzero(edges.kind == EdgeKind.GRAPH)
    call, work = edges.source[pairs] >> 1, edges.target[pairs] >> 1
    calls = np.union1d(call, np.flatnonzero((acts.kind == ActivityKind.LAUNCH) & by_name[acts.name]))
    calls = calls[np.lexsort((acts.start[calls], acts.rank[calls]))]
    place = inverse_of(calls, len(acts))
    group, count = place[call], len(calls)
    works = np.bincount(group, minlength=count)
    whole = np.bincount(group, names_that(is_whole_graph, graph.names)[acts.name[work]], count) > 0
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(low, group, acts.start[work])
    np.maximum.at(high, group, acts.end[work])
    some = works > 0
    low, high = np.where(some, low, acts.end[calls]), np.where(some, high, acts.end[calls])
    busy = group_lengths(acts.start[work], acts.end[work], group, count)
    span, graph_id = high - low, np.full(count, -1)
    np.maximum.at(graph_id, group, acts.arg("graph_id")[work])
    talk = np.where(acts.kind[work] == ActivityKind.COMMUNICATION, acts.duration[work], 0)
    return TABLE.frame({
        **columns_of(graph, calls, "rank", "name", "step", "start_us"), "launch": calls, "graph_id": graph_id,
        "call_us": acts.duration[calls] / 1000,
        "delay_us": np.where(some, np.maximum(0, low - acts.end[calls]) / 1000, np.nan),
        "kernels": np.where(whole, 0, works),
        "streams": np.bincount(np.unique(group * len(graph.lanes) + acts.lane[work]) // max(1, len(graph.lanes)),
                               minlength=count),
        "span_us": span / 1000, "busy_us": np.where(whole, np.nan, busy / 1000),
        "gap_us": np.where(whole, np.nan, (span - busy) / 1000),
        "gap_percent": 100 * (span - busy) / np.where((span > 0) & ~whole, span, np.nan),
        "communication_us": np.bincount(group, talk, count) / 1000,
    })  # fmt: skip
