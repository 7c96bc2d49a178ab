"""Jobs for the rules of waiting: made by hand or simulated, with the waits that really held, and with ids hidden."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from htagraph.core.errors import Issue
from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.activities import Edges
from htagraph.graph.construction.activities import prepare
from htagraph.graph.construction.build import join
from htagraph.graph.evidence.job import RecordedJob
from htagraph.simulate import Job, simulate
from htagraph.trace.discover import rank_files
from htagraph.trace.readers import read_trace
from tests.strategies import BASE_NS, Json, complete

Pair: TypeAlias = tuple[int, int]


def read(*paths: Path) -> RecordedJob:
    files = [rank_files({rank: path})[0] for rank, path in enumerate(paths)]
    return join([prepare(read_trace(file.path, file.rank_in, None), DEFAULT_NAMING) for file in files])


def by_hand(events: Sequence[Json]) -> RecordedJob:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rank-0.json")
        path.write_text(json.dumps({"baseTimeNanoseconds": BASE_NS, "traceEvents": list(events)}), encoding="utf-8")
        return read(path)


def hidden(job: RecordedJob) -> RecordedJob:
    """Return the job without cuda_sync rows, as PyTorch records by default."""
    traces = {}
    for rank, trace in job.traces.items():
        codes = [code for code, category in enumerate(trace.categories) if category == "cuda_sync"]
        traces[rank] = replace(trace, events=trace.events.take(~np.isin(trace.events.category, codes)))
    return replace(job, traces=traces)


def sync_row(name: str, at: float, correlation: int, **args: Any) -> Json:
    return complete("cuda_sync", name, at, 1, 20, correlation=correlation, cuda_sync_kind=name, **args) | {"pid": 0}


def named(job: RecordedJob, edges: Edges) -> list[tuple[str, str]]:
    """Return the edges as names of their activities, sorted."""
    name = [job.names[code] for code in job.activities.name]
    return sorted((name[u >> 1], name[v >> 1]) for u, v in zip(edges.source, edges.target, strict=True))


@dataclass(frozen=True)
class Verdict:
    """How inferred edges compare with the truth."""

    truth: int
    wrong: int
    """Edges that the truth does not imply."""
    lost: int
    """True waits that the edges do not imply."""


def verdict(job: RecordedJob, edges: Edges, truth: set[Pair]) -> Verdict:
    """Compare, where streams' own order implies: who waits for a work waits for all before it on its stream."""
    found = set(zip((edges.source >> 1).tolist(), (edges.target >> 1).tolist(), strict=True))
    wrong = sum(not implied(job, pair, truth) for pair in found - truth)
    return Verdict(len(truth), wrong, sum(not implied(job, pair, found) for pair in truth - found))


def implied(job: RecordedJob, pair: Pair, by: set[Pair]) -> bool:
    acts = job.activities
    return any(
        acts.lane[u] == acts.lane[pair[0]]
        and acts.start[u] >= acts.start[pair[0]]
        and (v == pair[1] or (acts.on_device[v] and acts.lane[v] == acts.lane[pair[1]]))
        and acts.start[v] <= acts.start[pair[1]]
        for u, v in by
    )


@lru_cache(maxsize=64)
def simulated(described: Job, *, internal: bool = False) -> tuple[RecordedJob, dict[str, set[Pair]]]:
    """Return a simulated job as read from its files, and its true dependencies by kind.

    Args:
        described: the job.
        internal: whether NCCL makes calls for streams of its own around each launch, as it really does.
    """
    done = simulate(described)
    with tempfile.TemporaryDirectory() as folder:
        paths = done.write(folder, level=1, truth=False)
        if internal:
            for path in paths:
                file = json.loads(gzip.decompress(path.read_bytes()))
                file["traceEvents"] += internal_calls(file["traceEvents"])
                path.write_bytes(gzip.compress(json.dumps(file).encode(), 1))
        job = read(*paths)
    acts = job.activities
    row = {(int(rank), int(event)): i for i, (rank, event) in enumerate(zip(acts.rank, acts.event, strict=True))}
    truth: dict[str, set[Pair]] = {"event_wait": set(), "host_sync": set(), "memcpy_sync": set(), "queue_full": set()}
    for each in done.truth.dependencies:
        if each.kind in truth:
            truth[each.kind].add((row[each.rank_u, each.event_u], row[each.rank_v, each.event_v]))
    return job, truth


def internal_calls(events: Sequence[Json]) -> list[Json]:
    """Return a record and a wait just before and another two just behind each launch of a collective."""
    launched = {e["args"]["correlation"] for e in events if e.get("cat") == "kernel" and e["name"].startswith("nccl")}
    calls = [e for e in events if e.get("cat") == "cuda_runtime" and e["args"]["correlation"] in launched]
    out: list[Json] = []
    for call in calls:
        at, end = float(call["ts"]), float(call["ts"]) + float(call["dur"])
        moments = (at - 0.4, at - 0.2, end + 0.1, end + 0.3)
        for name, moment in zip(["cudaEventRecord", "cudaStreamWaitEvent"] * 2, moments, strict=True):
            made = {"ts": f"{moment:.3f}", "dur": "0.100", "name": name}
            out.append(call | made | {"args": {"correlation": 900_000_000 + len(out)}})
    return out


MADE = {
    "ddp": Job(ranks=2, steps=3, layers=4, seed=1),
    "host bound": Job(ranks=2, steps=3, layers=2, kernel_us=6.0, host_us_per_op=12.0, layer_mb=1.0, seed=2),
    "slow network": Job(ranks=2, steps=3, layers=4, kernel_us=60.0, network_gb_s=12.0, seed=3),
    "fsdp": Job(ranks=2, steps=3, layers=6, data_strategy="fsdp", network_gb_s=20.0, seed=4),
    "fsdp with tensor": Job(ranks=4, tp=2, steps=3, layers=4, data_strategy="fsdp", seed=5),
    "tensor": Job(ranks=2, steps=2, layers=3, parallelism="tensor", seed=6),
    "pipeline": Job(ranks=3, steps=3, layers=3, parallelism="pipeline", microbatches=4, seed=7),
    "exchange": Job(ranks=2, steps=3, layers=2, all_to_all=True, broadcast_buffers=True, seed=8),
    "blocking": Job(ranks=2, steps=3, layers=2, input_memory="pageable", item="pinned", synchronize="step"),
    "queue": Job(ranks=1, steps=3, layers=4, queue_depth=64, kernel_us=200.0, optimizer="loop", item="none"),
    "rocm": Job(ranks=2, steps=3, layers=3, device="rocm", item="pinned", seed=9),
}
"""Jobs whose waits differ in kind."""


def unresolved(job: RecordedJob, rule: Callable[[RecordedJob], Edges]) -> tuple[Issue, ...]:
    """Return what a rule says that it left out."""
    rule(job)
    return job.refused.get(rule.__name__, ())
