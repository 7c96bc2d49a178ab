from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.contraction.segments import segment
from htagraph.core.traverse import counting_order
from tests.core.contraction.drawn import Dag, dags, distances


@given(st.data(), dags(components=1))
@settings(max_examples=100)
def test_a_segment_is_a_longest_path_beside_kept_vertices(data: st.DataObject, dag: Dag) -> None:
    place = np.empty(len(dag.order), np.int64)
    place[dag.order] = np.arange(len(dag.order))
    first, last = sorted(data.draw(st.permutations(dag.order))[:2], key=lambda vertex: int(place[vertex]))
    kept = np.array(dag.terminal)
    free = {vertex for vertex in dag.order if not kept[vertex] or vertex in {first, last}}
    inside = [edge for edge in dag.edges if {edge[0], edge[1]} <= free]
    expected = distances(inside, dag.order, [first, last], [1]).get((first, last))
    weight = dag.weight[:, 0] if dag.edges else np.zeros(0, np.int64)
    path = segment(
        first, last, place, *counting_order(dag.target, len(place)), dag.source, np.ascontiguousarray(weight), kept
    )
    if expected is None:
        assert not len(path)
        return
    vertices = [first, *dag.target[path].tolist()]
    assert dag.source[path].tolist() == vertices[:-1]
    assert vertices[-1] == last
    assert weight[path].sum() == expected
