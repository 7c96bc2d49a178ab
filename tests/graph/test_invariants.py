"""Graphs that break a rule, one test per rule; the message names what breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from htagraph import DependencyGraph, EdgeKind, GraphError, Provenance
from htagraph.graph.activities import Edges


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
