"""CallGraph: HTA's numbers on its own samples, and a trace made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.errors import SelectionError
from htagraph.hta.common.trace import Trace
from htagraph.hta.common.trace_call_graph import (
    CallGraph,
    CallStackNode,
    StackWalks,
    parents_in_frame,
    parents_in_job,
    root_of,
    stack_columns,
)
from htagraph.hta.common.trace_symbol_table import DeviceType
from tests.hta.shapes.test_job import event, job_of, kernel, launch, step, write
from tests.reach import DATA, SHARED

HTA = SHARED / "hta"
shared = pytest.mark.skipif(not HTA.is_dir(), reason="the shared traces are not here")

BACKWARD = [
    step(1, 100, 100),
    event("## backward ##", "user_annotation", 150, 40),
    event("autograd::engine::evaluate_function: Mm", "cpu_op", 155, 20, tid=2),
    event("aten::mm", "cpu_op", 158, 10, tid=2),
    event("cudaLaunchKernel", "cuda_runtime", 160, 2, tid=2, correlation=5),
    kernel(170, 5),
    event("aten::add", "cpu_op", 110, 10),
    event("aten::relu", "cpu_op", 112, 0),
]  # fmt: skip


def read(tmp_path: Path, events: list[dict[str, object]]) -> Trace:
    trace = Trace({0: write(tmp_path / "a.json", events)})
    trace.parse_traces()
    return trace


def test_backward_work_lies_under_the_annotation_that_called_it(tmp_path: Path) -> None:
    trace = read(tmp_path, BACKWARD)
    graph = CallGraph(trace, ranks=[0])
    frame = trace.get_trace(0)
    assert frame["parent"].tolist() == [-1, 0, 1, 2, 3, 4, 0, 6]
    assert frame["depth"].tolist() == [0, 1, 2, 3, 4, 5, 1, 2]
    assert frame["height"].tolist() == [5, 4, 3, 2, 1, 0, 2, 1]
    assert frame["num_kernels"].tolist() == [1, 1, 1, 1, 1, 1, 0, 0]
    assert frame["kernel_dur_sum"].tolist() == frame["kernel_span"].tolist() == [5] * 6 + [0] * 2
    assert frame["first_kernel_start"].tolist() == [170] * 6 + [-1] * 2
    assert frame["last_kernel_end"].tolist() == [175] * 6 + [-1] * 2
    assert graph.mapping[["label", "stack_root", "count"]].to_numpy().tolist() == [["main", -1, 1], ["bwd", -1, 2]]


def test_nodes_are_walked_up_and_down(tmp_path: Path) -> None:
    graph = CallGraph(read(tmp_path, BACKWARD))
    stack = graph.get_csg_of_node(3)
    assert stack.get_path_to_root(5) == [5, 4, 3, 2, 1, 0, -1]
    assert (stack.get_parent(5), stack.get_parent(99), stack.get_children(0)) == (4, -2, [6, 1])
    assert stack.get_leaf_nodes(0) == [7, 4]
    assert stack.get_paths_to_leaves(1, include_cuda_kernel=True) == [[1, 2, 3, 4, 5]]
    assert sorted(stack.get_descendants(1)) == [1, 2, 3, 4]
    assert (stack.get_root(5), stack.get_root(99)) == (-1, -1)
    assert stack.nodes[5].device == DeviceType.GPU
    seen: list[tuple[str, int]] = []
    stack.dfs_traverse(lambda number, _: seen.append(("in", number)), lambda number, _: seen.append(("out", number)))
    assert seen[:5] == [("in", -1), ("in", 0), ("in", 6), ("in", 7), ("out", 7)]
    assert len(seen) == 2 * 9


def test_the_stack_of_an_event_has_what_is_above_and_below(tmp_path: Path) -> None:
    graph = CallGraph(read(tmp_path, BACKWARD))
    assert graph.get_stack_of_node(3)["index"].tolist() == [0, 1, 2, 3, 4, 5]
    assert graph.get_stack_of_node(3, skip_ancestors=True)["index"].tolist() == [3, 4, 5]
    assert graph.get_stack_of_node(5, rank=0)["index"].tolist() == [0, 1, 2, 3, 4, 5]
    assert graph.get_gpu_kernels()["index"].tolist() == [5]
    with pytest.raises(ValueError, match="has no event 99"):
        graph.get_node_attributes(99)


def test_ranks_that_were_not_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are ranks 0"):
        CallGraph(read(tmp_path, BACKWARD), ranks=[3])


def test_a_frame_alone_gives_the_same_but_for_backward(tmp_path: Path) -> None:
    trace = read(tmp_path, [*BACKWARD[:2], *BACKWARD[6:], launch(130, 9), kernel(140, 9)])
    plain = trace.get_trace(0).copy()
    CallGraph(trace)
    alone = CallGraph.from_dataframe(plain, trace.symbol_table, rank=3)
    stack = next(alone.get_call_stacks(rank=3))
    pd.testing.assert_frame_equal(
        stack.full_df[CallGraph.stack_columns], trace.get_trace(0)[CallGraph.stack_columns], check_dtype=False
    )
    assert "parent" not in plain


def test_all_ranks_have_stacks() -> None:
    trace = Trace(trace_dir=str(DATA / "demo"))
    trace.parse_traces(max_ranks=2)
    graph = CallGraph(trace)
    assert sorted(graph.mapping["rank"].unique()) == sorted(graph.rank_to_stacks) == [0, 1]
    for rank in (0, 1):
        frame = trace.get_trace(rank)
        nodes = graph.rank_to_nodes[rank]
        assert sum(number >= 0 for number in nodes) == frame["depth"].ge(0).sum()
        for number, node in nodes.items():
            assert all(
                nodes[child].parent == number and nodes[child].depth == node.depth + 1 for child in node.children
            )


EXPECTED = {"critical_path/alexnet": (-5468569, 4862, 1220), "critical_path/simple_add": (-733975, 4613, 1173)}
"""HTA's sums of parent, depth and height over the frame (`CallGraph(t)` after `t.parse_traces()`)."""


