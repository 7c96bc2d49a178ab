"""HTA's older call stacks: each thread by itself, with filters and renamed threads."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from htagraph.hta.common.call_stack import CallGraph, CallStackGraph, CallStackIdentity, CallStackNode, DeviceType
from htagraph.hta.common.trace import Trace
from htagraph.hta.common.trace_filter import ZeroDurationFilter
from tests.hta.common.test_trace_call_graph import BACKWARD, read
from tests.hta.shapes.test_job import event


def rows(*events: tuple[int, int], stream: int = -1) -> pd.DataFrame:
    """Return rows of one thread or stream with (ts, dur) each."""
    frame = pd.DataFrame(events, columns=["ts", "dur"]).rename_axis("index").reset_index()
    return frame.assign(pid=1, tid=1 if stream < 0 else stream, stream=stream, index_correlation=-1, name="x")


def stack(frame: pd.DataFrame, filter_func: object = None) -> CallStackGraph:
    return CallStackGraph(frame, CallStackIdentity(0, 1, 1), filter_func)  # type: ignore[arg-type]


def test_longer_events_lie_around_shorter_ones_and_empty_ones_lie_inside() -> None:
    graph = stack(rows((0, 10), (0, 4), (2, 0), (10, 5), (4, 6)))
    assert graph.nodes == {
        -1: CallStackNode(-1, -1, [0, 3]), 0: CallStackNode(-1, 0, [1, 4]), 1: CallStackNode(0, 1, [2]),
        2: CallStackNode(1, 2, []), 3: CallStackNode(-1, 0, []), 4: CallStackNode(0, 1, []),
    }  # fmt: skip
    assert graph.get_depth().to_dict() == {0: 0, 1: 1, 2: 2, 4: 1, 3: 0}
    assert graph.get_leaf_nodes(0) == [2, 4]


def test_a_filter_leaves_events_out() -> None:
    assert sorted(stack(rows((0, 10), (2, 0)), ZeroDurationFilter).nodes) == [-1, 0]


def test_a_stream_has_no_nodes() -> None:
    graph = stack(rows((0, 10), (2, 3), stream=7))
    assert (graph.device_type, graph.nodes, graph.get_depth().tolist()) == (DeviceType.GPU, {}, [-1, -1])


def test_a_frame_without_correlations_is_refused() -> None:
    with pytest.raises(ValueError, match="index_correlation"):
        stack(rows((0, 1)).drop(columns="index_correlation"))


def test_threads_lie_apart_unless_they_are_renamed(tmp_path: Path) -> None:
    trace = read(tmp_path, BACKWARD)
    graph = CallGraph(trace)
    frame = trace.get_trace(0)
    assert frame["parent"].tolist() == [-1, 0, -1, 2, 3, 4, 0, 6]
    assert frame["depth"].tolist() == [0, 1, 0, 1, 2, -1, 1, 2]
    assert graph.get_stack_of_node(5, 0).index.tolist() == [4, 4, 3, 2, -1, 5]
    assert graph.get_stack_of_node(3, 0, skip_ancestors=True).index.tolist() == [4, 5]
    CallGraph(trace, ranks=[0], remapped_tids={0: {2: 1}})
    assert trace.get_trace(0)["parent"].tolist() == [-1, 0, 1, 2, 3, 4, 0, 6]


def test_python_functions_are_cut_to_their_caller(tmp_path: Path) -> None:
    python = {"Python id": 1}, {"Python id": 2, "Python parent id": 1}
    events = [event(f"f{i}", "python_function", 10 * i, 25, **args) for i, args in enumerate(python)]
    trace = Trace({0: str(write_events(tmp_path, events))})
    trace.parse_traces()
    CallGraph(trace, pre_process_trace_data=True)
    assert trace.get_trace(0)["dur"].tolist() == [25, 15]


def write_events(tmp_path: Path, events: list[dict[str, object]]) -> str:
    from tests.hta.shapes.test_job import write

    return write(tmp_path / "a.json", events)
