"""Exports as tests want them: tables with the columns that a test gives, and nothing else; and what reading gives."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from htagraph.trace.columns import Trace
from htagraph.trace.discover import rank_files
from htagraph.trace.readers import read_trace

PID, TID = 144, 152
BASE_NS = 1_700_000_000_000_000_000
KERNELS, COPIES, SETS, GRAPHS, CALLS, SYNCS, EVENTS = (
    f"CUPTI_ACTIVITY_KIND_{name}"
    for name in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "RUNTIME", "SYNCHRONIZATION", "CUDA_EVENT")
)
RANGES, OS = "NVTX_EVENTS", "OSRT_API"
SESSION = {"TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": BASE_NS}]}


def global_pid(pid: int = PID) -> int:
    return (1 << 56) + (pid << 24)


def global_tid(pid: int = PID, tid: int = TID) -> int:
    return global_pid(pid) + tid


class Strings:
    """Numbers texts as exports do."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.ids.setdefault(text, 10 + len(self.ids))

    def rows(self) -> list[dict[str, Any]]:
        return [{"id": number, "value": text} for text, number in self.ids.items()]


def kernel(start: int, end: int, name: int, correlation: int = 0, *, pid: int = PID, **more: Any) -> dict[str, Any]:
    row = {"start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": correlation}
    return {**row, "globalPid": global_pid(pid), "demangledName": name, "shortName": name, **more}


def call(start: int, end: int, name: int, correlation: int = 0, *, pid: int = PID, **more: Any) -> dict[str, Any]:
    row = {"start": start, "end": end, "eventClass": 0, "globalTid": global_tid(pid), "correlationId": correlation}
    return {**row, "nameId": name, **more}


def ranged(start: int, end: int | None, text: str | None, *, pid: int = PID, **more: Any) -> dict[str, Any]:
    row = {"start": start, "end": end, "eventType": 59, "text": text, "globalTid": global_tid(pid), "textId": None}
    return {**row, "domainId": 0, **more}


def export(path: Path, tables: Mapping[str, Sequence[Mapping[str, Any]]], strings: Strings | None = None) -> Path:
    """Write an export; a table has the columns that any of its rows has."""
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        for table, rows in {**tables, **({"StringIds": strings.rows()} if strings else {})}.items():
            columns = list(dict.fromkeys(column for row in rows for column in row)) or ["start", "end"]
            database.execute(f"CREATE TABLE {table} ({', '.join(map(_declared, columns))})")
            marks = ", ".join("?" * len(columns))
            cells: Iterable[tuple[Any, ...]] = (tuple(row.get(column) for column in columns) for row in rows)
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", cells)
    database.close()
    return path


def _declared(column: str) -> str:
    kind = "TEXT" if column in ("text", "value", "name", "jsonText") else "INTEGER"
    return f'"{column}" {kind}{" PRIMARY KEY" if column == "id" else ""}'


def small(path: Path, *, pids: Sequence[int] = (PID,), more: Mapping[str, Sequence[Mapping[str, Any]]] = {}) -> Path:
    """Write an export of two steps on each process, each with an operator, a launch, a kernel and a copy."""
    strings, kernels, copies, calls, ranges = Strings(), [], [], [], []
    launch, sync, name = (
        strings(text) for text in ("cudaLaunchKernel_v7000", "cudaDeviceSynchronize_v3020", "gemm<1>")
    )
    for device, pid in enumerate(pids):
        for step in range(2):
            at, number = 1_000_000 * step, 10 * step + 1
            ranges += [ranged(at, at + 900_000, f"step {step + 5}", pid=pid)]
            ranges += [
                ranged(
                    at + 10_000, at + 90_000, f"aten::mm, seq = {number}, op_id = 3, sizes = [[2, 3], [3, 4]]", pid=pid
                )
            ]
            calls += [call(at + 20_000, at + 30_000, launch, number, pid=pid)]
            calls += [
                call(at + 40_000, at + 50_000, launch, number + 1, pid=pid),
                call(at + 95_000, at + 700_000, sync, number + 2, pid=pid),
            ]
            grid = {"gridX": 8, "gridY": 2, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1}
            memory = {"registersPerThread": 40, "staticSharedMemory": 16, "dynamicSharedMemory": 32}
            kernels += [kernel(at + 60_000, at + 400_000, name, number, pid=pid, deviceId=device, **grid, **memory)]
            copy = kernel(at + 410_000, at + 690_000, 0, number + 1, pid=pid, deviceId=device)
            copies += [{**copy, "copyKind": 1, "srcKind": 1, "dstKind": 2, "bytes": 2_800_000}]
    tables = {KERNELS: kernels, COPIES: copies, CALLS: calls, RANGES: ranges, **SESSION, **more}
    return export(path, tables, strings)


def exported(path: Path, job: Mapping[int, Sequence[Mapping[str, Any]]]) -> Path:
    """Write complete events of Kineto's files as an export; each rank is a process, and operators are NVTX ranges."""
    strings = Strings()
    tables: dict[str, list[dict[str, Any]]] = {KERNELS: [], CALLS: [], RANGES: []}
    for rank, events in job.items():
        for event in events:
            if event["ph"] != "X":
                continue
            start = round(1000 * event["ts"])
            end = start + round(1000 * event["dur"])
            args = event["args"]
            name = event["name"]
            correlation = args.get("correlation", 0)
            if event["cat"] == "kernel":
                place = {"deviceId": args["device"], "streamId": args["stream"]}
                row = kernel(start, end, strings(name), correlation, pid=PID + rank, **place)
                tables[KERNELS].append(row)
            elif event["cat"] == "cuda_runtime":
                thread = {"globalTid": global_tid(PID + rank, event["tid"])}
                tables[CALLS].append(call(start, end, strings(name), correlation, pid=PID + rank, **thread))
            else:
                thread = {"globalTid": global_tid(PID + rank, event["tid"])}
                tables[RANGES].append(ranged(start, end, name, pid=PID + rank, **thread))
    return export(path, {**tables, **SESSION}, strings)


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