@shared
@pytest.mark.filterwarnings("ignore:.*says no rank:UserWarning")
@pytest.mark.parametrize("name", EXPECTED)
def test_the_stacks_are_htas(name: str) -> None:
    trace = Trace({0: str(HTA / f"{name}.json.gz")})
    trace.parse_traces()
    CallGraph(trace)
    frame = trace.get_trace(0)
    assert tuple(frame[["parent", "depth", "height"]].sum()) == EXPECTED[name]
    assert frame["num_kernels"].max() == 98, "HTA says 138: it counts 40 records of synchronization as kernels (D5)"


@shared
@pytest.mark.filterwarnings("ignore:.*says no rank:UserWarning")
def test_device_work_under_operators_is_htas() -> None:
    """Of 68 323 events, two operators of equal extent lie the other way round; all else is HTA's."""
    trace = Trace({0: str(HTA / "trace_diff" / "test" / "test.json.gz")})
    trace.parse_traces()
    graph = CallGraph(trace)
    frame = trace.get_trace(0)
    columns = ["num_kernels", "kernel_dur_sum", "kernel_span"]
    assert frame[columns].sum().tolist() == [102036, 6339504, 6961709]
    assert frame[columns].max().tolist() == [2503, 155443, 173694]
    assert np.isclose(frame["first_kernel_start"].sum(), 6.907349e19, rtol=1e-6)
    assert graph.mapping["stack_root"].tolist() == [-19360192, -2568503, -2568503]


# columns, against definitions written out row by row


@st.composite
def trees(draw: st.DrawFn) -> tuple[pd.DataFrame, list[int]]:
    count = draw(st.integers(1, 12))
    parent = [draw(st.integers(-1, i - 1)) for i in range(count)]
    leaves = [i for i in range(count) if i not in parent and parent[i] >= 0]
    device = {i for i in leaves if draw(st.booleans())}
    return pd.DataFrame({
        "index": range(count), "pid": 1, "tid": [7 if i in device else 3 for i in range(count)],
        "ts": [draw(st.integers(0, 99)) for _ in range(count)], "dur": [draw(st.integers(0, 9)) for _ in range(count)],
        "stream": [7 if i in device else -1 for i in range(count)],
    }), parent  # fmt: skip


@given(trees())
def test_columns_are_what_lies_at_or_under_each_row(tree: tuple[pd.DataFrame, list[int]]) -> None:
    frame, parent = tree
    work = frame["stream"].ge(0).to_numpy()
    table = stack_columns(frame, np.array(parent), work)

    def path(row: int) -> list[int]:
        return [row, *path(parent[row])] if row >= 0 else []

    for row in range(len(frame)):
        kernels = frame[[work[other] and row in path(other) for other in range(len(frame))]]
        assert table["depth"][row] == len(path(row)) - 1
        assert table["num_kernels"][row] == len(kernels)
        assert table["kernel_dur_sum"][row] == kernels["dur"].sum()
        ends = kernels["ts"] + kernels["dur"]
        assert table["first_kernel_start"][row] == (kernels["ts"].min() if len(kernels) else -1)
        assert table["last_kernel_end"][row] == (ends.max() if len(kernels) else -1)
        assert table["kernel_span"][row] == (ends.max() - kernels["ts"].min() if len(kernels) else 0)
        assert table["parent"][row] == (parent[row] if parent[row] >= 0 else -3)
        below = [table["height"][child] for child in range(len(frame)) if parent[child] == row]
        assert table["height"][row] == (0 if work[row] else max([1, *(height + 1 for height in below)]))


