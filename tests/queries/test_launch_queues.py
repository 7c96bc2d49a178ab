"""Whether queues are counted in launches, so that the nodes of a CUDA graph fill none."""

from __future__ import annotations

import htagraph as hg
from htagraph.queries.launch_queues import calls_at_full_queues, host_wait_percent, queue_use
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load


def test_a_queue_of_single_launches_is_as_long_as_the_queue_of_kernels() -> None:
    graph = graph_of(DATA / "demo")
    assert queue_use(graph, 1024).most == hg.queue_length(graph)["queue_length"].max()
    longest = hg.queue_length(graph, by="stream", full=100)
    use = queue_use(graph, 100)
    row = longest[(longest["rank"] == use.rank) & (longest["stream"] == use.stream)]
    assert abs(row["full_us"].iloc[0] - use.full_us) < 0.01


def test_all_kernels_of_one_launch_are_one() -> None:
    nodes = [kernel("node", 20 + 3 * number, 2, 1) for number in range(5)]
    use = queue_use(load([launch(0, 5, 1), *nodes]), 2)
    assert (use.most, use.full_us, use.blocked) == (1, 0.0, 0)


def test_a_job_without_launches_has_no_queue() -> None:
    graph = load([])
    assert queue_use(graph, 2).most == 0
    assert not len(calls_at_full_queues(graph))
    assert host_wait_percent(graph) != host_wait_percent(graph)


def test_the_share_of_waiting_for_hosts_is_that_of_idle() -> None:
    graph = load([launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), launch(100, 2, 2), kernel(COMPUTE, 105, 5, 2)])
    assert 89 < host_wait_percent(graph) < 92
