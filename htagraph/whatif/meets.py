"""Where one thread waits for another, the other may wait for it in turn: a queue that is full, a store, a rendezvous.

A recording in which the one was always slower shows half of such a meeting. The other half is known but for how far the
two may be apart: take k waits for item k, and item k waits until item k - capacity was taken. The recording bounds the
capacity from below only (nobody waited in it), so that this is a reading, with the least capacity that the recorded
times allow, and no fact.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array, coded, joined, looked_up, marked
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tolerances import LIMITS, Confidence
from htagraph.queries.weights import of_kind

__all__ = ["meets"]


@once
def meets(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return waits in turn: (the moment at which a thread is done with what it was given, who may wait for that).

    What a thread was given is done when it next waits, or with its last record.
    """
    rows = _given(graph)
    if not len(rows):
        return rows, rows
    acts, edges, time = graph.activities, graph.edges, graph.time
    source, target = edges.source[rows].astype(np.int64), edges.target[rows].astype(np.int64)
    done, asks = _done(graph, target), _next_ask(graph, source)
    group = coded(acts.lane[source >> 1], _purpose(graph, source >> 1), _purpose(graph, target >> 1))
    parts = []
    for each in range(int(group.max()) + 1):
        own = np.flatnonzero(group == each)
        own = own[np.argsort(time[target[own]], kind="stable")]
        regular = len(np.unique(source[own])) >= LIMITS.often and not _waits_back(graph, source[own], target[own])
        shift = _least_shift(time[done[own]], time[asks[own]]) if regular else 0
        if shift:
            known = time[done[own[:-shift]]] <= time[asks[own[shift:]]]
            parts.append((done[own[:-shift]][known], asks[own[shift:]][known]))
    before, then = joined(parts, 2)
    return before, then


def _given(graph: DependencyGraph) -> Array:
    """Return the edges by which a host thread goes on right behind a moment of another one that never waits for it."""
    acts, edges, time = graph.activities, graph.edges, graph.time
    rows = np.flatnonzero(of_kind(graph, EdgeKind.THREAD) & (edges.provenance == Provenance.INFERRED))
    first, then = edges.source[rows] >> 1, edges.target[rows] >> 1
    takes_part = graph.awake & ~acts.on_device & (acts.kind != ActivityKind.HOST_COMMUNICATION)
    apart = (acts.lane[first] != acts.lane[then]) & takes_part[first] & takes_part[then]
    near = time[edges.target[rows]] - time[edges.source[rows]] <= LIMITS.turn_ns
    return rows[apart & near].astype(np.int64)


def _purpose(graph: DependencyGraph, rows: Array) -> Array:
    """Return the names of activities; steps have one name."""
    acts = graph.activities
    return np.where(acts.kind[rows] == ActivityKind.STEP, -1, acts.name[rows])


def _waits_back(graph: DependencyGraph, source: Array, target: Array) -> bool:
    """Return whether the thread of some moments is known to wait for the threads of others."""
    lane, edges = graph.activities.lane, graph.edges
    rows = np.flatnonzero(of_kind(graph, EdgeKind.THREAD) & (edges.confidence >= Confidence.EVEN))
    back = np.isin(lane[edges.source[rows] >> 1], lane[target >> 1])
    return bool((back & np.isin(lane[edges.target[rows] >> 1], lane[source >> 1])).any())


def _done(graph: DependencyGraph, target: Array) -> Array:
    """Return for each moment the last one of its thread before the thread next waits for another one."""
    acts, edges = graph.activities, graph.edges
    lanes = marked(acts.lane[target >> 1], len(graph.lanes) + 1)
    host = np.flatnonzero(lanes[acts.lane] & graph.awake)
    vertex = np.concatenate((2 * host, 2 * host + 1))
    vertex = vertex[np.argsort(_by_lane(graph, vertex), kind="stable")]
    place = _by_lane(graph, vertex)
    waits = edges.target[of_kind(graph, EdgeKind.THREAD)].astype(np.int64)
    waits = np.unique(_by_lane(graph, waits[lanes[acts.lane[waits >> 1]]]))
    until = np.append(waits, np.iinfo(np.int64).max)[np.searchsorted(waits, _by_lane(graph, target), "right")]
    last = place[np.append(np.flatnonzero(np.diff(acts.lane[vertex >> 1])), len(vertex) - 1)]
    until = np.minimum(until, last[np.searchsorted(last, _by_lane(graph, target))] + 1)
    return vertex[np.searchsorted(place, until) - 1]


def _by_lane(graph: DependencyGraph, vertex: Array) -> Array:
    """Return numbers that order moments by thread, then by time."""
    stride = int(np.ptp(graph.time)) + 1
    return graph.activities.lane[vertex >> 1].astype(np.int64) * stride + graph.time[vertex] - graph.time.min()


def _next_ask(graph: DependencyGraph, source: Array) -> Array:
    """Return for each moment that handed something over which one may wait: behind an operator, the next one."""
    acts, edges = graph.activities, graph.edges
    order = np.flatnonzero(of_kind(graph, EdgeKind.HOST_ORDER, EdgeKind.BODY, EdgeKind.DATALOADER))
    order = order[np.argsort(edges.source[order], kind="stable")]
    behind = looked_up(edges.source[order].astype(np.int64), edges.target[order].astype(np.int64), source)
    works = (source & 1 == 1) & (acts.kind[source >> 1] == ActivityKind.OP) & (behind >= 0)
    return np.where(works, behind, source)


def _least_shift(done: Array, asks: Array) -> int:
    """Return by how many rounds the one is behind the other at least, 0 if that grows; times are in ns, by round."""
    for shift in range(1, min(LIMITS.in_a_row, len(done) - LIMITS.often) + 1):
        if (done[:-shift] <= asks[shift:]).mean() >= LIMITS.nearly_all:
            return shift
    return 0
