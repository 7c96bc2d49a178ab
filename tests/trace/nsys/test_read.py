"""Exports of Nsight Systems, large and small: what their rows become, what is refused, what is reported."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.errors import DamagedTraceError, HtagraphError, NotATraceError, RankError, TraceError
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.trace.columns import Trace
from htagraph.trace.discover import rank_files
from htagraph.trace.nsys.rows import SOURCES
from htagraph.trace.readers import read_trace
from tests.damage import healthy, kineto_text
from tests.reach import SHARED
from tests.trace.nsys.made import (
    BASE_NS,
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
    kernel,
    ranged,
    small,
)  # fmt: skip

REAL = sorted((SHARED.parent / "nsys").glob("*.sqlite.gz"))
_SUMS = {
    KERNELS: ("kernel",), "CUPTI_ACTIVITY_KIND_MEMCPY": ("gpu_memcpy",), "CUPTI_ACTIVITY_KIND_MEMSET": ("gpu_memset",),
    GRAPHS: ("cuda_graph",), CALLS: ("cuda_runtime", "cuda_driver"), SYNCS: ("cuda_sync",),
    RANGES: ("cpu_op", "user_annotation"),
}  # fmt: skip


def traces_of(path: Path) -> list[Trace]:
    return [read_trace(file.path, file.rank_in, part=file.part) for file in rank_files(path)]


def sums(traces: list[Trace], *categories: str) -> tuple[int, int]:
    """Return (durations in ns, number of events) of some categories."""
    masks = [trace.in_categories(*categories) for trace in traces]
    durations = [trace.events.duration[mask] for trace, mask in zip(traces, masks, strict=True)]
    return sum(int(each.sum()) for each in durations), sum(map(len, durations))


def names_of(trace: Trace, *categories: str) -> list[str]:
    return [trace.names[name] for name in trace.events.name[trace.in_categories(*categories)].tolist()]


def issues_of(traces: list[Trace]) -> dict[str, int]:
    found: dict[str, int] = {}
    for trace in traces:
        for issue in trace.issues:
            found[issue.what] = found.get(issue.what, 0) + issue.count
    return found


@pytest.mark.parametrize("packed", REAL, ids=lambda path: path.name)
def test_sums_equal_those_of_sql_and_a_replay_gives_every_recorded_time(packed: Path, tmp_path: Path) -> None:
    path = tmp_path / packed.name.removesuffix(".gz")
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    database, traces = sqlite3.connect(path), traces_of(path)
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    for table, categories in _SUMS.items():
        query = f"SELECT coalesce(sum(end - start), 0), count(*) FROM {table}"
        assert sums(traces, *categories) == (database.execute(query).fetchone() if table in tables else (0, 0)), table
    total = sum(
        database.execute(f"SELECT count(*) FROM {each.table}").fetchone()[0] for each in SOURCES if each.table in tables
    )
    reported = issues_of(traces).get("other_process", 0)
    assert sum(sum(trace.counts.values()) for trace in traces) + reported == total
    database.close()
    graph = hg.load(packed)  # packed, it is the same
    graph.check()
    outcome = hg.what_if(graph).run()
    assert np.array_equal(outcome.time, graph.time)
    assert graph.ranks == tuple(range(len(traces)))


def test_a_small_export_becomes_steps_operators_launches_and_device_work(tmp_path: Path) -> None:
    graph = hg.load(small(tmp_path / "report.sqlite"))
    assert graph.steps == (5, 6)
    acts = graph.activities
    launched = acts.cause[acts.kind == ActivityKind.COMPUTATION]
    assert {graph.names[name] for name in acts.name[launched].tolist()} == {"cudaLaunchKernel"}
    assert {graph.names[name] for name in acts.name[acts.parent[launched]].tolist()} == {"aten::mm"}
    assert acts.start.min() == BASE_NS
    assert (graph.edges.kind == EdgeKind.HOST_SYNC).sum() == 2
    row = int(np.flatnonzero(acts.kind == ActivityKind.COMPUTATION)[0])
    event = graph.event(row).args.model_dump(by_alias=True, exclude_none=True)
    said = {key: event[key] for key in ("grid", "block", "registers per thread", "shared memory", "stream")}
    assert said == {
        "grid": [8, 2, 1],
        "block": [128, 1, 1],
        "registers per thread": 40,
        "shared memory": 48,
        "stream": 7,
    }
    assert hg.arguments(graph, ["grid", "Input Dims"], [row]).iloc[0].tolist() == [[8, 2, 1], None]
    operator = int(acts.parent[launched][0])
    assert hg.arguments(graph, ["Input Dims"], [operator])["Input Dims"].iloc[0] == [[2, 3], [3, 4]]
    copies = graph.select(category="gpu_memcpy").activities
    assert graph.names[acts.name[copies[0]]] == "Memcpy HtoD (Pinned -> Device)"
    assert acts.arg("bandwidth_gb_s")[copies[0]] == 10.0
    assert hg.roofline(graph, peak_tflop_s=1.0, peak_gb_s=1.0)["flop"].sum() == 2 * 2 * 2 * 3 * 4


def test_processes_of_one_file_are_ranks_in_the_order_of_their_devices(tmp_path: Path) -> None:
    path = small(tmp_path / "report.sqlite", pids=(300, 200))  # device 0 is that of process 300
    graph = hg.load(path)
    assert graph.ranks == (0, 1)
    assert [graph.traces[rank].lanes[0] for rank in graph.ranks] == [(0, 7), (1, 7)]
    assert {lane.pid for lane in graph.lanes if lane.rank == 0 and lane.device < 0} == {300}
    assert hg.load(path, ranks=[1]).ranks == (1,)
    assert not [issue for issue in graph.issues if issue.what in ("same_file", "other_process")]
    with pytest.raises(RankError, match="2 processes that used a device"):
        hg.load({0: path})
    job = hg.load(path, engine=1)
    assert job.missing == ()


def test_files_of_ranks_and_of_nodes(tmp_path: Path) -> None:
    for rank in range(2):
        small(tmp_path / f"report_{rank}.sqlite")
    assert hg.load(tmp_path).ranks == (0, 1)
    for node in range(2):
        small(tmp_path / f"report_{node}.sqlite", pids=(10, 20))
    assert hg.load(tmp_path).ranks == (0, 1, 2, 3)
    small(tmp_path / "other.sqlite", pids=(10, 20))
    with pytest.raises(RankError, match="differ in more than a number"):
        hg.load(tmp_path)


def test_the_environment_of_nsys_says_the_rank(tmp_path: Path) -> None:
    environment = {"name": "DeviceEnvironment", "value": "HOME=/root;RANK=3;WORLD_SIZE=4"}
    path = small(
        tmp_path / "a.sqlite", more={"TARGET_INFO_SYSTEM_ENV": [environment, {"name": "Hostname", "value": "n1"}]}
    )
    (file,) = rank_files(path)
    facts = read_trace(file.path, file.rank_in).facts
    assert (file.rank, facts.world_size, facts.host) == (3, 4, "n1")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["step 3", "step 4", "step 5"], (3, 4, 5)),
        (["iteration", "iteration", "iteration"], (0, 1, 2)),
        (["train_step 7", "train_step 7", "train_step 9"], (0, 1, 2)),  # numbers that do not ascend
        (["forward", "forward", "forward"], (0, 1, 2)),  # covers nearly all
        (["layer 0", "layer 1", "layer 2"], ()),  # parts of one forward
        (["footsteps 1", "footsteps 2", "footsteps 3"], ()),
        (["only once"], ()),
        (["ProfilerStep#8", "ProfilerStep#9"], (8, 9)),
    ],
)
def test_ranges_that_repeat_and_cover_the_job_are_steps(
    names: list[str], expected: tuple[int, ...], tmp_path: Path
) -> None:
    strings = Strings()
    launch, gemm = strings("cudaLaunchKernel_v7000"), strings("gemm")
    ranges = [ranged(1000 * at, 1000 * at + 990, name) for at, name in enumerate(names)]
    calls = [call(1000 * at + 10, 1000 * at + 20, launch, at + 1) for at in range(len(names))]
    kernels = [kernel(1000 * at + 30, 1000 * at + 980, gemm, at + 1) for at in range(len(names))]
    path = export(tmp_path / "a.sqlite", {RANGES: ranges, CALLS: calls, KERNELS: kernels, **SESSION}, strings)
    graph = hg.load(path)
    assert graph.steps == expected
    assert ("steps_by_range" in {issue.what for issue in graph.issues}) == (bool(expected) and "#" not in names[0])


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


def test_an_old_export_of_few_columns_is_read(tmp_path: Path) -> None:
    kernels = [{"start": 0, "end": 10, "shortName": 1}, {"start": 20, "end": 25, "shortName": 2}]
    tables = {KERNELS: kernels, "StringIds": [{"id": 1, "value": "gemm"}]}
    (trace,) = traces_of(export(tmp_path / "a.sqlite", tables))
    assert names_of(trace, "kernel") == ["gemm", "(no name)"]
    assert issues_of([trace]) == {"name_missing": 1, "no_base_time": 1}
    hg.load(tmp_path).check()


def test_rows_that_cannot_be_are_reported_and_dropped(tmp_path: Path) -> None:
    strings = Strings()
    good = [kernel(10 * at, 10 * at + 5, strings("gemm"), at) for at in range(5)]
    bad = [
        {**good[0], "end": None},
        {**good[0], "start": "soon"},
        {**good[0], "start": 99},
        {**good[0], "end": 2**62 + 1},
    ]
    odd = {"GPU_METRICS": [{"timestamp": 1, "value": 2}]}
    (trace,) = traces_of(export(tmp_path / "a.sqlite", {KERNELS: good + bad, **SESSION, **odd}, strings))
    assert sums([trace], "kernel") == (25, 5)
    assert issues_of([trace]) == {"time_missing": 2, "time_corrupt": 2, "table_not_read": 1}


def test_what_is_no_export_is_refused_with_what_to_do(tmp_path: Path) -> None:
    def refused(path: Path, kind: type[HtagraphError], words: str) -> None:
        with pytest.raises(kind, match=words):
            hg.load(path)

    report = tmp_path / "report.nsys-rep"
    report.write_bytes(b"\0" * 100)
    refused(report, NotATraceError, "nsys export --type sqlite")
    refused(tmp_path, NotATraceError, "nsys export --type sqlite")  # nothing but a report in the folder
    path = small(tmp_path / "a.sqlite")
    whole = path.read_bytes()
    for size in (0, 50, len(whole) // 2):
        path.write_bytes(whole[:size])
        refused(path, DamagedTraceError, "empty|cut short")
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    refused(path, DamagedTraceError, "damaged")
    path.write_text("{}")
    refused(path, NotATraceError, "not an SQLite database")
    refused(export(path, {"users": [{"id": 1, "name": "a"}]}), NotATraceError, "no export of Nsight Systems")
    refused(export(path, {KERNELS: [], "StringTable": []}), NotATraceError, "nvprof")
    version = {"META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION_MAJOR", "value": "4"}]}
    refused(export(path, {KERNELS: [], **version}), NotATraceError, "with schema 4; schemas up to 3 are known")
    packed = tmp_path / "b.sqlite.gz"
    packed.write_bytes(gzip.compress(whole)[:-20])
    refused(packed, DamagedTraceError, "packed file is cut short")


def test_beside_traces_another_database_is_left_out_and_an_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rank-0.json").write_text(kineto_text(healthy(2)))
    export(tmp_path / "other.sqlite", {"users": [{"id": 1, "name": "a"}]})
    graph = hg.load(tmp_path)
    assert [issue.what for issue in graph.issues if issue.file.endswith("sqlite")] == ["other_file"]
    small(tmp_path / "report.sqlite")
    with pytest.raises(RankError, match=r"several formats \(kineto: rank-0.json; nsys: report.sqlite\)"):
        hg.load(tmp_path)


def test_a_part_of_the_steps_or_of_the_time_is_that_of_the_whole(tmp_path: Path) -> None:
    path = small(tmp_path / "report.sqlite", pids=(10, 20))
    whole, some, window = hg.load(path), hg.load(path, steps=[6]), hg.load(path, time=(0, 950))
    assert some.steps == (6,)
    assert len(some.activities) < len(whole.activities)
    assert window.steps == (5,)
    assert window.ranks == (0, 1)


cells = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3)
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    damage=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60), cells), max_size=6),
    dropped=st.sets(st.integers(0, 60), max_size=3),
)
def test_damaged_cells_and_missing_columns_lose_no_row_silently(
    damage: list[tuple[int, int, Any]], dropped: set[int], tmp_path: Path
) -> None:
    """Rows that are read, that name something and that are reported are all rows of the file."""
    path = small(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master") if name != "StringIds"]
        places = [(table, row[1]) for table in tables for row in database.execute(f"PRAGMA table_info({table})")]
        for row, column, value in damage:
            table, name = places[column % len(places)]
            database.execute(f'UPDATE {table} SET "{name}" = ? WHERE rowid = ?', (value, row % 8 + 1))
        for number in dropped:
            table, name = places[number % len(places)]
            left = [each for of, each in places if of == table]
            if len(left) > 1:
                database.execute(f'ALTER TABLE {table} DROP COLUMN "{name}"')
                places.remove((table, name))
        total = sum(
            database.execute(f"SELECT count(*) FROM {each.table}").fetchone()[0]
            for each in SOURCES
            if each.table in tables
        )
    database.close()
    try:
        traces = traces_of(path)
    except TraceError as error:
        assert str(path) in str(error)
        return
    counts = issues_of(traces)
    lost = sum(
        counts.get(what, 0)
        for what in ("time_missing", "time_corrupt", "time_outlier", "other_process", "table_not_read")
    )
    assert sum(sum(trace.counts.values()) for trace in traces) - counts.get("time_outlier", 0) + lost == total
    for trace in traces:
        assert (trace.events.duration >= 0).all()
    hg.load(path).check()
