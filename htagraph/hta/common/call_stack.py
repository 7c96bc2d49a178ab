"""HTA's older call stacks: each thread by itself, from the rows of a frame, with filters and renamed threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from htagraph.hta.common.trace import Trace
from htagraph.hta.common.trace_call_graph import (
    NON_EXISTENT_NODE_INDEX,
    NULL_NODE_INDEX,
    CallStackIdentity,
    DFSCallback,
    StackWalks,
    parents_in_frame,
)
from htagraph.hta.common.trace_symbol_table import DeviceType, infer_device_type

__all__ = [
    "NON_EXISTENT_NODE_INDEX", "NULL_NODE_INDEX", "CallGraph", "CallStackGraph", "CallStackIdentity", "CallStackNode",
    "DFSCallback", "DeviceType", "infer_device_type",
]  # fmt: skip

Choice: TypeAlias = Callable[[pd.DataFrame], pd.DataFrame]


class CallStackNode(NamedTuple):
    """One event: what is above it, how deep it lies, what is directly below it."""

    parent: int = NULL_NODE_INDEX
    depth: int = -1
    children: list[int] = []  # noqa: RUF012 - HTA's default; every node of a stack is given a list of its own


class CallStackGraph(StackWalks):
    """What encloses what on one thread; a stream has no nodes, since nothing encloses anything on it.

    Args:
        df: the rows of a thread or stream.
        identity: which one.
        filter_func: which rows become nodes; all if not given.

    Raises:
        ValueError: the frame has no column ``index_correlation``.

    Example:
        >>> rows = pd.DataFrame({"index": [4, 5], "ts": [0, 1], "dur": [9, 3], "pid": 1, "tid": 1, "stream": -1,
        ...                      "index_correlation": -1, "name": ["outer", "inner"]})
        >>> CallStackGraph(rows, CallStackIdentity(0, 1, 1)).get_path_to_root(5)
        [5, 4, -1]
    """

    root_index = NULL_NODE_INDEX

    def __init__(self, df: pd.DataFrame, identity: CallStackIdentity, filter_func: Choice | None = None) -> None:
        if "index_correlation" not in df:
            msg = "the frame has no column 'index_correlation': pass rows of Trace.get_trace"
            raise ValueError(msg)
        self.df = df
        self.identity = identity
        self.filter_func = filter_func
        self.device_type = infer_device_type(df)
        self.correlations = df["index_correlation"]
        self.nodes: dict[int, CallStackNode] = {}
        if self.device_type != DeviceType.GPU:
            self._add_nodes(df if filter_func is None else filter_func(df))
        numbers = df["index"].tolist() if self.device_type == DeviceType.GPU else [n for n in self.nodes if n >= 0]
        depths = [self.nodes[number].depth if number in self.nodes else -1 for number in numbers]
        self.depth = pd.Series(depths, index=numbers, name="depth", dtype="int64")

    def _add_nodes(self, rows: pd.DataFrame) -> None:
        rows = rows[rows["stream"].lt(0)].sort_values(["ts", "dur"], ascending=[True, False], kind="stable")
        parent, _ = parents_in_frame(rows)
        index = rows["index"].to_numpy()
        self.nodes[NULL_NODE_INDEX] = CallStackNode(NULL_NODE_INDEX, -1, [])
        above = np.where(parent >= 0, index[parent], NULL_NODE_INDEX).tolist() if len(index) else []
        for number, upper in zip(index.tolist(), above, strict=True):  # an enclosing event comes before what is in it
            self.nodes[number] = CallStackNode(upper, self.nodes[upper].depth + 1, [])
            self.nodes[upper].children.append(number)

    def get_depth(self) -> pd.Series:
        """Return the depth of each event, -1 on a stream."""
        return self.depth


class CallGraph:
    """The stacks of all threads and streams; the frames of the trace get the columns ``depth`` and ``parent``.

    Args:
        trace: a job that was read.
        ranks: whose frames; all if not given.
        filter_func: which rows become nodes; all if not given.
        remapped_tids: for each rank, threads to be taken for another one: ``{0: {300: 400}}``.
        pre_process_trace_data: in the frame, cut Python functions that end after the function that called them.
    """

    def __init__(
        self,
        trace: Trace,
        ranks: Sequence[int] | None = None,
        filter_func: Choice | None = None,
        remapped_tids: Mapping[int, Mapping[int, int]] | None = None,
        pre_process_trace_data: bool = False,
    ) -> None:
        self.trace_data = trace
        self.call_stacks: list[CallStackGraph] = []
        keys = []
        for rank in trace.get_ranks() if ranks is None else ranks:
            frame = trace.get_trace(rank)
            if pre_process_trace_data:
                self.constrain_child_time_withinin_parent(frame)
            tids = frame["tid"].replace(dict((remapped_tids or {}).get(rank, {})))
            first = len(self.call_stacks)
            lanes: Any = frame.assign(tid=tids).groupby(["pid", "tid"])
            for (pid, tid), rows in lanes:
                on_stream = rows["stream"].gt(0)  # its annotations and records of synchronization are no kernels
                chosen = rows[on_stream] if on_stream.any() else rows
                self.call_stacks.append(CallStackGraph(chosen, CallStackIdentity(rank, pid, tid), filter_func))
                keys.append((rank, pid, tid))
            self._write(frame, self.call_stacks[first:])
        index = pd.MultiIndex.from_tuples(keys, names=["rank", "pid", "tid"])
        self.mapping = pd.DataFrame({"csg_index": range(len(keys))}, index=index)

    @staticmethod
    def _write(frame: pd.DataFrame, stacks: Sequence[CallStackGraph]) -> None:
        """Put depth and parent into a rank's frame; above device work lies what it is correlated to."""
        depth = {number: node.depth for stack in stacks for number, node in stack.nodes.items()}
        parent = {number: node.parent for stack in stacks for number, node in stack.nodes.items()}
        on_stream = frame["stream"].ne(-1)
        frame["depth"] = frame["index"].map(depth).fillna(-1).astype("int64")
        frame["parent"] = frame["index"].map(parent).where(~on_stream, frame["index_correlation"])

    def get_stack_of_node(self, node_id: int, rank: int, skip_ancestors: bool = False) -> pd.DataFrame:
        """Return the rows of the events under an event with nothing below them, of their device work, and of all above.

        Args:
            node_id: the event's position in the file; for device work, its launch is taken.
            rank: whose event.
            skip_ancestors: leave out what is above.

        Raises:
            KeyError: the rank has no such event.
        """
        frame = self.trace_data.get_trace(rank)
        row: Any = frame.loc[node_id]
        if row["stream"] > -1:
            return self.get_stack_of_node(int(row["index_correlation"]), rank, skip_ancestors)
        stack = self.call_stacks[self.mapping.loc[(rank, row["pid"], row["tid"]), "csg_index"]]
        leaves = stack.get_leaf_nodes(node_id)
        above = [] if skip_ancestors else stack.get_path_to_root(node_id)
        work = frame.loc[leaves, "index_correlation"]
        return frame.reindex([*leaves, *above, *work[work.gt(0)].tolist()])

    def constrain_child_time_withinin_parent(self, df: pd.DataFrame) -> None:
        """Cut the Python functions of the caller's frame that end after the one that called them on their thread."""
        if "python_id" not in df or not df["python_id"].gt(-1).any():
            return
        functions = df[df["python_id"].gt(-1)].sort_values("ts", kind="stable")
        ends: dict[int, tuple[object, float]] = {}
        columns = ("python_id", "python_parent_id", "tid", "ts", "dur")
        for index, number, caller, tid, start, lasts in functions[list(columns)].itertuples():
            thread, limit = ends.get(caller, (None, 0))
            if thread == tid and start + lasts > limit:
                lasts = limit - start
                df.loc[index, "dur"] = lasts
            ends[number] = (tid, start + lasts)
