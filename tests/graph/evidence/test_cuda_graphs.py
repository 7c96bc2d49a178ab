from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph import EdgeKind
from htagraph.graph.evidence import cuda_graphs as module
from htagraph.graph.evidence.cuda_graphs import _Alike, graph_branches, graph_launches
from htagraph.graph.evidence.graph_nodes import node_waits
from htagraph.graph.tolerances import LIMITS
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
    source, target, sure = (column.tolist() for column in graph_branches(job, node_waits(job)))
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


def alike(streams: list[int], launches: list[list[tuple[int, int]]]) -> _Alike:
    """Launches of one graph: the stream of each kernel, and (start, duration) of each kernel in each launch, ns."""
    lane = np.sort(np.array(streams, np.int64))
    times = np.array(launches, np.int64).reshape(len(launches), len(streams), 2)
    for row in times:
        row[:] = row[np.lexsort((row[:, 0], lane))]
    work = np.arange(times.size // 2).reshape(times.shape[:2])
    return _Alike(work, lane, times[..., 0], times.sum(axis=2))


def seen(graph: _Alike) -> list[tuple[int, int, int]]:
    """What is waited for, kernel by kernel: the end in another stream that most often comes just before the start."""
    lanes, found = np.unique(graph.lane).tolist(), []
    columns = {lane: np.flatnonzero(graph.lane == lane).tolist() for lane in lanes}
    pauses = [graph.start[:, b] - graph.end[:, a] for own in columns.values() for a, b in pairwise(own)]
    usual = max(0, int(np.median(pauses))) if pauses else 0
    for lane in lanes:
        for other in (each for each in lanes if each != lane):
            known = -1
            for place, column in enumerate(columns[lane]):
                counts, late, possible = Counter[int](), 0, len(columns[other])
                for row in range(len(graph.start)):
                    start, ends = graph.start[row, column], graph.end[row, columns[other]]
                    before = graph.end[row, columns[lane][place - 1]] if place else start - 10_000 - usual
                    is_late = start - before > usual + LIMITS.tick_ns
                    over = int((ends <= start).sum())
                    late += is_late
                    possible = min(possible, int((ends <= start + LIMITS.tick_ns).sum()))
                    free = before if is_late else start
                    if over and ends[over - 1] > free and start - ends[over - 1] <= 10_000:
                        counts[over - 1] += 1
                if counts:
                    often = max(counts.values())
                    which = min(each for each, count in counts.items() if count == often)
                    if which < possible and often >= late / 2 and which > known:
                        known = which
                        found.append((columns[other][known], column, 90 if often >= 3 else 60))
    return found


@given(st.data())
def test_waits_inside_are_those_found_kernel_by_kernel(data: st.DataObject) -> None:
    streams = data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=9))
    spread = data.draw(st.sampled_from([10, 3000, 60_000]))
    times = st.tuples(st.integers(0, spread), st.sampled_from([0, 5, 900, 7000]))
    kernels = st.lists(times, min_size=len(streams), max_size=len(streams))
    graph = alike(streams, data.draw(st.lists(kernels, min_size=1, max_size=5)))
    assert list(module._inside(graph)) == seen(graph)


@pytest.mark.parametrize("streams", [2, 300])
def test_work_grows_with_the_kernels_of_a_graph(streams: int, monkeypatch: pytest.MonkeyPatch) -> None:
    awaited: Any = module._awaited
    looked_at: list[int] = []

    def counted(graph: _Alike, *rest: Any) -> Any:
        looked_at.append(graph.start.size)
        return awaited(graph, *rest)

    monkeypatch.setattr(module, "_awaited", counted)
    works = []
    for count in (300, 1200):
        looked_at.clear()
        list(module._inside(alike([i % streams for i in range(count)], [[(100 * i, 90) for i in range(count)]] * 2)))
        works.append(sum(looked_at))
    assert works[1] <= 4 * works[0]
    assert works[0] <= LIMITS.tried * 600


def test_only_so_many_streams_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = alike([1, 2, 3], [[(0, 100), (100_000, 100), (105_000, 5)]] * 3)
    assert list(module._inside(graph)) == [(1, 2, 90)]
    monkeypatch.setattr(module, "LIMITS", replace(LIMITS, tried=1))
    assert list(module._inside(graph)) == []


@pytest.mark.parametrize(
    ("name", "of_graph"),
    [("cudaGraphLaunch", True), ("hipGraphLaunch", True), ("cudaLaunchKernel", False), ("cuLaunchKernelEx", False)],
)
def test_calls_that_launch_a_whole_cuda_graph_are_known_by_name(name: str, of_graph: bool) -> None:  # noqa: FBT001
    job = by_hand([runtime(name, 0, 2, 1), kernel("a", 5, 1, 1), kernel("b", 7, 1, 1)])
    call = int(job.activities.cause[np.flatnonzero(job.activities.on_device)[0]])
    assert np.flatnonzero(graph_launches(job)).tolist() == ([call] if of_graph else [])


def test_a_graph_launch_without_work_launches_nothing() -> None:
    job = by_hand([runtime("cudaGraphUpload", 0, 2, 1), runtime("cudaLaunchKernel", 3, 1, 2), kernel("a", 5, 1, 2)])
    assert not graph_launches(job).any()
