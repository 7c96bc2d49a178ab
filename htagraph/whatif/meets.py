"""Where one thread waits for another, the other may wait for it in turn: a queue that is full, a store, a rendezvous.

A recording in which one thread was always slower shows half of a meeting like this. The other half is known but for how
far the two may be apart: take k waits for item k, and item k waits until item k - capacity was taken. The recording
bounds the capacity from below only (nobody waited in it), so that this is a reading, with the least capacity that the
recorded times allow, and no fact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Mask, coded, joined, looked_up, marked
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.calls import grouped
from htagraph.graph.tolerances import LIMITS, Confidence
from htagraph.queries.weights import of_kind

__all__ = ["meets"]


class _HandOff(NamedTuple):
    """Moments at which a thread is given work by another one."""

    source: Array
    """The moment at which the giver hands the work over."""
    target: Array
    """The moment at which the taker goes on with the work."""
    done: Array
    """The moment at which the taker is done with the work."""
    asks: Array
    """The moment at which the giver may wait for the taker."""

    def take(self, rows: Array) -> _HandOff:
        """Return the given rows."""
        return _HandOff(
            self.source[rows],
            self.target[rows],
            self.done[rows],
            self.asks[rows],
        )


@once
def meets(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return waits in turn: (the moment at which a taker is done with given work, the giver's moment that may wait).

    Given work is done when the taker next waits, or with its last record.
    """
    rows = _given(graph)
    if not len(rows):
        return rows, rows
    source = graph.edges.source[rows].astype(np.int64)
    target = graph.edges.target[rows].astype(np.int64)
    given = _HandOff(
        source,
        target,
        _done(graph, target),
        _next_ask(graph, source),
    )
    before, then = joined(_waits_in_turn(graph, given), 2)
    return before, then


def _waits_in_turn(
    graph: DependencyGraph,
    given: _HandOff,
) -> Iterator[tuple[Array, Array]]:
    """Yield the pairs of moments that `meets` returns, by giver and by the purpose of the work on either side.

    Args:
        graph: the graph.
        given: all work that one thread gave to another.
    """
    time = graph.time
    giver = given.source >> 1
    group = coded(
        graph.activities.lane[giver],
        _purpose(graph, giver),
        _purpose(graph, given.target >> 1),
    )
    waits_back = _waits_back(graph, given)
    for rows in grouped(group):
        if waits_back[rows].any():
            continue
        rounds = given.take(rows)
        by_target = np.argsort(time[rounds.target], kind="stable")
        rounds = rounds.take(by_target)
        shift = _shift(graph, rounds)
        if not shift:
            continue
        done = rounds.done[:-shift]
        asks = rounds.asks[shift:]
        was_over = time[done] <= time[asks]
        yield done[was_over], asks[was_over]


def _shift(graph: DependencyGraph, rounds: _HandOff) -> int:
    """Return by how many rounds the taker is behind, 0 if the rounds are too few.

    Args:
        graph: the graph.
        rounds: work of one purpose that one thread gave, by time.
    """
    if len(np.unique(rounds.source)) < LIMITS.often:
        return 0
    done_ns = graph.time[rounds.done]
    asks_ns = graph.time[rounds.asks]
    return _least_shift(done_ns, asks_ns)


def _given(graph: DependencyGraph) -> Array:
    """Return the edges by which a host thread goes on right behind a moment of another one that never waits for it."""
    acts = graph.activities
    edges = graph.edges
    is_inferred = edges.provenance == Provenance.INFERRED
    rows = np.flatnonzero(of_kind(graph, EdgeKind.THREAD) & is_inferred)
    source = edges.source[rows]
    target = edges.target[rows]
    giver = source >> 1
    taker = target >> 1
    is_communication = acts.kind == ActivityKind.HOST_COMMUNICATION
    takes_part = graph.awake & ~acts.on_device & ~is_communication
    take_part = takes_part[giver] & takes_part[taker]
    is_apart = acts.lane[giver] != acts.lane[taker]
    is_near = graph.time[target] - graph.time[source] <= LIMITS.turn_ns
    return rows[is_apart & take_part & is_near].astype(np.int64)


def _purpose(graph: DependencyGraph, rows: Array) -> Array:
    """Return the names of activities; steps have one name."""
    acts = graph.activities
    is_step = acts.kind[rows] == ActivityKind.STEP
    return np.where(is_step, -1, acts.name[rows])


