"""A trace file as one table, read with json alone: what the other files derive expected conclusions from."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["CALLS", "DEVICE", "RawRank", "main_thread", "raw_ranks", "self_time", "trace_files"]

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
"""Categories of work on a device, in lower case."""
CALLS = ("cuda_runtime", "cuda_driver", "runtime", "mtia_runtime")
"""Categories of calls of a device's runtime, in lower case."""
HOST = ("cpu_op", "operator", "python_function", "user_annotation", *CALLS)
"""Categories of events on host threads, in lower case."""
_COLUMNS = ["name", "cat", "start", "end", "tid", "stream", "correlation"]
_NANOSECONDS = 1000


@dataclass(frozen=True)
class RawRank:
    """The complete events of one file."""

    file: str
    rank: int
    world: int
    """Ranks of the job as the file says; 0 if it does not."""
    events: pd.DataFrame
    """``name``, ``cat`` (lower case), ``start``, ``end`` (ns), ``tid`` (text), ``stream``, ``correlation`` (or -1)."""

    @property
    def work(self) -> pd.DataFrame:
        """The work on devices, by start."""
        return self.events[self.events["cat"].isin(DEVICE)].sort_values("start", kind="stable")

    @property
    def host(self) -> pd.DataFrame:
        """The events of host threads, by start, the longer first."""
        host = self.events[self.events["cat"].isin(HOST)]
        return host.sort_values(["start", "end"], ascending=[True, False], kind="stable")


def trace_files(folder: Path) -> list[Path]:
    """Return the trace files of a job: those in a folder, or the file itself."""
    if folder.is_file():
        return [folder]
    return sorted(each for each in folder.iterdir() if each.name.endswith((".json", ".json.gz")))


def raw_ranks(folder: Path) -> list[RawRank]:
    """Return every file of a job, in the order of ranks; a file without a rank gets its place in the folder."""
    ranks = [_read(file, place) for place, file in enumerate(trace_files(folder))]
    return sorted(ranks, key=lambda each: each.rank)


def _read(file: Path, place: int) -> RawRank:
    text = gzip.decompress(file.read_bytes()) if file.name.endswith(".gz") else file.read_bytes()
    data = json.loads(text, parse_float=Decimal)
    head: dict[str, Any] = data if isinstance(data, dict) else {}
    rows = list(_rows(data.get("traceEvents", []) if isinstance(data, dict) else data))
    events = pd.DataFrame(rows, columns=_COLUMNS)
    info = head.get("distributedInfo") or {}
    return RawRank(str(file), int(info.get("rank", place)), int(info.get("world_size", 0)), events)


def _rows(events: Iterable[dict[str, Any]]) -> Iterable[tuple[Any, ...]]:
    for event in events:
        if event.get("ph") != "X" or "ts" not in event:
            continue
        args = event.get("args") or {}
        start = int(Decimal(event["ts"]) * _NANOSECONDS)
        end = start + int(Decimal(event.get("dur", 0)) * _NANOSECONDS)
        category, stream = str(event.get("cat", "")).lower(), args.get("stream", -1)
        yield (
            str(event.get("name", "")), category, start, end, f"{event.get('pid')}:{event.get('tid')}",
            stream if isinstance(stream, int) and category in DEVICE else -1, _whole(args.get("correlation", -1)),
        )  # fmt: skip


def _whole(value: object) -> int:
    return int(value) if isinstance(value, (int, str)) and re.fullmatch(r"-?\d+", str(value)) else -1


def main_thread(rank: RawRank) -> str:
    """Return the thread that has the steps; without any, that of most operators' time."""
    host = rank.host
    steps = host[host["name"].str.startswith("ProfilerStep")]
    chosen = steps if len(steps) else host
    time = (chosen["end"] - chosen["start"]).groupby(chosen["tid"]).sum()
    return str(time.idxmax()) if len(time) else ""


def self_time(rank: RawRank, tid: str) -> pd.DataFrame:
    """Return the events of a thread with ``own`` (ns: without the events inside each) and ``parent`` (row, -1)."""
    events = rank.host[lambda table: table["tid"] == tid].reset_index(drop=True)
    start, end = events["start"].to_list(), events["end"].to_list()
    own = [b - a for a, b in zip(start, end, strict=True)]
    parent, stack = [-1] * len(own), list[int]()
    for row, (begin, stop) in enumerate(zip(start, end, strict=True)):
        while stack and end[stack[-1]] <= begin:
            stack.pop()
        if stack:
            parent[row] = stack[-1]
        left = begin
        for above in reversed(stack):  # a step begins inside the call that opens it, and outlives that
            if end[above] > left:
                own[above] -= min(stop, end[above]) - left
                left = end[above]
            if left >= stop:
                break
        stack.append(row)
    return events.assign(own=np.maximum(own, 0), parent=parent)
