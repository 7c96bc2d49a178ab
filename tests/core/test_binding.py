from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.binding import deciding
from tests import oracles
from tests.strategies import Frames, frames


@given(frames(), st.data())
@settings(max_examples=60)
def test_the_edge_that_allows_last_decides(made: Frames, data: st.DataObject) -> None:
    graph = made.graph
    count = len(graph.edges)
    preferred = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
    columns = graph.in_offsets, graph.in_edges, graph.edges.source, graph.edges.lag
    edge, later = deciding(*columns, preferred, graph.time)
    rows = oracles.edges_of(graph)
    for vertex in range(graph.vertex_count):
        into = [
            (graph.time[source] + lag, preferred[row], -row)
            for row, (source, target, lag) in enumerate(rows)
            if target == vertex
        ]
        if not into:
            assert (edge[vertex], later[vertex]) == (-1, 0)
            continue
        latest = max(into)
        assert (edge[vertex], later[vertex]) == (-latest[2], graph.time[vertex] - latest[0])
