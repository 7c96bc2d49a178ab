"""Whether the path is told with what bounds it, its rank and a change to try."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.results import Results
from htagraph.findings.verbs.critical_path import sentences
from htagraph.findings.verdict import OF_PATH, claims_of
from tests.reach import DATA, graph_of
from tests.strategies import load


def lines(graph: hg.DependencyGraph) -> list[str]:
    path = hg.critical_path(graph)
    return sentences(path, claims_of(Results(graph, path=path), OF_PATH), path.hops(), ["x"])


def test_the_demos_path_has_five_sentences() -> None:
    long, bound, where, gains, command = lines(graph_of(DATA / "demo"))
    assert long.startswith("The critical path is 26.2 ms long")
    assert bound.startswith("Bound by computation: 67 % of the critical path; the path is on rank 2.")
    assert where == "It waits for no other rank."
    assert gains.startswith("Largest gains per step (of 3), each replayed as if it took no time: operator aten::mm")
    assert "the work of rank 2" in gains
    assert ": htagraph what-if x --scale" in command


def test_an_empty_job_has_no_path() -> None:
    assert lines(load([])) == ["Nothing was recorded: there is no critical path."]
