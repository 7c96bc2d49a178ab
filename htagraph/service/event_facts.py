"""What is known of one activity: its event as recorded, and what it waited for and what waited for it."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from htagraph.core.errors import HtagraphError, printable
from htagraph.core.kinds import ActivityKind, EdgeKind, GapKind, Provenance
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.service.activity_edges import activity_edges

__all__ = ["event_facts"]

_MOST_EDGES = 200
"""Edges that are listed in each direction; chosen: more are of a wait for all that a device did. Doubled, answers about
such waits are twice as long."""


def event_facts(graph: DependencyGraph, activity: int) -> dict[str, Any]:
    """Return what is known of an activity, as plain values.

    Args:
        graph: the job.
        activity: its number.

    Returns:
        ``activity``, ``name``, ``kind``, ``rank``, ``where``, ``step`` (-1 outside steps), ``start_us`` (since the
        job's first activity, on the common clock), ``duration_us``, ``inside`` (names, the outermost first), ``event``
        (every argument in the file; None where it was not recorded or the file is gone), ``waits_for`` and
        ``is_waited_for_by`` (edges: ``edge``, ``at`` ``"start"`` or ``"end"``, ``activity``, ``name``, ``rank``,
        ``from_end``, ``lag_us``, ``known``), ``gap_us`` (how much later than its edges allow it began and ended) and
        ``gap`` (of which kind).

    Raises:
        SelectionError: there is no such activity.

    Example:
        >>> import htagraph as hg
        >>> facts = event_facts(hg.load("data/demo"), 1205)
        >>> facts["kind"], facts["duration_us"], facts["waits_for"][0]["edge"]
        ('communication', 2143.108, 'event_wait')
    """
    acts = graph.activities
    event = _event(graph, activity)
    start, end = (int(graph.time[2 * activity + side]) for side in (0, 1))
    around: list[str] = []
    parent = int(graph.tree.parent[activity])
    while parent >= 0:
        around.insert(0, _name(graph, parent))
        parent = int(graph.tree.parent[parent])
    return {
        "activity": activity, "name": _name(graph, activity), "kind": ActivityKind(acts.kind[activity]).label,
        "rank": int(acts.rank[activity]), "where": graph.lane_of(activity).label, "step": int(acts.step[activity]),
        "start_us": (start - graph.origin_ns) / 1000, "duration_us": (end - start) / 1000, "inside": around,
        "event": event, "waits_for": _edges(graph, activity, incoming=True),
        "is_waited_for_by": _edges(graph, activity, incoming=False),
        "gap_us": [float(graph.gap[2 * activity + side]) / 1000 for side in (0, 1)],
        "gap": [GapKind(graph.gap_kind[2 * activity + side]).label for side in (0, 1)],
    }  # fmt: skip


def _event(graph: DependencyGraph, activity: int) -> dict[str, Any] | None:
    if not 0 <= activity < len(graph.activities):
        graph.event(activity)  # which says what is there
    if graph.activities.event[activity] < 0:
        return None  # the graph added it
    try:
        whole: dict[str, Any] = json.loads(graph.event(activity).model_dump_json())  # where infinity is null
    except (HtagraphError, OSError):  # the file is gone, or was changed
        return None
    return whole


def _edges(graph: DependencyGraph, activity: int, *, incoming: bool) -> list[dict[str, Any]]:
    edges = graph.edges
    own, other = (edges.target, edges.source) if incoming else (edges.source, edges.target)
    rows = islice(activity_edges(graph, activity, incoming=incoming), _MOST_EDGES)
    return [
        {
            "edge": EdgeKind(edges.kind[row]).label, "at": ("start", "end")[int(own[row]) & 1],
            "activity": int(other[row]) >> 1, "name": _name(graph, int(other[row]) >> 1),
            "rank": int(graph.activities.rank[int(other[row]) >> 1]), "from_end": bool(int(other[row]) & 1),
            "lag_us": int(edges.lag[row]) / 1000, "known": Provenance(edges.provenance[row]).label,
        }
        for row in rows
    ]  # fmt: skip


def _name(graph: DependencyGraph, activity: int) -> str:
    return printable(graph.names[graph.activities.name[activity]])
