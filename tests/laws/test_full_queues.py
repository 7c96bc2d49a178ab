"""Whether only queues that blocked a launch are said to, in jobs of which the truth is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph import DependencyGraph
from htagraph.output.reports.queues import counters_report
from htagraph.simulate import Job, simulate
from tests.reach import graph_of
from tests.strategies import kernel, launch, load, op

DEEP = 1_024
SHALLOW = 32


def said(graph: DependencyGraph, full: int) -> str:
    """Return the first sentence about queues of a job."""
    return counters_report(graph, [], full=full).sentences[0]


@pytest.mark.parametrize("depth", [SHALLOW, DEEP])
def test_a_queue_is_said_to_block_where_the_simulated_one_did(depth: int, tmp_path: Path) -> None:
    job = Job(ranks=1, queue_depth=depth, kernel_us=200.0, optimizer="loop", item="none", steps=2, layers=2)
    simulate(job).write(tmp_path)
    text = said(graph_of(tmp_path), SHALLOW)
    assert ("waited for room in a full queue" in text) == (depth == SHALLOW)


def test_nodes_of_a_graph_that_one_launch_enqueues_block_nothing() -> None:
    nodes = [kernel("node", 20 + 3 * number, 2, 1) for number in range(DEEP + 100)]
    later = [launch(15 + 20 * number, 5, 2 + number) for number in range(20)]
    work = [kernel("k", 5_000 + 10 * number, 5, 2 + number) for number in range(20)]
    text = said(load([op("replay", 0, 1_000), launch(1, 5, 1), *nodes, *later, *work]), DEEP)
    assert text == "Queues never filled (at most 20 of 1,024 launches, rank 0, stream 7), so no launch waited for room."
