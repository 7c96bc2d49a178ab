"""Whether the host's waits for its device are worded, and shown as the waits that the sentence sums up."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.findings.blocking import BLOCKING, BlockingClaim, _frame
from htagraph.findings.finding import claims_that_are
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results
from tests.findings.claims_by_hand import blocking
from tests.reach import DATA, SHARED, graph_of
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, runtime


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


def uploading(bytes_each: int, memory: str = "Pageable") -> list[Json]:
    """Return layers that copy a value from the host, and wait until the copy is over."""
    events = list[Json]()
    for at in range(12):
        begin, number = 1000 * at, 10 * at + 1
        copy = kernel(f"Memcpy HtoD ({memory} -> Device)", begin + 111, 2, number + 1) | {"cat": "gpu_memcpy"}
        copy["args"]["bytes"] = bytes_each
        events += [
            launch(begin, 5, number),
            kernel(COMPUTE, begin + 10, 100, number),
            op("aten::to", begin + 20, 100),
            runtime("cudaMemcpyAsync", begin + 22, 6, number + 1),
            copy,
            runtime("cudaStreamSynchronize", begin + 30, 88, number + 2),
            launch(begin + 130, 5, number + 3),
            kernel(COMPUTE, begin + 140, 500, number + 3),
        ]
    return events


def test_a_few_bytes_of_the_host_are_to_stay_on_the_device() -> None:
    (claim,) = claims_that_are(BlockingClaim, BLOCKING.when(Results(load(uploading(8)))))
    assert claim.use == "upload"
    assert "make this value on the device once" in BLOCKING.advice(claim)
    assert "few steps" not in BLOCKING.advice(claim)


def test_an_input_of_the_host_is_no_value() -> None:
    (claim,) = claims_that_are(BlockingClaim, BLOCKING.when(Results(load(uploading(1_000_000)))))
    assert claim.use == ""
    assert BLOCKING.advice(claim) == "Move aten::to out of the loop, or keep its result on the device."


@pytest.mark.skipif(not SHARED.is_dir(), reason="real traces are not in reach")
def test_values_of_a_real_job_that_are_copied_in_each_layer_are_not_to_be_copied_every_few_steps() -> None:
    (claim,) = claims_that_are(
        BlockingClaim, BLOCKING.when(Results(hg.load(SHARED.parent / "nsys" / "mfu_2gpu_before.sqlite.gz")))
    )
    assert claim.use == "upload"
