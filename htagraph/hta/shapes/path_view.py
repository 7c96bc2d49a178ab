"""The graph of one rank's window as HTA draws it: its nodes, our edges between them in its five types, its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from htagraph.core.arrays import Array, inverse_of, marked, run_starts
from htagraph.core.kinds import ActivityKind, EdgeKind, edges_with
from htagraph.core.naming import RUNTIME_CATEGORIES, names_that
from htagraph.graph.construction.nesting import nest, nesting_order
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.hta.shapes.job import HtaJob
from htagraph.hta.shapes.names import stream_of_events

__all__ = [
    "EDGE_COLUMNS", "NOBODY", "NODE_COLUMNS", "TYPES", "BoundType", "CPEdge", "CPEdgeType", "CPNode", "View",
    "edge_table", "heaviest_path", "table_of", "view_of",
]  # fmt: skip

Number: TypeAlias = int | float
Table: TypeAlias = "np.recarray[Any, Any]"

EDGE_COLUMNS = ("source", "target", "kind", "weight", "owner")
NODE_COLUMNS = ("event", "vertex", "time", "is_start", "is_blocking", "kind")

OPERATOR, DEPENDENCY, LAUNCH, KERNEL, SYNC = range(5)
"""The types of edges, in the order of `CPEdgeType`."""
NOBODY = -2
"""The owner of an edge whose time belongs to no event; -1 is HTA's number for time outside of any operator."""

_HOST_CATEGORIES = RUNTIME_CATEGORIES | {"cpu_op", "hpu_op"}
_ONLY_IF_IT_WAITED = ("cudaMemcpyAsync",)
_LOCKING = ("cudaHostAlloc", "cudaLaunchKernel", *_ONLY_IF_IT_WAITED)
_BLOCKING = (
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery", "cudaEventSynchronize", "cudaMemcpy",
    *_ONLY_IF_IT_WAITED,
)  # fmt: skip
_LONGEST_PAUSE_NS = 1_500_000
"""From one kernel's end to the next one's start on its stream: HTA draws an edge between them below 1500 µs. With twice
as much, longer stretches in which a stream was idle count as the overhead between two kernels."""
_ONTO_DEVICE = edges_with("enqueued")
_WAITS = edges_with("waits")
_ORDERS = edges_with("threads")


class CPEdgeType(Enum):
    """The types of edges, with HTA's names."""

    OPERATOR_KERNEL = "critical_path_operator"
    DEPENDENCY = "critical_path_dependency"
    KERNEL_LAUNCH_DELAY = "critical_path_kernel_launch_delay"
    KERNEL_KERNEL_DELAY = "critical_path_kernel_kernel_delay"
    SYNC_DEPENDENCY = "critical_path_sync_dependency"


TYPES = tuple(CPEdgeType)
"""The types by their code in `View.edges`."""


class BoundType(Enum):
    """What bounds the time of an edge, with HTA's names."""

    GPU_KERNEL_KERNEL_OVERHEAD = "gpu_kernel_kernel_overhead"
    GPU_KERNEL_LAUNCH_OVERHEAD = "gpu_kernel_launch_overhead"
    DATA_LOADING = "data_loading"
    CPU_BOUND = "cpu_bound"
    GPU_COMPUTE_BOUND = "gpu_compute_bound"
    GPU_COMMUNICATION_BOUND = "gpu_communication_bound"


@dataclass
class CPNode:
    """The start or the end of an event."""

    idx: int = -1
    ev_idx: int = -1
    ts: Number = 0
    is_start: bool = False
    is_blocking: bool = False


@dataclass(frozen=True)
class CPEdge:
    """A part of an event's time, or the reason why one moment came after another."""

    begin: int
    end: int
    type: CPEdgeType
    weight: Number = 0


