"""The stack above an activity and the device work below it, against walks up the tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

from htagraph import ActivityKind, DependencyGraph, EdgeKind, SelectionError
from htagraph.queries.attribution import call_stack, in_data_loader, label_of, module_of, names_of, operator_of
from tests.graph import slow_tree
from tests.strategies import COMPUTE, Job, Json, annotation, arrow, complete, jobs, kernel, launch, load, op, step

OPERATORS = (ActivityKind.OP, ActivityKind.HOST_COMMUNICATION)
REGIONS = (ActivityKind.ANNOTATION, ActivityKind.STEP)


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_operator_is_the_first_upwards(job: Job) -> None:
    graph = load(job)
    kinds = graph.activities.kind
    every, ways = list(range(len(graph.activities))), slow_tree.ancestors(graph)
    for activity, operator in zip(every, operator_of(graph, every).tolist(), strict=True):
        above = [activity, *ways[activity]]
        wanted = [each for group in (OPERATORS, REGIONS) for each in above if kinds[each] in group]
        assert operator == (wanted[0] if wanted else -1)


def names(graph: DependencyGraph, numbers: npt.ArrayLike) -> list[str]:
    return list(names_of(graph, numbers))


def frame(name: str, start: float, duration: float) -> dict[str, object]:
    return complete("python_function", name, start, duration)


def test_kernels_belong_to_the_operator_and_module_that_launched_them() -> None:
    graph = load([
        step(1, 0, 100), frame("nn.Module: Net_0", 1, 50), frame("nn.Module: Linear_0", 2, 20),
        frame("linear.py(1): forward", 3, 18), op("aten::linear", 4, 16), op("aten::addmm", 5, 10), launch(6, 2, 1),
        frame("nn.Module: ReLU_0", 25, 10), op("aten::relu", 26, 5), launch(27, 2, 2),
        op("aten::detach", 60, 5), launch(80, 2, 3),
        kernel(COMPUTE, 10, 5, 1), kernel("relu", 30, 5, 2), kernel("late", 85, 5, 3), kernel("lost", 95, 5, 99),
    ])  # fmt: skip
    kernels = graph.select(kind="kernel").activities
    assert names(graph, operator_of(graph, kernels)) == ["aten::addmm", "aten::relu", "ProfilerStep#1", ""]
    assert names(graph, module_of(graph, kernels)) == ["nn.Module: Linear_0", "nn.Module: ReLU_0", "", ""]


def test_a_backward_operator_belongs_to_the_module_of_its_forward_one() -> None:
    forward, backward = op("aten::addmm", 3, 5), op("AddmmBackward0", 40, 20, 2)
    graph = load([
        frame("nn.Module: Linear_0", 1, 20), forward, backward, op("aten::mm", 42, 5, 2), launch(43, 1, 1, 2),
        kernel(COMPUTE, 50, 5, 1), *arrow(1, forward, backward),
    ])  # fmt: skip
    assert (graph.edges.kind == EdgeKind.AUTOGRAD).any()
    kernels = graph.select(kind="kernel").activities
    assert names(graph, module_of(graph, kernels)) == ["nn.Module: Linear_0"]
    assert names(graph, operator_of(graph, kernels)) == ["aten::mm"]


def test_without_stacks_the_innermost_annotation_is_the_module() -> None:
    events = [annotation("outer", 0, 50), annotation("inner", 1, 20), op("aten::mm", 2, 5), launch(3, 1, 1)]
    graph = load([*events, kernel(COMPUTE, 8, 5, 1), op("aten::add", 60, 5)])
    some = [*graph.select(kind="kernel").activities, *graph.select(name="aten::add").activities, -1]
    assert names(graph, module_of(graph, some)) == ["inner", "", ""]
    assert operator_of(graph, [-1]).tolist() == [-1]


def test_labels_are_short() -> None:
    graph = load([op("x" * 80, 0, 5), launch(1, 1, 1), kernel("void at::add<4, float>(int, float*)", 8, 5, 1)])
    assert label_of(graph, 0) == "x" * 59 + "…"
    assert label_of(graph, 2) == "at::add"


def test_what_a_loader_without_workers_calls_runs_inside_it() -> None:
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    graph = load([annotation(name, 0, 100), op("aten::stack", 10, 50), op("aten::mm", 200, 50)])
    inside = in_data_loader(graph, range(len(graph.activities)))
    named = {graph.names[graph.activities.name[row]] for row in inside.nonzero()[0]}
    assert named == {name, "aten::stack"}
    assert not in_data_loader(load([op("aten::mm", 0, 50)]), [0]).any()


@pytest.mark.slow
@given(jobs())
@settings(max_examples=25)
def test_the_stack_of_an_activity_is_the_walk_up_the_tree(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    for row, above in enumerate(slow_tree.ancestors(graph)[:20]):
        stack = call_stack(graph, int(row))
        assert stack.index.tolist() == [*reversed(above), row]
        assert stack["depth"].tolist() == list(range(len(above) + 1))
        assert stack["name"].tolist() == [graph.names[graph.activities.name[each]] for each in stack.index]


def test_above_a_kernel_lie_its_launch_the_operator_and_the_step() -> None:
    graph = load([step(1, 0, 50), op("a", 2, 9), launch(3, 1, 1), kernel(COMPUTE, 20, 5, 1)])
    (row,) = np.flatnonzero(graph.activities.on_device)
    stack = call_stack(graph, int(row))
    assert stack["kind"].tolist() == ["step", "op", "launch", "computation"]
    assert stack["depth"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("activity", [-1, 99, 1.5, "a", None])
def test_a_stack_of_no_activity_is_refused(activity: Any) -> None:
    with pytest.raises(SelectionError, match="this graph has activities 0 to "):
        call_stack(load([op("a", 0, 5)]), activity)
