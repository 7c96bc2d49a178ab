"""CallGraph: the call stacks of a job's threads, each a CallStackGraph, and the device work under each operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, looked_up
from htagraph.core.kinds import ActivityKind
from htagraph.core.parents import depths, nearest
from htagraph.graph.construction.nesting import nest, nesting_order
from htagraph.hta.common.trace import Trace
from htagraph.hta.common.trace_symbol_table import DeviceType, TraceSymbolTable, is_device_lane
from htagraph.hta.shapes.frame import smallest_type
from htagraph.hta.shapes.job import HtaJob
from htagraph.hta.shapes.names import is_step, under_main
from htagraph.hta.utils.utils import names_of, require

__all__ = [
    "NON_EXISTENT_NODE_INDEX", "NULL_NODE_INDEX", "STACK_COLUMNS", "CallGraph", "CallStackGraph", "CallStackIdentity",
    "CallStackNode", "DFSCallback", "StackWalks", "parents_in_frame", "parents_in_job", "root_of", "stack_columns",
]  # fmt: skip

NON_EXISTENT_NODE_INDEX = -2
"""What `CallStackGraph.get_parent` returns for an event that is no node."""
NULL_NODE_INDEX = -1
"""The parent of a root."""


class CallStackIdentity(NamedTuple):
    """Which thread of which rank."""

    rank: int = -1
    pid: int = -1
    tid: int = -1


@dataclass
class CallStackNode:
    """One event: what is above it, what is below it, and on which thread of which rank it is."""

    parent: int = NULL_NODE_INDEX
    depth: int = -1
    height: int = -1
    device: DeviceType = DeviceType.CPU
    children: list[int] = field(default_factory=list)


DFSCallback: TypeAlias = Callable[[int, Any], None]


class StackWalks:
    """Walks up and down the nodes of call stacks; a node's number is its event's position in the file."""

    df: pd.DataFrame
    nodes: Mapping[int, Any]
    root_index: int

    def get_dataframe(self) -> pd.DataFrame:
        """Return the rows of the thread or stream."""
        return self.df

    def get_nodes(self) -> Mapping[int, Any]:
        """Return the nodes by number."""
        return self.nodes

    def get_parent(self, idx: int) -> int:
        """Return the node above a node, -2 if there is no such node."""
        return int(self.nodes[idx].parent) if idx in self.nodes else NON_EXISTENT_NODE_INDEX

    def get_children(self, idx: int) -> list[int]:
        """Return the nodes directly below a node, none if there is no such node."""
        return self.nodes[idx].children if idx in self.nodes else []

    def get_path_to_root(self, idx: int) -> list[int]:
        """Return a node, the one above it, and so on up to the root of the thread."""
        if idx not in self.nodes:
            return []
        path = [idx]
        while path[-1] >= 0 and path[-1] in self.nodes:
            path.append(int(self.nodes[path[-1]].parent))
        return path

    def get_root(self, idx: int) -> int:
        """Return the root of the thread that a node is on, -1 if there is no such node."""
        return self.get_path_to_root(idx)[-1] if idx in self.nodes else NULL_NODE_INDEX

    def get_paths_to_leaves(self, idx: int, include_cuda_kernel: bool = False) -> list[list[int]]:
        """Return the ways down from a node to each node with nothing below it.

        Args:
            idx: where they begin.
            include_cuda_kernel: go on from a launch to its device work.
        """
        paths: list[list[int]] = []
        ways = [[idx]] if idx in self.nodes else []
        while ways:
            way = ways.pop()
            below = self._below(way[-1], include_cuda_kernel)
            if not below:
                paths.append(way)
            ways.extend([*way, child] for child in reversed(below))
        return paths

    def get_leaf_nodes(self, idx: int, include_gpu_kernel: bool = False) -> list[int]:
        """Return the nodes at or under a node with nothing below them; device work only if asked for."""
        under = self.get_descendants(idx, include_gpu_kernel)
        return [node for node in under if not self._below(node, include_gpu_kernel)]

    def get_descendants(self, idx: int, include_gpu_kernel: bool = False) -> list[int]:
        """Return a node and all under it; device work only if asked for."""
        under: list[int] = []
        todo = [idx] if idx in self.nodes else []
        while todo:
            under.append(todo.pop())
            todo.extend(reversed(self._below(under[-1], include_gpu_kernel)))
        return under

    def dfs_traverse(self, enter_func: DFSCallback, exit_func: DFSCallback) -> None:
        """Walk through the thread's nodes, each before the nodes below it.

        Args:
            enter_func: called with number and node before what is below it.
            exit_func: called with number and node after that.
        """
        todo = [(self.root_index, True)]
        while todo:
            number, enters = todo.pop()
            if number not in self.nodes:
                continue
            node = self.nodes[number]
            if not enters:
                exit_func(number, node)
                continue
            enter_func(number, node)
            todo.append((number, False))
            todo.extend((child, True) for child in reversed(node.children))

    def _below(self, idx: int, device: bool) -> list[int]:
        """Return the nodes directly below a node; device work only if asked for."""
        below = [child for child in self.nodes[idx].children if child in self.nodes]
        on_host = [child for child in below if getattr(self.nodes[child], "device", None) != DeviceType.GPU]
        return below if device else on_host


class CallStackGraph(StackWalks):
    """The call stack of one thread, with the device work that it launched.

    `CallGraph` makes it; `nodes` are the whole rank's nodes, since backward threads hang below the main thread.
    """

    def __init__(
        self, df: pd.DataFrame, identity: CallStackIdentity, full_df: pd.DataFrame,
        nodes: Callable[[], Mapping[int, CallStackNode]], root_index: int,
    ) -> None:  # fmt: skip
        """Make the stack of a thread.

        Args:
            df: the rows of the thread.
            identity: which thread.
            full_df: the rows of the rank.
            nodes: returns the nodes of the rank.
            root_index: the root above the thread's first level.
        """
        self.df = df
        self.identity = identity
        self.full_df = full_df
        self.root_index = root_index
        self.device_type = DeviceType.CPU
        self._nodes = nodes

    @property
    def nodes(self) -> Mapping[int, CallStackNode]:  # type: ignore[override]
        """The nodes of the rank."""
        return self._nodes()

    def get_depth(self) -> pd.Series:
        """Return the depth of each row of the thread."""
        return self.full_df.loc[self.df.index, "depth"]

    def __repr__(self) -> str:
        return f"CallStackGraph({self.identity}, {len(self.df)} events)"


STACK_COLUMNS = [
    "parent", "depth", "height", "first_kernel_start", "last_kernel_end", "num_kernels", "kernel_dur_sum",
    "kernel_span",
]  # fmt: skip
_SYNCS = ("Event Sync", "Context Sync", "Stream Sync", "Stream Wait Event")
_MAPPING = ["rank", "pid", "tid", "label", "stack_index", "stack_root", "count"]


class CallGraph:
    """What encloses what on every thread, and the device work under it, from the graph's tree.

    The frames of the trace get the columns `stack_columns`. Work of a thread of the autograd engine lies under the
    event that called the engine.

    Args:
        trace: a job that was read.
        ranks: whose frames; all if not given.

    Raises:
        ValueError: none of the ranks was read.

    Example:
        >>> from htagraph.hta.common.trace import Trace
        >>> trace = Trace(trace_dir="data/demo")
        >>> trace.parse_traces(max_ranks=1)
        >>> CallGraph(trace).mapping["label"].tolist()[0]
        'main'
        >>> int(trace.get_trace(0)["num_kernels"].max()) > 0
        True
    """

    stack_columns = STACK_COLUMNS

    def __init__(self, trace: Trace, ranks: Sequence[int] | None = None) -> None:
        known = trace.get_ranks()
        self.trace_data: Trace | None = trace
        self.ranks = [rank for rank in ranks if rank in known] if ranks else known
        if not self.ranks:
            msg = f"ranks={ranks}: none of them was read; there are ranks {', '.join(map(str, known)) or 'none'}"
            raise ValueError(msg)
        self._start(trace.symbol_table)
        for rank in self.ranks:
            frame = trace.get_trace(rank)
            self._add(rank, frame, *parents_in_job(trace.job, rank, frame))

    @staticmethod
    def from_dataframe(df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None, rank: int = -1) -> CallGraph:
        """Return the call graph of a frame, by its times and correlations alone, and the names of its annotations.

        Backward operators lie in the annotation or step of the main thread that encloses them, see `under_main`.

        Args:
            df: rows of one rank; they are copied.
            symbol_table: what the numbers in ``name`` stand for; not needed where the names are texts.
            rank: the number to give the rank.
        """
        require(
            df, ("pid", "tid", "ts", "dur", "stream", "index_correlation", "name"), ": pass rows of Trace.get_trace"
        )
        frame = df.copy()
        symbols = symbol_table or TraceSymbolTable.create_from_df(frame)
        graph = CallGraph.__new__(CallGraph)
        graph.trace_data, graph.ranks = None, [rank]
        graph._start(symbols)
        texts = names_of(frame, symbols)
        parent, work = parents_in_frame(frame.assign(name=texts))
        start, lane = frame["ts"].to_numpy(), frame.groupby(["pid", "tid"], sort=False).ngroup().to_numpy()
        linked = under_main(
            parent, frame["stream"].to_numpy() < 0, lane, start, start + frame["dur"].to_numpy(),
            lambda test: texts.isin([name for name in texts.unique() if test(name)]).to_numpy(),
        )  # fmt: skip
        graph._add(rank, frame, linked, work)
        return graph

    def _start(self, symbols: TraceSymbolTable) -> None:
        self._symbols = symbols
        self._frames: dict[int, pd.DataFrame] = {}
        self._nodes: dict[int, dict[int, CallStackNode]] = {}
        self.call_stacks: list[CallStackGraph] = []
        self.mapping = pd.DataFrame(columns=_MAPPING)

    def _add(self, rank: int, frame: pd.DataFrame, parent: Any, work: Any) -> None:  # noqa: ANN401 - arrays
        """Add a rank: columns to its frame, and a stack per thread."""
        columns = stack_columns(frame, parent, work)
        for name in STACK_COLUMNS:
            frame[name] = columns[name]
        self._frames[rank] = frame
        rows = []
        lanes: Any = frame.groupby(["pid", "tid"])
        for (pid, tid), of_lane in lanes:
            if is_device_lane(pid, tid, of_lane["stream"].to_numpy()):
                continue
            stack = CallStackGraph(
                of_lane, CallStackIdentity(rank, pid, tid), frame, lambda: self.rank_to_nodes[rank],
                self._root(of_lane, frame),
            )  # fmt: skip
            rows.append([rank, pid, tid, self._label(of_lane), len(self.call_stacks), stack.root_index, 1])
            self.call_stacks.append(stack)
        table = pd.DataFrame(rows, columns=_MAPPING)
        table["count"] = table.groupby("stack_root").cumcount() + 1
        self.mapping = table if self.mapping.empty else pd.concat([self.mapping, table], ignore_index=True)

    def _root(self, of_lane: pd.DataFrame, frame: pd.DataFrame) -> int:
        """Return the root of a thread; where all its events lie under another thread's, that thread's root."""
        own = root_of(of_lane["tid"].iloc[0])
        parents = frame["parent"].loc[of_lane.index]
        first = parents[parents.lt(0) | ~parents.isin(of_lane["index"])]
        if not len(first) or first.eq(own).any():
            return own
        above = int(first.iloc[0])
        by_event = frame.set_index("index")["parent"]
        while above >= 0:
            above = int(by_event.loc[above])
        return above

    def _label(self, of_lane: pd.DataFrame) -> str:
        """Return ``main`` for a thread with profiler steps, ``bwd`` for one of autograd, else its first name."""
        names = of_lane["name"].unique().tolist()
        texts = [self._symbols.sym_table[name] if isinstance(name, int) else str(name) for name in names]
        if any(is_step(text) for text in texts):
            return "main"
        if any("autograd::" in text for text in texts):
            return "bwd"
        return texts[0] if texts else "empty"

    @property
    def rank_to_nodes(self) -> dict[int, dict[int, CallStackNode]]:
        """The nodes of each rank, by the position of their event in the file; roots have numbers below 0."""
        for rank in self.ranks:
            if rank not in self._nodes:
                self._nodes[rank] = _nodes_of(self._frames[rank])
        return self._nodes

    @property
    def rank_to_stacks(self) -> dict[int, dict[CallStackIdentity, CallStackGraph]]:
        """The stacks of each rank by thread."""
        of_rank: dict[int, dict[CallStackIdentity, CallStackGraph]] = {rank: {} for rank in self.ranks}
        for stack in self.call_stacks:
            of_rank[stack.identity.rank][stack.identity] = stack
        return of_rank

    def get_call_stacks(
        self, rank: int | None = None, pid: int | None = None, tid: int | None = None, stack_index: int | None = None
    ) -> Iterator[CallStackGraph]:
        """Yield the stacks of a rank, process, thread or position; all if nothing is given."""
        wanted = {"rank": rank, "pid": pid, "tid": tid, "stack_index": stack_index}
        chosen = self.mapping
        for column, value in wanted.items():
            chosen = chosen if value is None else chosen[chosen[column].eq(value)]
        for number in chosen["stack_index"].tolist():
            yield self.call_stacks[number]

    def get_node_attributes(self, index: int, rank: int | None = None) -> pd.Series:
        """Return the row of an event.

        Args:
            index: its position in the file.
            rank: whose event; the first rank if not given.

        Raises:
            ValueError: the rank has no such event.
        """
        frame = self._frame(rank)
        rows = frame[frame["index"].eq(index)]
        if rows.empty:
            msg = f"rank {self._rank(rank)} has no event {index}"
            raise ValueError(msg)
        return rows.iloc[0]

    def get_csg_of_node(self, index: int, rank: int | None = None) -> CallStackGraph:
        """Return the stack of the thread that an event, or its launch, is on; arguments as `get_node_attributes`."""
        row = self.get_node_attributes(index, rank)
        if row["stream"] >= 0 and row["parent"] >= 0:
            row = self.get_node_attributes(row["parent"], rank)
        if row["depth"] < 0:
            msg = (
                f"event {index} of rank {self._rank(rank)} lies on no thread, and nothing that was recorded launched it"
            )
            raise ValueError(msg)
        return next(self.get_call_stacks(self._rank(rank), row["pid"], row["tid"]))

    def get_stack_of_node(self, index: int, rank: int | None = None, skip_ancestors: bool = False) -> pd.DataFrame:
        """Return the rows of an event, of all under it with their device work, and of all above it, by ``ts``.

        Args:
            index: the event's position in the file.
            rank: whose event; the first rank if not given.
            skip_ancestors: leave out what is above.

        Raises:
            ValueError: the rank has no such event, or it lies on no thread.
        """
        stack = self.get_csg_of_node(index, rank)
        wanted = set(stack.get_descendants(index, include_gpu_kernel=True))
        if not skip_ancestors:
            wanted.update(stack.get_path_to_root(index))
        frame = self._frame(rank)
        return frame[frame["index"].isin(wanted)].sort_values(["ts", "depth"], kind="stable")

    def get_gpu_kernels(self, rank: int | None = None) -> pd.DataFrame:
        """Return a rank's rows on streams; of the first rank if none is given."""
        frame = self._frame(rank)
        return frame[frame["stream"].ne(-1)]

    def _rank(self, rank: int | None) -> int:
        return self.ranks[0] if rank is None else rank

    def _frame(self, rank: int | None) -> pd.DataFrame:
        if self._rank(rank) not in self._frames:
            msg = f"rank {rank} is not in this call graph; there are ranks {', '.join(map(str, self.ranks))}"
            raise ValueError(msg)
        return self._frames[self._rank(rank)]


