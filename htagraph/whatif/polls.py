"""Loops that wait with a timeout again and again, and work in between: `join(timeout)`, `get(timeout)`, polls.

How often such a loop runs depends on the awaited work: the loop is over as soon as the work is done, and a longest path
has no loops. Of the pauses behind one moment of a program, the pauses that ran out last equally long, which is the
timeout; the released pauses were shorter, and ended behind work of another thread. A thread may also sleep between two
waits, so that a loop is a reading, and no fact. Work that ended while the thread was busy in a loop shows no loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Mask, coded, joined, marked
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind, EdgeKind, GapKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.calls import grouped
from htagraph.graph.tolerances import LIMITS, Confidence
from htagraph.queries.weights import of_kind

__all__ = ["PollLoops", "poll_loops"]


class PollLoops(NamedTuple):
    """Waits with a timeout that ran out again and again, until the awaited work was done."""

    begin: Array
    """The vertex at which each loop begins to wait."""
    over: Array
    """The vertex behind the wait that was released."""
    last: Array
    """The edge by which the thread comes to the released vertex from the last round of the loop."""

    def take(self, rows: Array) -> PollLoops:
        """Return the given rows."""
        return PollLoops(
            self.begin[rows],
            self.over[rows],
            self.last[rows],
        )


class _ThreadPauses(NamedTuple):
    """Pauses of host threads, by thread, then by time."""

    edge: Array
    """The edge of the thread's order over each pause."""
    before: Array
    """The vertex before each pause."""
    vertex: Array
    """The vertex behind each pause."""
    lasts: Array
    """How long each pause lasts, ns."""
    lane: Array
    """The thread."""
    step: Array
    """How many steps of the thread have begun before each pause."""
    released: Mask
    """Which pauses end right behind work of another thread that is known to release them."""

    def take(self, rows: Array) -> _ThreadPauses:
        """Return the given rows."""
        return _ThreadPauses(
            self.edge[rows],
            self.before[rows],
            self.vertex[rows],
            self.lasts[rows],
            self.lane[rows],
            self.step[rows],
            self.released[rows],
        )


@once
def poll_loops(graph: DependencyGraph) -> PollLoops:
    """Return the loops of host threads that wait with a timeout until work of another thread is done."""
    pauses = _pauses(graph)
    begin, over = joined(_loops(graph, pauses), 2)
    return PollLoops(
        pauses.before[begin],
        pauses.vertex[over],
        pauses.edge[over],
    )


def _pauses(graph: DependencyGraph) -> _ThreadPauses:
    """Return the pauses of host threads that are long, or that work of another thread ends."""
    acts = graph.activities
    edges = graph.edges
    order = np.flatnonzero(of_kind(graph, EdgeKind.HOST_ORDER))
    before = edges.source[order].astype(np.int64)
    vertex = edges.target[order].astype(np.int64)
    lasts = graph.time[vertex] - graph.time[before]
    is_silent = graph.gap[vertex] >= 2 * LIMITS.turn_ns
    is_silent &= graph.gap_kind[vertex] == GapKind.HOST_UNTRACED
    is_released = _released(graph)[vertex]
    is_pause = is_released | is_silent
    lane = acts.lane[vertex >> 1].astype(np.int64)
    pauses = _ThreadPauses(
        order,
        before,
        vertex,
        lasts,
        lane,
        _steps(graph, vertex),
        is_released,
    )
    in_order = np.lexsort((graph.time[vertex], lane))
    return pauses.take(in_order[is_pause[in_order]])


def _released(graph: DependencyGraph) -> Mask:
    """Return which vertices are known to wait for work of another thread that ended right before."""
    lane = graph.activities.lane
    edges = graph.edges
    is_sure = edges.confidence >= Confidence.EVEN
    rows = np.flatnonzero(of_kind(graph, EdgeKind.THREAD) & is_sure)
    source = edges.source[rows]
    target = edges.target[rows]
    is_apart = lane[source >> 1] != lane[target >> 1]
    is_near = graph.time[target] - graph.time[source] <= LIMITS.turn_ns
    return marked(target[is_apart & is_near], graph.vertex_count)


def _steps(graph: DependencyGraph, vertex: Array) -> Array:
    """Return for each vertex how many steps of its thread have begun before it."""
    acts = graph.activities
    steps = np.flatnonzero(acts.kind == ActivityKind.STEP)
    if not len(vertex):
        return np.zeros(0, np.int64)
    stride = int(np.ptp(graph.time)) + 1
    lane = acts.lane.astype(np.int64) * stride
    origin = graph.time.min()
    begin = np.sort(lane[steps] + graph.time[2 * steps] - origin)
    moment = lane[vertex >> 1] + graph.time[vertex] - origin
    return np.searchsorted(begin, moment)


def _loops(
    graph: DependencyGraph,
    pauses: _ThreadPauses,
) -> Iterator[tuple[Array, Array]]:
    """Yield (the first pause of each loop, the pause that was released), as rows, by the moment before the pause.

    Args:
        graph: the graph.
        pauses: the pauses.
    """
    acts = graph.activities
    place = pauses.before >> 1
    is_step = acts.kind[place] == ActivityKind.STEP
    name = np.where(is_step, -1, acts.name[place])
    side = pauses.before & 1
    for rows in grouped(coded(pauses.lane, name, side)):
        timeout = _timeout(pauses.take(rows))
        if not timeout:
            continue
        ran_out = ~pauses.released & _alike(pauses.lasts, timeout)
        begin = _first_of_run(pauses, ran_out)[rows]
        is_over = pauses.released[rows] & (begin < rows)
        yield begin[is_over], rows[is_over]


def _timeout(pauses: _ThreadPauses) -> int:
    """Return after how long the pauses behind one moment time out, ns; 0 where they seem to have no timeout."""
    silent = pauses.lasts[~pauses.released]
    released = pauses.lasts[pauses.released]
    if min(len(silent), len(released)) < LIMITS.often:
        return 0
    timeout = int(np.median(silent))
    is_alike = _alike(silent, timeout)
    is_sooner = released <= timeout + LIMITS.turn_ns
    are_regular = min(is_alike.mean(), is_sooner.mean()) >= LIMITS.nearly_all
    return timeout if are_regular else 0


def _alike(lasts: Array, timeout: int) -> Mask:
    """Return which pauses last as long as a timeout, ns: a thread may wake up late by a turn of the host."""
    late = lasts - timeout
    is_alike: Mask = (late >= -LIMITS.small * timeout) & (late <= LIMITS.turn_ns)
    return is_alike


def _first_of_run(pauses: _ThreadPauses, ran_out: Mask) -> Array:
    """Return for each pause the first pause of the run that ran out right before in the step, or the pause's row."""
    row = np.arange(len(ran_out))
    follows = np.zeros(len(ran_out), np.bool_)
    same_lane = pauses.lane[1:] == pauses.lane[:-1]
    same_step = pauses.step[1:] == pauses.step[:-1]
    follows[1:] = ran_out[:-1] & same_lane & same_step
    return np.maximum.accumulate(np.where(follows, 0, row))
