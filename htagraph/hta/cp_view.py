"""The graph of one rank's window as HTA draws it: its nodes, and our edges between them in its five types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.graph import DependencyGraph
from htagraph.kinds import ActivityKind, EdgeKind
from htagraph.naming import RUNTIME_CATEGORIES

if TYPE_CHECKING:
    from htagraph.hta.job import HtaJob

__all__ = ["DEPENDENCY", "KERNEL", "LAUNCH", "NOBODY", "OPERATOR", "SYNC", "View", "view_of"]

Array: TypeAlias = npt.NDArray[Any]

OPERATOR, DEPENDENCY, LAUNCH, KERNEL, SYNC = range(5)
NOBODY = -2
"""Whose time an edge is that is nobody's; -1 is HTA's word for "outside of any operator"."""

_HOST_CATEGORIES = RUNTIME_CATEGORIES | {"cpu_op", "hpu_op"}
_BLOCKING = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery", "cudaEventSynchronize", "cudaMemcpy",
             "cudaMemcpyAsync")  # fmt: skip
_ONLY_IF_IT_WAITED = "cudaMemcpyAsync"
_LOCKING = ("cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync")
_LONGEST_PAUSE_NS = 1_500_000
_ONTO_DEVICE = (EdgeKind.LAUNCH, EdgeKind.GRAPH, EdgeKind.STREAM)
_WAITS = (EdgeKind.EVENT_WAIT, EdgeKind.HOST_SYNC, EdgeKind.MEMCPY_SYNC, EdgeKind.QUEUE_FULL)
_ORDERS = (EdgeKind.AUTOGRAD, EdgeKind.THREAD, EdgeKind.DATALOADER, EdgeKind.USER)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Edges in the order in which HTA would add them."""

    source: Array
    """Nodes."""
    target: Array
    kind: Array
    weight: Array
    """ns."""
    owner: Array
    """Position in the file of the event whose time it is."""

    @staticmethod
    def of(source: Array, target: Array, kind: Array | int, weight: Array | int, owner: Array | int) -> _Columns:
        many = len(source)
        return _Columns(source, target, *(np.broadcast_to(np.asarray(each), many) for each in (kind, weight, owner)))

    def take(self, rows: Array) -> _Columns:
        return _Columns(*(getattr(self, name)[rows] for name in _Columns.__dataclass_fields__))

    @staticmethod
    def concatenate(parts: Sequence[_Columns]) -> _Columns:
        names = _Columns.__dataclass_fields__
        return _Columns(*(np.concatenate([getattr(part, name) for part in parts]).astype(np.int64) for name in names))


@dataclass(frozen=True, eq=False)
class View:
    """Nodes by (time, event), a node's number being its position; edges in the order in which HTA would add them."""

    event: Array
    """Position in the file of each node's event."""
    vertex: Array
    """Of the graph; -1 for rows of cuda_sync, which are no activities."""
    time: Array
    """ns on the rank's own clock."""
    is_start: Array
    is_blocking: Array
    edges: _Columns


def view_of(
    job: HtaJob,
    rank: int,
    window: tuple[int, int],
    data_load_events: Sequence[str] = (),
    *,
    zero_launches: bool = False,
) -> View:
    """Return the view of what a rank's host began in a window, and of the device work that this launched.

    Args:
        job: the job.
        rank: one of its ranks.
        window: first and last ns, on the rank's clock, at which host activities begin that count.
        data_load_events: parts of names of annotations that are nodes as well.
        zero_launches: give work that waited for other work an edge of weight 0 from its launch, too.
    """
    graph = job.graph
    host = _host(graph, rank, window, data_load_events)
    launched = np.flatnonzero(graph.activities.on_device & (graph.activities.cause >= 0))
    device = launched[_counts(graph, rank, window)[graph.activities.cause[launched]]]
    nodes = _nodes(graph, np.concatenate((host, device)), _sync_rows(job, rank, window))
    node_of = np.full(graph.vertex_count, -1, np.int64)
    known = nodes.vertex >= 0
    node_of[nodes.vertex[known]] = np.flatnonzero(known)
    parts = [*_on_host(graph, nodes, node_of, host), *_on_device(graph, nodes, node_of, device, zero_launches)]
    edges = _Columns.concatenate(parts)
    _, first = np.unique(edges.source * np.int64(len(nodes.event)) + edges.target, return_index=True)
    return View(nodes.event, nodes.vertex, nodes.time, nodes.is_start, nodes.is_blocking, edges.take(np.sort(first)))


def _counts(graph: DependencyGraph, rank: int, window: tuple[int, int]) -> Array:
    """Return which activities the host began in the window, those too short to be seen left out."""
    acts = graph.activities
    out = ~acts.on_device & (acts.duration > 0) & (acts.rank == rank) & (acts.event >= 0)
    return out & (acts.start >= window[0]) & (acts.start <= window[1])


