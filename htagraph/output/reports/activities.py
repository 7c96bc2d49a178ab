"""Reports on single activities: those that criteria choose, and all that is known of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import texts_of
from htagraph.core.errors import HtagraphError
from htagraph.core.kinds import EdgeKind, GapKind, Provenance
from htagraph.core.tables import Col, Table
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.report import Report, gives, report_on
from htagraph.queries.attribution import call_stack
from htagraph.queries.change_scope import no_match
from htagraph.whatif.options import criteria

__all__ = ["activity_edges", "event_report", "selection_report"]

_ACTIVITIES = Table(
    "Activities",
    Col("activity rank", "int64"),
    Col("kind name", "str"),
    Col("stream step", "int64"),
    Col("start_us duration_us"),
)
_BY_NAME = Table("Time by name", Col("name", "str"), Col("count", "int64"), Col("total_us"), rank_by="total_us")
_ACTIVITY = Table(
    "Activity",
    Col("activity rank", "int64"),
    Col("kind name lane", "str"),
    Col("stream step", "int64"),
    Col("start_us duration_us"),
    Col("parent cause correlation", "int64"),
)
_INSIDE = Table("Inside", Col("activity", "int64"), Col("kind name", "str"), Col("start_us duration_us"))
_EDGES = Table(
    "Edges",
    Col("moment edge", "str"),
    Col("other_activity", "int64"),
    Col("other_moment other_name", "str"),
    Col("other_rank", "int64"),
    Col("lag_us"),
    Col("decided", "bool"),
    Col("later_than_that_us"),
    Col("why_later known", "str"),
    Col("confidence_percent", "int64"),
)
JOBS = Table("Jobs", Col("path", "str"), Col("files bytes", "int64"))
"""What `htagraph mcp` may read."""
_MAX_NAMES = 1_000
"""Names by which a selection is summed up; chosen: far more than an answer shows. Doubled, nothing changes."""
_MOMENTS = ("start", "end")


@gives(
    "select", {"activities": _ACTIVITIES, "by_name": _BY_NAME}, figures=(Col("count", "int64"), Col("total_us")),
)  # fmt: skip
@gives("jobs", {"jobs": JOBS})
def selection_report(graph: DependencyGraph, text: str, *, count: int) -> Report:
    """Return the activities that criteria choose, the longest first, and their time by name."""
    try:
        given = criteria(text)
    except ValueError as error:
        raise HtagraphError(str(error)) from None
    if "regex" in given:
        msg = "regex= is not available here, because searching may take for ever: use globs, such as name=*gemm*"
        raise HtagraphError(msg)
    chosen = graph.select(**given)
    if not len(chosen):
        raise no_match(graph, given)
    acts, rows = graph.activities, chosen.activities
    order = np.lexsort((rows, -acts.duration[rows]))[:count]
    longest = (
        graph.select(activity=rows[order].tolist()).to_frame().loc[rows[order]].reset_index()[list(_ACTIVITIES.types)]
    )
    names, where = np.unique(acts.name[rows], return_inverse=True)
    sums = _BY_NAME.frame({
        "name": [graph.names[name] for name in names.tolist()],
        "count": np.bincount(where, minlength=len(names)),
        "total_us": np.bincount(where, acts.duration[rows], minlength=len(names)) / 1000,
    })  # fmt: skip
    figures = {"count": len(rows), "total_us": float(acts.duration[rows].sum()) / 1000}
    tables = {"activities": longest, "by_name": _BY_NAME.ranked(sums).head(_MAX_NAMES)}
    return report_on(graph, "select", tables, [], figures=figures)


@gives(
    "event",
    {
        "activity": _ACTIVITY, "arguments": Table("Arguments", Col("argument value", "str")), "inside": _INSIDE,
        "waits_for": _EDGES, "waited_for_by": _EDGES,
    },
)  # fmt: skip
def event_report(graph: DependencyGraph, activity: int) -> Report:
    """Return all that is known of one activity: its times, arguments, callers, and its edges from and to others.

    Tables: ``activity`` (its row of `call_stack`), ``arguments`` (as recorded), ``inside`` (what encloses it, the
    outermost first), ``waits_for`` and ``waited_for_by`` (a row per edge that ends, or begins, at its start or end).
    """
    stack = call_stack(graph, activity).reset_index()
    arguments, sentences = _arguments(graph, activity)
    tables = {
        "activity": stack.tail(1).drop(columns="depth").reset_index(drop=True),
        "arguments": arguments,
        "inside": stack.iloc[:-1][list(_INSIDE.types)],
        "waits_for": _edges(graph, activity, incoming=True),
        "waited_for_by": _edges(graph, activity, incoming=False),
    }
    return report_on(graph, "event", tables, sentences)


def _arguments(graph: DependencyGraph, activity: int) -> tuple[pd.DataFrame, list[str]]:
    """Return the recorded arguments of an activity as text, and what to say where they cannot be had."""
    acts = graph.activities
    found: dict[str, Any] = {}
    sentences = []
    if int(acts.event[activity]) < 0 or int(acts.rank[activity]) not in graph.traces:
        sentences.append("The graph added this activity: no file recorded it, so it has no arguments.")
    else:
        try:
            found = graph.event(activity).args.model_dump(exclude_none=True)
        except (HtagraphError, OSError) as error:
            sentences.append(f"Its arguments cannot be read: {error}")
    return pd.DataFrame({"argument": list(found), "value": list(map(str, found.values()))}, dtype="object"), sentences


def _edges(graph: DependencyGraph, activity: int, *, incoming: bool) -> pd.DataFrame:
    """Return a row per edge at the start or end of an activity, from or to another one."""
    acts, edges = graph.activities, graph.edges
    rows = activity_edges(graph, activity, incoming=incoming)
    source, target = edges.source[rows], edges.target[rows]
    own, other = (target, source) if incoming else (source, target)
    decided = graph.binding[target] == rows
    late = np.where(decided, graph.gap[target], 0)
    return _EDGES.frame({
        "moment": texts_of(_MOMENTS, own & 1),
        "edge": texts_of([kind.label for kind in EdgeKind], edges.kind[rows]),
        "other_activity": other >> 1,
        "other_moment": texts_of(_MOMENTS, other & 1),
        "other_name": texts_of(graph.names, acts.name[other >> 1]),
        "other_rank": acts.rank[other >> 1],
        "lag_us": edges.lag[rows] / 1000,
        "decided": decided,
        "later_than_that_us": np.where(decided, late / 1000, np.nan),
        "why_later": texts_of([kind.label for kind in GapKind], np.where(late, graph.gap_kind[target], -1)),
        "known": texts_of([each.label for each in Provenance], edges.provenance[rows]),
        "confidence_percent": edges.confidence[rows],
    })  # fmt: skip


def activity_edges(graph: DependencyGraph, activity: int, *, incoming: bool) -> npt.NDArray[np.int64]:
    """Return the numbers of the edges between an activity and others: those at its start, then those at its end.

    Example:
        >>> import htagraph as hg
        >>> len(activity_edges(hg.load("data/demo"), 1205, incoming=True))
        3
    """
    offsets = graph.in_offsets if incoming else graph.out_offsets
    others = graph.edges.source if incoming else graph.edges.target
    places = np.arange(offsets[2 * activity], offsets[2 * activity + 2])
    edges = graph.in_edges[places].astype(np.int64) if incoming else places
    return edges[others[edges] >> 1 != activity]
