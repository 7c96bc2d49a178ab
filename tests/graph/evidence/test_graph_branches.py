from __future__ import annotations

import pytest

import htagraph as hg
from htagraph import EdgeKind
from htagraph.graph.evidence.graph_branches import graph_branches
from tests.strategies import COMPUTE, Json, kernel, launch, load, runtime
from tests.waiting import by_hand

FORK, JOIN = (f"{COMPUTE}_fork", "side"), ("side", f"{COMPUTE}_join")


def replayed(count: int, side: float = 40, *, main: float = 20) -> list[Json]:
    """A graph launched `count` times: fork on stream 7, then `main` there and `side` on stream 13, then join."""
    events = []
    for i in range(count):
        at, number = 1000 * i, 10 * i
        meet = at + 41 + max(main, side)
        events += [launch(at, 2, number + 1), kernel("before", at + 10, 15, number + 1)]
        events += [
            runtime("cudaGraphLaunch", at + 3, 4, number + 2),
            kernel(f"{COMPUTE}_fork", at + 26, 14, number + 2),
        ]
        events += [kernel(f"{COMPUTE}_main", at + 41, main, number + 2)]
        events += [kernel("side", at + 41, side, number + 2, stream=13)]
        events += [kernel(f"{COMPUTE}_join", meet + 1, 10, number + 2)]
        events += [launch(at + 8, 2, number + 3), kernel("behind", meet + 13, 5, number + 3)]
    return events


def pairs(events: list[Json]) -> dict[tuple[str, str], int]:
    job = by_hand(events)
    source, target, sure = (column.tolist() for column in graph_branches(job))
    name = [job.names[code] for code in job.activities.name]
    return {(name[u], name[v]): certain for u, v, certain in zip(source, target, sure, strict=True)}


def test_forks_and_joins_are_where_kernels_start_as_others_end_launch_after_launch() -> None:
    assert pairs(replayed(4)) == {FORK: 90, JOIN: 90, ("side", "behind"): 90}
    assert pairs(replayed(1)) == {FORK: 60, JOIN: 60, ("side", "behind"): 90}


def test_a_graphs_stream_goes_on_once_its_branches_are_over_even_if_they_were_over_early() -> None:
    assert pairs(replayed(4, side=5)) == {FORK: 90, ("side", "behind"): 90}


def test_a_branch_that_begins_with_the_graph_waits_for_what_the_graphs_stream_did_before() -> None:
    events = [launch(0, 2, 1), kernel("before", 10, 90, 1), runtime("cudaGraphLaunch", 3, 4, 2)]
    events += [kernel(COMPUTE, 101, 20, 2), kernel("side", 101, 50, 2, stream=13)]
    assert pairs(events) == {("before", "side"): 90}


def test_a_graph_on_one_stream_needs_no_waits() -> None:
    events = [runtime("cudaGraphLaunch", 0, 4, 1), kernel("a", 9, 5, 1), kernel("b", 15, 5, 1)]
    assert pairs(events) == {}


@pytest.mark.parametrize("side", [40, 25])
def test_a_shorter_branch_lets_the_graph_end_earlier_until_the_other_branch_decides(side: float) -> None:
    graph = load(replayed(4, side))
    graph.check()
    assert (graph.edges.kind == EdgeKind.EVENT_WAIT).sum() == 12
    saved = hg.what_if(graph).scale(factor=0, name="side").run().saved_ns
    assert saved == pytest.approx(1000 * (side - 20), abs=1000), "up to the pauses of the streams"
