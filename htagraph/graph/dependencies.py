"""The dependencies of activities as a table: before an activity, and behind the activity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from htagraph.core.arrays import Ints, spread, texts_of
from htagraph.core.kinds import ActivityKind, EdgeKind, GapKind, Provenance
from htagraph.core.tables import Col, Table
from htagraph.graph.selection import Selection, one_activity

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["TABLE", "dependencies"]

TABLE = Table(
    "Dependencies",
    Col("activity", "int64"),
    Col("moment", "str", "the end of the activity: ``start`` or ``end``"),
    Col("edge", "str", "a word of `EdgeKind`"),
    Col("other_activity", "int64"),
    Col("other_moment other_name other_kind", "str"),
    Col("other_rank", "int64", "-1 where the members of a collective meet"),
    Col("lag_us", doc="the least time from the source to the target"),
    Col("slack_us", doc="how much later the target came than this dependency alone allows"),
    Col("binds", "bool", "whether this dependency decided when the target came; then the slack is the target's gap"),
    Col("gap", "str", "why the target came later than all dependencies allow, a word of `GapKind`"),
    Col("provenance", "str", "how the dependency is known, a word of `Provenance`"),
    Col("confidence_percent", "int64"),
)
_MOMENTS: Final = ("start", "end")
_EDGES: Final = [kind.label for kind in EdgeKind]
_KINDS: Final = [kind.label for kind in ActivityKind]
_GAPS: Final = [kind.label for kind in GapKind]
_WAYS: Final = [way.label for way in Provenance]


def dependencies(graph: DependencyGraph, activity: int | Selection, *, incoming: bool) -> pd.DataFrame:
    """Return the dependencies across the border of some activities; documented at `DependencyGraph.predecessors`.

    Args:
        graph: the job.
        activity: the number of an activity, or a selection, whose dependencies inside itself are left out.
        incoming: whether the activity is the target; otherwise the activity is the source.

    Returns:
        One row per dependency with the columns of `TABLE`, by activity, starts before ends.

    Raises:
        SelectionError: the activity is not in the graph, or the selection is of another graph.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> kernel = graph.select(kind="kernel", rank=0)[1]
        >>> dependencies(graph, kernel, incoming=True)["edge"].tolist()
        ['stream', 'launch']
    """
    if isinstance(activity, Selection):
        asked = graph.select(activity=activity).activities
    else:
        asked = np.array([one_activity(graph, activity)])
    rows = _edges_outside(graph, asked, incoming=incoming)
    return _described(graph, rows, incoming=incoming)


def _edges_outside(graph: DependencyGraph, asked: Ints, *, incoming: bool) -> Ints:
    """Return the edges that cross the border of a set of activities, by activity, starts before ends."""
    moments = np.stack((2 * asked, 2 * asked + 1), axis=1).ravel()
    offsets = graph.in_offsets if incoming else graph.out_offsets
    places = spread(offsets[moments], offsets[moments + 1])[1]
    edges = graph.in_edges[places].astype(np.int64) if incoming else places
    far_ends = graph.edges.source if incoming else graph.edges.target
    return edges[~np.isin(far_ends[edges] >> 1, asked)]


def _described(graph: DependencyGraph, rows: Ints, *, incoming: bool) -> pd.DataFrame:
    """Return the table of some edges, seen from their targets, or else from their sources."""
    acts = graph.activities
    edges = graph.edges.take(rows)
    near_end = edges.target if incoming else edges.source
    far_end = edges.source if incoming else edges.target
    far = far_end >> 1
    slack = graph.time[edges.target] - graph.time[edges.source] - edges.lag
    columns = {
        "activity": near_end >> 1,
        "moment": texts_of(_MOMENTS, near_end & 1),
        "edge": texts_of(_EDGES, edges.kind),
        "other_activity": far,
        "other_moment": texts_of(_MOMENTS, far_end & 1),
        "other_name": texts_of(graph.names, acts.name[far]),
        "other_kind": texts_of(_KINDS, acts.kind[far]),
        "other_rank": acts.rank[far],
        "lag_us": edges.lag / 1000,
        "slack_us": slack / 1000,
        "binds": graph.binding[edges.target] == rows,
        "gap": texts_of(_GAPS, graph.gap_kind[edges.target]),
        "provenance": texts_of(_WAYS, edges.provenance),
        "confidence_percent": edges.confidence,
    }
    return TABLE.frame(columns)
