"""Whether a difference is told with its figure, its sign and its cause."""

from __future__ import annotations

import htagraph as hg
from htagraph.output.diff_sentences import diff_sentences
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load, step


def one_step(kernel_us: int) -> hg.DependencyGraph:
    return load([step(4, 0, 20), launch(0, 2, 1), kernel(COMPUTE, 5, kernel_us, 1)])


def test_the_first_sentence_has_the_change_with_its_sign() -> None:
    slower, faster = hg.diff(one_step(100), one_step(200)), hg.diff(one_step(200), one_step(100))
    assert "longer" in diff_sentences(slower)[0]
    assert "shorter" in diff_sentences(faster)[0]
    assert any("more own time" in line for line in diff_sentences(slower)[1:])


def test_a_job_is_as_long_as_itself() -> None:
    graph = graph_of(DATA / "demo")
    lines = diff_sentences(hg.diff(graph, graph))
    assert "as long as before" in lines[0]
    assert not [line for line in lines if "own time" in line]


def test_nothing_against_nothing() -> None:
    assert diff_sentences(hg.diff(load([]), load([]))) == ["Nothing was recorded: there is nothing to compare."]
