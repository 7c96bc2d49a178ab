"""Each criterion of a selection against its definition, asked of one activity at a time in plain Python."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph import ActivityKind, DependencyGraph, SelectionError
from htagraph.graph.criteria import Criteria, mask_of, named
from tests.graph import slow_tree
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load, op, step

Meets: TypeAlias = Callable[[DependencyGraph, int], bool]


def name_of(graph: DependencyGraph, row: int) -> str:
    return graph.names[graph.activities.name[row]]


def is_between(graph: DependencyGraph, row: int, first: float, last: float) -> bool:
    start_us, end_us = ((int(graph.time[2 * row + side]) - graph.origin_ns) / 1000 for side in range(2))
    return first <= start_us and end_us <= last


def lies_inside(graph: DependencyGraph, row: int, glob: str) -> bool:
    return any(fnmatch.fnmatchcase(name_of(graph, above), glob) for above in slow_tree.ancestors(graph)[row])


DEFINITIONS: list[tuple[Criteria, Meets]] = [
    ({"kind": "computation"}, lambda g, i: ActivityKind(g.activities.kind[i]).label == "computation"),
    ({"kind": ["op", "memory"]}, lambda g, i: ActivityKind(g.activities.kind[i]).label in {"op", "memory"}),
    ({"kind": "device"}, lambda g, i: ActivityKind(g.activities.kind[i]).on_device),
    ({"category": "cuda_*"}, lambda g, i: g.names[g.activities.category[i]].startswith("cuda_")),
    ({"name": "aten::*"}, lambda g, i: name_of(g, i).startswith("aten::")),
    ({"regex": "mm|Launch"}, lambda g, i: re.search("mm|Launch", name_of(g, i)) is not None),
    ({"op": "aten::mm"}, lambda g, i: lies_inside(g, i, "aten::mm")),
    ({"op": "ProfilerStep#*"}, lambda g, i: lies_inside(g, i, "ProfilerStep#*")),
    ({"stream": 20}, lambda g, i: g.lanes[g.activities.lane[i]].stream == 20 and bool(g.activities.on_device[i])),
    ({"time": (5.0, 25.0)}, lambda g, i: is_between(g, i, 5.0, 25.0)),
    ({"min_us": 3}, lambda g, i: g.activities.duration[i] >= 3000),
    ({"max_us": 3}, lambda g, i: g.activities.duration[i] <= 3000),
    ({"depth": [0, 2]}, lambda g, i: len(slow_tree.ancestors(g)[i]) in {0, 2}),
]


@pytest.mark.parametrize(("criteria", "meets"), DEFINITIONS, ids=[str(each) for each, _ in DEFINITIONS])
@given(job=jobs())
@settings(max_examples=10)
def test_a_criterion_is_its_definition(criteria: Criteria, meets: Meets, job: dict[int, list[Json]]) -> None:
    graph = load(job)
    assert mask_of(graph, criteria).tolist() == [meets(graph, row) for row in range(len(graph.activities))]


@given(jobs(), st.data())
@settings(max_examples=20)
def test_ranks_and_steps_are_those_of_the_activities(job: dict[int, list[Json]], data: st.DataObject) -> None:
    graph = load(job)
    acts = graph.activities
    ranks = data.draw(st.lists(st.sampled_from(graph.ranks), min_size=1))
    assert mask_of(graph, {"rank": ranks}).tolist() == [rank in ranks for rank in acts.rank.tolist()]
    if graph.steps:
        number = data.draw(st.sampled_from(graph.steps))
        expected = [each == number for each in acts.step.tolist()]
        assert mask_of(graph, {"step": number}).tolist() == expected
        assert mask_of(graph, {"step_index": graph.steps.index(number)}).tolist() == expected
        assert mask_of(graph, {"step_index": graph.steps.index(number) - len(graph.steps)}).tolist() == expected


def test_several_criteria_must_all_be_met_and_none_is_no_criterion() -> None:
    graph = load([step(1, 0, 50), op("a", 2, 9), launch(3, 1, 1), kernel(COMPUTE, 20, 5, 1), kernel(COMPUTE, 60, 5)])
    assert mask_of(graph, {}).all()
    assert mask_of(graph, {"name": None, "rank": None}).all()
    both = mask_of(graph, {"op": "a", "kind": "kernel"})
    assert np.array_equal(both, mask_of(graph, {"op": "a"}) & mask_of(graph, {"kind": "kernel"}))
    assert both.sum() == 1


def test_activities_are_chosen_by_number() -> None:
    graph = load([op("a", 0, 5), op("b", 10, 5), op("c", 20, 5)])
    chosen = mask_of(graph, {"activity": [2, 0]})
    assert np.flatnonzero(chosen).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("text", "expected"), [("[memory]", [True, False]), ("[m]*", [False, True]), ("x", [False] * 2)]
)
def test_a_name_matches_as_it_is_written_and_as_a_glob(text: str, expected: list[bool]) -> None:
    assert named(("[memory]", "malloc"), text).tolist() == expected


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"knd": "op"}, "'knd' is no criterion: choose from kind, "),
        ({"kind": "kernels"}, "kind 'kernels': choose from "),
        ({"regex": "("}, "is no regular expression"),
        ({"rank": 7}, "rank 7 is not in this graph; its ranks: 0"),
        ({"step": 7}, "step 7 is not in this graph; its steps: none"),
        ({"step_index": 0}, "this graph has 0 steps"),
        ({"time": (5, 1)}, "the start is after the end"),
        ({"time": 5}, "give \\(start_us, end_us\\)"),
        ({"min_us": "3"}, "give a number of µs"),
        ({"depth": "top"}, "whole numbers"),
        ({"activity": 99}, "this graph has activities 0 to "),
        ({"name": 3}, "give a name or a glob"),
    ],
)  # fmt: skip
def test_what_cannot_be_met_is_refused_with_what_can(criteria: Any, message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        mask_of(load([op("a", 0, 5)]), criteria)
