"""What a page leaves out when there is too much, and what it never does."""

from __future__ import annotations

import numpy as np

import htagraph as hg
from htagraph.output.html.kept_slices import kept_slices
from tests.reach import DATA, graph_of
from tests.strategies import OTHER, complete, kernel, launch, load, op, step


def test_all_is_kept_where_it_fits() -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    kept, sentences = kept_slices(path)
    assert not sentences
    assert int(kept.sum()) == path.graph.activities.ranked - int((path.graph.activities.kind == 10).sum())


def test_python_goes_first_then_the_shortest_calls_and_the_path_stays() -> None:
    python = [complete("python_function", f"f{i}", 1 + 2 * i, 1, OTHER) for i in range(5)]
    calls = [op(f"op{i}", 20 + 10 * i, i + 1) for i in range(5)]
    graph = load([step(1, 0, 100), *python, *calls, launch(80, 2, 1), kernel("gemm", 90, 50, 1)])
    path = hg.critical_path(graph)
    always = set(np.unique(path.segments.place).tolist())
    kept, sentences = kept_slices(path, 6)
    names = {graph.names[graph.activities.name[row]] for row in np.flatnonzero(kept)}
    assert {"gemm", "ProfilerStep#1"} <= names
    assert always <= set(np.flatnonzero(kept).tolist()) | set(np.flatnonzero(graph.activities.lane < 0).tolist())
    assert "Python" in sentences[0]


def test_the_sentences_count_what_is_left_out() -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    kept, sentences = kept_slices(path, 3000)
    whole, _ = kept_slices(path)
    counted = sum(int(sentence.split(" ")[0].replace(",", "")) for sentence in sentences)
    assert counted == int(whole.sum()) - int(kept.sum()) > 0
