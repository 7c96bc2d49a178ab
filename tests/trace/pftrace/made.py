"""Files in Perfetto's native format, made by the simulator's writer and packet by packet."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from htagraph.core.errors import IssueLog
from htagraph.simulate.next_json import Dialect
from htagraph.simulate.next_pftrace import as_pftrace, message, packet
from htagraph.trace.columns import Trace
from htagraph.trace.kineto.scan.grammar import with_padding
from htagraph.trace.pftrace.packets import Packets, packets_of
from htagraph.trace.pftrace.read import columns

BASE_NS = 1_700_000_000_000_000_000
THREAD, STREAM = 77, 7


def host(name: str, start: float, duration: float, cat: Any = "cpu_op", **args: Any) -> dict[str, Any]:
    """Return an event of a host thread; times in µs."""
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 5, "tid": THREAD, "ts": start, "dur": duration, "args": args,
    }  # fmt: skip


def work(name: str, start: float, duration: float, cat: Any = "kernel", **args: Any) -> dict[str, Any]:
    """Return work of a device; times in µs."""
    args = {"device": 0, "stream": STREAM, **args}
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 0, "tid": STREAM, "ts": start, "dur": duration, "args": args,
    }  # fmt: skip


EVENTS = [
    host("ProfilerStep#1", 0, 100, "user_annotation"),
    host("aten::mm", 10, 20, **{"External id": 3, "Input Dims": [[2, 3], [3, 4]], "Sequence number": 8}),
    host("aten::mm", 30, 0, **{"External id": 4}),
    host("cudaLaunchKernel", 12, 5, "cuda_runtime", correlation=9, cbid=211),
    host("cudaGraphLaunch", 40, 5, "cuda_runtime", correlation=10, cbid=311),
    work("gemm", 20, 30, correlation=9, grid=[4, 2, 1], block=[128, 1, 1], **{"registers per thread": 40}),
    work("one", 60, 5, correlation=10, **{"graph id": 7, "graph node id": 1}),
    work("two", 70, 5, correlation=10, **{"graph id": 7, "graph node id": 2}),
    work("Memset (Device)", 80, 1, "gpu_memset", correlation=11, bytes=64),
    work("Stream Sync", 85, 2, "cuda_sync", correlation=12, cuda_sync_kind="Stream Sync"),
    host("Buffer Flush", 90, 1, "overhead"),
]  # fmt: skip


def small(path: Path, events: list[dict[str, Any]] | None = None, dialect: Dialect | None = None) -> Path:
    """Write a file of some events, packed as PyTorch packs it."""
    names = [{"ph": "M", "name": "thread_name", "pid": 5, "tid": THREAD, "args": {"name": "main"}}]
    trace = {"baseTimeNanoseconds": BASE_NS, "traceEvents": [*names, *(EVENTS if events is None else events)]}
    path.write_bytes(gzip.compress(as_pftrace(trace, dialect), 1, mtime=0))
    return path


def plain(events: list[dict[str, Any]] | None = None) -> bytes:
    """Return the bytes of a file of some events, not packed."""
    return as_pftrace({"baseTimeNanoseconds": BASE_NS, "traceEvents": EVENTS if events is None else events})


def packets_in(text: bytes) -> tuple[Packets, IssueLog]:
    log = IssueLog("a.pftrace")
    return packets_of(with_padding(text), log), log


def trace_of(path: Path, text: bytes | None = None) -> Trace:
    if text is not None:
        path.write_bytes(text)
    return columns(path, lambda facts, log: 0)


def issues_of(trace: Trace) -> dict[str, int]:
    return {issue.what: issue.count for issue in trace.issues}


def slices(*times: tuple[int, int, int], names: int = 0) -> bytes:
    """Return packets of begins (type 1) and ends (2), each given as (type, track, time)."""
    return b"".join(
        packet((8, time), (10, 1), (11, message((9, kind), (11, track), *([(23, f"n{time}")] if kind == 1 else []))))
        for kind, track, time in times
    )