def _nodes_of(frame: pd.DataFrame) -> dict[int, CallStackNode]:
    """Return the nodes of a rank; what is below a node is in the order of time."""
    placed = frame[frame["depth"].ge(0)].sort_values(["ts", "depth"], kind="stable")
    nodes: dict[int, CallStackNode] = {}
    columns = (placed["index"], placed["parent"], placed["depth"], placed["height"], placed["stream"].ge(0))
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    for index, parent, depth, height, on_device in rows:
        nodes[index] = CallStackNode(parent, depth, height, DeviceType.GPU if on_device else DeviceType.CPU)
    for index, parent, *_ in rows:
        if parent < 0 and parent not in nodes:
            nodes[parent] = CallStackNode()
        nodes[parent].children.append(index)
    for number in [number for number in nodes if number < 0]:
        nodes[number].height = 1 + max(nodes[child].height for child in nodes[number].children)
    return nodes


def parents_in_job(job: HtaJob, rank: int, frame: pd.DataFrame) -> tuple[Array, Array]:
    """Return the parent of each row of a rank's frame in the graph's tree, and which rows are device work.

    Records of a synchronization, which are no activities, lie in the call that synchronized.

    Args:
        job: the job.
        rank: one of its ranks.
        frame: its events, with ``index``, ``stream`` and ``index_correlation``.

    Returns:
        The row above each row, -1 for none; and whether the row is a kernel, a copy or a set.
    """
    acts, index = job.graph.activities, frame["index"].to_numpy(np.int64)
    recorded = acts.event >= 0
    rows = np.arange(len(acts))[acts.of_rank(rank)]
    rows = rows[recorded[rows]]
    order = np.argsort(index, kind="stable")
    place = looked_up(index[order], order, acts.event[rows])
    rows, place = rows[place >= 0], place[place >= 0]
    row_of = np.full(len(acts) + 1, -1, np.int64)  # the last is that of no activity
    row_of[rows] = place
    parent = _launch_rows(frame)
    parent[place] = row_of[nearest(job.tree_parents, row_of[:-1] >= 0, job.tree_parents[rows])]
    work = np.zeros(len(index), np.bool_)
    work[place] = acts.on_device[rows] & (acts.kind[rows] != ActivityKind.DEVICE_OTHER)
    return parent, work


