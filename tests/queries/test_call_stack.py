"""The stack above an activity and the device work below it, against walks up the tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from htagraph import ActivityKind, SelectionError
from htagraph.queries.call_stack import call_stack, tree_columns
from tests.graph import slow_tree
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load, op, step


@given(jobs())
@settings(max_examples=25)
def test_the_stack_of_an_activity_is_the_walk_up_the_tree(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    for row, above in enumerate(slow_tree.ancestors(graph)[:20]):
        stack = call_stack(graph, int(row))
        assert stack.index.tolist() == [*reversed(above), row]
        assert stack["depth"].tolist() == list(range(len(above) + 1))
        assert stack["name"].tolist() == [graph.names[graph.activities.name[each]] for each in stack.index]


@given(jobs())
@settings(max_examples=20)
def test_the_device_work_of_an_activity_is_what_has_it_among_its_ancestors(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    acts, ancestors = graph.activities, slow_tree.ancestors(graph)
    columns = tree_columns(graph)
    is_work = acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER)
    assert columns["parent"].tolist() == slow_tree.parents(graph)
    assert columns["depth"].tolist() == list(map(len, ancestors))
    for row in range(len(acts)):
        below = [each for each in range(len(acts)) if each == row or row in ancestors[each]]
        work = [each for each in below if is_work[each]]
        assert columns["kernels"][row] == len(work)
        assert columns["kernel_ns"][row] == acts.duration[work].sum()
        levels = [len(ancestors[each]) - len(ancestors[row]) + (0 if acts.on_device[each] else 1) for each in below]
        assert columns["height"][row] == max(levels)
        if work:
            assert columns["first_kernel"][row] == graph.time[0::2][work].min()
            assert columns["last_kernel"][row] == graph.time[1::2][work].max()


def test_above_a_kernel_lie_its_launch_the_operator_and_the_step() -> None:
    graph = load([step(1, 0, 50), op("a", 2, 9), launch(3, 1, 1), kernel(COMPUTE, 20, 5, 1)])
    (row,) = np.flatnonzero(graph.activities.on_device)
    stack = call_stack(graph, int(row))
    assert stack["kind"].tolist() == ["step", "op", "launch", "computation"]
    assert stack["depth"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("activity", [-1, 99, "a", None])
def test_a_stack_of_no_activity_is_refused(activity: Any) -> None:
    with pytest.raises(SelectionError, match="this graph has activities 0 to "):
        call_stack(load([op("a", 0, 5)]), activity)