def edge_table(source: Array, target: Array, kind: Array | int, weight: Array | int, owner: Array | int) -> Table:
    """Return edges as a table of integers; a single number applies to all edges.

    ``source`` and ``target`` are nodes, ``kind`` is a position in `TYPES`, ``weight`` ns, and ``owner`` the position
    in the file of the event that takes this time.
    """
    columns = np.broadcast_arrays(source, target, kind, weight, owner)
    return table_of({name: each.astype(np.int64) for name, each in zip(EDGE_COLUMNS, columns, strict=True)})


def table_of(columns: Mapping[str, Array]) -> Table:
    """Return a table of some columns, each of which is then an attribute."""
    return np.rec.fromarrays(list(columns.values()), dtype=[(name, each.dtype) for name, each in columns.items()])


@dataclass(frozen=True, eq=False)
class View:
    """The nodes and edges of one rank's window."""

    nodes: Table
    """By (time, event), a node's number being its position: ``event`` (position in the file), ``vertex`` (of the
    dependency graph; -1 for cuda_sync events, which are no activities), ``time`` (ns on the rank's own clock),
    ``is_start``, ``is_blocking``, ``kind`` (ActivityKind of the event; that of device work for cuda_sync events)."""
    edges: Table
    """What `edge_table` returns, in the order in which HTA would add the edges."""
    rank: int
    window: tuple[int, int]
    """First and last moment, ns on the rank's own clock."""
    first_ns: int
    """The moment from which HTA's times of the nodes count."""


@dataclass(frozen=True, eq=False)
class _WithNodes:
    """Which activities of a graph have nodes."""

    graph: DependencyGraph
    host: Array
    """Activities of the host that have nodes."""
    device: Array
    """Activities of the device that have nodes."""
    nodes: Table
    node_of: Array
    """The node of each vertex of the graph, -1 for none."""


def view_of(
    job: HtaJob,
    rank: int,
    window: tuple[int, int],
    data_load_events: Sequence[str] = (),
    *,
    zero_launches: bool = False,
) -> View:
    """Return the view of what a rank's host began in a window (ns on its clock), and of the work that this launched.

    Annotations whose names contain one of `data_load_events` are nodes as well; with `zero_launches`, work that waited
    for other work has an edge of weight 0 from its launch, too.
    """
    graph, acts = job.graph, job.graph.activities
    of_rank = acts.of_rank(rank)
    start, some = acts.start[of_rank], (acts.duration[of_rank] > 0) & (acts.event[of_rank] >= 0)
    begun = ~acts.on_device[of_rank] & some & (start >= window[0]) & (start <= window[1])
    begun = of_rank.start + np.flatnonzero(begun)  # without activities too short to be seen
    shown = names_that(lambda name: name in _HOST_CATEGORIES, graph.names)[acts.category[begun]]
    loads = names_that(lambda name: any(each in name for each in data_load_events), graph.names)[acts.name[begun]]
    host = begun[shown | loads]
    in_window = marked(begun, len(acts))
    device = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    device = device[in_window[acts.cause[device]]]
    nodes = _nodes(job.graph, np.concatenate((host, device)), _sync_rows(job, rank, begun))
    node_of = np.full(graph.vertex_count, -1, np.int64)
    known = np.flatnonzero(nodes.vertex >= 0)
    node_of[nodes.vertex[known]] = known
    drawn = _WithNodes(graph, host, device, nodes, node_of)
    edges = _joined([*_host_edges(drawn), _device_edges(drawn, zero_launches=zero_launches)])
    _, first = np.unique(edges.source * np.int64(len(nodes)) + edges.target, return_index=True)
    return View(nodes, edges[np.sort(first)].view(np.recarray), rank, window, job.first_ns)


def _joined(parts: Sequence[Table]) -> Table:
    return np.concatenate(parts).view(np.recarray)


