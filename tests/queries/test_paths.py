"""Where the window of some steps and ranks begins and ends."""

from __future__ import annotations

from html import escape
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from htagraph import DependencyGraph
from htagraph.analyses.critical_path import critical_path
from htagraph.core import traverse
from htagraph.core.errors import SelectionError
from htagraph.queries.paths import CriticalPath, path_in_window, path_to, ways_beside
from tests.reach import DATASETS, graph_of
from tests.strategies import COMPUTE, Frames, Job, frames, jobs, kernel, launch, load, op, runtime, step


def ends_at(graph: DependencyGraph, lag: np.ndarray, gap: np.ndarray) -> int:
    """Return when the job ends with other lags and gaps."""
    time = traverse.schedule(
        graph.topological_order, graph.in_offsets, graph.in_edges, graph.edges.source, lag, gap, graph.time
    )
    return int(time.max())


def check_ways(path: CriticalPath) -> None:
    graph, edges = path.graph, path.graph.edges
    seen: set[int] = set(path.edges.tolist())
    ways = ways_beside(path, 1000)
    assert [way.slack for way in ways] == sorted(way.slack for way in ways)
    for way in ways:
        assert (edges.target[way.into[: len(way.vertices) - 1]] == way.vertices[1:]).all()
        assert (edges.source[way.into] == way.vertices[: len(way.into)]).all()
        own = [v for v in way.vertices.tolist() if v not in path.vertices]
        working = {e for e in way.into.tolist() if edges.activity[e] >= 0 and edges.lag[e] > 0}
        assert not seen & working
        seen |= working
        assert own == way.vertices[-len(own) or len(way.vertices) :].tolist()  # once left, never met before the end
        work = edges.lag[way.into][edges.activity[way.into] >= 0].sum()
        assert work > 0
        for more in (way.slack, way.slack + 1):
            lag, gap = edges.lag.copy(), graph.gap.copy()
            if way.returns >= 0:
                assert way.returns in path.vertices
                assert edges.target[way.into[-1]] == way.returns
                lag[way.into[-1]] += more
            elif len(way.into):
                gap[way.vertices[-1]] += more
            assert ends_at(graph, lag, gap) == path.window[1] + (more - way.slack if len(way.into) else 0)


@pytest.mark.slow
@given(frames(max_size=9))
@settings(max_examples=200)
def test_a_way_is_critical_as_soon_as_it_is_longer_by_its_slack(made: Frames) -> None:
    check_ways(critical_path(made.graph))


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_so_it_is_in_traces(job: Job) -> None:
    check_ways(critical_path(load(job)))


@pytest.mark.slow
@given(frames(max_size=9))
@settings(max_examples=100)
def test_the_first_way_has_the_least_slack_of_all_edges_that_bring_work_of_their_own(made: Frames) -> None:
    graph = made.graph
    path, edges = critical_path(graph), graph.edges
    on_path = set(path.vertices.tolist())
    found = []
    for edge in range(len(edges)):
        source, target = int(edges.source[edge]), int(edges.target[edge])
        if target not in on_path or edge in path.edges or graph.time[target] <= path.window[0]:
            continue
        work = edges.lag[edge] if edges.activity[edge] >= 0 else 0
        while source not in on_path and graph.binding[source] >= 0 and graph.time[source] > path.window[0]:
            before = int(graph.binding[source])
            work += edges.lag[before] if edges.activity[before] >= 0 else 0
            source = int(edges.source[before])
        if work > 0:
            found.append(int((graph.time - graph.gap)[target] - graph.time[edges.source[edge]] - edges.lag[edge]))
    ways = [way for way in ways_beside(path, 1000) if way.returns >= 0]
    assert len(ways) <= len(found)
    if ways_beside(path, 1) == [] or ways_beside(path, 1)[0].returns >= 0:
        assert [way.slack for way in ways[:1]] == sorted(found)[:1]


