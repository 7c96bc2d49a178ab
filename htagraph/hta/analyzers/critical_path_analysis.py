"""The critical path of one rank's window as HTA has it: CPGraph, a networkx graph, which is a view of our graph.

HTA takes the path of most weight, and its weights leave out the time of threads between operators. Over the
dependencies of our graph, the path of most weight spans the window, and mostly is the path that the window waited for;
where long work on a stream runs beside a busy host, it may be another path. `CPGraph.waited_for` is exact and sums to
the window.
"""

from __future__ import annotations

import re
import warnings
from collections import UserDict
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable, decode_symbol_id_to_symbol_name
from htagraph.hta.configs.config import CP_LAUNCH_EDGE_ENV, CP_STRICT_NEG_WEIGHT_CHECK_ENV, flag
from htagraph.hta.shapes.frame import frame_of, whole
from htagraph.hta.shapes.job import HasJob, HtaJob, analyzer
from htagraph.hta.shapes.names import device_side, is_analysed
from htagraph.hta.shapes.path_files import overlay_critical_path_analysis, restore_cpgraph, save
from htagraph.hta.shapes.path_view import (
    NOBODY,
    TYPES,
    BoundType,
    CPEdge,
    CPEdgeType,
    CPNode,
    View,
    heaviest_path,
    view_of,
)
from htagraph.queries.paths import path_to

__all__ = [
    "BoundType", "CPEdge", "CPEdgeType", "CPGraph", "CPNode", "CriticalPathAnalysis", "critical_path_analysis",
    "restore_cpgraph",
]  # fmt: skip

Instances: TypeAlias = int | tuple[int, int] | None

_BOUND_BY_TYPE = {
    CPEdgeType.KERNEL_KERNEL_DELAY.value: BoundType.GPU_KERNEL_KERNEL_OVERHEAD.value,
    CPEdgeType.KERNEL_LAUNCH_DELAY.value: BoundType.GPU_KERNEL_LAUNCH_OVERHEAD.value,
    CPEdgeType.DEPENDENCY.value: "", CPEdgeType.SYNC_DEPENDENCY.value: "",
}  # fmt: skip
_BOUND_ON_DEVICE = np.array(
    ["", BoundType.GPU_COMPUTE_BOUND.value, BoundType.GPU_COMMUNICATION_BOUND.value], dtype=object
)


def critical_path_analysis(
    t: HasJob,
    rank: int,
    annotation: str,
    instance_id: Instances = None,
    data_load_events: Sequence[str] | None = None,
    *,
    stacklevel: int = 2,
) -> tuple[CPGraph, bool] | None:
    """Return the graph of one rank's window with its critical path, and whether there is one.

    The window goes from the first start to the last end of some annotations. It has the activities that the host began
    in it, and the device work that these activities launched.

    Args:
        t: a job that was read.
        rank: one of its ranks.
        annotation: part of the names of the annotations, any events; empty for the whole trace.
        instance_id: which of these annotations, in the order of the frame: a number (the first by default) or the first
            and the last number of a range.
        data_load_events: regular expressions; annotations with such a name are nodes, their time is ``data_loading``.
        stacklevel: the stack level of warnings, which decides whose line a warning names.

    Returns:
        The graph, and True; the graph, and False, where nothing in the window could be on a path. None, with a warning,
        where there is no such annotation or no such instance.

    Raises:
        RankError: the rank was not read.
        TypeError: `instance_id` is none of the above.
    """
    window = _window(t.job, rank, annotation, _range(instance_id))
    if isinstance(window, str):
        warnings.warn(window, stacklevel=stacklevel)
        return None
    view = view_of(t.job, rank, window, list(data_load_events or ()), zero_launches=flag(CP_LAUNCH_EDGE_ENV))
    graph = CPGraph.of(view, t.job, data_load_events)
    has_path = graph.critical_path()
    if not has_path:
        warnings.warn(f"rank {rank}: nothing with a dependency lies in {annotation!r}", stacklevel=stacklevel)
    return graph, has_path