def _sync_rows(job: HtaJob, rank: int, begun: Array) -> tuple[Array, Array, Array]:
    """Return (position, start, end) of the cuda_sync events for which HTA has nodes, though never an edge."""
    trace, events = job.traces[rank], job.traces[rank].events
    rows = np.flatnonzero(trace.in_categories("cuda_sync"))
    if len(rows):
        correlation = events.arg("correlation")[rows]
        within = np.isin(correlation, job.graph.activities.arg("correlation")[begun]) & (correlation > 0)
        within |= names_that(lambda name: name == "Stream Wait Event", trace.names)[events.name[rows]]
        rows = rows[within & (stream_of_events(trace)[rows] >= 0) & (correlation >= 0)]
    return events.index[rows], events.start[rows], events.start[rows] + events.duration[rows]


def _nodes(graph: DependencyGraph, chosen: Array, rows: tuple[Array, Array, Array]) -> Table:
    """Return the nodes of some activities and cuda_sync events of a rank's window."""
    acts, (position, start, end) = graph.activities, rows
    event = np.concatenate((acts.event[chosen], position)).astype(np.int64)
    activity = np.concatenate((chosen, np.full(len(position), -1)))
    blocks = (_named(graph, chosen, _BLOCKING) | (acts.kind[chosen] == ActivityKind.SYNC)) & ~acts.on_device[chosen]
    kind = np.concatenate((acts.kind[chosen], np.full(len(position), ActivityKind.DEVICE_OTHER)))
    time = np.concatenate((acts.start[chosen], start, acts.start[chosen] + acts.duration[chosen], end))
    order = np.lexsort((np.concatenate((event, event)), time))
    at, is_start = order % max(1, len(event)), order < len(event)
    vertex = np.where(activity[at] >= 0, 2 * activity[at] + ~is_start, -1)
    is_blocking = np.concatenate((blocks, np.zeros(len(position), np.bool_)))[at]
    columns = (event[at], vertex, time[order], is_start, is_blocking, kind[at])
    return table_of(dict(zip(NODE_COLUMNS, columns, strict=True)))


def _named(graph: DependencyGraph, activities: Array, names: Sequence[str]) -> Array:
    """Return which activities have one of some names."""
    return names_that(lambda name: name in names, graph.names)[graph.activities.name[activities]]


def _host_edges(drawn: _WithNodes) -> list[Table]:
    """Return the edges along threads, through the operators and between the outermost ones, and between threads.

    HTA draws calls that hold the runtime's lock first: of paths of equal weight, it takes the one through such calls.
    """
    nodes, time = drawn.nodes, drawn.nodes.time
    vertices = _along_threads(drawn)
    here, lane = drawn.node_of[vertices], drawn.graph.activities.lane[vertices >> 1]
    depth = np.cumsum(1 - 2 * (vertices % 2))  # of all threads, as each comes back to 0
    same = lane[1:] == lane[:-1]
    source, target, inside = here[:-1][same], here[1:][same], depth[:-1][same] > 0
    free = np.zeros(len(nodes), np.bool_)
    edges = drawn.graph.edges  # calls that waited for device work to finish before they returned
    waited = np.isin(drawn.host, edges.target[np.isin(edges.kind, (EdgeKind.HOST_SYNC, EdgeKind.MEMCPY_SYNC))] >> 1)
    own = drawn.host[~_named(drawn.graph, drawn.host, _ONLY_IF_IT_WAITED) | waited]
    free[drawn.node_of[2 * own + 1]] = nodes.is_blocking[drawn.node_of[2 * own + 1]]
    weight = np.where(inside & ~free[target], time[target] - time[source], 0)
    owner = np.where(inside, _owner(drawn, source, target), NOBODY)
    chain = edge_table(source, target, np.where(inside, OPERATOR, DEPENDENCY), np.maximum(0, weight), owner)
    calls = drawn.host[_named(drawn.graph, drawn.host, _LOCKING)]
    calls = calls[np.argsort(drawn.node_of[2 * calls + 1])]
    begin, end = drawn.node_of[2 * calls], drawn.node_of[2 * calls + 1]
    whole = edge_table(begin, end, OPERATOR, np.where(free[end], 0, time[end] - time[begin]), nodes.event[begin])
    return [whole, chain, _between_threads(drawn, vertices)]


