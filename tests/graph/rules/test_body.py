from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from htagraph import EdgeKind
from htagraph.core.intervals import length, union
from tests.oracles import edges_by_name
from tests.strategies import COMPUTE, Json, annotation, kernel, load, op, traces


def test_the_whole_of_an_operator_without_children_is_its_work() -> None:
    assert edges_by_name(load([op("a", 3, 5)]), EdgeKind.BODY) == [("a.start", "a.end", 5)]


def test_an_operator_works_before_between_and_after_its_children() -> None:
    graph = load([op("outer", 0, 20), op("in1", 2, 4), op("in2", 9, 1)])
    assert edges_by_name(graph, EdgeKind.BODY) == [
        ("in1.end", "in2.start", 3), ("in1.start", "in1.end", 4), ("in2.end", "outer.end", 10),
        ("in2.start", "in2.end", 1), ("outer.start", "in1.start", 2),
    ]  # fmt: skip
    assert graph.own_time.tolist() == [15000, 4000, 1000]


def test_work_inside_an_annotation_belongs_to_the_operator_around_both() -> None:
    graph = load([op("outer", 0, 20), annotation("region", 5, 10)])
    assert graph.own_time.tolist() == [20000, 0]


def test_device_work_takes_its_duration() -> None:
    assert edges_by_name(load([kernel(COMPUTE, 3, 5)]), EdgeKind.BODY) == [(f"{COMPUTE}.start", f"{COMPUTE}.end", 5)]


@pytest.mark.slow
@given(traces(tidy=True))
@settings(max_examples=20)
def test_the_lags_of_an_activity_sum_to_its_duration_without_its_childrens(events: list[Json]) -> None:
    graph = load(events)
    acts, own = graph.activities, graph.own_time
    is_work = {row: row in set(graph.select(kind=["op", "python", "launch", "sync", "record", "wait", "runtime"]))
               for row in range(len(acts))}  # fmt: skip
    inside: Counter[int] = Counter()
    for row in range(len(acts)):
        above = int(acts.parent[row])
        while above >= 0 and not is_work[above]:
            above = int(acts.parent[above])
        if is_work[row] and above >= 0:
            inside[above] += int(acts.duration[row])
    for row in graph.select(kind="host"):
        assert own[row] == (acts.duration[row] - inside[row] if is_work[row] else 0)


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_a_threads_work_covers_the_union_of_its_activities(events: list[Json]) -> None:
    graph = load(events)
    acts, own = graph.activities, graph.own_time
    work = ["op", "python", "launch", "sync", "record", "wait", "runtime"]
    for number in range(len(graph.lanes)):
        rows = [row for row in graph.select(kind=work) if acts.lane[row] == number]
        assert own[rows].sum() == length(union(acts.start[rows], acts.end[rows]))
