"""Whether the largest part of the path is what bounds the job, and a loader whose workers set the pace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph import ActivityKind, DependencyGraph, EdgeKind, GapKind
from htagraph.analyses.critical_path import critical_path
from htagraph.queries import path_segments
from htagraph.queries.path_segments import CATEGORIES, HOST_CATEGORIES, bound_of, segments_of
from tests.reach import DATASETS, JOBS, graph_of, label
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, load, op, runtime, step


def test_every_kind_has_a_category() -> None:

    assert set(path_segments._OF_KIND) == set(ActivityKind)
    assert set(path_segments._OF_EDGE) == set(EdgeKind)
    assert set(path_segments._OF_GAP) == set(GapKind)
    tables = (path_segments._OF_KIND, path_segments._OF_EDGE, path_segments._OF_GAP)
    assert {word for table in tables for word in table.values()} | {"allocator"} == set(CATEGORIES)  # by its name


def test_runtime_calls_are_host_time_and_blocking_ones_sync() -> None:
    graph = load([op("aten::empty", 0, 20), runtime("cudaMalloc", 5, 10), runtime("cudaStreamSynchronize", 30, 5)])
    table = critical_path(graph).to_frame()
    assert table[["duration_us", "name", "category"]].to_numpy().tolist() == [
        [5.0, "aten::empty", "host"], [10.0, "cudaMalloc", "allocator"], [5.0, "aten::empty", "host"],
        [10.0, "cudaStreamSynchronize", "host"], [5.0, "cudaStreamSynchronize", "sync"],
    ]  # fmt: skip


def test_what_lies_before_the_first_vertex_is_the_head() -> None:
    activities = pd.DataFrame({"duration_ns": [4_000, 6_000], "start_ns": [0, 5_000]})
    graph = DependencyGraph.from_frames(activities, pd.DataFrame({"source": [0], "target": [1]}))
    assert segments_of(graph, np.array([3]), np.zeros(0, np.int64), 2000).length.tolist() == [9000]


WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
INLINE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
STEP_US = 100_000


def steps(loader: str, wait_us: list[int]) -> list[Json]:
    """Return one rank whose every step waits for its batch and then computes for the rest of 100 ms on the host."""
    events = []
    for number, wait in enumerate(wait_us):
        begin = number * STEP_US
        events += [
            step(number, begin, STEP_US - 10), annotation(loader, begin + 1, wait),
            op("aten::linear", begin + wait + 10, STEP_US - wait - 100),
        ]  # fmt: skip
    return events


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_shares_are_those_of_the_table(path: Path) -> None:
    critical = hg.critical_path(graph_of(path))
    bound, table = bound_of(critical), critical.summary()
    rows = table[table["group"] == "category"]
    parts = rows.set_index("key")["share_percent"].to_dict()
    assert bound.causes.get("host", 0.0) == pytest.approx(sum(parts.get(each, 0.0) for each in HOST_CATEGORIES))
    assert sum(bound.causes.values()) == pytest.approx(100)
    assert bound.shares == pytest.approx(dict(zip(rows["key"], rows["share_percent"], strict=True)))
    assert sum(bound.unexplained.values()) == pytest.approx(bound.unexplained_percent)
    assert sum(bound.ranks.values()) == pytest.approx(100)


def test_workers_that_are_waited_for_in_each_step_set_the_pace() -> None:
    bound = bound_of(hg.critical_path(load(steps(WORKERS, [25_000] * 6))))
    assert (bound.cause, bound.by_workers) == ("data_loading", True)


def test_workers_that_deliver_at_once_set_the_pace_with_few_waits() -> None:
    """Two of three batches are ready, as three workers deliver together; the wait for the third is 80 % of the path."""
    bound = bound_of(hg.critical_path(load(steps(WORKERS, [10, 10, 90_000] * 4))))
    assert (bound.cause, bound.by_workers) == ("data_loading", True)
    assert bound.batches[0] < bound.batches[1] / 2


def test_launches_and_host_code_bound_a_job_together() -> None:
    events = [op("aten::mm", 0, 900)]
    events += [launch(10 + 100 * i, 40, i + 1) for i in range(8)]
    events += [kernel(COMPUTE, 760, 700, 8)]
    bound = bound_of(hg.critical_path(load(events)))
    assert bound.cause == "host"
    assert max(bound.shares, key=lambda each: bound.shares[each]) == "computation"


@pytest.mark.parametrize(
    ("loader", "wait_us"),
    [(INLINE, [25_000] * 6), (WORKERS, [150_0] * 6), (WORKERS, [60_000, 10, 10, 10, 10, 10])],
    ids=["no workers", "ready in time", "one late batch"],
)
def test_other_loaders_are_one_part_of_the_path(loader: str, wait_us: list[int]) -> None:
    bound = bound_of(hg.critical_path(load(steps(loader, wait_us))))
    assert (bound.cause, bound.by_workers) == ("host", False)


def test_a_path_without_time_is_bound_by_nothing() -> None:
    assert bound_of(hg.critical_path(load([]))).cause == ""


def test_a_long_kernel_bounds_the_job() -> None:
    graph = load([op("aten::mm", 0, 50), launch(10, 5, 1), kernel(COMPUTE, 20, 1000, 1)])
    assert bound_of(hg.critical_path(graph)).cause == "computation"


@pytest.mark.slow
@pytest.mark.parametrize("path", JOBS, ids=label)
def test_host_time_without_any_event_is_of_no_activity_that_has_not_begun(path: Path) -> None:
    graph = graph_of(path)
    parts = hg.critical_path(graph).segments
    rows = np.flatnonzero((parts.gap == GapKind.HOST_UNTRACED) & (parts.region >= 0))
    region = parts.region[rows]
    assert (graph.time[2 * region] <= parts.start[rows]).all()
    begins = parts.start[rows] + parts.length[rows] == graph.time[2 * parts.target[rows]]
    assert (region[begins] != parts.target[rows][begins]).all()
