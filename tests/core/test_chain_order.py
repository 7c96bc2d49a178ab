from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from htagraph.core.chain_order import chain_order
from tests import oracles
from tests.strategies import Frames, frames


@given(frames())
@settings(max_examples=60)
def test_every_vertex_comes_after_its_predecessors(made: Frames) -> None:
    graph = made.graph
    place = {vertex: i for i, vertex in enumerate(chain_order(graph.out_offsets, graph.edges.target).tolist())}
    assert sorted(place) == list(range(graph.vertex_count))
    assert all(place[source] < place[target] for source, target, _ in oracles.edges_of(graph))


def test_a_chain_is_followed_to_its_end_before_the_next_begins() -> None:
    offsets, targets = np.array([0, 1, 2, 3, 4, 4, 4]), np.array([2, 3, 4, 5], np.int32)
    assert chain_order(offsets, targets).tolist() == [0, 2, 4, 1, 3, 5]


def test_a_cycle_shortens_the_order() -> None:
    offsets, targets = np.array([0, 1, 2, 3]), np.array([1, 2, 1], np.int32)
    assert chain_order(offsets, targets).tolist() == [0]
