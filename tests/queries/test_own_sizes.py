"""Whether sizes of communication without a match are those that its own rank recorded."""

from __future__ import annotations

import numpy as np

import htagraph as hg
from htagraph.queries.own_sizes import own_sizes
from tests.strategies import COMMUNICATE, COMPUTE, kernel, launch, load


def test_the_size_of_a_collective_of_one_rank_is_known_and_that_of_computation_is_not() -> None:
    talk = kernel(COMMUNICATE, 20, 90, 1)
    talk["args"] |= {"In msg nelems": 1000, "dtype": "Float", "Collective name": "allreduce", "Group size": 4}
    talk["args"] |= {"Process Group Name": "0"}
    graph = load([launch(0, 5, 1), talk, launch(6, 3, 2), kernel(COMPUTE, 120, 5, 2)])
    acts = graph.activities
    rows = np.flatnonzero(acts.on_device)
    sizes = own_sizes(graph, rows[np.argsort(acts.start[rows])])
    assert sizes.op == ("all_reduce", "")
    assert sizes.bytes.tolist() == [4000, -1]
    assert sizes.group_size.tolist() == [4, 0]
    parts = hg.collectives(graph)
    assert parts["op"].tolist() == ["all_reduce"]
    assert parts["bytes"].tolist() == [4000.0]
    assert not parts["matched"].any()


def test_no_communication_has_no_sizes() -> None:
    graph = load([launch(0, 5, 1), kernel(COMPUTE, 20, 5, 1)])
    assert own_sizes(graph, np.zeros(0, np.int64)).op == ()
