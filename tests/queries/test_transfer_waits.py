from __future__ import annotations

import numpy as np

import htagraph as hg
from htagraph.core.kinds import COMMUNICATION, EdgeKind
from htagraph.queries.transfer_waits import end_spread, waiting
from htagraph.queries.weights import edges_of, initial
from tests.reach import DATA, graph_of


def test_members_of_a_collective_end_later_than_the_first_by_their_lag() -> None:
    state = initial(graph_of(DATA / "demo"))
    edges = state.graph.edges
    rows = np.flatnonzero((edges.kind == EdgeKind.COLLECTIVE) & (edges.activity >= 0))
    spread = end_spread(state, rows)
    for join in np.unique(edges.source[rows]).tolist():
        of_join = edges.source[rows] == join
        lag = edges.lag[rows[of_join]]
        assert spread[of_join].tolist() == np.minimum(lag - lag.min(), 5000).tolist()


def test_alone_the_shortest_of_a_name_and_size_is_transfer_and_the_rest_of_longer_ones_waiting() -> None:
    state = initial(hg.load(DATA / "demo", ranks=[1]))
    graph = state.graph
    acts = graph.activities
    talks = np.isin(acts.kind, COMMUNICATION)
    assert talks.any()
    rows = edges_of(graph, np.append(talks, False))
    fixed = waiting(state, np.arange(len(graph.edges)))
    assert not np.delete(fixed, rows).any()
    sizes = [acts.arg(column) for column in ("in_msg_nelems", "out_msg_nelems")]
    for row in rows.tolist():
        owner = int(graph.edges.activity[row])
        alike = talks & (acts.name == acts.name[owner])
        for size in sizes:
            alike &= size == size[owner]
        lag = int(graph.edges.lag[row])
        assert fixed[row] == max(lag - int(acts.duration[alike].min()), 0)
