"""Hosts all of whose cores were taken: as many threads at work as the files say there are cores."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

import htagraph as hg
from htagraph import EdgeKind
from htagraph.graph.evidence.full_hosts import were_full
from htagraph.graph.evidence.job import RecordedJob
from tests.host_jobs import host_job, tensor_args
from tests.oracles import edges_by_name
from tests.strategies import OTHER, Json, annotation, op

MS = 1_000_000


def two_ranks(folder: Path, cores: int) -> RecordedJob:
    """Return two ranks of a host; one is at work from 0 to 10 ms, the other from 5 to 15 ms."""
    for rank, begin_us in enumerate((0, 5_000)):
        event = {"ph": "X", "cat": "cpu_op", "name": "op", "pid": rank, "tid": rank, "ts": begin_us, "dur": 10_000}
        written = {
            "distributedInfo": {"rank": rank, "world_size": 2},
            "host_name": "one",
            "htagraph_profile": {"cores": list(range(cores))},
            "traceEvents": [event],
        }
        Path(folder, f"rank-{rank}.json").write_text(json.dumps(written))
    graph = hg.load(folder)
    works = np.arange(2)
    return cast(
        RecordedJob,
        SimpleNamespace(
            activities=graph.activities,
            traces=graph.traces,
            slices=(2 * works, 2 * works + 1, works),
            moment=lambda vertex: graph.time[vertex],
        ),
    )


@pytest.mark.parametrize(("cores", "full"), [(1, [1, 1, 1, 0]), (2, [0, 1, 0, 0]), (3, [0, 0, 0, 0]), (0, [0] * 4)])
def test_a_host_is_full_while_as_many_threads_work_as_it_has_cores(tmp_path: Path, cores: int, full: list[int]) -> None:
    job = two_ranks(tmp_path, cores)
    first = job.moment(np.arange(4)).min()
    moment = first + np.array([4, 10, 15, 16]) * MS
    assert were_full(job, np.zeros(4, np.int64), moment).astype(int).tolist() == full


STEPS = 10


def tokens(compile_us: int, *, shared: bool) -> dict[int, list[Json]]:
    """Return three ranks that compile with one of two tokens and then reduce.

    Without `shared`, the last rank pauses for a time of its own instead.
    """
    draw = np.random.default_rng(7)
    job: dict[int, list[Json]] = {0: [], 1: [], 2: []}
    at = 0
    for _ in range(STEPS):
        loads = np.array([6_000, 10_000, 14_000]) + draw.integers(0, 300, 3)
        begins = at + loads + 50
        own_pause = int(draw.integers(8_000, 24_000))
        first_end = int(begins[0]) + compile_us
        begins[2] = max(begins[2], first_end + 110) if shared else begins[2] + own_pause
        ends = begins + compile_us
        reduced = int(ends.max()) + 1_200
        for rank, events in job.items():
            called = int(ends[rank]) + 100
            work = annotation("gloo:all_reduce", called + 30, reduced - called - 30)
            events += [
                op("load", at, int(loads[rank])),
                op("compile", int(begins[rank]), compile_us),
                op("c10d::allreduce_", called, 40, **tensor_args(16)),
                {**work, "tid": OTHER},
                op("update", reduced + 80, 4_000),
            ]
        at = reduced + 4_200
    return job


def makespan_ns(job: dict[int, list[Json]]) -> int:
    """Return when the last event of a job ends, ns."""
    return int(1_000 * max(event["ts"] + event["dur"] for events in job.values() for event in events))


@pytest.mark.parametrize("cores", [0, 2, 3])
@pytest.mark.parametrize("factor", [0.5, 0.75])
def test_a_pause_longer_than_a_core_is_waited_for_waits_for_what_ends_before(cores: int, factor: float) -> None:
    graph = host_job(tokens(26_000, shared=True), cores=cores)
    edges = edges_by_name(graph, EdgeKind.THREAD)
    assert [edge[:2] for edge in edges].count(("compile.end", "compile.start")) >= STEPS
    faster = hg.what_if(graph).scale(factor=factor, name="compile").run()
    truth = makespan_ns(tokens(26_000, shared=True)) - makespan_ns(tokens(int(factor * 26_000), shared=True))
    assert faster.saved_ns == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize("cores", [0, 2, 3])
def test_pauses_of_a_ranks_own_wait_for_no_work_of_a_full_host(cores: int) -> None:
    graph = host_job(tokens(26_000, shared=False), cores=cores)
    edges = edges_by_name(graph, EdgeKind.THREAD)
    assert ("compile.end", "compile.start") not in [edge[:2] for edge in edges]
