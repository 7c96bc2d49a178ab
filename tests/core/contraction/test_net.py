from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.contraction.net import IN_DEGREE, OUT_DEGREE, SOURCE, insert, remove
from tests.core.contraction.drawn import Dag, edges_of, net


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(3, 5)), min_size=1, max_size=12), st.data())
def test_edges_come_and_go(ends: list[tuple[int, int]], data: st.DataObject) -> None:
    edges = [(source, target, (at,)) for at, (source, target) in enumerate(ends)]
    made = net(Dag(list(range(6)), edges, [True] * 6, [1]))
    gone = data.draw(st.sets(st.integers(0, len(edges) - 1)))
    place = {int(weight): edge for edge, weight in enumerate(made.weight[:, 0]) if made.edge[edge, SOURCE] >= 0}
    for at in gone:
        remove(made, place[at])
    insert(made, 1, 4, np.array([[99]]), 0)
    left = sorted([*(edge for at, edge in enumerate(edges) if at not in gone), (1, 4, (99,))])
    assert sorted(edges_of(made)) == left
    assert made.vertex[:, OUT_DEGREE].tolist() == [sum(edge[0] == vertex for edge in left) for vertex in range(6)]
    assert made.vertex[:, IN_DEGREE].tolist() == [sum(edge[1] == vertex for edge in left) for vertex in range(6)]