def _along_threads(drawn: _WithNodes) -> Array:
    """Return the host's vertices thread by thread, each thread's in the order of time."""
    acts, host = drawn.graph.activities, drawn.host
    order = host[nesting_order(acts.lane[host], acts.start[host], acts.end[host])]
    work = np.ones(len(order), np.bool_)
    _, boundaries, _ = nest(acts.lane[order], acts.start[order], acts.end[order], work, 0)
    return 2 * order[boundaries >> 1] + boundaries % 2


def _owner(drawn: _WithNodes, source: Array, target: Array) -> Array:
    """Return the event that the time between neighbouring nodes belongs to; from an end to a start, the one around."""
    nodes, acts = drawn.nodes, drawn.graph.activities
    parent = acts.parent[nodes.vertex[source] >> 1]
    around = np.where(parent >= 0, acts.event[parent], -1)
    return np.where(
        nodes.is_start[source], nodes.event[source], np.where(nodes.is_start[target], around, nodes.event[target])
    )


def _between_threads(drawn: _WithNodes, vertices: Array) -> Table:
    """Return the edges between threads; where an end has no node, the edge uses the nearest one."""
    edges, acts = drawn.graph.edges, drawn.graph.activities
    rows = np.flatnonzero(np.isin(edges.kind, _ORDERS))
    source, target = edges.source[rows], edges.target[rows]
    apart = acts.lane[source >> 1] != acts.lane[target >> 1]
    keep = apart & ~acts.on_device[source >> 1] & ~acts.on_device[target >> 1]
    source, target = source[keep], target[keep]
    begin, end = _nearest(drawn, vertices, source, before=True), _nearest(drawn, vertices, target, before=False)
    known = (begin >= 0) & (end >= 0)
    return edge_table(begin[known], end[known], DEPENDENCY, 0, NOBODY)


def _nearest(drawn: _WithNodes, vertices: Array, wanted: Array, *, before: bool) -> Array:
    """Return the node of each vertex; else the last before it on its thread, or the first after it; -1 for none."""
    acts = drawn.graph.activities
    out = drawn.node_of[wanted].copy()
    if not len(vertices):
        return out
    origin = int(acts.start.min())
    stride = np.int64(int(acts.end.max()) - origin + 2)
    keys = acts.lane[vertices >> 1] * stride + acts.moment(vertices) - origin
    left = np.flatnonzero(out < 0)
    wanted_keys = acts.lane[wanted[left] >> 1] * stride + acts.moment(wanted[left]) - origin
    at = np.searchsorted(keys, wanted_keys) - 1 if before else np.searchsorted(keys, wanted_keys, side="right")
    inside = (at >= 0) & (at < len(vertices))
    nearest = vertices[np.clip(at, 0, len(vertices) - 1)]
    inside &= acts.lane[nearest >> 1] == acts.lane[wanted[left] >> 1]
    out[left] = np.where(inside, drawn.node_of[nearest], -1)
    return out


