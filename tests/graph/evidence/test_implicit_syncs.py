from __future__ import annotations

import pytest

import htagraph as hg
from htagraph import EdgeKind
from htagraph.core.naming import DEFAULT_NAMING, names_like
from htagraph.graph.evidence.implicit_syncs import implicit_syncs
from tests.strategies import Json, kernel, launch, load, op, runtime
from tests.waiting import by_hand


def called(name: str, duration: float, at: float = 10) -> list[Json]:
    """A call at `at`, while a kernel of another stream runs from 5 to 5005 µs after a launch at 0."""
    return [launch(0, 2, 1), kernel("k", 5, 5000, 1, stream=20), runtime(name, at, duration, 9)]


def confidence(events: list[Json]) -> list[int]:
    return implicit_syncs(by_hand(events).calls).confidence.tolist()


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("cudaFree", True), ("hipFree", True), ("cudaFreeHost", True), ("hipHostFree", True), ("cuMemFree_v2", True),
        ("cudaDeviceReset", True), ("cudaFreeAsync", False), ("cudaMalloc", False), ("cudaMallocAsync", False),
    ],
)  # fmt: skip
def test_calls_that_free_what_the_device_may_use_are_documented_to_wait(name: str, *, waits: bool) -> None:
    assert names_like(DEFAULT_NAMING.implicit_sync, (name,), [0]).tolist() == [waits]  # type: ignore[arg-type]


def test_a_documented_call_waits_for_the_work_of_every_stream_and_then_works_itself() -> None:
    waits = implicit_syncs(by_hand(called("cudaFree", 6000)).calls)
    assert (waits.own.tolist(), waits.confidence.tolist()) == ([1_005_000], [95])


def test_a_documented_call_with_nothing_pending_may_wait_another_time() -> None:
    waits = implicit_syncs(by_hand(called("cudaFree", 300, at=5100)).calls)
    assert (waits.own.tolist(), waits.confidence.tolist()) == ([300_000], [80])


def test_a_documented_call_that_returned_before_the_work_ended_did_not_wait() -> None:
    assert confidence(called("cudaFree", 3)) == []


def test_an_allocation_that_returned_while_the_device_was_busy_did_not_wait() -> None:
    assert confidence(called("cudaMalloc", 3000)) == []


@pytest.mark.parametrize("name", ["cudaHostAlloc", "cudaFuncSetAttribute", "cuModuleLoadData", "cudaLaunchKernel"])
def test_any_long_call_that_returns_just_as_the_device_falls_idle_waited(name: str) -> None:
    assert confidence(called(name, 5003)) == [90]
    assert confidence(called(name, 5800)) == [], "0.8 ms after the end of the work: it was busy itself"
    assert confidence([*called(name, 5003), *called(name, 7000, 11)[2:], *called(name, 8000, 12)[2:]]) == [], (
        "one of three may end in time by chance"
    )


def test_without_the_work_a_call_that_waited_takes_what_it_does_itself() -> None:
    graph = load([*called("cudaFree", 6000), op("after", 6012, 5)])
    edges = graph.edges
    assert edges.lag[edges.kind == EdgeKind.HOST_SYNC].tolist() == [1_005_000]
    assert not graph.gap[2 * 2 + 1]
    assert hg.what_if(graph).scale(factor=0, kind="computation").run().saved_ns == 4_995_000
    assert hg.what_if(graph).scale(factor=0, name="cudaFree").run().saved_ns == 1_005_000, "and no more than that"
