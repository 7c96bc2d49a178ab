"""Single activities: those that criteria choose, and all of one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from htagraph.core.errors import HtagraphError, SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.reports.activities import activity_edges, event_report, selection_report
from tests.reach import DATA, REPOSITORY, graph_of
from tests.strategies import load, op


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    return graph_of(REPOSITORY / "data" / "demo")


def test_the_longest_come_first_and_sums_add_up(graph: DependencyGraph) -> None:
    report = selection_report(graph, "kind=kernel,rank=0", count=5)
    acts, whole = graph.activities, graph.select(kind="kernel", rank=0).activities
    assert report.figures == {"count": len(whole), "total_us": acts.duration[whole].sum() / 1000}
    longest = report.tables["activities"]
    assert longest["duration_us"].tolist() == sorted((acts.duration[whole] / 1000).tolist(), reverse=True)[:5]
    assert report.tables["by_name"]["count"].sum() == len(whole)
    assert report.tables["by_name"]["total_us"].sum() == pytest.approx(report.figures["total_us"])


@pytest.mark.parametrize("text", ["", "nme=x", "rank=99", "kind=kernal", "name=[[", "op=nothing", "stream=99"])
def test_criteria_that_mean_nothing_are_errors(graph: DependencyGraph, text: str) -> None:
    with pytest.raises(HtagraphError):
        selection_report(graph, text, count=5)


def test_an_event_has_its_arguments_callers_and_edges(graph: DependencyGraph) -> None:
    kernel = int(graph.select(kind="kernel", rank=0).activities[3])
    tables = event_report(graph, kernel).tables
    assert tables["activity"]["activity"].tolist() == [kernel]
    assert int(tables["arguments"].set_index("argument")["value"]["stream"]) == graph.lane_of(kernel).stream
    assert tables["inside"]["kind"].iloc[-1] == "launch"
    waits = tables["waits_for"]
    assert waits["decided"].sum() == 1
    for row in waits.to_dict("records"):
        end = 2 * row["other_activity"] + (row["other_moment"] == "end")
        came = graph.time[end] / 1000 + row["lag_us"] + (row["later_than_that_us"] if row["decided"] else 0)
        moment = graph.time[2 * kernel + (row["moment"] == "end")] / 1000
        assert came == pytest.approx(moment) if row["decided"] else came <= moment
    assert set(tables["waited_for_by"]["edge"]) >= {"stream"}


def test_what_has_no_file_has_no_arguments_and_says_why(graph: DependencyGraph, tmp_path: Path) -> None:
    added = event_report(graph, len(graph.activities) - 1)
    assert added.tables["arguments"].empty
    assert added.sentences == ["The graph added this activity: no file recorded it, so it has no arguments."]
    small = load([op("aten::mm", 0, 9), op("aten::add", 20, 9)], tmp_path)
    (tmp_path / "rank-0.json").unlink()
    gone = event_report(small, 1)
    assert gone.tables["arguments"].empty
    assert gone.sentences[0].startswith("Its arguments cannot be read: ")
    assert gone.tables["waits_for"]["other_name"].tolist() == ["aten::mm"]


@pytest.mark.parametrize("number", [-1, 10**9])
def test_an_activity_that_is_not_there_is_an_error(graph: DependencyGraph, number: int) -> None:
    with pytest.raises(SelectionError, match="this graph has activities 0 to"):
        event_report(graph, number)


@pytest.mark.parametrize("incoming", [False, True])
def test_they_are_those_that_all_edges_show(incoming: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    graph = graph_of(DATA / "demo")
    edges = graph.edges
    own, other = (edges.target, edges.source) if incoming else (edges.source, edges.target)
    for activity in range(0, len(graph.activities), 97):
        expected = np.flatnonzero((own // 2 == activity) & (other // 2 != activity))
        assert sorted(activity_edges(graph, activity, incoming=incoming)) == expected.tolist()