def _range(instance_id: Instances) -> tuple[int, int]:
    if instance_id is None:
        return 0, 0
    if isinstance(instance_id, tuple) and len(instance_id) == 2:
        return int(instance_id[0]), int(instance_id[1])
    if isinstance(instance_id, int | np.integer):
        return int(instance_id), int(instance_id)
    msg = f"instance_id is a number, a pair (first, last) or None, not {instance_id!r}"
    raise TypeError(msg)


def _window(job: HtaJob, rank: int, annotation: str, instances: tuple[int, int]) -> tuple[int, int] | str:
    """Return the first and last moment of the window, ns; or why there is none."""
    trace = job.of_rank(rank)
    events = trace.events
    rows = np.flatnonzero(is_analysed(trace))
    if annotation:
        names = [code for code, name in enumerate(trace.names) if annotation in name]
        rows = rows[np.isin(events.name[rows], names)]
        if job.windowed:  # the device's come first in the frame then
            rows = rows[np.argsort(~device_side(trace)[rows], kind="stable")]
        count, (first, last) = len(rows), instances
        if not count:
            return f"rank {rank} has no event whose name contains {annotation!r}"
        rows = rows[first : last + 1] if first >= 0 else rows[:0]
        if not len(rows):
            which = f"{first}" if first == last else f"{first} to {last}"
            return f"rank {rank} has {count} events whose name contains {annotation!r}: no instance {which}, from 0"
    if not len(rows):
        return f"rank {rank} has no events"
    return int(events.start[rows].min()), int(events.end[rows].max())


CriticalPathAnalysis = analyzer("CriticalPathAnalysis", critical_path_analysis, overlay_critical_path_analysis)


