"""What rows of each table become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.kinds import EdgeKind
from tests.trace.nsys.made import (
    CALLS,
    EVENTS,
    GRAPHS,
    KERNELS,
    OS,
    RANGES,
    SESSION,
    SYNCS,
    TID,
    Strings,
    call,
    export,
    global_pid,
    global_tid,
    issues_of,
    kernel,
    names_of,
    ranged,
    sums,
    traces_of,
)


def test_ranges_have_domains_registered_names_marks_and_open_ends(tmp_path: Path) -> None:
    strings = Strings()
    ranges = [
        ranged(0, 100, None, textId=strings("ncclAllReduce"), domainId=3),
        ranged(5, 50, "load", domainId=4, eventType=60, rangeId=1),
        {**ranged(0, None, "data"), "eventType": 75, "domainId": 4},
        {**ranged(60, None, "here"), "eventType": 34},
        ranged(70, None, "never popped"),
        ranged(80, 90, ""),
    ]
    (trace,) = traces_of(export(tmp_path / "a.sqlite", {RANGES: ranges, **SESSION}, strings))
    assert names_of(trace, "user_annotation") == ["NCCL:ncclAllReduce", "data:load", "(no name)"]
    assert names_of(trace, "nvtx_mark") == ["here", "never popped"]
    assert trace.counts == {"X": 5, "M": 1}
    assert issues_of([trace]) == {"range_open": 1, "name_missing": 1}


def test_the_payload_of_nccl_names_the_collective_of_a_kernel(tmp_path: Path) -> None:
    tables: dict[str, Any] = {KERNELS: [], CALLS: [], RANGES: [], **SESSION}
    strings = Strings()
    launch, ring = strings("cuLaunchKernelEx"), strings("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)")
    payload = json.dumps({"NCCL communicator ID": 255, "Message size [bytes]": 4096, "No. of ranks": 2})
    for device, pid in enumerate((10, 20)):
        tables[RANGES].append(ranged(0, 100, "ncclAllReduce", pid=pid, domainId=3, jsonText=payload))
        tables[CALLS].append(call(10, 20, launch, 1, pid=pid, eventClass=1))
        tables[KERNELS].append(kernel(200 - 50 * device, 400, ring, 1, pid=pid, deviceId=device))
    graph = hg.load(export(tmp_path / "a.sqlite", tables, strings))
    assert graph.matches is not None
    assert graph.matches.op == ("all_reduce",)
    assert set(hg.collectives(graph)["bytes"]) == {4096}


@pytest.mark.parametrize("key", ["eventSyncId", "eventId"])
def test_a_wait_for_an_event_names_the_record(key: str, tmp_path: Path) -> None:
    strings = Strings()
    launch, record, wait = (
        strings(each) for each in ("cudaLaunchKernel_v7000", "cudaEventRecord_v3020", "cudaStreamWaitEvent_v3020")
    )
    calls = [call(0, 1, launch, 1), call(2, 3, record, 2), call(4, 5, wait, 3), call(6, 7, launch, 4)]
    kernels = [kernel(10, 50, strings("a"), 1, streamId=7), kernel(52, 90, strings("b"), 4, streamId=8)]
    ids = {"eventId": 9, "eventSyncId": 77 if key == "eventSyncId" else 0}
    stale = {"eventId": 9, "eventSyncId": 5, "streamId": 13, "correlationId": 9 if key == "eventSyncId" else 1}
    common = {"globalPid": global_pid(), "contextId": 1, "deviceId": 0}
    records = [{**common, **stale}, {**common, **ids, "streamId": 7, "correlationId": 2}]
    sync = {**common, **ids, "start": 4, "end": 5, "streamId": 8, "correlationId": 3, "syncType": 2, "deviceId": 6}
    tables = {CALLS: calls, KERNELS: kernels, EVENTS: records, SYNCS: [sync], **SESSION}
    graph = hg.load(export(tmp_path / "a.sqlite", tables, strings))
    edges = graph.edges
    (at,) = np.flatnonzero(edges.kind == EdgeKind.EVENT_WAIT)
    assert graph.names[graph.activities.name[edges.source[at] >> 1]] == "a"
    assert edges.confidence[at] == 100
    without = hg.load(export(tmp_path / "a.sqlite", {**tables, EVENTS: []}, strings))
    assert not without.traces[0].facts.names_records


def test_calls_of_the_operating_system_are_work_where_they_block_a_thread_of_the_job(tmp_path: Path) -> None:
    strings = Strings()
    launch, wait = strings("cudaLaunchKernel_v7000"), strings("pthread_cond_wait")
    calls = [call(100, 200, launch, 1), call(500, 600, launch, 2)]
    waits = [call(250, 450, wait), call(510, 590, wait), {**call(0, 999, wait), "globalTid": global_tid(tid=TID + 1)}]
    kernels = [kernel(150, 300, strings("a"), 1)]
    (trace,) = traces_of(export(tmp_path / "a.sqlite", {OS: waits, CALLS: calls, KERNELS: kernels, **SESSION}, strings))
    assert sums([trace], "os_runtime") == (200, 1)
    assert sums([trace], "os_runtime_beside") == (80 + 999, 2)


def test_a_graph_as_a_whole_is_device_work_that_says_so(tmp_path: Path) -> None:
    strings = Strings()
    rows = [{**kernel(20, 100, 0, 1), "graphId": 4, "graphExecId": 5}]
    calls = [call(0, 10, strings("cudaGraphLaunch_v10000"), 1)]
    graph = hg.load(export(tmp_path / "a.sqlite", {GRAPHS: rows, CALLS: calls, **SESSION}, strings))
    (row,) = graph.select(kind="computation").activities
    assert graph.names[graph.activities.name[row]] == "CUDA graph 5"
    launches = hg.graph_launches(graph)
    assert (launches["kernels"].tolist(), launches["span_us"].tolist()) == ([0], [0.08])
    assert launches[["busy_us", "gap_percent"]].isna().all(axis=None)
    support = hg.validate(tmp_path).support.set_index("analysis")
    assert support.loc["kernels of CUDA graphs", "setting"] == "nsys profile --cuda-graph-trace=node"
