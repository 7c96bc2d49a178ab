"""Whether the path is told with what bounds it, and the largest gain with a change to try."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.changes import changes_of, ranked
from htagraph.findings.results import Results
from htagraph.findings.verbs.gains import opportunities_sentences, path_sentences
from htagraph.findings.verdict import OF_PATH, claims_of
from tests.findings.claims_by_hand import gain
from tests.reach import DATA, graph_of
from tests.strategies import load


def lines(graph: hg.DependencyGraph) -> list[str]:
    path = hg.critical_path(graph)
    results = Results(graph, path=path)
    return path_sentences(path, claims_of(results, OF_PATH), changes_of(results).first, path.hops(), ["x"])


def test_the_demos_path_has_four_sentences() -> None:
    bound, where, gains, command = lines(graph_of(DATA / "demo"))
    assert bound.startswith("Bound by computation: 67 % of the critical path, on rank 2; without it ")
    assert where == "The path waits for no other rank: all of it is on one."
    assert gains.startswith("Most you could win per step, each alone: operator aten::mm")
    assert "the work of rank 2" in gains
    assert command.endswith(": htagraph what-if x --fix-straggler auto")


def test_an_empty_job_has_no_path() -> None:
    assert lines(load([])) == ["Nothing was recorded: there is no critical path."]


def test_what_to_do_first_is_said_first_with_its_command() -> None:
    claims = [gain("aten::mm", 5000.0, 2.0, "operator", target="op=aten::mm", half_us=300.0, steps=10)]
    (sentence,) = opportunities_sentences(claims, ranked(claims), ["x"])
    assert sentence == (
        "First: Begin with the code that decides most. Half the time of operator aten::mm: 30.0 µs less per step "
        "(1 %): htagraph what-if x --scale op=aten::mm:0.5"
    )


def test_where_nothing_gains_that_is_said() -> None:
    (sentence,) = opportunities_sentences([], ranked([]), [])
    assert sentence == "No change that is known would gain 2 %."