@pytest.mark.parametrize("source", DATASETS, ids=lambda path: path.name)
def test_as_many_ways_as_asked_for(source: Path) -> None:
    path = critical_path(graph_of(source))
    every = path.near(50, least_percent=0)
    pd.testing.assert_frame_equal(path.near(2, least_percent=0), every.head(2))
    assert path.near(0).empty
    pd.testing.assert_frame_equal(path.near(10**23, least_percent=0), path.near(10**6, least_percent=0))
    some = path.near(50)
    assert len(some) > 0
    assert (some["work_us"] >= path.makespan_ns / 1e7).all()
    assert path.near(50, least_percent=100).empty


def test_a_path_is_cut_where_its_window_begins() -> None:
    activities = pd.DataFrame({"duration_ns": [4_000, 6_000], "start_ns": [0, 5_000]})
    graph = DependencyGraph.from_frames(activities, pd.DataFrame({"source": [0], "target": [1]}))
    for start, expected in ((0, [4000, 1000, 6000]), (3000, [1000, 1000, 6000]), (4500, [500, 6000]), (7000, [4000])):
        path = path_to(graph, np.array([3]), start)
        assert path.segments.length.tolist() == expected
        assert path.makespan_ns == sum(expected)


def test_what_returned_too_early_cuts_short_what_it_waited_for() -> None:
    activities = pd.DataFrame({"duration_ns": [4_000, 6_000], "start_ns": [0, 3_000]})
    dependencies = pd.DataFrame({"source": [0], "target": [1], "lag_ns": [-1_000]})
    path = critical_path(DependencyGraph.from_frames(activities, dependencies))
    assert path.to_frame()[["activity", "start_us", "duration_us"]].to_numpy().tolist() == [[0, 0, 3], [1, 3, 6]]


def test_a_path_that_nothing_precedes_has_a_head() -> None:
    activities = pd.DataFrame({"duration_ns": [1_000, 6_000], "start_ns": [0, 5_000]})
    graph = DependencyGraph.from_frames(activities, pd.DataFrame({"source": [], "target": []}))
    table = critical_path(graph).to_frame()
    assert table[["duration_us", "edge", "gap", "category"]].to_numpy().tolist() == [
        [5.0, "", "trace_head", "head"], [6.0, "body", "", "host"],
    ]  # fmt: skip
    assert critical_path(graph).summary().set_index(["group", "key"]).loc[("edge", "trace_head"), "count"] == 1


def test_what_merges_before_the_window_is_no_way_of_it() -> None:
    activities = pd.DataFrame({"duration_ns": [4_000, 3_000, 2_000]})
    graph = DependencyGraph.from_frames(activities, pd.DataFrame({"source": [0, 1], "target": [2, 2]}))
    assert [way.slack for way in ways_beside(path_to(graph, np.array([5]), 0), 10)] == [1000]
    assert ways_beside(path_to(graph, np.array([5]), 4500), 10) == []


def test_a_notebook_shows_a_paths_time_by_category() -> None:
    graph = load([op("aten::empty", 0, 20), runtime("cudaStreamSynchronize", 30, 5)])
    path = critical_path(graph)
    shown = path._repr_html_()
    assert escape(repr(path)) in shown
    rows = [[cell.text for cell in row] for row in ElementTree.fromstring(shown).findall("tr")]  # sound XML
    wanted = path.summary().query("group == 'category'")
    assert rows[1:] == [
        [row["key"], f"{row['time_us']:,.3f}", f"{row['share_percent']:.1f}"] for row in wanted.to_dict("records")
    ]
    assert path_to(graph, np.zeros(0, np.int64), 0)._repr_html_().count("<tr>") == 1


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    """Two ranks with steps 1 (from 10 to 30 µs) and 2 (from 30 to 50 µs), whose kernels end 5 and 15 µs later."""

    def rank(late: int) -> list[dict[str, object]]:
        return [
            op("init", 0, 5), step(1, 10, 20), step(2, 30, 20),
            launch(12, 2, 1), kernel(COMPUTE, 15, 20, 1), launch(32, 2, 2), kernel(COMPUTE, 40, 15 + late, 2),
        ]  # fmt: skip

    return load({0: rank(0), 1: rank(10)})


