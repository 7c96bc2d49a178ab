"""Whether the path is told with its parts, its rank and a change to try."""

from __future__ import annotations

import htagraph as hg
from htagraph.output.wording.critical_path import sentences
from tests.reach import DATA, graph_of
from tests.strategies import load


def lines(graph: hg.DependencyGraph) -> list[str]:
    path = hg.critical_path(graph)
    return sentences(path, path.summary(), path.hops(), ["x"])


def test_the_demos_path_has_four_sentences() -> None:
    what, where, saving, command = lines(graph_of(DATA / "demo"))
    assert what.startswith("The critical path is 26.2 ms long: computation 67 %")
    assert where == "100 % of the path is on rank 2; it waits for no other rank."
    assert saving.startswith("If ampere")
    assert ": htagraph what-if x --scale" in command


def test_an_empty_job_has_no_path() -> None:
    assert lines(load([])) == ["Nothing was recorded: there is no critical path."]
