"""A recording that begins in the middle: work of before has the device, and nothing recorded may be blamed for it."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.findings.device_idle import device_use
from htagraph.findings.results import Results
from htagraph.queries.path_segments import bound_of
from tests.reach import SHARED
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, runtime

WORK = {"kernel", "gpu_memcpy", "gpu_memset"}
DEEP = [
    SHARED / "hta" / "ns_resolution" / "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    SHARED / "hta" / "trace_diff" / "test" / "test.json.gz",
    SHARED / "tracelens" / "mi300_vllm_decode_graphs.json.gz",
    SHARED / "tracelens" / "mi300_resnet_act_checkpoint.json.gz",
    SHARED.parent / "cases" / "recordings" / "rtx3060_graphs_small.json.gz",
    SHARED.parent / "cases" / "recordings" / "vit_large_bf16.json.gz",
]
"""Recordings of hosts that run far ahead of their devices."""


@st.composite
def backlogs(draw: st.DrawFn) -> tuple[list[Json], float, float]:
    """Return a job, when its device has ended the earlier work, and how long its kernels run, µs."""
    count = draw(st.integers(12, 40))
    lasts = draw(st.lists(st.integers(20, 90), min_size=count, max_size=count))
    begins = draw(st.integers(10 * count + 500, 60_000))
    events, now = [op("model", 0, 10 * count + 10)], begins
    for number, length in enumerate(lasts):
        events += [launch(5 + 10 * number, 4, number + 1), kernel(COMPUTE, now, length, number + 1)]
        now += length + draw(st.sampled_from([1, 1, 1, 2]))
    for tiny in range(draw(st.integers(0, 3))):
        at = draw(st.integers(20, begins - 50))
        number = 900 + tiny
        events += [launch(at, 3, number, tid=50 + tiny), kernel("tiny", at + 6, 4, number, stream=20 + tiny)]
    return events, begins, sum(lasts)


@given(backlogs())
@settings(max_examples=40)
def test_a_backlog_is_no_time_of_the_host_whatever_runs_beside_it(job: tuple[list[Json], float, float]) -> None:
    events, begins, busy = job
    graph = load(events)
    path = hg.critical_path(graph)
    assert hg.replay(graph).max_error_ns == 0
    assert bound_of(path).cause == "computation"
    window = (graph.time.max() - graph.origin_ns) / 1000 - begins
    if begins > 0.1 * (begins + window):
        assert bound_of(path).shares["head"] == pytest.approx(100 * begins / (begins + window), abs=1)
        (row,) = hg.temporal_breakdown(graph).to_dict("records")
        assert row["window_us"] == pytest.approx(window, abs=1)
        assert row["computation_us"] == pytest.approx(busy, abs=20)
    halved = hg.what_if(graph).scale(kind="computation", factor=0.5).run()
    assert halved.saved_ns >= 0.97 * 1000 * (busy - 100) / 2
    assert hg.what_if(graph).infinite_host().run().saved_ns < 20_000


def events_of(path: Path) -> list[dict[str, Any]]:
    root = json.loads(gzip.decompress(path.read_bytes()), strict=False)
    return [event for event in root["traceEvents"] if "ts" in event and event.get("cat") != "Trace"]


def is_work(event: dict[str, Any]) -> bool:
    return event.get("cat") in WORK


@cache
def cut(path: Path) -> tuple[list[dict[str, Any]], float]:
    """Return the events from the moment on at which the queue becomes deep, and how long the device does earlier work.

    Device work whose launch was before is left out, as profilers do.
    """
    events = events_of(path)
    calls = {event["args"]["correlation"]: event["ts"] for event in events if event.get("cat") == "cuda_runtime"}
    works = [event for event in events if is_work(event) and event["args"].get("correlation") in calls]
    lags = sorted((calls[work["args"]["correlation"]], work["ts"]) for work in works)
    deepest = max(start - call for call, start in lags)
    begin, first = next((call, start) for call, start in lags if start - call >= deepest / 5)
    kept = [event for event in events if event["ts"] >= begin and not is_work(event)]
    kept += [work for work in works if calls[work["args"]["correlation"]] >= begin]
    return [event for event in kept if event.get("cat") != "gpu_user_annotation"], first - begin


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("path", DEEP, ids=lambda path: path.name[:20])
def test_a_recording_cut_where_its_queue_is_deep_is_bound_by_its_device(path: Path, beside: bool) -> None:  # noqa: FBT001
    if not path.exists():
        pytest.skip("the shared traces are not here")
    events, earlier_us = cut(path)
    begin = min(event["ts"] for event in events)
    tiny = [launch(begin + 0.5, 1, 987_654, tid=99), kernel("tiny", begin + 4, 4, 987_654, stream=99)]
    results = Results(load([*events, *(tiny if beside else [])]))
    assert results.bound.cause in ("computation", "communication", "memory")
    assert results.free.get("host", 0) < max(results.free.values())
    assert results.bound.shares.get("other_work", 0.0) < 2
    head = bound_of(results.path).shares.get("head", 0.0) * results.path.makespan_ns / 100_000
    assert head == pytest.approx(earlier_us, rel=0.25) or results.head_ns == 0
    assert "busy" in device_use(results).busy


@st.composite
def first_waits(draw: st.DrawFn) -> tuple[list[Json], float, float]:
    """Return a job whose host first waits for earlier work, when the work is over, and how long its kernels run, µs."""
    over = draw(st.integers(2_000, 90_000))
    at = draw(st.integers(5, 400))
    count = draw(st.integers(12, 40))
    name = draw(st.sampled_from(["cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize"]))
    copied: list[Json] = []
    asked = draw(st.sampled_from(["sync", "item", "copy"]))
    if asked != "sync":
        lasts = over + 12 - at if asked == "copy" else 4
        copied = [runtime("cudaMemcpyAsync", at, lasts, 900), kernel("Memcpy DtoH (Device -> Pageable)", over, 2, 900)]
        copied[1]["cat"] = "gpu_memcpy"
        copied[1]["args"]["bytes"] = 8
    waits = [runtime(name, at + 6, over + draw(st.integers(6, 12)) - at - 6)] if asked != "copy" else []
    outer = [op("aten::item", at - 3, over + 20 - at)] if draw(st.booleans()) else []
    events = [*outer, *copied, *waits]
    device = over + 40
    lasts_us = draw(st.lists(st.integers(40, 300), min_size=count, max_size=count))
    for number, length in enumerate(lasts_us):
        begun = over + 25 + 10 * number
        device = max(device, begun + 7)
        events += [launch(begun, 4, number + 1), kernel(COMPUTE, device, length, number + 1)]
        device += length + 1
    return events, over, sum(lasts_us)


@given(first_waits())
@settings(max_examples=40)
def test_a_host_that_waits_for_earlier_work_is_not_what_bounds_the_job(job: tuple[list[Json], float, float]) -> None:
    events, over, busy = job
    graph = load(events)
    path = hg.critical_path(graph)
    first = min(event["ts"] for event in events)
    whole = (graph.time.max() - graph.origin_ns) / 1000
    assert hg.replay(graph).max_error_ns == 0
    assert bound_of(path).cause == "computation"
    (row,) = hg.temporal_breakdown(graph).to_dict("records")
    assert row["window_us"] == pytest.approx(whole - over + first, abs=60)
    assert row["computation_us"] == pytest.approx(busy, abs=1)
    if over > 0.1 * whole:
        assert bound_of(path).shares["head"] == pytest.approx(100 * (over - first) / whole, abs=2)
    assert hg.what_if(graph).infinite_host().run().saved_ns < 600_000
