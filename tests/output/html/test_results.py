"""What sections share is computed once, and addresses are in nanoseconds."""

from __future__ import annotations

import numpy as np

from htagraph.output.html.results import Results
from tests.reach import DATA, graph_of


def test_results_are_computed_once() -> None:
    results = Results(graph_of(DATA / "demo"), ["data/demo"])
    assert results.path is results.path
    assert results.collectives is results.collectives


def test_addresses_name_the_timeline_and_nanoseconds() -> None:
    results = Results(graph_of(DATA / "demo"), ["x"], "before")
    assert results.at(7) == "#on=before&event=7"
    assert results.between(1.5, 2.0, 3) == "#on=before&from=1500&to=2000&event=3"


def test_rows_are_on_the_common_clock() -> None:
    graph = graph_of(DATA / "demo")
    row = Results(graph, ["x"]).rows(np.array([5])).iloc[0]
    assert row["start_us"] == (graph.time[10] - graph.origin_ns) / 1000