def parents_in_frame(frame: pd.DataFrame) -> tuple[Array, Array]:
    """Return what `parents_in_job` returns, for a frame without a job: from times and correlations alone.

    Host events lie in what encloses them on their thread, device work in its launch.

    Args:
        frame: with ``index``, ``pid``, ``tid``, ``ts``, ``dur``, ``stream`` and ``index_correlation``; records of a
            synchronization are no work where ``name`` holds texts.
    """
    parent = np.full(len(frame), -1, np.int64)
    stream = frame["stream"].to_numpy()
    host = np.flatnonzero(stream < 0)
    if len(host):
        lanes = frame.iloc[host].groupby(["pid", "tid"], sort=False).ngroup().to_numpy()
        start = np.rint(frame["ts"].to_numpy(np.float64)[host] * 1000).astype(np.int64)
        end = start + np.rint(np.maximum(frame["dur"].to_numpy(np.float64)[host], 0) * 1000).astype(np.int64)
        order = nesting_order(lanes, start, end)
        above, _, _ = nest(lanes[order], start[order], end[order], np.ones(len(order), np.bool_), 0)
        parent[host[order]] = np.where(above >= 0, host[order][above], -1)
    launch = _launch_rows(frame)
    device = launch >= 0
    parent[device] = launch[device]
    syncs = frame["name"].isin(_SYNCS).to_numpy() if "name" in frame else np.zeros(len(frame), np.bool_)
    return parent, device & ~syncs


