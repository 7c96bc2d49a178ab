"""Whether the host's waits for its device are worded, and shown as the waits that the sentence sums up."""

from __future__ import annotations

from htagraph.findings.blocking import BLOCKING, _frame
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results
from tests.findings.claims_by_hand import blocking
from tests.reach import DATA, graph_of


def test_the_gain_and_the_advice_stand_in_the_sentence() -> None:
    assert BLOCKING.short(blocking(30.0, 6.0, steps=2)) == (
        "The host waits for its device in aten::item (3 times). Without these waits a step would take 15.0 µs less "
        "(6 %)."
    )
    assert BLOCKING.advice(blocking(30.0, 6.0)) == "Move aten::item out of the loop, or do it every few steps only."


def test_the_source_function_around_the_calls_is_named() -> None:
    results = Results(graph_of(DATA / "gpu_demo" / "train"))
    assert _frame(results.graph, {"op": "aten::mm"}).endswith("_engine_run_backward")


def test_the_waits_of_the_host_are_those_of_its_sentence() -> None:
    graph = graph_of(DATA / "demo")
    results = Results(graph)
    evidence = BLOCKING.evidence(results, *BLOCKING.when(results))
    acts = graph.activities
    waits = [
        int(row) for row in graph.select(op="aten::item").activities if graph.names[acts.name[row]] == "cudaMemcpyAsync"
    ]
    for rank, bar in zip(graph.ranks, evidence.chart.bars, strict=True):
        of_rank = [row for row in waits if acts.rank[row] == rank]
        assert time_text(bar.value) == time_text(float(acts.duration[of_rank].sum()) / 1000)
    assert evidence.place is not None
    assert evidence.place.activity == max(waits, key=lambda row: acts.duration[row])
