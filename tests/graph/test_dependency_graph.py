from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph, EdgeKind, GraphError, Provenance, SelectionError, TraceError
from htagraph.graph.activities import Edges, Lane
from htagraph.trace.kineto.events import CpuOp, Kernel
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, OTHER, Frames, complete, frames, kernel, launch, load, op, step


def chain(count: int = 3) -> DependencyGraph:
    """Return activities one after the other, 5 ns each."""
    activities = pd.DataFrame({"duration_ns": [5] * count, "name": [f"act{i}" for i in range(count)]})
    return DependencyGraph.from_frames(activities, pairs(*((i, i + 1) for i in range(count - 1))))


def pairs(*made: tuple[Any, Any]) -> pd.DataFrame:
    return pd.DataFrame(made, columns=["source", "target"])


def with_edge(graph: DependencyGraph, source: int, target: int, lag: int = 0) -> DependencyGraph:
    """Return the graph with one more edge, which nothing has checked."""
    ends = (np.array([source]), np.array([target]))
    return graph.replace(
        edges=Edges.concatenate([graph.edges, Edges.of(*ends, lag, EdgeKind.USER, Provenance.INFERRED)])
    )


def test_of_parallel_edges_the_tightest_stays_and_of_equals_the_first() -> None:
    graph = with_edge(with_edge(chain(), 0, 1, lag=3), 1, 2, lag=0)
    assert len(graph.edges) == len(chain().edges)
    assert graph.edges.lag.tolist() == [5, 0, 5, 0, 5]
    assert graph.edges.kind.tolist()[0] == EdgeKind.BODY


@pytest.mark.slow
@given(frames())
@settings(max_examples=50)
def test_edges_lie_in_order_both_ways(made: Frames) -> None:
    graph = made.graph
    edges = graph.edges
    ends = list(zip(edges.source.tolist(), edges.target.tolist(), strict=True))
    assert ends == sorted(set(ends))
    for vertex in range(graph.vertex_count):
        leaving = range(graph.out_offsets[vertex], graph.out_offsets[vertex + 1])
        entering = graph.in_edges[graph.in_offsets[vertex] : graph.in_offsets[vertex + 1]].tolist()
        assert list(leaving) == [edge for edge, (source, _) in enumerate(ends) if source == vertex]
        assert entering == [edge for edge, (_, target) in enumerate(ends) if target == vertex]


# from_frames


def test_activities_start_as_early_as_their_dependencies_allow() -> None:
    acts = pd.DataFrame({"duration_ns": [5, 7, 2]}, index=["load", "train", "save"])
    links = pd.DataFrame({"source": ["load", "load"], "target": ["train", "save"], "lag_ns": [0, 3],
                          "from_start": [False, True], "to_end": [False, False]})  # fmt: skip
    graph = DependencyGraph.from_frames(acts, links)
    assert graph.activities.start.tolist() == [0, 5, 3]
    assert graph.gap.tolist() == [0] * 6


def test_recorded_starts_leave_gaps() -> None:
    acts = pd.DataFrame({"duration_ns": [5, 7], "start_ns": [0, 9]})
    assert DependencyGraph.from_frames(acts, pairs((0, 1))).gap.tolist() == [0, 0, 4, 0]


def test_optional_columns_are_kept() -> None:
    acts = pd.DataFrame({"duration_ns": [5, 7], "name": ["a", "b"], "kind": ["op", "computation"], "rank": [0, 3],
                         "lane": ["main", "gpu"], "step": [1, 2]})  # fmt: skip
    graph = DependencyGraph.from_frames(acts, pairs())
    assert (graph.ranks, graph.steps) == ((0, 3), (1, 2))
    assert [lane.label for lane in graph.lanes] == ["main", "gpu"]
    assert list(graph.select(kind="computation", name="b", rank=3, step=2)) == [1]


def test_activities_are_numbered_by_rank_and_keep_their_ids() -> None:
    acts = pd.DataFrame({"duration_ns": [5, 7, 2, 1], "rank": [3, 0, 3, 0]}, index=["a", "b", "c", "d"])
    graph = DependencyGraph.from_frames(acts, pairs(("a", "d")))
    assert [graph.names[name] for name in graph.activities.name] == ["b", "d", "a", "c"]
    assert graph.activities.start.tolist() == [0, 5, 0, 0]


def test_no_activities_give_an_empty_graph() -> None:
    graph = DependencyGraph.from_frames(pd.DataFrame({"duration_ns": pd.Series(dtype="int64")}), pairs())
    graph.check()
    assert (graph.vertex_count, graph.ranks, graph.steps, graph.origin_ns) == (0, (), (), 0)