def _launch_rows(frame: pd.DataFrame) -> Array:
    """Return the row of the call that each row on a stream is correlated to, -1 for none."""
    linked = frame["stream"].ge(0) & frame["index_correlation"].gt(0)
    rows = pd.Index(frame["index"]).get_indexer(pd.Index(frame["index_correlation"]))
    return np.where(linked, rows, -1).astype(np.int64)


def root_of(tid: object) -> int:
    """Return the number of the node above a thread's first level: -tid as in HTA, or -1 if that is no number."""
    return -abs(int(tid)) if isinstance(tid, int | np.integer) and tid else -1


def stack_columns(frame: pd.DataFrame, parent: Array, work: Array) -> pd.DataFrame:
    """Return the columns that HTA's call graph adds to a frame.

    Args:
        frame: with ``index``, ``pid``, ``tid``, ``ts``, ``dur`` and ``stream``.
        parent: the row above each row, -1 for none.
        work: which rows are kernels, copies or sets.

    Returns:
        Indexed as the frame: ``parent`` (position in the file of the event above; -tid at the first level of a thread,
        -1 of rows on no thread), ``depth`` (0 at the first level, -1 on no thread), ``height`` (0 of device rows, else
        1 more than the highest below, at least 1), ``num_kernels`` (device work at or below), ``kernel_dur_sum`` (the
        sum of its durations, µs), ``first_kernel_start``, ``last_kernel_end`` (µs on the scale of ``ts``, -1 without
        any) and ``kernel_span`` (from the first start to the last end, µs). Times are float64, as in HTA.
    """
    start, duration = frame["ts"].to_numpy(), frame["dur"].to_numpy(np.float64)
    device = frame["stream"].to_numpy() >= 0
    depth = depths(parent)
    height = np.where(device, 0, 1)
    count, total = work.astype(np.int64), np.where(work, duration, 0.0)
    first, last = np.where(work, start, np.inf), np.where(work, start + duration, -np.inf)
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero(depth == level)
        above = parent[rows]
        np.maximum.at(height, above, height[rows] + 1)
        np.add.at(count, above, count[rows])
        np.add.at(total, above, total[rows])
        np.minimum.at(first, above, first[rows])
        np.maximum.at(last, above, last[rows])
    placed = _on_threads(frame) | (parent >= 0)
    some = placed & (count > 0)
    top = np.array([root_of(tid) for tid in frame["tid"].tolist()], np.int64)
    index = frame["index"].to_numpy(np.int64)
    integers = {
        "parent": np.where(parent >= 0, index[parent], np.where(placed, top, -1)) if len(index) else index,
        "depth": np.where(placed, depth, -1), "height": np.where(placed, height, -1),
        "num_kernels": np.where(placed, count, 0),
    }  # fmt: skip
    times = {
        "first_kernel_start": np.where(some, first, -1.0), "last_kernel_end": np.where(some, last, -1.0),
        "kernel_dur_sum": np.where(some, total, 0.0),
        "kernel_span": np.subtract(last, first, out=np.zeros(len(index)), where=some),
    }  # fmt: skip
    columns = {name: values.astype(smallest_type(values)) for name, values in integers.items()}
    columns |= times
    return pd.DataFrame({name: columns[name] for name in STACK_COLUMNS}, index=frame.index)


def _on_threads(frame: pd.DataFrame) -> Array:
    """Return which rows lie on host threads."""
    out = np.zeros(len(frame), np.bool_)
    stream = frame["stream"].to_numpy()
    lanes: Any = frame.groupby(["pid", "tid"], sort=False).indices
    for (pid, tid), rows in lanes.items():
        out[rows] = (stream[rows] < 0) & (not is_device_lane(pid, tid, stream[rows]))
    return out
