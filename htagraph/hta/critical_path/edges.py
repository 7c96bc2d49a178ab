"""The edges of our graph between the nodes of one rank's window, in HTA's five types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import EdgeKind, edges_with
from htagraph.graph.construction.nesting import nest, nesting_order
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.hta.critical_path.columns import DEPENDENCY, KERNEL, LAUNCH, NOBODY, OPERATOR, SYNC, Columns, View

__all__ = ["Drawn", "device_edges", "host_edges"]


_ONLY_IF_IT_WAITED = ("cudaMemcpyAsync",)
_LOCKING = ("cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync")
_LONGEST_PAUSE_NS = 1_500_000
"""From one kernel's end to the next one's start on its stream: HTA draws an edge between them below 1500 µs. With twice
as much, longer stretches in which a stream was idle count as the overhead between two kernels."""
_ONTO_DEVICE = edges_with("enqueued")
_WAITS = edges_with("waits")
_ORDERS = edges_with("threads")


@dataclass(frozen=True, eq=False)
class Drawn:
    """Which activities of a graph have nodes."""

    graph: DependencyGraph
    host: Array
    """Activities of the host that have nodes."""
    device: Array
    """Activities of the device that have nodes."""
    nodes: View
    node_of: Array
    """The node of each vertex of the graph, -1 for none."""
    codes: Mapping[str, int]
    """The number in `graph.names` of each name that is treated specially."""

    def named(self, activities: Array, names: Sequence[str]) -> Array:
        """Return which activities have one of some names."""
        numbers = [self.codes[name] for name in names if name in self.codes]
        return np.isin(self.graph.activities.name[activities], numbers)


def host_edges(drawn: Drawn) -> list[Columns]:
    """Return the edges along threads, through the operators and between the outermost ones, and between threads.

    HTA draws those calls first that hold the runtime's lock, so that of paths of one weight theirs is taken.
    """
    nodes, time = drawn.nodes, drawn.nodes.time
    vertices = _along_threads(drawn)
    here, lane = drawn.node_of[vertices], drawn.graph.activities.lane[vertices >> 1]
    depth = np.cumsum(1 - 2 * (vertices % 2))  # of all threads, as each comes back to 0
    same = lane[1:] == lane[:-1]
    source, target, inside = here[:-1][same], here[1:][same], depth[:-1][same] > 0
    free = np.zeros(len(nodes.event), np.bool_)
    own = drawn.host[~(drawn.named(drawn.host, _ONLY_IF_IT_WAITED) & ~_waited(drawn.graph)[drawn.host])]
    free[drawn.node_of[2 * own + 1]] = nodes.is_blocking[drawn.node_of[2 * own + 1]]
    weight = np.where(inside & ~free[target], time[target] - time[source], 0)
    owner = np.where(inside, _owner(drawn, source, target), NOBODY)
    chain = Columns.of(source, target, np.where(inside, OPERATOR, DEPENDENCY), np.maximum(0, weight), owner)
    calls = drawn.host[drawn.named(drawn.host, _LOCKING)]
    calls = calls[np.argsort(drawn.node_of[2 * calls + 1])]
    begin, end = drawn.node_of[2 * calls], drawn.node_of[2 * calls + 1]
    whole = Columns.of(begin, end, OPERATOR, np.where(free[end], 0, time[end] - time[begin]), nodes.event[begin])
    return [whole, chain, _between_threads(drawn, vertices)]


def _along_threads(drawn: Drawn) -> Array:
    """Return the host's vertices thread by thread, each thread's in the order of time."""
    acts, host = drawn.graph.activities, drawn.host
    order = host[nesting_order(acts.lane[host], acts.start[host], acts.end[host])]
    work = np.ones(len(order), np.bool_)
    _, boundaries, _ = nest(acts.lane[order], acts.start[order], acts.end[order], work, 0)
    return 2 * order[boundaries >> 1] + boundaries % 2


def _owner(drawn: Drawn, source: Array, target: Array) -> Array:
    """Return the event that the time between neighbouring nodes belongs to; from an end to a start, the one around."""
    nodes, acts = drawn.nodes, drawn.graph.activities
    parent = acts.parent[nodes.vertex[source] >> 1]
    around = np.where(parent >= 0, acts.event[parent], -1)
    return np.where(
        nodes.is_start[source], nodes.event[source], np.where(nodes.is_start[target], around, nodes.event[target])
    )


def _waited(graph: DependencyGraph) -> Array:
    """Return which activities are calls that waited for device work to finish before they returned."""
    edges = graph.edges
    out = np.zeros(len(graph.activities), np.bool_)
    out[edges.target[np.isin(edges.kind, (EdgeKind.HOST_SYNC, EdgeKind.MEMCPY_SYNC))] >> 1] = True
    return out


def _between_threads(drawn: Drawn, vertices: Array) -> Columns:
    """Return the edges between threads; where an end has no node, the edge uses the nearest one."""
    edges, acts = drawn.graph.edges, drawn.graph.activities
    rows = np.flatnonzero(np.isin(edges.kind, _ORDERS))
    source, target = edges.source[rows], edges.target[rows]
    apart = acts.lane[source >> 1] != acts.lane[target >> 1]
    keep = apart & ~acts.on_device[source >> 1] & ~acts.on_device[target >> 1]
    source, target = source[keep], target[keep]
    begin, end = _nearest(drawn, vertices, source, before=True), _nearest(drawn, vertices, target, before=False)
    known = (begin >= 0) & (end >= 0)
    return Columns.of(begin[known], end[known], DEPENDENCY, 0, NOBODY)


def _nearest(drawn: Drawn, vertices: Array, wanted: Array, *, before: bool) -> Array:
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


def device_edges(drawn: Drawn, *, zero_launches: bool) -> Columns:
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
    latest = np.full(len(nodes.event), np.iinfo(np.int64).min)
    awaited = np.flatnonzero(waits & (kind == EdgeKind.EVENT_WAIT))
    np.maximum.at(latest, target[awaited], moment[awaited])
    onto = np.flatnonzero(np.isin(kind, _ONTO_DEVICE))
    launch = kind[onto] != EdgeKind.STREAM
    last = _latest(target[onto], moment[onto], launch)
    before = np.zeros(len(nodes.event), np.bool_)
    before[target[onto[last & (source[onto] < 0)]]] = True  # held up by work of before the window
    seen = onto[(source[onto] >= 0) & (last | (launch & before[target[onto]]))]
    seen = seen[moment[seen] > latest[target[seen]]]
    on_stream = kind[seen] == EdgeKind.STREAM
    pause = nodes.time[target[seen]] - nodes.time[source[seen]]
    unexplained = (pause >= _LONGEST_PAUSE_NS) | before[target[seen]]
    weight = np.maximum(0, np.where(unexplained, edges.lag[near[seen]], pause))
    owner = np.where(on_stream, nodes.event[source[seen]], NOBODY)
    others = np.setdiff1d(onto[launch & (source[onto] >= 0)], seen) if zero_launches else onto[:0]
    return _in_order([
        Columns.of(node_of[2 * device], node_of[2 * device + 1], OPERATOR, acts.duration[device], acts.event[device]),
        Columns.of(source[waits], target[waits], SYNC, 0, NOBODY),
        Columns.of(source[seen], target[seen], np.where(on_stream, KERNEL, LAUNCH), weight, owner),
        Columns.of(source[others], target[others], LAUNCH, 0, NOBODY),
    ])  # fmt: skip


def _latest(target: Array, moment: Array, launch: Array) -> Array:
    """Return which edge into each target comes last; on ties, one that is no launch."""
    order = np.lexsort((launch, -moment, target))
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(target[order]) != 0
    out = np.zeros(len(order), np.bool_)
    out[order[first]] = True
    return out


def _in_order(parts: Sequence[Columns]) -> Columns:
    """Return the edges sorted by the time of what they lead to; an edge that is device work by that work's time."""
    joined = Columns.concatenate(parts)
    part = np.repeat(np.arange(len(parts)), [len(each.source) for each in parts])
    which = np.where(part == 0, joined.source, joined.target)
    return joined.take(np.lexsort((part, which)))
