"""Cores as a resource: what-ifs of jobs with more threads than cores have the times of an independent scheduler."""

from __future__ import annotations

import heapq
import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.cores import cores_of
from htagraph.trace.columns import Trace

WAKE_NS = 50_000
STEPS = 5


def scheduled(branches: list[list[int]], head: int, cores: int) -> list[tuple[str, str, int, int]]:
    """Return (name, thread, start, duration) of a job, ns: who is ready first gets the next core that is free.

    In each step, a main thread runs, and then waits for several branches, each on a thread of its own.
    """
    rows, now = [], 0
    for step in branches:
        rows.append(("head", "main", now, head))
        ready = now + head
        free = [ready] * cores
        for number, duration in enumerate(step):
            start = heapq.heappop(free) + WAKE_NS
            rows.append((f"branch {number}", f"thread {number}", start, duration))
            heapq.heappush(free, start + duration)
        now = max(start + duration for _, thread, start, duration in rows[-len(step) :]) + WAKE_NS
    return rows


def recorded(rows: list[tuple[str, str, int, int]], width: int) -> DependencyGraph:
    """Return the graph of a recording of such a job, which does not say who waited for a core."""
    table = pd.DataFrame(rows, columns=["name", "lane", "start_ns", "duration_ns"])
    edges: list[tuple[int, int]] = []
    last: dict[str, int] = {}
    for row, lane in enumerate(table["lane"]):
        if lane in last:
            edges.append((last[lane], row))
        last[lane] = row
        step = row - row % (width + 1)
        if row > step:
            edges.append((step, row))
            if step + width + 1 < len(table):
                edges.append((row, step + width + 1))
    return DependencyGraph.from_frames(table, pd.DataFrame(edges, columns=["source", "target"]))


@cache
def file_with_cores(count: int) -> Trace:
    """Return a file in the header of which a rank may use that many cores, as it is read."""
    event = {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 0, "dur": 1}
    written = {"htagraph_profile": {"cores": list(range(count))}, "traceEvents": [event]}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rank-0.json"
        file.write_text(json.dumps(written))
        return hg.load(file).traces[0]


def with_cores_in_header(graph: DependencyGraph, count: int) -> DependencyGraph:
    """Return the graph of the same recording, whose file says how many cores its only rank may use."""
    return graph.replace(traces={0: file_with_cores(count)})


def makespan(rows: list[tuple[str, str, int, int]]) -> int:
    """Return when the last activity ends, ns."""
    return max(start + duration for _, _, start, duration in rows)


@st.composite
def jobs(draw: st.DrawFn) -> tuple[list[list[int]], int, int]:
    """Draw the branches of each step, the time of the main thread (ns), and fewer cores than branches."""
    width = draw(st.integers(3, 5))
    usual = draw(st.lists(st.integers(3_000_000, 9_000_000), min_size=width, max_size=width))
    noise = draw(st.lists(st.integers(0, 100_000), min_size=width * STEPS, max_size=width * STEPS))
    branches = [[each + noise[step * width + i] for i, each in enumerate(usual)] for step in range(STEPS)]
    return branches, draw(st.integers(1_000_000, 4_000_000)), draw(st.integers(2, width - 1))


@given(jobs(), st.integers(0, 2), st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]))
def test_a_branch_gets_the_next_core_that_is_free(
    job: tuple[list[list[int]], int, int], which: int, factor: float
) -> None:
    branches, head, cores = job
    before = scheduled(branches, head, cores)
    graph = recorded(before, len(branches[0]))
    assert hg.replay(graph).max_error_ns == 0
    found = cores_of(graph)
    assert found is not None
    assert found.threads.cores.tolist() == [cores]
    changed = [[round(time * factor) if i == which else time for i, time in enumerate(step)] for step in branches]
    outcome = hg.what_if(graph).scale(factor=factor, name=f"branch {which}").run()
    after = scheduled(changed, head, cores)
    assert outcome.makespan_ns == makespan(after)
    many, one = (makespan(scheduled(changed, head, count)) for count in (len(branches[0]), 1))
    assert many <= outcome.makespan_ns <= one


@given(jobs())
def test_without_a_change_no_moment_changes(job: tuple[list[list[int]], int, int]) -> None:
    branches, head, cores = job
    graph = recorded(scheduled(branches, head, cores), len(branches[0]))
    same = hg.what_if(graph).scale(factor=1.0, name="head").run()
    np.testing.assert_array_equal(same.time, graph.time)


@pytest.mark.parametrize("width", [2, 3])
def test_threads_with_a_core_each_wait_for_none(width: int) -> None:
    branches = [[5_000_000 + 10_000 * i for i in range(width)]] * STEPS
    assert cores_of(recorded(scheduled(branches, 2_000_000, width), width)) is None


@given(
    job=jobs(),
    which=st.integers(0, 2),
    factor=st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]),
    single=st.booleans(),
)
def test_a_number_of_cores_in_the_header_is_no_guess(
    job: tuple[list[list[int]], int, int], which: int, factor: float, *, single: bool
) -> None:
    branches, head, cores = job
    cores = 1 if single else cores
    before = scheduled(branches, head, cores)
    graph = with_cores_in_header(recorded(before, len(branches[0])), cores)
    assert hg.replay(graph).max_error_ns == 0
    shortage = cores_of(graph)
    assert shortage is not None
    assert shortage.threads.cores.tolist() == [cores]
    same = hg.what_if(graph).scale(factor=1.0, name="head").run()
    np.testing.assert_array_equal(same.time, graph.time)
    changed = [[round(time * factor) if i == which else time for i, time in enumerate(step)] for step in branches]
    outcome = hg.what_if(graph).scale(factor=factor, name=f"branch {which}").run()
    assert outcome.makespan_ns == makespan(scheduled(changed, head, cores))


@given(jobs(), st.integers(1, 4))
def test_no_silence_is_a_wait_for_cores_where_there_are_more(job: tuple[list[list[int]], int, int], more: int) -> None:
    """What let so few threads run at once was something else, such as a pool of workers."""
    branches, head, cores = job
    graph = recorded(scheduled(branches, head, cores), len(branches[0]))
    assert cores_of(graph) is not None
    assert cores_of(with_cores_in_header(graph, cores + more)) is None


@given(st.integers(2, 4), st.integers(0, 2))
def test_a_job_with_a_core_for_each_thread_stays_as_it_is(width: int, more: int) -> None:
    branches = [[5_000_000 + 10_000 * i for i in range(width)]] * STEPS
    graph = recorded(scheduled(branches, 2_000_000, width), width)
    with_header = with_cores_in_header(graph, width + more)
    assert cores_of(with_header) is None
    before = hg.what_if(graph).scale(factor=0.5, name="branch 1").run()
    after = hg.what_if(with_header).scale(factor=0.5, name="branch 1").run()
    np.testing.assert_array_equal(before.time, after.time)
