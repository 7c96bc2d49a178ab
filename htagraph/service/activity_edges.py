"""The edges between one activity and others."""

from __future__ import annotations

from collections.abc import Iterator

from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["activity_edges"]


def activity_edges(graph: DependencyGraph, activity: int, *, incoming: bool) -> Iterator[int]:
    """Yield the numbers of the edges between an activity and others: those at its start, then those at its end.

    Args:
        graph: the job.
        activity: its number.
        incoming: whether of what it waits for, else of what waits for it.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> len(list(activity_edges(graph, 1205, incoming=True)))
        3
    """
    offsets = graph.in_offsets if incoming else graph.out_offsets
    others = graph.edges.source if incoming else graph.edges.target
    for place in range(int(offsets[2 * activity]), int(offsets[2 * activity + 2])):
        edge = int(graph.in_edges[place]) if incoming else place
        if int(others[edge]) // 2 != activity:
            yield edge