def _device_edges(drawn: _WithNodes, *, zero_launches: bool) -> Table:
    """Return the edges of device work: its own duration, what it waited for before it started, and what waited for it.

    Work started when the last of three came: its launch, the end of the work before it on its stream, and the end of
    what its stream waited for. The first two are edges that last until the work started; where that took too long to
    be a launch or a pause, or it waited for work of before the window, they last as long as such edges usually do.
    """
    graph, nodes, node_of, device = drawn.graph, drawn.nodes, drawn.node_of, drawn.device
    edges, acts = graph.edges, graph.activities
    target = node_of[edges.target]
    near = np.flatnonzero((target >= 0) & np.isin(edges.kind, _ONTO_DEVICE + _WAITS))
    near = near[(acts.rank[edges.source[near] >> 1] == acts.rank[edges.target[near] >> 1])]
    source, target, kind = node_of[edges.source[near]], target[near], edges.kind[near]
    moment = acts.moment(edges.source[near])
    waits = np.isin(kind, _WAITS) & (source >= 0) & acts.on_device[edges.source[near] >> 1]
    latest = np.full(len(nodes), np.iinfo(np.int64).min)
    awaited = np.flatnonzero(waits & (kind == EdgeKind.EVENT_WAIT))
    np.maximum.at(latest, target[awaited], moment[awaited])
    onto = np.flatnonzero(np.isin(kind, _ONTO_DEVICE))
    launch = kind[onto] != EdgeKind.STREAM
    last = _latest(target[onto], moment[onto], launch)
    before = marked(target[onto[last & (source[onto] < 0)]], len(nodes))  # held up by work of before the window
    seen = onto[(source[onto] >= 0) & (last | (launch & before[target[onto]]))]
    seen = seen[moment[seen] > latest[target[seen]]]
    on_stream = kind[seen] == EdgeKind.STREAM
    pause = nodes.time[target[seen]] - nodes.time[source[seen]]
    unexplained = (pause >= _LONGEST_PAUSE_NS) | before[target[seen]]
    weight = np.maximum(0, np.where(unexplained, edges.lag[near[seen]], pause))
    owner = np.where(on_stream, nodes.event[source[seen]], NOBODY)
    others = np.setdiff1d(onto[launch & (source[onto] >= 0)], seen) if zero_launches else onto[:0]
    return _in_order([
        edge_table(node_of[2 * device], node_of[2 * device + 1], OPERATOR, acts.duration[device], acts.event[device]),
        edge_table(source[waits], target[waits], SYNC, 0, NOBODY),
        edge_table(source[seen], target[seen], np.where(on_stream, KERNEL, LAUNCH), weight, owner),
        edge_table(source[others], target[others], LAUNCH, 0, NOBODY),
    ])  # fmt: skip


def _latest(target: Array, moment: Array, launch: Array) -> Array:
    """Return which edge into each target comes last; on ties, one that is no launch."""
    order = np.lexsort((launch, -moment, target))
    return marked(order[run_starts(target[order])], len(order))


def _in_order(parts: Sequence[Table]) -> Table:
    """Return the edges sorted by the time of what they lead to; an edge that is device work by that work's time."""
    joined = _joined(parts)
    part = np.repeat(np.arange(len(parts)), [len(each) for each in parts])
    which = np.where(part == 0, joined.source, joined.target)
    return joined[np.lexsort((part, which))].view(np.recarray)


def heaviest_path(edges: Table, weight: Array) -> Array | None:
    """Return the nodes of the path with the largest sum of weights; None if there are no edges or they form a cycle.

    Ties are broken as in networkx: the edge that was added first, the end that comes first in its topological order.
    It is plain Python because loading numba would take longer.
    """
    ends = np.stack((edges.source, edges.target), axis=1).ravel()
    nodes, first = np.unique(ends, return_index=True)
    nodes = nodes[np.argsort(first)]  # as they come into networkx's tables
    number = inverse_of(nodes, nodes.max(initial=-1) + 1)
    source, target = number[edges.source], number[edges.target]
    order = np.argsort(source, kind="stable")
    offsets = np.searchsorted(source[order], np.arange(len(nodes) + 1)).tolist()
    out = list(zip(target[order].tolist(), weight[order].tolist(), order.tolist(), strict=True))
    waiting = np.bincount(target, minlength=len(nodes)).tolist()
    best, into = [0] * len(nodes), [-1] * len(nodes)
    ready = [node for node, count in enumerate(waiting) if not count]
    for node in ready:
        reached = best[node]
        for after, lasts, edge in out[offsets[node] : offsets[node + 1]]:
            length, known = reached + lasts, into[after]
            if known < 0 or length > best[after] or (length == best[after] and edge < known):
                best[after], into[after] = length, edge
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    if not ready or len(ready) < len(nodes):
        return None
    path, before = [max(ready, key=best.__getitem__)], source.tolist()
    while into[path[-1]] >= 0:
        path.append(before[into[path[-1]]])
    return nodes[path[::-1]]
