"""Whether each advice is given only where a person can follow it, by what the recording says."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.core.devices import tf32_speedup
from htagraph.findings.bound import BOUND
from htagraph.findings.device_idle import DEVICE_IDLE, DeviceIdleClaim
from htagraph.findings.finding import claims_that_are
from htagraph.findings.preconditions import (
    CACHES_MEMORY,
    HAS_GRAPHS,
    HAS_ROOFS,
    IS_CAPTURABLE,
    IS_NOT_REPLAYED,
    Precondition,
    checks_of,
)
from htagraph.findings.remedy import REMEDY, RemedyClaim
from htagraph.findings.results import Results
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, load, op, runtime, step


def optimizing(name: str, calls: str = "cudaLaunchKernel") -> list[Json]:
    """Return a step of an optimizer whose nine kernels take far less time than the host that launches them."""
    events = [annotation(name, 0, 1000)]
    for at in range(9):
        call = launch(100 * at + 10, 60, at + 1) | {"name": calls}
        events += [call, kernel(COMPUTE, 100 * at + 80, 5, at + 1)]
    return events


def remedies(events: list[Json]) -> dict[str, RemedyClaim]:
    return {claim.about: claim for claim in claims_that_are(RemedyClaim, REMEDY.when(Results(load(events))))}


@pytest.mark.parametrize(
    ("optimizer", "is_advised", "check"),
    [
        ("AdamW", True, ""),
        ("SGD", True, ""),
        ("Shampoo", False, ""),
        ("RMSprop", False, ""),
        (
            "Adagrad",
            True,
            "Adam has it since PyTorch 2.0, SGD since 2.3, Adagrad for devices in recent versions alone.",
        ),
    ],
)
def test_a_fused_optimizer_is_advised_where_its_class_has_one(optimizer: str, check: str, *, is_advised: bool) -> None:
    claim = remedies(optimizing(f"Optimizer.step#{optimizer}.step")).get("optimizer")
    assert (claim is not None) == is_advised
    if claim is not None:
        assert REMEDY.advice(claim) == " ".join(["Make the optimizer with fused=True.", check]).strip()


def test_a_fused_optimizer_is_not_advised_to_who_has_it() -> None:
    events = [*optimizing("Optimizer.step#Adam.step"), op("aten::_fused_adam_", 5, 900)]
    assert "optimizer" not in remedies(events)


def test_graphs_need_calls_of_cuda_or_hip_and_work_that_is_in_no_graph() -> None:
    none = np.zeros(0, np.int64)
    for call, holds in (("cudaLaunchKernel", True), ("hipLaunchKernel", True), ("runFunction", False)):
        graph = load(optimizing("Optimizer.step#Adam.step", call))
        if len(graph.select(kind="launch").activities):
            assert HAS_GRAPHS.holds(graph, none) is holds
    replays = [runtime("cudaGraphLaunch", 0, 50, 1), *(kernel(COMPUTE, 60 + 20 * at, 10, 1) for at in range(4))]
    graph = load(replays)
    works = graph.select(kind="computation").activities
    assert IS_NOT_REPLAYED.holds(graph, works) is False


def test_memory_without_a_cache_is_asked_for_by_most_kernels() -> None:
    events = optimizing("Optimizer.step#Adam.step")
    asked = [runtime("cudaMalloc", 100 * at + 1, 5, 100 + at) for at in range(9)]
    none = np.zeros(0, np.int64)
    assert CACHES_MEMORY.holds(load(events), none)
    assert not CACHES_MEMORY.holds(load([*events, *asked]), none)


def test_what_nobody_knows_is_to_be_checked_and_what_is_false_forbids() -> None:
    graph = load([op("aten::mm", 0, 10)])
    rows = graph.select(kind="op").activities
    unknown = Precondition(lambda _graph, _rows: None, "Look.")
    false = Precondition(lambda _graph, _rows: False)
    assert checks_of([unknown], graph, rows) == ("Look.",)
    assert checks_of([unknown, false], graph, rows) is None


@pytest.mark.parametrize(("count", "is_many"), [(3, False), (60, True)])
def test_graphs_are_advised_for_many_kernels_with_pauses_and_not_for_few(count: int, *, is_many: bool) -> None:
    """All are launched in time, and the device pauses for 10 µs before each."""
    events = [launch(2 * at, 1, at + 1) for at in range(count)]
    events += [kernel(COMPUTE, 200 + 30 * at, 20, at + 1) for at in range(count)]
    claims = claims_that_are(DeviceIdleClaim, DEVICE_IDLE.when(Results(load(events))))
    for claim in claims:
        if claim.about == "kernel_wait":
            assert ("CUDA graph" in DEVICE_IDLE.advice(claim)) == is_many
            assert ("many small kernels" in DEVICE_IDLE.short(claim)) == is_many


def test_products_are_told_only_what_their_device_gains_from() -> None:
    assert tf32_speedup("NVIDIA GeForce RTX 4090") == 1
    assert tf32_speedup("NVIDIA RTX 500 Ada Generation Laptop GPU") == 2
    assert tf32_speedup("AMD Instinct MI300X") == 0


@pytest.mark.parametrize(("other", "is_advised"), [("cutlass_80_tensorop_s1688gemm_128x128", False), (COMPUTE, True)])
def test_tf32_is_not_advised_to_a_library_that_uses_it(other: str, *, is_advised: bool) -> None:
    events: list[Json] = []
    for at, name in enumerate(("ampere_sgemm_128x64_tn", other)):
        begin = 1000 * at
        events += [op("aten::mm", begin, 20), launch(begin + 5, 5, at + 1), kernel(name, begin + 20, 900, at + 1)]
    assert ("single precision" in remedies(events)) == is_advised


def waiting_steps(layers: int, waits: int) -> list[Json]:
    """Return two steps of layers with ten launches each; the host waits for the device behind the last layers."""
    events = list[Json]()
    number = 1
    for at in range(2):
        begin = 100_000 * at
        events.append(step(at, begin, 90_000))
        for layer in range(layers):
            start = begin + 1000 * layer
            for place in range(10):
                time = start + 20 * place
                events += [launch(time, 5, number), kernel(COMPUTE, time + 6, 8, number)]
                number += 1
            if layer >= layers - waits:
                copy = kernel("Memcpy DtoH (Device -> Pageable)", start + 230, 2, number) | {"cat": "gpu_memcpy"}
                events += [runtime("cudaMemcpyAsync", start + 210, 30, number), copy]
                number += 1
    return events


@pytest.mark.parametrize(("waits", "is_capturable"), [(0, True), (1, True), (2, True), (8, False)])
def test_a_graph_holds_no_wait_for_the_device(waits: int, *, is_capturable: bool) -> None:
    """Of eight layers with a wait behind each, no graph holds most launches."""
    graph = load(waiting_steps(8, waits))
    assert IS_CAPTURABLE.holds(graph, np.zeros(0, np.int64)) is is_capturable


def test_without_steps_nobody_knows_which_launches_a_graph_would_hold() -> None:
    events = [event for event in waiting_steps(8, 8) if event["cat"] != "user_annotation"]
    assert IS_CAPTURABLE.holds(load(events), np.zeros(0, np.int64)) is None


def copying(begin: int, count: int) -> list[Json]:
    """Return copies to the device from pageable memory, one after the other."""
    events = list[Json]()
    for at in range(count):
        number = begin + at + 1
        start = begin + 100 * at
        copy = kernel("Memcpy HtoD (Pageable -> Device)", start + 10, 80, number) | {"cat": "gpu_memcpy"}
        events += [runtime("cudaMemcpyAsync", start, 95, number), copy]
    return events


@pytest.mark.parametrize("is_loop", [True, False])
def test_memory_is_pinned_for_copies_that_repeat_and_not_for_one_model(*, is_loop: bool) -> None:
    """Either a model is copied and then used, or a batch is copied before each kernel."""
    events = list[Json]()
    for at in range(5):
        begin = 1000 * at
        events += copying(begin, 2 * (at == 0) or 1) if is_loop or not at else []
        events += [launch(begin + 300, 5, begin + 9), kernel(COMPUTE, begin + 310, 100, begin + 9)]
    claim = remedies(events).get("pageable copies")
    assert (claim is not None) is is_loop
    if claim is not None:
        graph = load(events)
        rows = graph.select(kind="memory").activities
        calls = graph.activities.cause[rows]
        assert claim.figure <= graph.activities.duration[calls].sum() / 1000


def test_a_roofline_is_named_only_where_it_answers() -> None:
    """A kernel without an operator has no work that can be counted."""
    events = [launch(0, 5, 1), kernel("triton_poi_fused_add", 10, 1000, 1)]
    graph = load(events)
    assert HAS_ROOFS.holds(graph, np.zeros(0, np.int64)) is False
    (claim,) = BOUND.when(Results(graph))
    assert "htagraph roofline" not in BOUND.advice(claim)
