from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph import ActivityKind, DependencyGraph, EdgeKind, GapKind
from htagraph.analyses.critical_path import critical_path
from htagraph.queries import path_segments
from htagraph.queries.bound import CATEGORIES
from htagraph.queries.path_segments import segments_of
from tests.strategies import load, op, runtime


def test_every_kind_has_a_category() -> None:

    assert set(path_segments._OF_KIND) == set(ActivityKind)
    assert set(path_segments._OF_EDGE) == set(EdgeKind)
    assert set(path_segments._OF_GAP) == set(GapKind)
    tables = (path_segments._OF_KIND, path_segments._OF_EDGE, path_segments._OF_GAP)
    assert {word for table in tables for word in table.values()} == set(CATEGORIES)


def test_runtime_calls_are_host_time_and_blocking_ones_sync() -> None:
    graph = load([op("aten::empty", 0, 20), runtime("cudaMalloc", 5, 10), runtime("cudaStreamSynchronize", 30, 5)])
    table = critical_path(graph).to_frame()
    assert table[["duration_us", "name", "category"]].to_numpy().tolist() == [
        [5.0, "aten::empty", "host"], [10.0, "cudaMalloc", "host"], [5.0, "aten::empty", "host"],
        [10.0, "cudaStreamSynchronize", "host"], [5.0, "cudaStreamSynchronize", "sync"],
    ]  # fmt: skip


def test_what_lies_before_the_first_vertex_is_the_head() -> None:
    activities = pd.DataFrame({"duration_ns": [4_000, 6_000], "start_ns": [0, 5_000]})
    graph = DependencyGraph.from_frames(activities, pd.DataFrame({"source": [0], "target": [1]}))
    assert segments_of(graph, np.array([3]), np.zeros(0, np.int64), 2000).length.tolist() == [9000]
