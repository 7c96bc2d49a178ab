"""Who waited for a core: jobs in which nobody did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.cores import cores_of, recorded_cores


def test_a_job_with_devices_has_cores_to_spare() -> None:
    assert cores_of(hg.load("data/demo")) is None


def test_one_thread_waits_for_no_core() -> None:
    rows = pd.DataFrame({"name": ["a", "b"], "lane": ["main", "main"], "duration_ns": [10, 20]})
    edges = pd.DataFrame({"source": [0], "target": [1]})
    assert cores_of(hg.DependencyGraph.from_frames(rows, edges)) is None


def demo(cores: dict[int, list[int]]) -> DependencyGraph:
    """Return the graph of a job of four ranks on one host, some of which say which cores they may use."""
    graph = hg.load("data/demo")
    settings = {rank: {"cores": cores[rank]} if rank in cores else {} for rank in graph.ranks}
    traces = {
        rank: replace(trace, facts=replace(trace.facts, settings=settings[rank]))
        for rank, trace in graph.traces.items()
    }
    return graph.replace(traces=traces)


@pytest.mark.parametrize(
    ("cores", "count"),
    [
        ([[0, 1]] * 4, 2),
        ([[0, 1], [2, 3], [4, 5], [6, 7]], 8),
        ([[0, 1], [1, 2], [2, 3], [3, 0]], 4),
        ([[0, 1], [0, 1], [0, 1]], None),
        ([[0, 1], [0, 1], [0, 1], []], None),
        ([], None),
    ],
)
def test_ranks_of_a_host_share_its_cores_unless_they_are_bound(cores: list[list[int]], count: int | None) -> None:
    graph = demo(dict(enumerate(cores)))
    assert recorded_cores(graph, np.repeat(graph.activities.rank >= 0, 2)) == count


def test_cores_of_another_host_do_not_count() -> None:
    graph = demo({0: [0, 1, 2], 1: [4], 2: [5]})
    assert recorded_cores(graph, np.repeat(graph.activities.rank == 0, 2)) == 3