def _waits_back(graph: DependencyGraph, given: _HandOff) -> Mask:
    """Return for each round whether its giver is known to wait for the thread of its taker."""
    lane = graph.activities.lane.astype(np.int64)
    lanes = len(graph.lanes) + 1  # the last lane is that of no thread, -1
    edges = graph.edges
    is_sure = edges.confidence >= Confidence.EVEN
    rows = np.flatnonzero(of_kind(graph, EdgeKind.THREAD) & is_sure)
    pair_of_edge = lane[edges.source[rows] >> 1] * lanes + lane[edges.target[rows] >> 1]
    pair_of_round = lane[given.target >> 1] * lanes + lane[given.source >> 1]
    return np.isin(pair_of_round, pair_of_edge)


def _done(graph: DependencyGraph, target: Array) -> Array:
    """Return for each moment the last one of its thread before the thread next waits for another one."""
    lane = graph.activities.lane
    lanes = marked(lane[target >> 1], len(graph.lanes) + 1)
    vertex = _moments(graph, lanes)
    number = _by_lane(graph, vertex)
    number_of_target = _by_lane(graph, target)
    next_wait = _next_wait(graph, lanes, number_of_target)
    changes_lane = np.flatnonzero(np.diff(lane[vertex >> 1]))
    last_of_lane = number[np.append(changes_lane, len(vertex) - 1)]
    lane_place = np.searchsorted(last_of_lane, number_of_target)
    until = np.minimum(next_wait, last_of_lane[lane_place] + 1)
    return vertex[np.searchsorted(number, until) - 1]


def _moments(graph: DependencyGraph, lanes: Mask) -> Array:
    """Return the moments of the host threads on some lanes, by thread, then by time."""
    host = np.flatnonzero(lanes[graph.activities.lane] & graph.awake)
    vertex = np.concatenate((2 * host, 2 * host + 1))
    order = np.argsort(_by_lane(graph, vertex), kind="stable")
    return vertex[order]


def _next_wait(
    graph: DependencyGraph,
    lanes: Mask,
    number: Array,
) -> Array:
    """Return the first wait behind each moment, the largest number if there is none.

    Args:
        graph: the graph.
        lanes: for each lane, whether its waits count.
        number: the moments, as numbers of `_by_lane`, like the waits that are returned.
    """
    is_thread = of_kind(graph, EdgeKind.THREAD)
    waits = graph.edges.target[is_thread].astype(np.int64)
    on_lanes = lanes[graph.activities.lane[waits >> 1]]
    number_of_wait = np.unique(_by_lane(graph, waits[on_lanes]))
    place = np.searchsorted(number_of_wait, number, "right")
    never = np.iinfo(np.int64).max
    return np.append(number_of_wait, never)[place]


def _by_lane(graph: DependencyGraph, vertex: Array) -> Array:
    """Return numbers that order moments by thread, then by time."""
    stride = int(np.ptp(graph.time)) + 1
    lane = graph.activities.lane[vertex >> 1].astype(np.int64)
    return lane * stride + graph.time[vertex] - graph.time.min()


def _next_ask(graph: DependencyGraph, source: Array) -> Array:
    """Return for each moment that handed something over which one may wait: behind an operator, the next one."""
    edges = graph.edges
    is_order = of_kind(graph, EdgeKind.HOST_ORDER, EdgeKind.BODY, EdgeKind.DATALOADER)
    rows = np.flatnonzero(is_order)
    rows = rows[np.argsort(edges.source[rows], kind="stable")]
    moment = edges.source[rows].astype(np.int64)
    next_moment = edges.target[rows].astype(np.int64)
    behind = looked_up(moment, next_moment, source)
    is_operator = graph.activities.kind[source >> 1] == ActivityKind.OP
    is_end = source & 1 == 1
    return np.where(is_end & is_operator & (behind >= 0), behind, source)


def _least_shift(done: Array, asks: Array) -> int:
    """Return by how many rounds the taker is behind the giver at least, 0 if that grows.

    Args:
        done: when the taker was done with each round, ns.
        asks: when the giver asked for each round, ns.
    """
    most = min(LIMITS.in_a_row, len(done) - LIMITS.often)
    for shift in range(1, most + 1):
        is_over = done[:-shift] <= asks[shift:]
        if is_over.mean() >= LIMITS.nearly_all:
            return shift
    return 0
