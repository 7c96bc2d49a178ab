"""Whether results are computed once, taken where a caller has them, and rows are on the common clock."""

from __future__ import annotations

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.findings.finding import Claim
from htagraph.findings.results import Results
from tests.reach import DATA, graph_of


def test_results_and_claims_are_computed_once() -> None:
    results, calls = Results(graph_of(DATA / "demo")), []

    def when(_: Results) -> list[Claim]:
        calls.append(1)
        return []

    assert results.path is results.path
    assert results.claims(when) is results.claims(when)
    assert calls == [1]


def test_results_that_a_caller_has_are_taken() -> None:
    table = pd.DataFrame()
    assert Results(graph_of(DATA / "demo"), opportunities=table).opportunities is table


def test_tables_are_those_of_the_summary() -> None:
    graph = graph_of(DATA / "demo")
    summary, results = hg.summarize(graph), Results(graph)
    for name, table in {"launches": results.launches, "clocks": results.clocks}.items():
        pd.testing.assert_frame_equal(table, summary.tables[name])


def test_rows_are_on_the_common_clock() -> None:
    graph = graph_of(DATA / "demo")
    row = Results(graph).rows(np.array([5])).iloc[0]
    assert row["start_us"] == (graph.time[10] - graph.origin_ns) / 1000
