"""What becomes a node, and what nodes depend on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from htagraph import DependencyGraph
from htagraph.core.errors import GraphError
from htagraph.output.export.chakra_nodes import nodes_of
from tests.strategies import jobs, load


@pytest.mark.slow
@given(jobs().map(load))
def test_any_job_replays_to_the_microsecond(graph: DependencyGraph) -> None:
    nodes = nodes_of(graph)
    end, target = nodes.start + nodes.duration, np.repeat(np.arange(len(nodes.rank)), np.diff(nodes.first))
    assert (nodes.source < target).all()
    assert (nodes.rank[nodes.source] == nodes.rank[target]).all()
    assert (nodes.duration >= 0).all()
    allowed = np.zeros(len(end), np.int64)
    np.maximum.at(allowed, target, end[nodes.source])
    own = nodes.member < 0
    assert (allowed[own] == nodes.start[own]).all()
    assert (allowed[~own] <= nodes.start[~own]).all()


def test_dependencies_between_ranks_without_communication_are_refused() -> None:
    acts = pd.DataFrame({"name": ["a", "b"], "duration_ns": [5000, 7000], "rank": [0, 1]})
    graph = DependencyGraph.from_frames(acts, pd.DataFrame({"source": [0], "target": [1]}))
    with pytest.raises(GraphError, match="between ranks that are no communication"):
        nodes_of(graph)
