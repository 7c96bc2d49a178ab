"""Whether ranks whose clocks nothing compares are named."""

from __future__ import annotations

from htagraph.findings.results import Results
from htagraph.findings.unknown_clocks import UNKNOWN_CLOCKS
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, kernel, launch, load, op


def test_ranks_that_nothing_compares_are_named() -> None:
    alone = [op("aten::mm", 0, 50), launch(10, 5, 1), kernel(COMMUNICATE, 20, 90, 1)]
    results = Results(load({0: alone, 1: [op("aten::mm", 0, 50)]}))
    for claim in UNKNOWN_CLOCKS.when(results):
        assert claim.ranks
        assert len(results.clocks) == 2
    assert UNKNOWN_CLOCKS.when(Results(load(alone))) == []
    assert UNKNOWN_CLOCKS.when(Results(graph_of(DATA / "demo"))) == []
