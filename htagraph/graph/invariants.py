"""What holds of every graph, and errors that name the edge or activity for which it does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import GraphError
from htagraph.core.kinds import ActivityKind

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["check", "cycle_error"]


def check(graph: DependencyGraph) -> None:
    """Verify that edges join vertices, lie in order, agree with the recorded times and form no cycle.

    Raises:
        GraphError: names the rule that is broken and the activity, or both ends of the edge, that breaks it.
    """
    edges, count = graph.edges, graph.vertex_count
    rules = (
        ("an edge joins two vertices of the graph",
         (edges.source < 0) | (edges.source >= count) | (edges.target < 0) | (edges.target >= count)),
        ("no edge leads from a vertex to itself", edges.source == edges.target),
        ("edges are sorted by (source, target) and unique",
         np.diff(edges.source * np.int64(count) + edges.target, prepend=-1) <= 0),
    )  # fmt: skip
    for rule, broken in rules:
        _refuse(graph, rule, broken)
    late = graph.time[edges.source] + edges.lag > graph.time[edges.target]
    _refuse(graph, "a target is not recorded before its source plus the lag", late)
    _check_activities(graph)
    _ = graph.topological_order


def cycle_error(graph: DependencyGraph, order: Array) -> GraphError:
    """Return the error that names an edge of a cycle, given the vertices that a topological order reaches."""
    cycle = _cycle(graph, np.isin(np.arange(graph.vertex_count), order, invert=True))
    between = [edge for edge in cycle if graph.edges.source[edge] // 2 != graph.edges.target[edge] // 2] or cycle
    return GraphError(f"acyclic: {len(cycle)} edges form a cycle, among them the {graph.describe_edge(between[0])}")


def _cycle(graph: DependencyGraph, stuck: Array) -> list[int]:
    """Return the edges of a cycle, given the vertices that no order reaches: each has a predecessor among them."""
    walked: dict[int, int] = {}  # vertex → edge by which it was left, backwards
    vertex = int(np.argmax(stuck))
    while vertex not in walked:
        entering = graph.in_edges[graph.in_offsets[vertex] : graph.in_offsets[vertex + 1]]
        walked[vertex] = int(next(edge for edge in entering if stuck[graph.edges.source[edge]]))
        vertex = int(graph.edges.source[walked[vertex]])
    return list(walked.values())[list(walked).index(vertex) :]


def _check_activities(graph: DependencyGraph) -> None:
    acts = graph.activities
    rules = (
        ("durations are not negative", acts.duration < 0),
        ("activities are ordered by rank", np.diff(acts.rank[: acts.ranked], prepend=acts.rank[:1]) < 0),
        ("JOINs come last", acts.kind[: acts.ranked] == ActivityKind.JOIN),
        ("parents are activities or -1", (acts.parent < -1) | (acts.parent >= len(acts))),
        ("causes are activities or -1", (acts.cause < -1) | (acts.cause >= len(acts))),
    )
    for rule, broken in rules:
        if broken.any():
            msg = f"{rule}: {graph.describe(int(np.argmax(broken)))}"
            raise GraphError(msg)


def _refuse(graph: DependencyGraph, rule: str, broken: Array) -> None:
    if broken.any():
        edge = graph.describe_edge(int(np.argmax(broken)))
        msg = f"{rule}: broken by {int(broken.sum())} edges, such as the {edge}"
        raise GraphError(msg)
