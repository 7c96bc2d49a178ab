"""Edges of an activity are those of the graph that lead to or from others."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.service.activity_edges import activity_edges
from tests.reach import DATA, graph_of


@pytest.mark.parametrize("incoming", [False, True])
def test_they_are_those_that_all_edges_show(incoming: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    graph = graph_of(DATA / "demo")
    edges = graph.edges
    own, other = (edges.target, edges.source) if incoming else (edges.source, edges.target)
    for activity in range(0, len(graph.activities), 97):
        expected = np.flatnonzero((own // 2 == activity) & (other // 2 != activity))
        assert sorted(activity_edges(graph, activity, incoming=incoming)) == expected.tolist()
