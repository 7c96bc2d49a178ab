"""Whether what devices waited for is all of their idle time, and is what the raw events say."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.queries.waited_for import DEVICE, LOADER, OWN_REASONS, reason_of_each, waited_for
from tests.reach import DATA, JOBS, graph_of, label, raw_events
from tests.strategies import COMPUTE, kernel, launch, load, runtime

Spans = list[tuple[float, float]]


def union(spans: Iterable[tuple[float, float]]) -> Spans:
    whole: Spans = []
    for begin, end in sorted(spans):
        if whole and begin <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((begin, end))
    return whole


def waits_of(path: Path, inside: str) -> float:
    """Return how long a device of a file has nothing to do while the host is inside some event, from the JSON, µs."""
    events = [event for event in raw_events(path) if event.get("ph") == "X"]
    works = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    busy = union((event["ts"], event["ts"] + event["dur"]) for event in works)
    idle = [(before[1], after[0]) for before, after in pairwise(busy)]
    loads = [(event["ts"], event["ts"] + event["dur"]) for event in events if event["name"].startswith(inside)]
    return sum(max(0.0, min(end, last) - max(begin, first)) for begin, end in idle for first, last in union(loads))


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_what_devices_waited_for_is_their_idle_time(path: Path) -> None:
    graph = graph_of(path)
    table = waited_for(graph)
    idle = hg.idle_breakdown(graph, by="rank").groupby("rank")["idle_us"].sum()
    sums = table.groupby("rank")["total_us"].sum().reindex(idle.index).fillna(0.0)
    assert sums.tolist() == pytest.approx(idle.tolist())
    assert (table["longest_us"] <= table["total_us"] + 1e-9).all()


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_a_reason_elsewhere_is_another_rank_of_the_job(path: Path) -> None:
    graph = graph_of(path)
    ranks = {f"rank {rank}" for rank in graph.ranks}
    assert set(waited_for(graph)["waited_for"]) <= OWN_REASONS | ranks


def test_the_wait_for_the_loader_is_what_the_raw_events_say() -> None:
    table = waited_for(graph_of(DATA / "demo"))
    found = table[table["waited_for"] == LOADER].groupby("rank")["total_us"].sum()
    for rank, total_us in found.items():
        raw_us = waits_of(DATA / "demo" / f"rank-{rank}.json.gz", "enumerate(DataLoader)")
        assert total_us == pytest.approx(raw_us, rel=1e-6)


def test_a_call_before_the_launch_is_what_the_device_waits_for() -> None:
    late = [
        launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), runtime("cudaMalloc", 10, 90), launch(101, 2, 2),
        kernel(COMPUTE, 106, 5, 2),
    ]  # fmt: skip
    graph = load(late)
    first = waited_for(graph).iloc[0]
    assert (first["waited_for"], first["what"], first["total_us"]) == ("host", "cudaMalloc", pytest.approx(90.0))
    assert reason_of_each(graph, graph.device_pauses, [0]) == ["host: cudaMalloc"]


def test_a_pause_between_queued_kernels_is_the_devices_own() -> None:
    graph = load([launch(0, 2, 1), launch(3, 2, 2), kernel(COMPUTE, 10, 50, 1), kernel(COMPUTE, 62, 5, 2)])
    assert waited_for(graph)[["waited_for", "total_us"]].to_numpy().tolist() == [[DEVICE, 2.0]]
    assert not len(waited_for(load([])))


def test_the_time_from_a_launch_to_its_work_is_that_of_the_call_and_of_no_kernel() -> None:
    """A graph that starts late after its launch: the host was in the call, and the kernel did nothing yet."""
    events = [launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), launch(20, 20, 2), kernel("late", 45, 5, 2)]
    table = waited_for(load(events))
    of_host = table[table["waited_for"] == "host"]
    assert len(of_host)
    assert not set(of_host["what"]) & {COMPUTE, "late"}
    assert "cudaLaunchKernel" in set(of_host["what"])