@pytest.mark.parametrize(
    ("activities", "dependencies", "message"),
    [
        ({"duration_ns": [5, 7]}, [(0, 9)], r"target 9 is not the id of an activity"),
        ({"duration_ns": [5, 7]}, [("x", 1)], r"source 'x' is not the id of an activity"),
        ({"duration_ns": [5, 7.5]}, [], r"column 'duration_ns' holds whole numbers"),
        ({"duration_ns": [5, float("nan")]}, [], r"column 'duration_ns' holds whole numbers"),
        ({"duration_ns": [5, float("inf")]}, [], r"column 'duration_ns' holds whole numbers"),
        ({"duration_ns": ["5", "7"]}, [], r"column 'duration_ns' holds whole numbers"),
        ({"name": ["a"]}, [], r"activities: column 'duration_ns' is missing \(has name\)"),
        ({"duration_ns": [5], "kind": ["cooking"]}, [], r"kind 'cooking'; choose from op, annotation"),
        ({"duration_ns": [5], "kind": ["boundary"]}, [], r"kind 'boundary'; choose from op, annotation"),
        ({"duration_ns": [5], "rank": [1 << 31]}, [], r"column 'rank' holds numbers below 2\^31, not 2147483648"),
        ({"duration_ns": [5], "step": [1 << 40]}, [], r"column 'step' holds numbers below 2\^31"),
        (
            {"duration_ns": [5, 7]},
            [(0, 1), (1, 0)],
            r"acyclic: 4 edges form a cycle, .* edge from end of '1'.* to start of '0'",
        ),
        ({"duration_ns": [5, 7], "start_ns": [0, 3]}, [(0, 1)], r"not recorded before its source plus the lag"),
    ],
)
def test_frames_that_are_no_graph_are_refused(
    activities: dict[str, Any], dependencies: list[tuple[Any, Any]], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        DependencyGraph.from_frames(pd.DataFrame(activities), pairs(*dependencies))


def test_a_repeated_id_is_refused() -> None:
    with pytest.raises(GraphError, match="the index holds ids, and 'a' is there twice"):
        DependencyGraph.from_frames(pd.DataFrame({"duration_ns": [5, 7]}, index=["a", "a"]), pairs())


def test_dependencies_without_ends_are_refused() -> None:
    with pytest.raises(GraphError, match="dependencies: column 'target' is missing"):
        DependencyGraph.from_frames(pd.DataFrame({"duration_ns": [5]}), pd.DataFrame({"source": [0]}))


# events


def test_an_activity_gives_its_event_back_with_every_argument(tmp_path: Path) -> None:
    args = {"Input Dims": [[2, 3]], "my own": {"a": [1]}}
    events = [op("aten::mm", 3, 5) | {"args": args}, launch(4, 1, 9), kernel(COMPUTE, 8, 2, 9) | {"dur": 2.125}]
    graph = load(events, tmp_path)
    model = graph.event(0)
    assert isinstance(model, CpuOp)
    assert model.name == "aten::mm"
    assert model.args.model_dump(by_alias=True)["my own"] == {"a": [1]}
    assert isinstance(graph.event(2), Kernel)


@pytest.mark.parametrize("activity", [-1, 2, 99])
def test_an_activity_that_is_not_there_has_no_event(activity: int, tmp_path: Path) -> None:
    graph = load([op("a", 0, 1), op("b", 2, 1)], tmp_path)
    with pytest.raises(SelectionError, match=f"activity {activity}: this graph has activities 0 to 1"):
        graph.event(activity)


def test_what_the_graph_added_has_no_event(tmp_path: Path) -> None:
    graph = load([step(1, 0, 5)], tmp_path)
    with pytest.raises(SelectionError, match="was added by the graph"):
        graph.event(1)


def test_a_changed_file_gives_no_events(tmp_path: Path) -> None:
    graph = load([op("a", 0, 1)], tmp_path)
    (tmp_path / "rank-0.json").write_text("{}")
    with pytest.raises(TraceError, match=r"rank-0\.json: was changed since it was loaded; load it again"):
        graph.event(0)


def test_a_vanished_file_gives_no_events(tmp_path: Path) -> None:
    graph = load([op("a", 0, 1)], tmp_path)
    (tmp_path / "rank-0.json").unlink()
    with pytest.raises(TraceError, match=r"rank-0\.json: cannot be read again"):
        graph.event(0)


# words


def test_a_graph_shows_its_size() -> None:
    assert repr(load({0: [op("a", 0, 1)], 3: [op("b", 0, 1)]})) == "DependencyGraph(2 ranks, 2 activities, 2 edges)"
    assert repr(chain(2000)) == "DependencyGraph(1 rank, 2,000 activities, 3,999 edges)"


@pytest.mark.parametrize(
    ("lane", "label"),
    [
        (Lane(0, 1, 2), "thread 2"),
        (Lane(0, 1, 2, thread="python"), "python"),
        (Lane(0, 0, 7, device=0, stream=7), "stream 7"),
        (Lane(0, 0, 7, device=3, stream=7), "device 3 stream 7"),
    ],
)
def test_a_lane_has_a_short_name(lane: Lane, label: str) -> None:
    assert lane.label == label


def test_a_description_names_activity_rank_lane_and_moment() -> None:
    graph = load({4: [op("x", 0, 1), op("y" * 80, 2.5, 1)]})
    assert graph.describe(1) == f"'{'y' * 59}…' (activity 1, rank 4, thread 1, at 2.500 µs)"


def test_a_thread_of_nothing_but_python_frames_neither_ends_the_path_nor_the_job() -> None:
    # tqdm's monitor thread: its wait is the last thing of the trace, and nobody waits for it
    asleep = complete("python_function", "threading.py(324): wait", 0, 100, OTHER)
    graph = load([op("a", 0, 20), launch(5, 2, 1), kernel(COMPUTE, 8, 40, 1), asleep])
    assert graph.awake.tolist() == [name != asleep["name"] for name in (graph.names[i] for i in graph.activities.name)]
    assert hg.critical_path(graph).to_frame()["category"].iloc[-1] == "computation"
    assert hg.what_if(graph).scale(kind="computation", factor=0.5).run().makespan_ns == 28_000


def test_frames_count_where_a_rank_has_nothing_else() -> None:
    assert load([complete("python_function", "main", 0, 100)]).awake.all()


def test_a_notebook_shows_a_row_per_rank() -> None:
    shown = graph_of(DATA / "demo")._repr_html_()
    assert "DependencyGraph(4 ranks" in shown
    assert shown.count("<tr>") == 5
    assert "more ranks" not in shown
    many = load({rank: [op("a", 0, 9)] for rank in range(12)})._repr_html_()
    assert "and 4 more ranks" in many
    assert load({0: []})._repr_html_().count("<tr>") == 2


def test_a_cycle_is_refused_and_an_edge_of_it_named() -> None:
    graph = chain()
    at_once = replace(graph.activities, start=np.zeros(3, np.int64), duration=np.zeros(3, np.int64))
    early = graph.replace(activities=at_once, edges=replace(graph.edges, lag=np.zeros(len(graph.edges), np.int64)))
    early.check()
    with pytest.raises(
        GraphError, match=r"acyclic: 4 edges form a cycle, .* USER edge from end of 'act1'.* to start of 'act0'"
    ):
        with_edge(early, 3, 0).check()


def test_an_edge_to_itself_is_refused() -> None:
    with pytest.raises(
        GraphError, match=r"from a vertex to itself: .* USER edge from end of 'act1' .* to end of 'act1'"
    ):
        with_edge(chain(), 3, 3).check()


def test_an_edge_against_time_is_refused() -> None:
    rule = "not recorded before its source plus the lag: .* USER edge from start of 'act0' .* to end of 'act2'"
    with pytest.raises(GraphError, match=rule):
        with_edge(chain(), 0, 5, lag=16).check()


@pytest.mark.parametrize(("source", "target"), [(-1, 2), (0, 6), (99, 1), (0, -7)])
def test_a_vertex_out_of_range_is_refused(source: int, target: int) -> None:
    with pytest.raises(GraphError, match=r"joins two vertices of the graph: .* USER edge from .* \(absent\)"):
        with_edge(chain(), source, target)


def test_a_negative_duration_is_refused() -> None:
    acts = pd.DataFrame({"duration_ns": [5, -2], "start_ns": [0, 9]})
    with pytest.raises(GraphError, match="durations are not negative: '1'"):
        DependencyGraph.from_frames(acts, pairs())


@pytest.mark.parametrize("rows", [[1, 0, 2, 3, 4], [0, 0, 1, 2, 3, 4]])
def test_edges_out_of_order_or_twice_are_refused(rows: list[int]) -> None:
    graph = chain()
    with pytest.raises(GraphError, match=r"sorted by \(source, target\) and unique: broken by 1 edges"):
        replace(graph, edges=graph.edges.take(np.array(rows))).check()


@pytest.mark.parametrize("column", ["parent", "cause"])
@pytest.mark.parametrize("number", [-2, 3])
def test_a_parent_or_cause_that_is_no_activity_is_refused(column: str, number: int) -> None:
    graph = chain()
    wrong: Any = {column: np.array([-1, number, 0], np.int32)}
    with pytest.raises(GraphError, match=f"{column}s are activities or -1: 'act1'"):
        replace(graph, activities=replace(graph.activities, **wrong)).check()


def test_activities_out_of_the_order_of_ranks_are_refused() -> None:
    graph = chain()
    mixed = replace(graph.activities, rank=np.array([1, 0, 1], np.int32))
    with pytest.raises(GraphError, match="activities are ordered by rank: 'act1'"):
        replace(graph, activities=mixed).check()