class CPGraph(nx.DiGraph):  # type: ignore[type-arg, misc, unused-ignore]
    """The dependencies of one rank's window, a `networkx.DiGraph` over node numbers, and its critical path.

    A node is the start or end of an event; `node_list` holds them by (time, event). The data of an edge are ``weight``
    (µs) and ``object``, its `CPEdge`. The graph may be changed and `critical_path` called again.

    `critical_path_nodes` is the path of most weight, as HTA defines it; `waited_for` is the path that leads from each
    moment to the moment it waited for, and its segments sum to the window.
    """

    def __init__(
        self, t: Any = None, t_full: Any = None, rank: int = 0, G: Any = None,  # noqa: ANN401 - HTA's names
        data_load_events: Sequence[str] | None = None, **attr: Any,  # noqa: ANN401 - as networkx's
    ) -> None:  # fmt: skip
        """Make a graph as HTA does, and as networkx does where only its data are given; most come from `of`.

        Args:
            t: a trace of the events of interest; None where `G` is given. Without `t_full`, the data of networkx.
            t_full: the whole trace.
            rank: whose events.
            G: a graph that was made before.
            data_load_events: as of `critical_path_analysis`.
            attr: attributes of the graph.
        """
        self.data_load_events: list[str] | None = None
        self.critical_path_nodes: list[int] = []
        self.saved_frame: pd.DataFrame | None = None
        self.is_filled = True
        """Whether networkx's tables were used: after that they, and not the columns, are the graph."""
        self._view: View | None = None
        self._job: HtaJob | None = None
        self._weight: Array | None = None
        # networkx makes its tables of nodes and edges with these: they are filled when somebody looks at them
        self.node_dict_factory = self.adjlist_outer_dict_factory = partial(_LazyTable, self._fill)
        super().__init__(t if t_full is None else G, **attr)
        if t is not None and t_full is not None:
            frame, job = t.get_trace(rank), t_full.job
            bounds = (frame["ts"].min(), (frame["ts"] + frame["dur"]).max())
            window = tuple(round(moment * 1000) + t.job.zero_ns(rank) for moment in bounds)
            self._view = view_of(
                job, rank, window, list(data_load_events or ()), zero_launches=flag(CP_LAUNCH_EDGE_ENV)
            )
            self.data_load_events = list(data_load_events) if data_load_events is not None else None
            self._job, self.is_filled = job, False

    @classmethod
    def of(
        cls, view: View, job: HtaJob | None, data_load_events: Sequence[str] | None = None, weight: Array | None = None
    ) -> CPGraph:
        """Return the graph of a view.

        Args:
            view: nodes and edges.
            job: the job that the view was made from, if the job is at hand.
            data_load_events: regular expressions of the names of events that load data.
            weight: ns of each edge where they were changed.
        """
        graph = cls()
        graph.data_load_events = list(data_load_events) if data_load_events is not None else None
        graph._view, graph._job, graph._weight, graph.is_filled = view, job, weight, False
        return graph

    # nodes and edges

    @cached_property
    def node_list(self) -> list[CPNode]:
        """The nodes; a node's number is its position."""
        nodes = self.parts.nodes
        ts = whole((nodes.time - self.parts.first_ns) / 1000)
        columns = (nodes.event, ts, nodes.is_start, nodes.is_blocking)
        rows = enumerate(zip(*(column.tolist() for column in columns), strict=True))
        return [CPNode(number, *row) for number, row in rows]

    @cached_property
    def event_to_start_node_map(self) -> dict[int, int]:
        """The number of the node at which each event starts."""
        return self._nodes_of(self.parts.nodes.is_start)

    @cached_property
    def event_to_end_node_map(self) -> dict[int, int]:
        """The number of the node at which each event ends."""
        return self._nodes_of(~self.parts.nodes.is_start)

    @cached_property
    def edge_to_event_map(self) -> dict[tuple[int, int], int]:
        """The event of each edge that is an event's time or the pause after it."""
        edges = self.parts.edges
        owned = np.flatnonzero(edges.owner != NOBODY)
        pairs = zip(edges.source[owned].tolist(), edges.target[owned].tolist(), strict=True)
        return dict(zip(pairs, edges.owner[owned].tolist(), strict=True))

    def get_nodes_for_event(self, ev_id: int) -> tuple[CPNode | None, CPNode | None]:
        """Return the nodes at which an event starts and ends; None where it has none."""
        nodes = self.event_to_start_node_map.get(ev_id), self.event_to_end_node_map.get(ev_id)
        start, end = (None if node is None else self.node_list[node] for node in nodes)
        return start, end

    def get_events_for_edge(self, edge: CPEdge) -> tuple[int, int]:
        """Return the events at both ends of an edge."""
        return int(self.node_list[edge.begin].ev_idx), int(self.node_list[edge.end].ev_idx)

    def get_event_attribution_for_edge(self, edge: CPEdge) -> int | None:
        """Return the event that an edge's time belongs to; None if it belongs to no event."""
        return self.edge_to_event_map.get((edge.begin, edge.end))

    def get_edges_attributed_to_event(self, ev_idx: int) -> list[CPEdge]:
        """Return the edges whose time belongs to an event."""
        return [self.edges[pair]["object"] for pair, event in self.edge_to_event_map.items() if event == ev_idx]

    # the path

    def critical_path(self) -> bool:
        """Find the path with the largest sum of weights and return True; False if the graph has none.

        Sets `critical_path_nodes`, `critical_path_events_set` and `critical_path_edges_set`.
        """
        if not self._validate_graph():
            return False
        if self.is_filled:
            self.critical_path_nodes = [int(node) for node in nx.dag_longest_path(self, weight="weight")]
        else:
            path = heaviest_path(self.parts.edges, self.weight_ns)
            if path is None:
                return False
            self.critical_path_nodes = path.tolist()
        for name in ("critical_path_events_set", "critical_path_edges_set"):
            self.__dict__.pop(name, None)
        return True

    @cached_property
    def critical_path_events_set(self) -> set[int]:
        """The events of the path's nodes."""
        return set(self.parts.nodes.event[self.critical_path_nodes].tolist())

    @cached_property
    def critical_path_edges_set(self) -> set[CPEdge]:
        """The path's edges."""
        return set(self.critical_path_edges)

    @property
    def critical_path_edges(self) -> list[CPEdge]:
        """The path's edges in its order."""
        nodes = self.critical_path_nodes
        if self.is_filled:
            return [self.adj[u][v]["object"] for u, v in pairwise(nodes)]
        edges, many = self.parts.edges, len(self.parts.nodes.event)
        keys = edges.source * np.int64(many) + edges.target
        order = np.argsort(keys)
        wanted = np.array(nodes[:-1], np.int64) * many + np.array(nodes[1:], np.int64)
        return self._edge_objects(order[np.searchsorted(keys[order], wanted)])

    def get_critical_path_breakdown(self) -> pd.DataFrame | None:
        """Return the type, event and bound of each edge of the path; None if there is no path.

        Returns:
            One row per edge in the path's order: ``event_idx`` (the event whose time it is, NaN for none), ``duration``
            (µs), ``type`` (word of `CPEdgeType`), ``s_name``, ``cat``, ``pid``, ``tid``, ``stream``, ``index`` (of that
            event) and ``bound_by`` (word of `BoundType`, empty for edges without time).
        """
        if not self.critical_path_nodes:
            return None
        edges = self.critical_path_edges
        events = [self.get_event_attribution_for_edge(edge) for edge in edges]
        known = all(event is not None for event in events)
        table = pd.DataFrame({
            "event_idx": np.array(events, np.int64 if known else np.float64),
            "duration": np.array([edge.weight for edge in edges], np.float64),
            "type": [edge.type.value for edge in edges],
        })  # fmt: skip
        shown = self.named_events[["s_name", "cat", "pid", "tid", "stream", "index"]]
        table = table.merge(shown, left_on="event_idx", right_on="index", how="left")
        table["bound_by"] = self._bound_by(table)
        return table

    def _bound_by(self, table: pd.DataFrame) -> Array:
        kind = self.parts.nodes.kind
        code = (kind >= ActivityKind.COMPUTATION).astype(np.int64) + (kind == ActivityKind.COMMUNICATION)
        of_event = dict(zip(self.parts.nodes.event.tolist(), code.tolist(), strict=True))
        events = table["event_idx"].fillna(-1).astype(np.int64).tolist()
        bound = _BOUND_ON_DEVICE[[of_event.get(event, 0) for event in events]]
        loads = [re.compile(pattern) for pattern in self.data_load_events or ()]
        names = table["s_name"].fillna("").astype(str)
        data = np.array([any(each.search(name) for each in loads) for name in names], np.bool_)
        on_host = np.where(data, BoundType.DATA_LOADING.value, BoundType.CPU_BOUND.value)
        by_type = table["type"].map(_BOUND_BY_TYPE)
        return np.where(by_type.notna(), by_type, np.where(bound == "", on_host, bound))

    def summary(self) -> pd.Series:
        """Return the percentage of the path's weight by what bounds it, and print a heading; empty without nodes."""
        table = self.get_critical_path_breakdown()
        if table is None and not self.node_list:
            return pd.Series(dtype="float64", index=pd.Index([], dtype="str", name="bound_by"), name="duration")
        if table is None:
            msg = "there is no critical path: call critical_path() first"
            raise ValueError(msg)
        print("Critical Path broken down by boundedness = (in % of duration)")  # noqa: T201 - as HTA does
        return table.groupby("bound_by")["duration"].sum() / max(table["duration"].sum(), 1e-9) * 100

    def show_critical_path(self) -> None:
        """Print the path's nodes."""
        for number in self.critical_path_nodes:
            node = self.node_list[number]
            name = self._get_node_name(node.ev_idx)
            print(f"Critical {node}, ev_id = {node.ev_idx} ev_name = {name}")  # noqa: T201 - as its name says

    def waited_for(self) -> Any:  # noqa: ANN401 - CriticalPath
        """Return the `htagraph.CriticalPath` of the window, whose segments sum to the window.

        Raises:
            ValueError: the graph was restored without its job.
        """
        graph = self.job.graph
        vertices = self.parts.nodes.vertex[self.parts.nodes.vertex >= 0]
        return path_to(graph, vertices, int(graph.time[vertices].min()) if len(vertices) else 0)

    # frames

    @cached_property
    def full_trace_df(self) -> pd.DataFrame:
        """HTA's frame of the rank, as a copy."""
        return self.job.frame(self.rank).copy()

    @cached_property
    def trace_df(self) -> pd.DataFrame:
        """HTA's frame of the events in the window, as a copy."""
        return self._clipped(self.job.frame(self.rank)) if self.saved_frame is None else self.saved_frame

    @cached_property
    def named_events(self) -> pd.DataFrame:
        """The frame of the window's events, in the order of the file, with their names as texts."""
        if self.saved_frame is not None:
            return self.saved_frame
        frame = self._clipped(frame_of(self.job, self.rank, from_file=False))
        decode_symbol_id_to_symbol_name(frame, self.symbol_table)
        return frame

    @property
    def symbol_table(self) -> TraceSymbolTable:
        """The numbers that stand for names and categories in the frames."""
        return self.job.symbols

    def save(self, out_dir: str) -> str:
        """Write the graph to ``out_dir.zip``, see `htagraph.hta.shapes.path_files.save`, and return that name."""
        return save(self, out_dir)

    def _clipped(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a copy of the events of a rank's frame that lie in the window, in the order of the file."""
        first_us, last_us = ((moment - self.parts.first_ns) / 1000 for moment in self.parts.window)
        keep = frame["stream"].eq(-1) & frame["ts"].between(first_us, last_us) & frame["dur"].gt(0)
        keep |= frame["index"].isin(self.parts.nodes.event)
        return frame[keep].sort_index()

    # what HTA's own tests call by these names

    def _get_node_name(self, ev_id: int) -> str:
        """Return an event's whole name."""
        if ev_id < 0:
            return "ROOT"
        frame = self.named_events
        if "full_name" in frame:
            return str(frame["full_name"].loc[ev_id])
        return self.symbol_table.sym_table[frame["name"].loc[ev_id]]

    def _validate_graph(self) -> bool:
        """Return whether the graph has a path; negative weights become 0, or with the strict flag rule it out."""
        if not self.is_filled:
            return len(self.parts.edges) > 0
        for u, v, data in self.edges(data=True):
            if data["weight"] < 0 and not flag(CP_STRICT_NEG_WEIGHT_CHECK_ENV):
                warnings.warn(f"the weight of the edge {u} -> {v} is below 0: taken as 0", stacklevel=3)
                data["weight"] = 0
            elif data["weight"] < -1:
                return False
        return len(self.nodes) > 0 and nx.is_directed_acyclic_graph(self)

    def _get_cuda_event_record_df(self) -> pd.DataFrame | None:
        """Return the calls of cudaEventRecord that something waits for; None where the trace has none.

        Returns:
            One row per call in the order of time: ``pid``, ``tid``, ``ts`` (µs), ``index``, ``name``, ``correlation``,
            ``stream``, ``gpu`` (on which it was recorded), ``index_previous_launch`` (the last launch on that stream
            before it, -1 for none) and ``correlation_launch_event`` (of that launch).
        """
        frame = frame_of(self.job, self.rank, from_file=False)
        name = self.symbol_table.sym_index.get("cudaEventRecord")
        waits = frame[frame["wait_on_stream"].gt(-1)].drop_duplicates(["wait_on_cuda_event_record_corr_id"])
        if name is None or waits.empty:
            return None
        waits = waits[["wait_on_cuda_event_record_corr_id", "wait_on_stream", "pid"]]
        waits.columns = pd.Index(["correlation", "stream", "gpu"])
        calls = frame.loc[frame["name"].eq(name), ["pid", "tid", "ts", "index", "name", "correlation"]]
        calls = calls.merge(waits, on="correlation").astype({"stream": "int64", "correlation": "int64"})
        shown = {"launch": "index_previous_launch", "correlation": "correlation_launch_event"}
        return _beside(calls, frame, ["gpu", "stream"], shown, "backward")

    def _get_cuda_stream_wait_event_df(self) -> pd.DataFrame | None:
        """Return the calls of cudaStreamWaitEvent; None where the trace has none.

        Returns:
            One row per call in the order of time, indexed by its position in the file: ``name``, ``ts`` (µs), ``pid``,
            ``tid``, ``correlation``, ``index_correlation``, ``stream`` (that waits) and ``index_next_launch`` (the
            thread's next launch on that stream, -1 for none).
        """
        frame, index = frame_of(self.job, self.rank, from_file=False), self.symbol_table.sym_index
        if "cudaStreamWaitEvent" not in index or "Stream Wait Event" not in index:
            return None
        shown = ["index", "name", "ts", "pid", "tid", "correlation", "index_correlation"]
        calls = frame.loc[frame["name"].eq(index["cudaStreamWaitEvent"]) & frame["index_correlation"].gt(0), shown]
        calls = calls.assign(stream=frame["stream"].reindex(calls["index_correlation"]).to_numpy())
        beside = _beside(calls, frame, ["pid", "tid", "stream"], {"launch": "index_next_launch"}, "forward")
        return beside.set_index("index")

    # behind all that

    @property
    def rank(self) -> int:
        """The rank whose events they are."""
        return 0 if self._view is None else self._view.rank

    @property
    def parts(self) -> View:
        """The nodes and edges as columns, as they were made.

        Raises:
            ValueError: the graph was made by networkx and has none.
        """
        if self._view is None:
            msg = "this graph has no events: make it with critical_path_analysis or restore_cpgraph"
            raise ValueError(msg)
        return self._view

    @property
    def job(self) -> HtaJob:
        """The job that the graph was made from.

        Raises:
            ValueError: the graph was restored without it.
        """
        if self._job is None:
            msg = "this graph was restored without its trace: pass the trace to restore_cpgraph"
            raise ValueError(msg)
        return self._job

    @property
    def weight_ns(self) -> Array:
        """The weight of each edge of `parts`."""
        return self.parts.edges.weight if self._weight is None else self._weight

    def _fill(self) -> None:
        """Put nodes and edges into networkx's tables, once."""
        if self.is_filled:
            return
        self.is_filled = True
        edges = self._edge_objects(np.arange(len(self.parts.edges)))
        weights = whole(self.weight_ns / 1000).tolist()
        self.add_edges_from(
            (edge.begin, edge.end, {"weight": weight, "object": edge})
            for edge, weight in zip(edges, weights, strict=True)
        )

    def _edge_objects(self, rows: Array) -> list[CPEdge]:
        edges = self.parts.edges
        columns = (edges.source[rows], edges.target[rows], whole(edges.weight / 1000)[rows])
        source, target, weight = (column.tolist() for column in columns)
        kind = [TYPES[code] for code in edges.kind[rows].tolist()]
        return [CPEdge(*row) for row in zip(source, target, kind, weight, strict=True)]

    def _nodes_of(self, which: Array) -> dict[int, int]:
        return dict(zip(self.parts.nodes.event[which].tolist(), np.flatnonzero(which).tolist(), strict=True))


class _LazyTable(UserDict[Any, Any]):
    """A dictionary that calls `fill`, which writes into it, when it is used for the first time."""

    def __init__(self, fill: Callable[[], None]) -> None:
        self._fill: Callable[[], None] | None = fill
        self._held: dict[Any, Any] = {}

    @property
    def data(self) -> dict[Any, Any]:  # type: ignore[override]
        """What the table holds."""
        if self._fill is not None:
            fill, self._fill = self._fill, None
            fill()
        return self._held


def _beside(calls: pd.DataFrame, frame: pd.DataFrame, by: list[str], shown: dict[str, str], way: str) -> pd.DataFrame:
    """Return calls in the order of time, with columns of the launch nearest to each on one side; -1 for no launch."""
    launched = frame["index_correlation"].gt(0) & frame["wait_on_stream"].lt(0) & frame["stream"].ge(0)
    work = frame.loc[launched, ["stream", "pid", "index_correlation", "correlation"]]
    work.columns = pd.Index(["stream", "gpu", "launch", "correlation"])
    on_host = frame.loc[frame["stream"].lt(0), ["index", "pid", "tid", "ts"]]
    launches = work.merge(on_host, left_on="launch", right_on="index")[[*by, "ts", *shown]].rename(columns=shown)
    types = dict.fromkeys(by, "object")
    calls, launches = (each.astype(types).sort_values("ts", kind="stable") for each in (calls, launches))
    beside = pd.merge_asof(calls, launches, on="ts", by=by, direction=way)  # type: ignore[arg-type]
    return beside.fillna({shown["launch"]: -1})
