"""A page about a difference: its waterfall sums to the change, and both timelines are there."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.output.html.comparison import comparison_bytes, steps_of_change
from htagraph.output.html.page import text
from tests.output.html.browsed import browsed
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load, op, step


def job(length: int) -> hg.DependencyGraph:
    events = [step(n, 1000 * n, 900 + length) for n in range(3)]
    for n in range(3):
        events += [op("aten::mm", 1000 * n + 10, 50), launch(1000 * n + 20, 5, n + 1)]
        events += [kernel(COMPUTE, 1000 * n + 40, 300 + length, n + 1)]
    return load(events)


@pytest.mark.parametrize(("before", "after"), [(0, 60), (60, 0), (0, 0)])
def test_the_steps_of_a_waterfall_sum_to_the_change(before: int, after: int) -> None:
    diff = hg.diff(job(before), job(after))
    assert sum(us for _, us in steps_of_change(diff)) == pytest.approx(diff.change_us, abs=1e-6)


def test_sentences_are_those_of_the_diff() -> None:
    diff = hg.diff(job(0), job(60))
    page = comparison_bytes(diff, ["a", "b"]).decode()
    for sentence in diff.sentences():
        assert text(sentence) in page
    assert "htagraph diff a b" in page


def test_both_timelines_are_there(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    path = hg.report(hg.diff(graph, graph), tmp_path / "diff.html")
    with browsed(path, fragment="#on=after&event=1205") as seen:
        seen.page.wait_for_function("document.querySelectorAll('.timeline[data-ready]').length === 2")
        seen.page.wait_for_timeout(200)
        assert seen.said == []
        chosen = seen.page.locator(".selected").all_inner_texts()
        assert "Nothing is selected" in chosen[0]
        assert graph.names[graph.activities.name[1205]] in chosen[1]