@pytest.mark.parametrize(
    ("steps", "ranks", "begin", "end"),
    [
        (None, None, 0, 65), (1, None, 10, 35), (2, None, 30, 65), ([1, 2], None, 10, 65), (2, 0, 30, 55),
        (None, 0, 0, 55), ([1, 2], [0, 1], 10, 65),
    ],
)  # fmt: skip
def test_a_window_is_from_the_first_begin_to_the_last_end(
    graph: DependencyGraph, steps: object, ranks: object, begin: int, end: int
) -> None:
    path = path_in_window(graph, steps, ranks)  # type: ignore[arg-type]
    assert [(moment - graph.origin_ns) / 1000 for moment in path.window] == [begin, end]
    assert path.segments.length.sum() == path.makespan_ns == 1000 * (end - begin)


def test_a_step_that_is_not_there_is_refused_with_where_to_look(graph: DependencyGraph) -> None:
    with pytest.raises(SelectionError, match="its steps: 1, 2"):
        path_in_window(graph, 7)
    without = load([op("a", 0, 5)])
    with pytest.raises(SelectionError, match="step"):
        path_in_window(without, 1)


def test_a_job_of_nothing_has_an_empty_path() -> None:
    path = path_in_window(load({0: []}))
    assert (path.makespan_ns, len(path.segments)) == (0, 0)


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_each_step_of_a_rank_is_a_window_that_its_path_fills(job: Job) -> None:
    graph = load(job)
    acts = graph.activities
    for rank in graph.ranks:
        for number in sorted({int(n) for n in acts.step[acts.of_rank(rank)] if n >= 0}):
            path = path_in_window(graph, number, rank)
            marks = graph.select(kind="step", step=number, rank=rank).activities
            assert path.window[0] == graph.time[2 * marks].min()
            assert path.window[1] >= graph.time[2 * marks + 1].max()
            assert path.segments.length.sum() == path.makespan_ns


def _job() -> DependencyGraph:
    """Activity 0 forks into 1 (10 µs), 2 (7 µs) and 3 (4 µs); 4 waits for all three, 5 for 0 alone."""
    activities = pd.DataFrame({"duration_ns": [1_000, 10_000, 7_000, 4_000, 2_000, 6_000]})
    pairs = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (0, 5)]
    return DependencyGraph.from_frames(activities, pd.DataFrame(pairs, columns=["source", "target"]))


@pytest.mark.slow
def test_of_parallel_branches_the_longest_is_next_and_its_slack_is_what_it_is_shorter() -> None:
    path = critical_path(_job())
    ways = ways_beside(path, 10)
    assert [way.slack for way in ways] == [3_000, 6_000, 6_000]
    back = [way.returns >> 1 if way.returns >= 0 else -1 for way in ways]
    assert back[0] == 4
    assert sorted(back[1:]) == [-1, 4]  # activity 5 ends 6 µs before the job does, 3 is 6 µs shorter than 1
    own = [{int(v) >> 1 for v in way.vertices} - {0} for way in ways]
    assert own[0] == {2}
    assert {frozenset(one) for one in own[1:]} == {frozenset({3}), frozenset({5})}


@pytest.mark.parametrize(("least", "count"), [(0, 3), (4_000, 3), (4_001, 2), (6_001, 1), (7_001, 0)])
def test_what_has_less_work_than_asked_for_does_not_count(least: int, count: int) -> None:
    assert len(ways_beside(critical_path(_job()), 10, least)) == count


@pytest.mark.slow
@given(frames(max_size=9))
@settings(max_examples=60)
def test_fewer_are_the_first_of_more(made: Frames) -> None:
    path = critical_path(made.graph)
    every = ways_beside(path, 1000)
    for count in range(len(every) + 1):
        assert [way.vertices.tolist() for way in ways_beside(path, count)] == [
            way.vertices.tolist() for way in every[:count]
        ]
