"""What the graph says of threads that hand work to each other."""

from __future__ import annotations

from htagraph import EdgeKind
from tests.strategies import Json, load

SURE = 50
"""Percent: edges below it are guesses."""


def links(events: list[Json]) -> list[tuple[str, str, int]]:
    """Return (source, target, confidence) of the edges between threads that are no guess, once each."""
    graph = load(events)
    edges, acts = graph.edges, graph.activities

    def written(vertex: int) -> str:
        return f"{graph.names[acts.name[vertex // 2]]}.{('start', 'end')[vertex % 2]}"

    return sorted({
        (written(int(edges.source[i])), written(int(edges.target[i])), int(edges.confidence[i]))
        for i in range(len(edges))
        if edges.kind[i] == EdgeKind.THREAD and edges.confidence[i] >= SURE
    })  # fmt: skip
