"""Reports on single activities: those that criteria choose, and all that is known of one."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from htagraph.core.errors import HtagraphError
from htagraph.core.kinds import EdgeKind, GapKind
from htagraph.output.report import Report, report_on
from htagraph.queries.call_stack import call_stack
from htagraph.service.activity_edges import activity_edges
from htagraph.whatif.change_options import criteria

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["event_report", "selection_report"]

_COLUMNS = ["activity", "rank", "kind", "name", "stream", "step", "start_us", "duration_us"]
_MAX_NAMES = 1_000
"""Names by which a selection is summed up; chosen: far more than an answer shows. Doubled, nothing changes."""
_MAX_EDGES = 1_000
"""Edges of one activity in one direction that are shown; chosen: a synchronisation may have one per stream. Doubled,
nothing changes."""


def selection_report(graph: DependencyGraph, text: str, *, count: int) -> Report:
    """Return the activities that criteria choose, the longest first, and their time by name.

    Args:
        graph: the job.
        text: criteria as the command line writes them, such as ``kind=kernel,name=*gemm*,rank=0``.
        count: rows of activities that are needed.

    Raises:
        HtagraphError: the criteria cannot be read, or nothing meets them.
    """
    try:
        chosen = graph.select(**read_criteria(text))
    except ValueError as error:
        raise HtagraphError(str(error)) from None
    acts, rows = graph.activities, chosen.activities
    order = np.lexsort((rows, -acts.duration[rows]))[:count]
    longest = graph.select(activity=rows[order].tolist()).to_frame().loc[rows[order]].reset_index()[_COLUMNS]
    names, where = np.unique(acts.name[rows], return_inverse=True)
    sums = pd.DataFrame({
        "name": [graph.names[name] for name in names.tolist()],
        "count": np.bincount(where, minlength=len(names)),
        "total_us": np.bincount(where, acts.duration[rows], minlength=len(names)) / 1000,
    }).sort_values("total_us", ascending=False, kind="stable", ignore_index=True)  # fmt: skip
    figures = {"count": len(rows), "total_us": float(acts.duration[rows].sum()) / 1000}
    tables = {"activities": longest, "by_name": sums.head(_MAX_NAMES)}
    return report_on(graph, "select", tables, [], figures=figures)


def read_criteria(text: str) -> dict[str, Any]:
    """Return the keywords of `DependencyGraph.select` that a text gives.

    Raises:
        HtagraphError: there is a regular expression among them, whose search may never end.
        ValueError: it cannot be read.
    """
    given = criteria(text)
    if "regex" in given:
        msg = "regex= is not available here, because searching may take for ever: use globs, such as name=*gemm*"
        raise HtagraphError(msg)
    return given


def event_report(graph: DependencyGraph, activity: int) -> Report:
    """Return all that is known of one activity: its times, arguments, callers, and what it waits for and lets go on.

    Raises:
        HtagraphError: there is no such activity, or its file is gone.
    """
    stack = call_stack(graph, activity).reset_index()
    tables = {
        "activity": stack.tail(1).drop(columns="depth").reset_index(drop=True),
        "arguments": _arguments(graph, activity),
        "inside": stack.iloc[:-1][["activity", "kind", "name", "start_us", "duration_us"]],
        "waits_for": _edges(graph, activity, incoming=True),
        "lets_go_on": _edges(graph, activity, incoming=False),
    }
    return report_on(graph, "event", tables, [])


def _arguments(graph: DependencyGraph, activity: int) -> pd.DataFrame:
    acts = graph.activities
    recorded = int(acts.event[activity]) >= 0 and int(acts.rank[activity]) in graph.traces
    found = graph.event(activity).args.model_dump(exclude_none=True) if recorded else {}
    return pd.DataFrame({"argument": list(found), "value": list(map(str, found.values()))}, dtype="object")


def _edges(graph: DependencyGraph, activity: int, *, incoming: bool) -> pd.DataFrame:
    """Return a row per edge at the start or end of an activity, from or to another one."""
    edges = islice(activity_edges(graph, activity, incoming=incoming), _MAX_EDGES)
    return pd.DataFrame([_edge_row(graph, edge, incoming=incoming) for edge in edges])


def _edge_row(graph: DependencyGraph, edge: int, *, incoming: bool) -> dict[str, Any]:
    acts, edges = graph.activities, graph.edges
    source, target = int(edges.source[edge]), int(edges.target[edge])
    vertex, other = (target, source) if incoming else (source, target)
    decided = int(graph.binding[target]) == edge
    return {
        "moment": ("start", "end")[vertex % 2],
        "edge": EdgeKind(edges.kind[edge]).name,
        "other_activity": other // 2,
        "other_moment": ("start", "end")[other % 2],
        "other_name": graph.names[acts.name[other // 2]],
        "other_rank": int(acts.rank[other // 2]),
        "lag_us": float(edges.lag[edge]) / 1000,
        "decided": decided,
        "later_than_that_us": float(graph.gap[target]) / 1000 if decided else None,
        "why_later": GapKind(graph.gap_kind[target]).name if decided and graph.gap[target] else "",
        "confidence_percent": int(edges.confidence[edge]),
    }
