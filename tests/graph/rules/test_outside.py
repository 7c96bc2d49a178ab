from __future__ import annotations

from htagraph import DependencyGraph, EdgeKind
from htagraph.core.kinds import UNCERTAIN, Provenance
from tests.graph.evidence.test_outside import WORK, learner, paced
from tests.graph.rules.test_dataloader import batches


def ends_of_waits(graph: DependencyGraph) -> tuple[list[int], list[int]]:
    """Return (lags, times between the two moments) of the edges that wait for something outside."""
    edges = graph.edges.take((graph.edges.kind == EdgeKind.OUTSIDE).nonzero()[0])
    assert (edges.provenance == Provenance.INFERRED).all()
    return edges.lag.tolist(), (graph.time[edges.target] - graph.time[edges.source]).tolist()


def test_a_pace_leads_from_one_wait_to_the_next() -> None:
    for graph in (learner(WORK, paced(WORK)), batches(40, 40, 40, 40)):
        lags, apart = ends_of_waits(graph)
        assert lags == apart
        assert len(lags) >= 3


def test_a_name_is_surer_than_a_pace_alone() -> None:
    named, counted = batches(40, 40, 40, 40).edges, learner(WORK, paced(WORK)).edges
    assert named.confidence[named.kind == EdgeKind.OUTSIDE].min() >= UNCERTAIN
    assert counted.confidence[counted.kind == EdgeKind.OUTSIDE].max() < UNCERTAIN
