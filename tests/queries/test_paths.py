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
from htagraph.queries.near_critical import ways_beside
from htagraph.queries.paths import CriticalPath, path_to
from tests.reach import DATASETS, graph_of
from tests.strategies import Frames, Job, frames, jobs, load, op, runtime


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


@given(frames(max_size=9))
@settings(max_examples=200)
def test_a_way_is_critical_as_soon_as_it_is_longer_by_its_slack(made: Frames) -> None:
    check_ways(critical_path(made.graph))


@given(jobs())
@settings(max_examples=20)
def test_so_it_is_in_traces(job: Job) -> None:
    check_ways(critical_path(load(job)))


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
