"""Flushes of the allocator's cache: counters prove them, patterns show them, and libraries make none."""

from __future__ import annotations

from typing import Any

import pytest

import htagraph as hg
from htagraph.findings.finding import claims_that_are
from htagraph.findings.remedy import RemedyClaim
from htagraph.graph.measures.allocator import allocator_calls, recorded_flushes
from tests.damage import kineto_text
from tests.strategies import BASE_NS, Json, kernel, launch, load, op, runtime, write

MS = 1000
GB = 10**9


def counter(at: int, reserved: int, size: int = 512) -> Json:
    args = {"Total Reserved": reserved, "Total Allocated": reserved // 2, "Bytes": size, "Addr": at}
    args |= {"Device Id": 0, "Device Type": 1, "Ev Idx": at}
    return {
        "ph": "i",
        "s": "t",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 100,
        "tid": 1,
        "ts": at,
        "args": args,
    }


def products(count: int, at: int = 0, first: int = 1) -> list[Json]:
    events: list[Json] = []
    for number in range(count):
        call = first + number
        events += [op("aten::bmm", at, 40), launch(at + 5, 8, call), kernel("gemm", at + 20, 10, call)]
        at += 50
    return events


def flush(before: int, after: int, asked: int = 5 * GB) -> list[Json]:
    """Return products of which one frees memory for 34 ms, and asks for more, between two counters."""
    steady = [counter(2, before), *products(40)]
    calls = [runtime("cudaFree", 3 * MS, 34 * MS), runtime("cudaMalloc", 38 * MS, 5 * MS)]
    work = [launch(44 * MS, 8, 900), kernel("gemm", 44 * MS + 20, 10, 900)]
    return [*steady, op("aten::bmm", 2 * MS + 500, 42 * MS), *calls, counter(43 * MS + 100, after, asked), *work]


def of_device(events: list[Json], folder: Any, memory: int = 48 * GB) -> hg.DependencyGraph:
    device = {"id": 0, "name": "NVIDIA A40", "totalGlobalMem": memory}
    path = folder / "rank-0.json"
    path.write_text(kineto_text(events, baseTimeNanoseconds=BASE_NS, deviceProperties=[device]), encoding="utf-8")
    return hg.load(path)


def test_reserved_memory_that_falls_is_a_flush_even_of_one_call(tmp_path: Any) -> None:
    graph = of_device(flush(before=46 * GB, after=45 * GB), tmp_path)
    flushes = graph.flushes
    assert flushes.call.tolist() == allocator_calls(graph).tolist() == recorded_flushes(graph).call.tolist()
    assert set(flushes.freed_bytes.tolist()) == {6 * GB}
    assert set(flushes.reserved_bytes.tolist()) == {46 * GB}
    assert flushes.are_recorded
    assert not len(graph.start_up)


@pytest.mark.parametrize(("memory", "is_flush"), [(48 * GB, True), (400 * GB, False)])
def test_memory_that_grows_by_less_than_was_asked_for_is_one_on_a_full_device(
    memory: int,
    is_flush: bool,  # noqa: FBT001
    tmp_path: Any,
) -> None:
    graph = of_device(flush(before=45 * GB, after=46 * GB), tmp_path, memory)
    assert (len(graph.flushes) > 0) == is_flush


def test_memory_that_grows_as_asked_is_none(tmp_path: Any) -> None:
    assert not len(of_device(flush(before=10 * GB, after=15 * GB), tmp_path).flushes)


def without_counters(events: list[Json]) -> list[Json]:
    return [event for event in events if event["name"] != "[memory]"]


def test_without_counters_one_long_free_tells_nothing() -> None:
    assert not len(load(without_counters(flush(46 * GB, 45 * GB))).flushes)


def test_without_counters_several_frees_of_like_length_look_like_a_flush() -> None:
    frees = [runtime("cudaFree", 3 * MS + 9 * MS * number, 8 * MS) for number in range(4)]
    events = [event for event in without_counters(flush(0, 0)) if event["name"] != "cudaFree"]
    graph = load([*events, *frees])
    assert len(graph.flushes) == 5
    assert not graph.flushes.are_recorded


def test_frees_of_a_library_that_makes_its_handle_are_no_flush() -> None:
    frees = [runtime("cudaFree", 5 * MS * number + 10, 4 * MS) for number in range(3)]
    first = [op("aten::addmm", 0, 30 * MS), *frees, runtime("cudaMalloc", 16 * MS, 150)]
    events = [*first, launch(20 * MS, 9 * MS, 1), kernel("addmm", 29 * MS + 5, 3, 1), *products(3, 40 * MS, 10)]
    graph = load(events)
    assert not len(graph.flushes)
    assert len(graph.start_up) == 5


def test_the_verdict_says_what_was_flushed_first(tmp_path: Any) -> None:
    graph = of_device(flush(before=46 * GB, after=45 * GB), tmp_path)
    (claim,) = claims_that_are(RemedyClaim, hg.summarize(graph).claims)
    assert claim.text == (
        "The allocator ran out of its cache and flushed it (46.00 GB held, 6.00 GB of them given back): its calls take "
        "39.0 ms"
    )
    first = hg.changes(graph).first
    assert first is not None
    assert first.text.startswith("Use less memory (46.00 GB is held), or")


def test_files_that_say_nothing_of_devices_have_counters_all_the_same(tmp_path: Any) -> None:
    events = flush(before=46 * GB, after=45 * GB)
    assert len(hg.load({0: write(events, tmp_path / "rank-0.json")}).flushes) == 2
