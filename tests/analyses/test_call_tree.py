"""The tree of calls: by hand, against a walk from every kernel upwards, and against HTA's CallGraph."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import ActivityKind
from tests.reach import SHARED
from tests.strategies import COMPUTE, OTHER, Json, annotation, complete, jobs, kernel, launch, load, op

HTA = SHARED / "hta"
HOST = {
    "control": (25464, 55314, 3128966, 3321542, 5930365803, 5933687345, 323),
    "test": (26544, 87018, 5432259, 6054464, 10455667350, 10461721814, 306),
}
"""HTA 0.6.1's `CallGraph(trace)` over the rows of host threads: how many have kernels; the sums of num_kernels,
kernel_dur_sum, kernel_span, and of first_kernel_start and last_kernel_end since the first event; rows of depth 0."""


def backward_thread() -> list[Json]:
    """Return what HTA's test data call_stack/backward_thread.json holds: a backward operator on another thread."""
    return [
        annotation("ProfilerStep#552", 0, 100),
        annotation("## backward ##", 10, 80),
        op("autograd::engine::evaluate_function: AddmmBackward0", 20, 50, OTHER),
        op("AddmmBackward0", 25, 40, OTHER),
        op("aten::mm", 30, 30, OTHER),
        launch(35, 10, 9, OTHER),
        kernel(COMPUTE, 60, 25, 9),
    ]


def test_a_backward_operator_hangs_under_its_annotation() -> None:
    """HTA's test data call_stack/backward_thread.json: depths 0 to 6, heights 6 to 0, one kernel under each."""
    tree = hg.call_tree(load(backward_thread()))
    assert tree["depth"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert tree["height"].tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert tree["parent"].tolist() == [-1, *tree.index[:-1]]
    assert tree["kernels"].eq(1).all()
    assert tree[["kernel_us", "kernel_span_us"]].eq(25).all(axis=None)
    assert tree["first_kernel_us"].eq(60).all()
    assert tree["last_kernel_us"].eq(85).all()


def test_of_two_kernels_the_gap_between_counts_in_the_span_alone() -> None:
    job = [op("a", 0, 20), launch(1, 1, 1), launch(5, 1, 2), kernel(COMPUTE, 10, 5, 1), kernel(COMPUTE, 30, 7, 2)]
    row = hg.call_tree(load(job)).iloc[0]
    assert (row["kernels"], row["kernel_us"], row["kernel_span_us"]) == (2, 12, 27)
    assert (row["first_kernel_us"], row["last_kernel_us"], row["height"]) == (10, 37, 2)


def test_without_device_work_there_are_no_moments() -> None:
    row = hg.call_tree(load([op("a", 0, 20)])).iloc[0]
    assert (row["kernels"], row["kernel_us"], row["height"]) == (0, 0, 1)
    assert row[["kernel_span_us", "first_kernel_us", "last_kernel_us"]].isna().all()


def test_a_backward_operator_that_nothing_contains_stays_on_top() -> None:
    job = [annotation("ProfilerStep#1", 0, 10), op("autograd::engine::evaluate_function: A", 20, 5, OTHER)]
    assert hg.call_tree(load(job))["parent"].tolist() == [-1, -1]


def test_a_backward_operator_hangs_under_the_python_frame_that_called_it() -> None:
    job = [
        *backward_thread()[:2],
        complete("python_function", "torch/autograd/__init__.py(1): backward", 15, 60),
        op("over", 16, 1),
        *backward_thread()[2:],
    ]
    tree = hg.call_tree(load(job)).set_index("name")
    assert tree["parent"]["autograd::engine::evaluate_function: AddmmBackward0"] == 2
    assert tree["kernels"]["over"] == 0


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_every_kernel_counts_for_all_above_it(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    tree = hg.call_tree(graph)
    count, took = dict.fromkeys(tree.index, 0), dict.fromkeys(tree.index, 0.0)
    height = dict.fromkeys(tree.index, 1)
    for row in tree.index:
        path, at = [], row
        while at >= 0:
            path.append(at)
            at = tree["parent"][at]
        assert tree["depth"][row] == len(path) - 1
        on_device = bool(graph.activities.on_device[row])
        for level, each in enumerate(path):
            height[each] = max(height[each], level + (not on_device))
            count[each] += on_device
            took[each] += tree["duration_us"][row] * on_device
        if on_device:
            height[row] = 0
    assert tree["height"].to_dict() == height
    assert tree["kernels"].to_dict() == count
    assert np.allclose(tree["kernel_us"], pd.Series(took, dtype="float64"))


def test_a_stack_is_the_path_to_the_root() -> None:
    graph = load(backward_thread())
    stack = hg.call_stack(graph, 6)
    assert stack["name"].tolist() == [event["name"] for event in backward_thread()]
    assert stack["depth"].tolist() == list(range(7))
    with pytest.raises(hg.SelectionError, match="activity 7: this graph has activities 0 to"):
        hg.call_stack(load(backward_thread()[:1]), 7)


@pytest.mark.slow
@pytest.mark.skipif(not HTA.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize("trace", HOST)
def test_the_tree_is_that_of_htas_call_graph(trace: str) -> None:
    graph = hg.load({0: HTA / "trace_diff" / trace / f"{trace}.json.gz"})
    tree = hg.call_tree(graph)
    host = tree[~graph.activities.on_device[tree.index]]
    some = host[host["kernels"] > 0]
    columns = ["kernels", "kernel_us", "kernel_span_us", "first_kernel_us", "last_kernel_us"]
    acts = graph.activities
    under_step = (acts.kind[tree["parent"]] == ActivityKind.STEP) & (acts.parent[tree.index] != tree["parent"])
    tops = (host["depth"] == 0) | under_step[host.index]  # HTA puts helper threads' operators into no step
    assert (len(some), *some[columns].sum().round().astype(int), int(tops.sum())) == HOST[trace]
