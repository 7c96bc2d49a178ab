"""Slack and drag: how much later each activity may end, and how much earlier the job would end without it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array, distinct
from htagraph.core.kinds import ADDED, EdgeKind, of_kinds
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import columns_of
from htagraph.queries.paths import path_to

__all__ = ["slack"]

TABLE = Table(
    "Slack and drag",
    Col("rank", "int64"),
    Col("name kind", "str"),
    Col("start_us", doc="since the job's first activity, common clock"),
    Col("duration_us"),
    Col("slack_us", doc="how much later the activity may end without the job ending later"),
    Col("free_slack_us", doc="how much later the activity may end without any other activity coming later"),
    Col("critical", "bool", "whether the slack is at most `epsilon_us`"),
    Col("drag_us", doc="how much earlier the job would end if the activity took no time"),
    Col("drag_exact", "bool"),
)

_MAX_EDGE_PASSES = 50_000_000
"""Edges that all exact evaluations together may pass. Chosen: some seconds on one core. Doubled, up to twice as many
activities of large graphs get an exact drag, in twice the time."""


@described(TABLE)
def slack(graph: DependencyGraph, *, epsilon_us: float = 0.0, exact: int = 200) -> pd.DataFrame:
    """Return slack and drag of every activity that did work.

    Drag is exact for an activity whose work is in one piece, such as every kernel. The work of an operator lies in
    slices between the calls that the operator makes. Of the operators with several slices, one of them critical, the
    `exact` operators with the most critical time are evaluated exactly (fewer in graphs so large that the evaluation
    would take more than seconds). For the other operators, ``drag_us`` is the drag of the most effective slice alone,
    which is a lower bound, and ``drag_exact`` is False.

    Args:
        graph: the job.
        epsilon_us: an activity with at most this slack, µs, counts as critical.
        exact: how many activities with several slices are evaluated exactly at most.

    Returns:
        One row per activity that owns time of a BODY, transfer or data loading edge, indexed by ``activity`` (int64):
        {columns}.

    Example:
        >>> import htagraph as hg
        >>> table = hg.slack(hg.load("data/demo"))
        >>> bool((table["drag_us"] <= table["duration_us"]).all())
        True
    """
    acts, edges = graph.activities, graph.edges
    added = of_kinds(acts.kind, ADDED)
    owned = (edges.activity >= 0) & (edges.kind != EdgeKind.HOST_ORDER) & ~added[edges.activity]
    rows = distinct(edges.activity[owned], len(acts))
    late = _latest(graph)
    end = 2 * rows + 1
    total = (late - graph.time)[end]
    drag, is_exact = _drags(graph, late, owned, exact)
    begin = graph.time[2 * rows]
    table = TABLE.frame({
        **columns_of(graph, rows, "rank", "name", "kind", "start_us"),
        "duration_us": (graph.time[end] - begin) / 1000,
        "slack_us": total / 1000,
        "free_slack_us": _free(graph)[end] / 1000,
        "critical": total <= epsilon_us * 1000,
        "drag_us": drag[rows] / 1000,
        "drag_exact": is_exact[rows],
    })  # fmt: skip
    return table.set_axis(pd.Index(rows, name="activity"))


def _end(graph: DependencyGraph) -> int:
    """Return the last moment of the job, ns on the common clock."""
    return int(graph.time.max()) if graph.vertex_count else 0


def _latest(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the latest time of each vertex that does not delay the end of the job, ns on the common clock."""
    from htagraph.core import traverse  # numba takes a moment to load

    edges = graph.edges
    return traverse.latest(graph.replay_order, graph.out_offsets, edges.target, edges.lag, graph.gap, _end(graph))


def _free(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return how much later each vertex may happen without delaying another vertex or the end of the job, ns."""
    edges = graph.edges
    spare = (graph.time - graph.gap)[edges.target] - graph.time[edges.source] - edges.lag
    free = _end(graph) - graph.time
    has = np.flatnonzero(np.diff(graph.out_offsets))
    if len(has):
        free[has] = np.minimum(free[has], np.minimum.reduceat(spare, graph.out_offsets[has]))
    return free


def _drags(graph: DependencyGraph, late: Array, owned: Array, exact: int) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the drag of each activity, ns, and whether it is exact."""
    count = len(graph.activities)
    drag, is_exact = np.zeros(count, np.int64), np.ones(count, np.bool_)
    if not count:
        return drag, is_exact
    path = path_to(graph, np.arange(graph.vertex_count), np.iinfo(np.int64).min)
    alone, lag = _edge_drags(graph, late, path.vertices, path.edges), graph.edges.lag[path.edges]
    of_activity = owned[path.edges]
    owner, alone, lag = graph.edges.activity[path.edges][of_activity], alone[of_activity], lag[of_activity]
    np.maximum.at(drag, owner, alone)
    critical = np.zeros(count, np.int64)
    np.add.at(critical, owner, lag)
    working = owned & (graph.edges.lag != 0)
    slices = np.bincount(graph.edges.activity[working], minlength=count)
    several = np.flatnonzero((critical > 0) & (slices > 1))
    is_exact[several] = False
    # at least one, so that the lower bound is never all there is
    affordable = max(1, min(exact, _MAX_EDGE_PASSES // max(1, len(graph.edges)))) if exact else 0
    chosen = several[np.argsort(-critical[several], kind="stable")][:affordable]
    drag[chosen], is_exact[chosen] = _without(graph, np.flatnonzero(working), chosen), True
    return drag, is_exact


def _edge_drags(graph: DependencyGraph, late: Array, path: Array, into: Array) -> npt.NDArray[np.int64]:
    """Return how much earlier the job would end if the lag of an edge of a longest path were 0, for each of them."""
    from htagraph.core import traverse

    edges, order, end = graph.edges, graph.replay_order, _end(graph)
    label = traverse.last_on_path(order, graph.in_offsets, edges.source[graph.in_edges], path)
    best = traverse.avoiding(path, label, graph.out_offsets, edges.target, edges.lag, graph.gap, graph.time, late, end)
    return np.minimum(edges.lag[into], end - best[: len(into)])


def _without(graph: DependencyGraph, owned: Array, activities: Array) -> npt.NDArray[np.int64]:
    """Return how much earlier the job would end, ns, if each of the activities took no time, one at a time."""
    from htagraph.core import traverse

    edges, into, end = graph.edges, graph.in_edges, _end(graph)
    order = np.argsort(edges.activity[owned], kind="stable")
    sorted_owner, owned = edges.activity[owned][order], owned[order]
    lags = edges.lag.copy()
    saved = np.empty(len(activities), np.int64)
    for i, activity in enumerate(activities):
        first, last = np.searchsorted(sorted_owner, [activity, activity + 1])
        own_edges = owned[first:last]
        recorded = lags[own_edges]
        lags[own_edges] = 0
        time = traverse.schedule(graph.replay_order, graph.in_offsets, into, edges.source, lags, graph.gap, graph.time)
        saved[i] = end - time.max()
        lags[own_edges] = recorded
    return saved
