"""Whether each advice is given only where a person can follow it, by what the recording says."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.core.devices import tf32_speedup
from htagraph.findings.device_idle import DEVICE_IDLE, DeviceIdleClaim
from htagraph.findings.finding import claims_that_are
from htagraph.findings.preconditions import CACHES_MEMORY, HAS_GRAPHS, IS_NOT_REPLAYED, Precondition, checks_of
from htagraph.findings.remedy import REMEDY, RemedyClaim
from htagraph.findings.results import Results
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, load, op, runtime


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
