"""CPGraph: the dependencies of one rank's window as a networkx graph with HTA's attributes and its critical path."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.hta.critical_path.breakdown import breakdown, clipped, name_of
from htagraph.hta.critical_path.columns import NOBODY, View, heaviest_path
from htagraph.hta.critical_path.lazy_table import LazyTable
from htagraph.hta.critical_path.records import record_frame, wait_frame
from htagraph.hta.critical_path.types import STRICT, TYPES, CPEdge, CPEdgeType, CPNode, flag
from htagraph.hta.shapes.frame import whole

if TYPE_CHECKING:
    from htagraph.hta.common.trace_symbol_table import TraceSymbolTable
    from htagraph.hta.shapes.job import HtaJob

__all__ = ["CPGraph", "Place"]


@dataclass(frozen=True)
class Place:
    """The rank, window and job that a graph was made from."""

    rank: int
    window: tuple[int, int]
    """ns on the rank's clock."""
    first_ns: int
    """The moment from which the nodes' times count."""
    job: HtaJob | None


class CPGraph(nx.DiGraph):  # type: ignore[type-arg, misc, unused-ignore]
    """The dependencies of one rank's window, a `networkx.DiGraph` over node numbers, and its critical path.

    A node is the start or end of an event; `node_list` holds them by (time, event). The data of an edge are ``weight``
    (µs) and ``object``, its `CPEdge`. The graph may be changed and `critical_path` called again.

    `critical_path_nodes` is the path of most weight, as HTA defines it; `waited_for` is the path of what each moment
    waited for, whose segments sum to the window.
    """

    critical_path_nodes: list[int]

    def __init__(self, incoming_graph_data: Any = None, **attr: Any) -> None:  # noqa: ANN401 - networkx's signature
        """Make a graph as networkx does; that of a window comes from `critical_path_analysis`."""
        super().__init__(incoming_graph_data, **attr)
        self._start()

    def _start(self) -> None:
        self.rank = 0
        self.data_load_events: list[str] | None = None
        self.critical_path_nodes = []
        self.window = (0, 0)
        self._view: View | None = None
        self._filled = True
        self._job: HtaJob | None = None
        self.first_ns = 0
        self._weight: Array | None = None
        self.saved_frame: pd.DataFrame | None = None
        self.named: pd.DataFrame | None = None

    @classmethod
    def of(
        cls, view: View, place: Place, data_load_events: Sequence[str] | None = None, weight: Array | None = None
    ) -> CPGraph:
        """Return the graph of a view.

        Args:
            view: nodes and edges.
            place: where they come from.
            data_load_events: regular expressions of the names of events that load data.
            weight: ns of each edge where they were changed.
        """
        graph = cls.__new__(cls)
        # networkx makes its tables of nodes and edges with these: they are filled when somebody looks at them
        graph.node_dict_factory = graph.adjlist_outer_dict_factory = partial(LazyTable, graph._fill)
        nx.DiGraph.__init__(graph)
        graph._start()
        graph.rank, graph.window, graph.first_ns, graph._job = place.rank, place.window, place.first_ns, place.job
        graph.data_load_events = list(data_load_events) if data_load_events is not None else None
        graph._view, graph._weight, graph._filled = view, weight, False
        return graph

    # nodes and edges

    @cached_property
    def node_list(self) -> list[CPNode]:
        """The nodes; a node's number is its position."""
        view = self.parts
        columns = (view.event, self._us(view.time - self.first_ns), view.is_start, view.is_blocking)
        rows = enumerate(zip(*(column.tolist() for column in columns), strict=True))
        return [CPNode(number, *row) for number, row in rows]

    @cached_property
    def event_to_start_node_map(self) -> dict[int, int]:
        """The number of the node at which each event starts."""
        return self._nodes_of(self.parts.is_start)

    @cached_property
    def event_to_end_node_map(self) -> dict[int, int]:
        """The number of the node at which each event ends."""
        return self._nodes_of(~self.parts.is_start)

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
            path = heaviest_path(self.parts, self.weight_ns)
            if path is None:
                return False
            self.critical_path_nodes = path.tolist()
        for name in ("critical_path_events_set", "critical_path_edges_set"):
            self.__dict__.pop(name, None)
        return True

    @cached_property
    def critical_path_events_set(self) -> set[int]:
        """The events of the path's nodes."""
        return set(self.parts.event[self.critical_path_nodes].tolist())

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
        edges, many = self.parts.edges, len(self.parts.event)
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
        return breakdown(self) if self.critical_path_nodes else None

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
        from htagraph.queries.paths import path_to

        graph = self.job.graph
        vertices = self.parts.vertex[self.parts.vertex >= 0]
        return path_to(graph, vertices, int(graph.time[vertices].min()) if len(vertices) else 0)

    # frames

    @cached_property
    def full_trace_df(self) -> pd.DataFrame:
        """HTA's frame of the rank, as a copy."""
        return self.job.frame(self.rank).copy()

    @cached_property
    def trace_df(self) -> pd.DataFrame:
        """HTA's frame of the events in the window, as a copy."""
        if self.saved_frame is not None:
            return self.saved_frame
        return clipped(self, self.job.frame(self.rank))

    @property
    def symbol_table(self) -> TraceSymbolTable:
        """The numbers that stand for names and categories in the frames."""
        return self.job.symbols

    def save(self, out_dir: str) -> str:
        """Write the graph to ``out_dir.zip``, see `htagraph.hta.critical_path.files.save`, and return that name."""
        from htagraph.hta.critical_path.files import save

        return save(self, out_dir)

    # what HTA's own tests call by these names

    def _get_node_name(self, ev_id: int) -> str:
        if ev_id < 0:
            return "ROOT"
        return name_of(self, ev_id)

    def _validate_graph(self) -> bool:
        """Return whether the graph has a path; negative weights become 0, or with the strict flag rule it out."""
        if not self.is_filled:
            return len(self.parts.edges.source) > 0
        for u, v, data in self.edges(data=True):
            if data["weight"] < 0 and not flag(STRICT):
                warnings.warn(f"the weight of the edge {u} -> {v} is below 0: taken as 0", stacklevel=3)
                data["weight"] = 0
            elif data["weight"] < -1:
                return False
        return len(self.nodes) > 0 and nx.is_directed_acyclic_graph(self)

    def _attribute_edge(self, e: CPEdge, src_parent: int | None) -> None:
        """Set the event of an edge; from one event's end to another's start, it is the operator around both."""
        if e.type not in (CPEdgeType.OPERATOR_KERNEL, CPEdgeType.KERNEL_KERNEL_DELAY):
            return
        source, target = self.node_list[e.begin], self.node_list[e.end]
        if source.is_start or e.type == CPEdgeType.KERNEL_KERNEL_DELAY:
            event: int | None = source.ev_idx
        else:
            event = src_parent if target.is_start else target.ev_idx
        if event is None:
            msg = "the operator around the edge must be given"
            raise AssertionError(msg)
        self.edge_to_event_map[e.begin, e.end] = int(event)

    def _add_edge_helper(
        self, src: CPNode, dest: CPNode, type: CPEdgeType, zero_weight: bool = False  # noqa: FBT001, FBT002 - HTA's
    ) -> CPEdge:  # fmt: skip
        """Add an edge of a type between two nodes."""
        free = zero_weight or type in (CPEdgeType.DEPENDENCY, CPEdgeType.SYNC_DEPENDENCY)
        edge = CPEdge(src.idx, dest.idx, type, 0 if free else dest.ts - src.ts)
        self.add_edge(edge.begin, edge.end, weight=edge.weight, object=edge)
        return edge

    def _add_gpu_cpu_sync_edge(self, gpu_node: CPNode, runtime_eid: int) -> None:
        """Add an edge from a node to the end of a call, if the call has nodes."""
        _, end = self.get_nodes_for_event(runtime_eid)
        if end is not None:
            self._add_edge_helper(gpu_node, end, CPEdgeType.SYNC_DEPENDENCY)

    def _add_kernel_launch_delay_edge(
        self, runtime_index: int, kernel_start_node: CPNode, zero_weight: bool = False  # noqa: FBT001, FBT002 - HTA's
    ) -> bool:  # fmt: skip
        """Add an edge from a launch to the start of its kernel, if the launch has nodes."""
        start, _ = self.get_nodes_for_event(runtime_index)
        if start is None:
            return False
        self._add_edge_helper(start, kernel_start_node, CPEdgeType.KERNEL_LAUNCH_DELAY, zero_weight)
        return True

    def _get_cuda_event_record_df(self) -> pd.DataFrame | None:
        return record_frame(self)

    def _get_cuda_stream_wait_event_df(self) -> pd.DataFrame | None:
        return wait_frame(self)

    # behind all that

    @property
    def is_filled(self) -> bool:
        """Whether networkx's tables were used: after that they, and not the columns, are the graph."""
        return self._filled

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
        if self._filled:
            return
        self._filled = True
        edges = self._edge_objects(np.arange(len(self.parts.edges.source)))
        weights = self._us(self.weight_ns).tolist()
        self.add_edges_from(
            (edge.begin, edge.end, {"weight": weight, "object": edge})
            for edge, weight in zip(edges, weights, strict=True)
        )

    def _edge_objects(self, rows: Array) -> list[CPEdge]:
        edges = self.parts.edges
        columns = (edges.source[rows], edges.target[rows], self._us(edges.weight)[rows])
        source, target, weight = (column.tolist() for column in columns)
        kind = [TYPES[code] for code in edges.kind[rows].tolist()]
        return [CPEdge(*row) for row in zip(source, target, kind, weight, strict=True)]

    def _us(self, nanoseconds: Array) -> Array:
        return whole(nanoseconds / 1000)

    def _nodes_of(self, which: Array) -> dict[int, int]:
        return dict(zip(self.parts.event[which].tolist(), np.flatnonzero(which).tolist(), strict=True))