def _host(graph: DependencyGraph, rank: int, window: tuple[int, int], data_load_events: Sequence[str]) -> Array:
    acts = graph.activities
    codes = [code for code in np.unique(acts.category) if graph.names[code] in _HOST_CATEGORIES]
    wanted = np.isin(acts.category, codes)
    if data_load_events:
        loads = [code for code, name in enumerate(graph.names) if any(each in name for each in data_load_events)]
        wanted |= np.isin(acts.name, loads)
    return np.flatnonzero(_counts(graph, rank, window) & wanted)


def _sync_rows(job: HtaJob, rank: int, window: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Return (position, start, end) of the rows of cuda_sync that HTA has nodes for, though never an edge."""
    trace, acts = job.traces[rank], job.graph.activities
    events = trace.events
    codes = [code for code, word in enumerate(trace.categories) if word == "cuda_sync"]
    waits = [code for code, word in enumerate(trace.names) if word == "Stream Wait Event"]
    correlation = events.arg("correlation")
    calls = _counts(job.graph, rank, window)
    within = np.isin(correlation, acts.arg("correlation")[calls]) & (correlation > 0)
    rows = np.isin(events.category, codes) & (events.arg("stream") >= 0) & (correlation >= 0)
    rows &= within | np.isin(events.name, waits)
    return events.index[rows], events.start[rows], events.end[rows]


def _nodes(graph: DependencyGraph, chosen: Array, rows: tuple[Array, Array, Array]) -> View:
    acts = graph.activities
    event = np.concatenate((acts.event[chosen], rows[0]))
    activity = np.concatenate((chosen, np.full(len(rows[0]), -1)))
    time = np.concatenate((acts.start[chosen], rows[1], acts.end[chosen], rows[2]))
    codes = [code for code, name in enumerate(graph.names) if name in _BLOCKING]
    blocks = (np.isin(acts.name, codes) | (acts.kind == ActivityKind.SYNC)) & ~acts.on_device
    order = np.lexsort((np.concatenate((event, event)), time))
    at = np.concatenate((activity, activity))[order]
    is_start = order < len(event)
    return View(
        np.concatenate((event, event))[order].astype(np.int64), np.where(at >= 0, 2 * at + ~is_start, -1), time[order],
        is_start, (at >= 0) & blocks[np.maximum(at, 0)], _Columns.concatenate([_Columns.of(at[:0], at[:0], 0, 0, 0)]),
    )  # fmt: skip


def _on_host(graph: DependencyGraph, nodes: View, node_of: Array, host: Array) -> list[_Columns]:
    """Return the edges along threads: through the operators, and between the outermost ones."""
    acts, time = graph.activities, nodes.time
    vertices = np.concatenate((2 * host, 2 * host + 1))
    vertices = vertices[_along_threads(graph, vertices)]
    here = node_of[vertices]
    lane, start = acts.lane[vertices >> 1], vertices % 2 == 0
    depth = np.cumsum(np.where(start, 1, -1))  # of all threads, as each comes back to 0
    same = lane[1:] == lane[:-1]
    source, target, inside = here[:-1][same], here[1:][same], depth[:-1][same] > 0
    starts, ends = nodes.is_start[source], ~nodes.is_start[target]
    parent = acts.parent[nodes.vertex[source] >> 1]
    outer = np.where(parent >= 0, acts.event[parent], -1)
    owner = np.where(starts, nodes.event[source], np.where(ends, nodes.event[target], outer))
    waited = _waited(graph)
    copy = np.isin(acts.name, [code for code, name in enumerate(graph.names) if name == _ONLY_IF_IT_WAITED])
    free = nodes.is_blocking & ~(copy & ~waited)[np.maximum(nodes.vertex, 0) >> 1]
    weight = np.where(inside & ~(ends & free[target]), time[target] - time[source], 0)
    chain = _Columns.of(source, target, np.where(inside, OPERATOR, DEPENDENCY), weight, np.where(inside, owner, NOBODY))
    locking = np.isin(acts.name[host], [code for code, name in enumerate(graph.names) if name in _LOCKING])
    calls = host[locking]
    calls = calls[np.argsort(node_of[2 * calls + 1])]
    begin, end = node_of[2 * calls], node_of[2 * calls + 1]
    whole = _Columns.of(begin, end, OPERATOR, np.where(free[end], 0, time[end] - time[begin]), nodes.event[begin])
    return [whole, chain, _between_threads(graph, node_of, vertices)]


def _waited(graph: DependencyGraph) -> Array:
    """Return which activities are calls that returned only when device work was over."""
    edges = graph.edges
    out = np.zeros(len(graph.activities), np.bool_)
    out[edges.target[np.isin(edges.kind, (EdgeKind.HOST_SYNC, EdgeKind.MEMCPY_SYNC))] >> 1] = True
    return out


def _keys(graph: DependencyGraph, vertices: Array) -> Array:
    """Return a number for vertices that grows along each thread: what comes later depends on what came before."""
    place = np.empty(graph.vertex_count, np.int64)
    place[graph.topological_order] = np.arange(graph.vertex_count)
    return graph.activities.lane[vertices >> 1] * np.int64(graph.vertex_count) + place[vertices]


def _along_threads(graph: DependencyGraph, vertices: Array) -> Array:
    return np.argsort(_keys(graph, vertices))


def _between_threads(graph: DependencyGraph, node_of: Array, vertices: Array) -> _Columns:
    """Return the edges between threads, from and to the nearest nodes where their ends are none."""
    edges, acts = graph.edges, graph.activities
    rows = np.flatnonzero(np.isin(edges.kind, _ORDERS))
    source, target = edges.source[rows], edges.target[rows]
    keep = (
        ~acts.on_device[source >> 1] & ~acts.on_device[target >> 1] & (acts.lane[source >> 1] != acts.lane[target >> 1])
    )
    source, target = source[keep], target[keep]
    if not len(vertices):
        source = target = vertices
    last, found = _nearest(graph, vertices, source, before=True)
    first, also = _nearest(graph, vertices, target, before=False)
    ok = found & also
    return _Columns.of(node_of[last[ok]], node_of[first[ok]], DEPENDENCY, 0, NOBODY)


def _nearest(graph: DependencyGraph, nodes: Array, wanted: Array, *, before: bool) -> tuple[Array, Array]:
    """Return for each vertex the last node at or before it on its thread, or the first at or behind it, and if any."""
    lane = graph.activities.lane
    at = np.searchsorted(_keys(graph, nodes), _keys(graph, wanted), side="right" if before else "left") - before
    inside = (at >= 0) & (at < len(nodes))
    found = nodes[np.clip(at, 0, max(0, len(nodes) - 1))]
    return found, inside & (lane[found >> 1] == lane[wanted >> 1])


def _on_device(
    graph: DependencyGraph, nodes: View, node_of: Array, device: Array, zero_launches: bool
) -> list[_Columns]:
    """Return the edges of device work: the work, why it started when it did, and who waited for it."""
    edges, time = graph.edges, graph.time
    source, target = node_of[edges.source], node_of[edges.target]
    known = (source >= 0) & (target >= 0)
    moment = time[edges.source]
    body = _Columns.of(
        node_of[2 * device], node_of[2 * device + 1], OPERATOR, graph.activities.duration[device],
        graph.activities.event[device],
    )  # fmt: skip
    wait = np.flatnonzero(known & np.isin(edges.kind, _WAITS) & graph.activities.on_device[edges.source >> 1])
    latest = np.full(graph.vertex_count, np.iinfo(np.int64).min)
    at_start = wait[edges.kind[wait] == EdgeKind.EVENT_WAIT]
    np.maximum.at(latest, edges.target[at_start], moment[at_start])
    rows = np.flatnonzero(np.isin(edges.kind, _ONTO_DEVICE) & (target >= 0))
    launch = edges.kind[rows] != EdgeKind.STREAM
    last = _latest(edges.target[rows], moment[rows], launch)
    held_up = rows[last & ~known[rows]]  # by work of before the window
    seen = rows[known[rows] & (last | (launch & np.isin(edges.target[rows], edges.target[held_up])))]
    seen = seen[moment[seen] > latest[edges.target[seen]]]
    started = _started(graph, nodes, source, target, seen, held_up)
    others = np.setdiff1d(rows[launch & known[rows]], seen) if zero_launches else rows[:0]
    parts = [
        body,
        _Columns.of(source[wait], target[wait], SYNC, 0, NOBODY),
        started,
        _Columns.of(source[others], target[others], LAUNCH, 0, NOBODY),
    ]
    return [_in_order(nodes, parts)]


def _latest(target: Array, moment: Array, launch: Array) -> Array:
    """Return which edges come last of those that lead to one target; of equals no launch."""
    order = np.lexsort((launch, -moment, target))
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(target[order]) != 0
    out = np.zeros(len(order), np.bool_)
    out[order[first]] = True
    return out


def _started(
    graph: DependencyGraph, nodes: View, source: Array, target: Array, rows: Array, held_up: Array
) -> _Columns:
    """Return the edges by which device work started: they last until it did, if nothing else held it up."""
    edges = graph.edges
    seen = nodes.time[target[rows]] - nodes.time[source[rows]]
    stream = edges.kind[rows] == EdgeKind.STREAM
    explains = ~(stream & (seen >= _LONGEST_PAUSE_NS)) & ~np.isin(edges.target[rows], edges.target[held_up])
    weight = np.where(explains, seen, np.maximum(0, edges.lag[rows]))
    owner = np.where(stream, nodes.event[source[rows]], NOBODY)
    return _Columns.of(source[rows], target[rows], np.where(stream, KERNEL, LAUNCH), weight, owner)


def _in_order(nodes: View, parts: Sequence[_Columns]) -> _Columns:
    """Return the edges by the moment of what they lead to, or of the work they are."""
    joined = _Columns.concatenate(parts)
    part = np.repeat(np.arange(len(parts)), [len(each.source) for each in parts])
    which = np.where(part == 0, joined.source, joined.target)
    return joined.take(np.lexsort((part, which)))
