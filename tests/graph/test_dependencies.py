"""What an activity waited for and what waited for it: the edges of the graph, seen from the activity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from htagraph import DependencyGraph, EdgeKind
from htagraph.core.errors import SelectionError
from htagraph.graph.dependencies import TABLE
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, Frames, frames, kernel, launch, load, op

END = {"start": 0, "end": 1}
Dependency = tuple[int, int, str, int]
"""Source, target, kind of edge, lag in ns."""


def edges_by_definition(graph: DependencyGraph, wanted: set[int]) -> list[Dependency]:
    """Return (source, target, kind, lag in ns) of each edge from another activity to a wanted one."""
    edges = graph.edges
    return sorted(
        (source, target, EdgeKind(kind).label, lag)
        for source, target, kind, lag in zip(
            edges.source.tolist(), edges.target.tolist(), edges.kind.tolist(), edges.lag.tolist(), strict=True
        )
        if target // 2 in wanted and source // 2 not in wanted
    )


def edges_of_table(table: pd.DataFrame, *, incoming: bool) -> list[Dependency]:
    """Return the same of a table of predecessors or, mirrored, of successors."""
    edges = []
    rows: list[dict[Any, Any]] = table.to_dict("records")
    for row in rows:
        asked = 2 * row["activity"] + END[row["moment"]]
        other = 2 * row["other_activity"] + END[row["other_moment"]]
        source, target = (other, asked) if incoming else (asked, other)
        edges.append((source, target, row["edge"], round(1000 * row["lag_us"])))
    return sorted(edges)


@given(made=frames())
@settings(max_examples=40)
def test_predecessors_are_the_edges_into_an_activity(made: Frames) -> None:
    graph = made.graph
    for activity in range(len(graph.activities)):
        table = graph.predecessors(activity)
        assert edges_of_table(table, incoming=True) == edges_by_definition(graph, {activity})


@given(made=frames())
@settings(max_examples=40)
def test_successors_are_the_predecessors_of_others_mirrored(made: Frames) -> None:
    graph = made.graph
    everyone = range(len(graph.activities))
    into = sorted(row for each in everyone for row in edges_of_table(graph.predecessors(each), incoming=True))
    out = sorted(row for each in everyone for row in edges_of_table(graph.successors(each), incoming=False))
    assert into == out


@given(made=frames())
@settings(max_examples=40)
def test_the_dependency_that_binds_has_the_least_slack_which_is_the_gap(made: Frames) -> None:
    graph = made.graph
    for activity in range(len(graph.activities)):
        table = graph.predecessors(activity)
        assert (table["slack_us"] >= 0).all()
        binding: list[dict[Any, Any]] = table[table["binds"]].to_dict("records")
        for row in binding:
            vertex = 2 * activity + END[row["moment"]]
            assert row["slack_us"] == graph.gap[vertex] / 1000
            assert row["slack_us"] == table.loc[table["moment"] == row["moment"], "slack_us"].min()


def test_a_selection_has_the_dependencies_that_cross_its_border() -> None:
    graph = graph_of(DATA / "demo")
    step = graph.select(step=6, rank=1)
    inside = set(step.activities.tolist())
    assert edges_of_table(graph.predecessors(step), incoming=True) == edges_by_definition(graph, inside)
    assert not graph.successors(step)["other_activity"].isin(inside).any()
    assert graph.predecessors(graph.select()).empty


def test_a_kernel_names_its_launch_and_the_work_before_it() -> None:
    graph = load(
        [op("a", 0, 9), launch(1, 1, 1), kernel(COMPUTE, 10, 5, 1), launch(5, 1, 2), kernel("second", 16, 5, 2)]
    )
    second = graph.select(name="second")
    table = graph.predecessors(second[0]).set_index("edge")
    assert table.loc["launch", "other_name"] == "cudaLaunchKernel"
    assert table.loc["stream", "other_name"] == COMPUTE
    moments = table[["moment", "other_moment", "other_kind"]].to_dict("index")
    assert moments["stream"] == {"moment": "start", "other_moment": "end", "other_kind": "computation"}
    assert table["confidence_percent"].eq(100).all()
    assert table["binds"].sum() == 1


def test_a_table_has_its_columns_and_types_also_without_rows() -> None:
    graph = load([op("a", 0, 9)])
    for table in (graph.predecessors(0), graph.successors(0)):
        assert table.empty
        assert dict(table.dtypes.astype(str)) == TABLE.types


@pytest.mark.parametrize("activity", [-1, 99, 1.5, "a", None, True, [0]])
def test_an_activity_that_is_not_there_is_refused(activity: Any) -> None:
    graph = load([op("a", 0, 9)])
    for ask in (graph.predecessors, graph.successors, graph.event, graph.describe):
        with pytest.raises(SelectionError, match="this graph has activities 0 to 0"):
            ask(activity)


def test_a_selection_of_another_graph_is_refused() -> None:
    graph, other = load([op("a", 0, 9)]), load([op("a", 0, 9)])
    with pytest.raises(SelectionError, match="of another graph"):
        graph.predecessors(other.select())
    with pytest.raises(SelectionError, match="give one activity"):
        graph.event(graph.select(kind="step"))


def test_numbers_of_numpy_are_activities_too() -> None:
    graph = load([op("a", 0, 9), op("b", 10, 9)])
    number: Any = np.int64(1)
    assert graph.predecessors(number).equals(graph.predecessors(1))
