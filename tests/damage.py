"""Small healthy traces in the forms that writers give them, and the ways in which files are damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from htagraph.core.errors import IssueLog
from htagraph.trace.columns import Trace
from htagraph.trace.kineto.read import metadata
from htagraph.trace.readers import read_trace

Json: TypeAlias = dict[str, Any]

BASE_NS = 1_719_840_000_000_000_000
END: Json = {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 9000.5}
OUTSIDE_FILE = {"no_window_end", "no_base_time"}
"""Remarks on what a trace lacks, not on damage."""


def call(number: int, **envelope: Any) -> Json:
    """Return a launch; its kernel is `kernel(number)`."""
    args = {"cbid": 211, "correlation": number, "External id": number + 100}
    event = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 77, "tid": 77}
    return {**event, "ts": 100 * number + 0.125, "dur": 7.5, "args": args, **envelope}


def kernel(number: int, **envelope: Any) -> Json:
    args = {"device": 0, "stream": 7, "correlation": number, "grid": [4, 1, 1], "blocks per SM": 0.5}
    event = {"ph": "X", "cat": "kernel", "name": f"gemm<{number % 3}>", "pid": 0, "tid": 7}
    return {**event, "ts": 100 * number + 20.5, "dur": 50.001, "args": args, **envelope}


def op(number: int, **envelope: Any) -> Json:
    args = {"External id": number + 100, "Input Dims": [[2, 3], []], "Input type": ["float", ""]}
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 77, "tid": 77}
    return {**event, "ts": 100 * number, "dur": 30, "args": args, **envelope}


def healthy(count: int = 6) -> list[Json]:
    """Return the events of a small trace without a fault: `count` operators, launches and kernels."""
    flows = [
        {"ph": "s", "id": 3, "pid": 77, "tid": 77, "ts": 100.125, "cat": "fwdbwd", "name": "fwdbwd"},
        {"ph": "f", "id": 3, "pid": 77, "tid": 78, "ts": 200.125, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"},
    ]
    name = {"ph": "M", "name": "thread_name", "pid": 77, "tid": 77, "ts": 0, "args": {"name": "thread 77 (python)"}}
    memory = {"Total Allocated": 512, "Bytes": 512, "Addr": 2**63 + 5, "Device Type": 1, "Device Id": 0}
    where = {"pid": 77, "tid": 77, "ts": 150.25}
    allocation = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", **where, "args": memory}
    work = [make(number) for number in range(1, count + 1) for make in (op, call, kernel)]
    return [name, *work, *flows, allocation, dict(END)]


def header(rank: int = 0, **keys: Any) -> Json:
    info = {"backend": "nccl", "rank": rank, "world_size": 2}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "A100"}, {"id": 1, "name": "A100"}],
        "distributedInfo": info,
        "baseTimeNanoseconds": BASE_NS,
        **keys,
    }


def document(events: Sequence[Json], rank: int = 0, **dumps: Any) -> str:
    """Return a file's text, its events last but for one key, as Kineto has it."""
    return json.dumps({**header(rank), "traceEvents": list(events), "traceName": "a.json"}, **dumps)


def kineto_text(events: Sequence[Json | str], rank: int = 0, **keys: Any) -> str:
    """Return a file's text formatted as Kineto does it: by string formatting, an event every few lines."""
    head = "".join(f"  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in header(rank, **keys).items())
    body = ",\n".join(event if isinstance(event, str) else _as_kineto(event) for event in events)
    return "{\n" + head + '  "traceEvents": [\n' + body + '\n  ],\n  "traceName": "a.json"\n}\n'


def _as_kineto(event: Json) -> str:
    rest = {key: value for key, value in event.items() if key != "args"}
    text = "  {\n    " + json.dumps(rest)[1:-1]
    if "args" in event:
        args = ",\n".join(f"      {json.dumps(key)}: {json.dumps(value)}" for key, value in event["args"].items())
        text += ',\n    "args": {\n' + args + "\n    }"
    return text + "\n  }"


def written(path: Path, text: str | bytes) -> Path:
    """Write a file, gzipped if its name says so."""
    data = text.encode() if isinstance(text, str) else text
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def read(path: Path) -> Trace:
    return read_trace(path, lambda *_: 0)


def loaded(folder: Path, text: str | bytes, name: str = "trace.json") -> Trace:
    return read(written(folder / name, text))


def issues(trace: Trace) -> dict[str, int]:
    """Return what was reported and how often, but for what a trace may lack without being damaged."""
    found: dict[str, int] = {}
    for issue in trace.issues:
        if issue.what not in OUTSIDE_FILE:
            found[issue.what] = found.get(issue.what, 0) + issue.count
    return found


def names(trace: Trace) -> list[str]:
    return [trace.names[name] for name in trace.events.name]


def content(trace: Trace) -> Json:
    """Return everything that was read, free of numbering: equal for equal events."""
    table, found = trace.events, {}
    for what, each in (("events", table), ("instants", trace.instants)):
        found[what] = {
            "index": each.index.tolist(),
            "name": [trace.names[i] for i in each.name],
            "category": [trace.categories[i] for i in each.category],
            "lane": [trace.lanes[i] for i in each.lane],
            "start": each.start.tolist(),
            "duration": each.duration.tolist(),
            "args": {name: _values(each.arg(name)) for name in sorted(each.args)},
        }
    flows = trace.flows
    arrows = [column.tolist() for column in (flows.id, flows.is_start, flows.lane, flows.time)]
    return {
        **found,
        "flows": arrows,
        "threads": dict(trace.thread_names),
        "counts": dict(trace.counts),
        "facts": (trace.facts, metadata(trace.facts)),
    }


def _values(column: Any) -> list[int]:
    return np.asarray(column).tolist()


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def log() -> IssueLog:
    return IssueLog("a.json")
