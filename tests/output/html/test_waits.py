"""Findings about waiting show the waits that they sum up."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.findings.claim import Says
from htagraph.findings.phrases import time_text
from htagraph.output.html.results import Results
from htagraph.output.html.waits import blocking, idle_chart, waiting
from tests.reach import DATA, graph_of


def test_the_waits_of_the_host_are_those_of_its_sentence() -> None:
    results = Results(graph_of(DATA / "demo"), ["job"])
    claims = [claim for claim in results.summary.claims if claim.says is Says.BLOCKING]
    evidence = blocking(claims, results)
    graph = results.graph
    waits = [
        int(row) for row in graph.select(op="aten::item").activities if graph.names[graph.activities.name[row]] ==
        "cudaMemcpyAsync"
    ]  # fmt: skip
    for rank in graph.ranks:
        of_rank = [row for row in waits if graph.activities.rank[row] == rank]
        assert time_text(float(graph.activities.duration[of_rank].sum()) / 1000) in evidence.chart
    assert int(re.findall(r"event=(\d+)", evidence.href)[0]) == max(
        waits, key=lambda row: graph.activities.duration[row]
    )


def test_each_rank_that_others_wait_for_has_a_link_to_the_longest_such_wait() -> None:
    graph = graph_of(DATA / "demo")
    parts = hg.collectives(graph)
    longest = parts.iloc[int(np.argmax(parts["wait_us"]))]
    evidence = waiting([], Results(graph, ["job"]))
    assert evidence.table.count(">show<") == parts.loc[parts["wait_us"] > 0, "last_rank"].nunique()
    last = parts[(parts["collective"] == longest["collective"]) & (parts["rank"] == longest["last_rank"])]
    assert evidence.href.endswith(f"event={int(last['activity'].iloc[0])}")


@pytest.mark.parametrize("ranks", [1, 512])
def test_idle_time_of_few_and_of_many_ranks(ranks: int) -> None:
    table = pd.DataFrame({"rank": range(ranks), "cause": "host_wait", "idle_us": 5.0})
    assert idle_chart(table).count("<rect") == ranks + 1
    assert idle_chart(table.assign(idle_us=0.0)) == ""