def test_job_and_frame_agree_but_for_the_engines_thread(tmp_path: Path) -> None:
    job = job_of(tmp_path, BACKWARD)
    frame = job.frame(0)
    of_job, work = parents_in_job(job, 0, frame)
    of_frame, same_work = parents_in_frame(frame.assign(name=[event["name"] for event in BACKWARD]))
    assert of_job.tolist() == [-1, 0, 1, 2, 3, 4, 0, 6]
    assert of_frame.tolist() == [-1, 0, -1, 2, 3, 4, 0, 6]
    assert work.tolist() == same_work.tolist() == [False] * 5 + [True] + [False] * 2


def test_in_a_frame_backward_operators_lie_in_the_main_threads_annotation(tmp_path: Path) -> None:
    job = job_of(tmp_path, BACKWARD)
    graph = CallGraph.from_dataframe(job.frame(0), job.symbols)
    nodes = graph.rank_to_nodes[-1]
    assert [nodes[number].parent for number in sorted(nodes) if number >= 0] == [-1, 0, 1, 2, 3, 4, 0, 6]
    assert graph.mapping["stack_root"].nunique() == 1
    assert CallGraph.from_dataframe(job.frame(0).iloc[:0], job.symbols).call_stacks == []
    with pytest.raises(SelectionError, match="no column stream"):
        CallGraph.from_dataframe(job.frame(0).drop(columns="stream"), job.symbols)


def test_records_of_synchronization_lie_in_their_call_and_are_no_work() -> None:
    frame = pd.DataFrame({
        "index": [4, 6], "pid": 1, "tid": [3, 7], "ts": [0, 1], "dur": [9, 1], "stream": [-1, 7],
        "index_correlation": [6, 4], "name": ["cudaStreamSynchronize", "Stream Sync"],
    })  # fmt: skip
    parent, work = parents_in_frame(frame)
    assert (parent.tolist(), work.tolist()) == ([-1, 0], [False, False])


def test_roots_have_the_numbers_of_their_threads() -> None:
    assert [root_of(tid) for tid in (7, -7, np.int64(7), 0, "main")] == [-7, -7, -7, -1, -1]


class Tree(StackWalks):
    root_index = -1

    def __init__(self, parents: list[int]) -> None:
        self.nodes = {-1: CallStackNode(-1)} | {i: CallStackNode(parent) for i, parent in enumerate(parents)}
        for i, parent in enumerate(parents):
            self.nodes[parent].children.append(i)


@st.composite
def parents(draw: st.DrawFn) -> list[int]:
    count = draw(st.integers(1, 12))
    return [draw(st.integers(-1, i - 1)) for i in range(count)]


@given(parents())
def test_walks_agree_with_one_another(above: list[int]) -> None:
    tree = Tree(above)
    for node in range(len(above)):
        path = tree.get_path_to_root(node)
        assert path[0] == node
        assert path[-1] == tree.get_root(node) == -1
        under = {other for other in range(len(above)) if node in tree.get_path_to_root(other)}
        assert set(tree.get_descendants(node)) == under
        leaves = {other for other in under if other not in above}
        assert set(tree.get_leaf_nodes(node)) == leaves
        assert {way[-1] for way in tree.get_paths_to_leaves(node)} == leaves
        assert all(way == path_down(tree, node, way[-1]) for way in tree.get_paths_to_leaves(node))


def path_down(tree: Tree, first: int, last: int) -> list[int]:
    path = tree.get_path_to_root(last)
    return path[: path.index(first) + 1][::-1]


@given(parents())
def test_a_traversal_enters_each_node_before_and_leaves_it_after_what_is_below(above: list[int]) -> None:
    tree, seen = Tree(above), list[tuple[str, int]]()
    tree.dfs_traverse(lambda number, _: seen.append(("in", number)), lambda number, _: seen.append(("out", number)))
    for node, parent in enumerate(above):
        assert seen.index(("in", parent)) < seen.index(("in", node)) < seen.index(("out", node))
        assert seen.index(("out", node)) < seen.index(("out", parent))
    assert len(seen) == 2 * (len(above) + 1)
