"""A graph as nodes that a feeder replays which knows only: a node begins when the nodes that it depends on are over.

A graph's edges lead from starts or ends, and have lags; a node of an execution trace has only nodes before it. So a
node is the time that leads to a moment: from the latest of the moments that allow it. Moments that take no time of
their own are left out, and what depends on them depends on what they depend on.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, inverse_of, looked_up, spread
from htagraph.core.compiled import njit
from htagraph.core.errors import GraphError
from htagraph.core.kinds import LAUNCHES, TRANSFERS, ActivityKind, edges_with, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Meetings", "Nodes", "nodes_of"]

_LATENCY_PERCENTILE = 5
"""Percentile of the lags of launches. Chosen: few launches are quicker, and what is quicker by a clock's error does not
count. Doubled, more launches are replaced by an earlier moment of their thread."""
_MAX_TAKEN_OVER: Final = 8
"""Dependencies of a moment without time that the one node behind the moment takes over. Chosen: a kernel has fewer, and
a chain of such moments costs no more than its length. Doubled, a few nodes fewer."""
_ORDER: Final = edges_with("lane") + edges_with("launch")
"""Kinds of edges that are the order of a program: of a thread or stream, and from a launch to its work."""


class Meetings(NamedTuple):
    """The members of matched collectives, sends and receives of which two or more ranks were recorded."""

    activity: Ints
    collective: Ints
    begins: Ints
    """Per member: when all members have arrived, µs."""
    lasts: Ints
    """Per member: the time from there to the first end of a member that waits for all, µs."""
    released: Ints
    """Per member: the vertex at which its wait is over."""
    waits: Mask
    """Per member: whether it ended after all had arrived."""


class Nodes(NamedTuple):
    """Nodes of all ranks in order of time; every dependency is on an earlier node of the same rank."""

    rank: Array
    activity: Ints
    """The activity whose time the node is, or that it leads to."""
    before: Mask
    """Whether the node is time before the activity that no activity around it explains."""
    member: Ints
    """The row of `meetings` that the node is; -1 for most."""
    start: Ints
    """µs."""
    duration: Ints
    """µs."""
    first: Ints
    """Where the dependencies of each node begin in `source`, and at last how many there are."""
    source: Ints
    """Numbers of nodes."""
    control: Mask
    """Per dependency: whether it is the order of a program."""
    meetings: Meetings
    moved: int
    """Dependencies that lie before what they depend on by the recorded clocks, and depend on an earlier moment."""


class _Moments(NamedTuple):
    """Moments that become nodes: the vertices of the graph, then others."""

    time: Ints
    """µs."""
    tie: Ints
    """Their order among equal times."""
    activity: Ints
    before: Mask
    member: Ints
    rank: Array


class _Needs(NamedTuple):
    """Dependencies between moments."""

    source: Ints
    target: Ints
    control: Mask
    own: Ints
    """The time that an activity takes itself between the two, µs; 0 where it is known to take none."""


def nodes_of(graph: DependencyGraph) -> Nodes:
    """Return the nodes of a graph.

    Times are whole µs. A thread that takes no part in the job (`DependencyGraph.awake`) has no nodes. What devices do
    is earlier by a usual launch latency than recorded, so that launches need no node of their own.

    Raises:
        GraphError: ranks depend on each other outside of matched communication.
    """
    acts = graph.activities
    kept = graph.awake & (acts.kind != ActivityKind.JOIN)
    time = _microseconds(graph, kept)
    meetings = _meetings(graph, time, kept)
    moments, needs = _with_own_time(_moments(graph, time, meetings), _needs(graph, meetings, kept))
    used = np.concatenate((np.repeat(kept, 2), np.ones(len(moments.time) - 2 * len(acts), np.bool_)))
    order = np.flatnonzero(used)
    order = order[np.lexsort((moments.tie[order], moments.time[order]))]
    needs, moved = _in_order(graph, order, moments, needs)
    ends = np.zeros(len(moments.time), np.bool_)
    ends[2 * np.flatnonzero(acts.kind == ActivityKind.BOUNDARY) + 1] = True
    return _contracted((order, ends[order]), moments, needs, meetings, moved)


def _microseconds(graph: DependencyGraph, kept: Mask) -> Ints:
    """Return the moment of each vertex, µs since the first; devices are early by the usual launch latency."""
    lags = graph.edges.lag[of_kinds(graph.edges.kind, LAUNCHES)]
    latency = max(0, int(np.percentile(lags, _LATENCY_PERCENTILE))) if len(lags) else 0
    time = graph.time - latency * np.repeat(graph.activities.on_device, 2)
    time -= time[np.repeat(kept, 2)].min(initial=np.iinfo(np.int64).max)
    return time // 1000


def _meetings(graph: DependencyGraph, time: Ints, kept: Mask) -> Meetings:
    acts, edges, matches = graph.activities, graph.edges, graph.matches
    is_join = acts.kind == ActivityKind.JOIN
    if matches is None or not matches.count:
        if is_join.any():
            msg = "this graph has joins that are no matched collectives, which an execution trace cannot hold"
            raise GraphError(msg)
        none = np.zeros(0, np.int64)
        return Meetings(none, none, none, none, none, np.zeros(0, np.bool_))
    several = np.bincount(matches.collective, kept[matches.activity], matches.count) > 1
    rows = np.flatnonzero(several[matches.collective] & kept[matches.activity])
    activity, collective = matches.activity[rows].astype(np.int64), matches.collective[rows].astype(np.int64)
    out = of_kinds(edges.kind, TRANSFERS) & is_join[edges.source >> 1] & ~is_join[edges.target >> 1]
    ends = 2 * np.arange(len(acts)) + 1
    ends[edges.activity[out]] = edges.target[out]
    released = ends[activity]
    begins = np.zeros(matches.count, np.int64)
    np.maximum.at(begins, collective, time[2 * activity])
    behind = time[released] - begins[collective]
    never = np.iinfo(np.int64).max
    lasts = np.full(matches.count, never)
    np.minimum.at(lasts, collective, np.where(behind >= 0, behind, never))
    lasts[lasts == never] = 0
    return Meetings(activity, collective, begins[collective], lasts[collective], released, behind >= 0)


def _moments(graph: DependencyGraph, time: Ints, meetings: Meetings) -> _Moments:
    """Return the vertices, and the end of the transfer of each member."""
    acts, members = graph.activities, meetings.activity
    count = len(acts)
    tie = 4 * inverse_of(graph.topological_order, 2 * count)
    around = np.where(acts.on_device, -1, acts.parent)
    owner = np.repeat(np.arange(count), 2)
    owner[::2] = np.where(around >= 0, around, owner[::2])
    before = np.zeros(2 * count, np.bool_)
    before[::2] = around < 0
    return _Moments(
        np.concatenate((time, meetings.begins + meetings.lasts)),
        np.concatenate((tie, tie[2 * members] + 1)),
        np.concatenate((owner, members)),
        np.concatenate((before, np.zeros(len(members), np.bool_))),
        np.concatenate((np.full(2 * count, -1), np.arange(len(members)))),
        np.concatenate((np.repeat(acts.rank, 2), acts.rank[members])),
    )


def _needs(graph: DependencyGraph, meetings: Meetings, kept: Mask) -> _Needs:
    """Return the dependencies: edges, and those of members, which replace the edges of JOINs."""
    edges = graph.edges
    inside = kept[edges.source >> 1] & kept[edges.target >> 1]
    rank = graph.activities.rank
    across = inside & (rank[edges.source >> 1] != rank[edges.target >> 1])
    if (across & ~of_kinds(edges.kind, TRANSFERS)).any():
        msg = (
            "this graph has dependencies between ranks that are no communication, which an execution trace cannot hold"
        )
        raise GraphError(msg)
    inside &= ~across  # of pairs, whose nodes wait for each other
    source, target = (ends[inside].astype(np.int64) for ends in (edges.source, edges.target))
    transfer = 2 * len(graph.activities) + np.arange(len(meetings.activity))
    arrival = 2 * meetings.activity
    members = np.concatenate((arrival, np.where(meetings.waits, transfer, arrival)))
    own = np.where(of_kinds(edges.kind[inside], edges_with("own")), edges.lag[inside] // 1000, 0)
    return _Needs(
        np.concatenate((source, members)), np.concatenate((target, transfer, meetings.released)),
        np.concatenate((of_kinds(edges.kind[inside], _ORDER), np.zeros(len(members), np.bool_))),
        np.concatenate((own, np.zeros(len(members), np.int64))),
    )  # fmt: skip


def _with_own_time(moments: _Moments, needs: _Needs) -> tuple[_Moments, _Needs]:
    """Return moments and dependencies with one more moment where own work passes beside a wait, not behind it."""
    several = np.bincount(needs.target, minlength=len(moments.time))[needs.target] > 1
    rows = np.flatnonzero(several & (needs.own > 0) & (moments.time[needs.source] <= moments.time[needs.target]))
    source, target = needs.source[rows], needs.target[rows]
    worked = np.minimum(moments.time[source] + needs.own[rows], moments.time[target])
    first, added = needs.target.copy(), len(moments.time) + np.arange(len(rows))
    first[rows] = added
    more = (
        worked, moments.tie[source] + 2, moments.activity[target], np.zeros(len(rows), np.bool_),
        np.full(len(rows), -1), moments.rank[source],
    )  # fmt: skip
    return _Moments(*(np.concatenate(both) for both in zip(moments, more, strict=True))), _Needs(
        np.concatenate((needs.source, added)), np.concatenate((first, target)),
        np.concatenate((needs.control, needs.control[rows])), np.zeros(len(first) + len(rows), np.int64),
    )  # fmt: skip


def _in_order(graph: DependencyGraph, order: Ints, moments: _Moments, needs: _Needs) -> tuple[_Needs, int]:
    """Return dependencies by place in `order`, each on an earlier moment, and how many were moved for that."""
    # a later one, by errors of clocks or late records, becomes the last of its lane before; none is on the main thread
    acts = graph.activities
    place = inverse_of(order, len(moments.time))
    source, target = place[needs.source], place[needs.target]
    vertices = order[order < 2 * len(acts)]
    lanes = acts.lane.astype(np.int64) + 1
    keys = np.sort(lanes[vertices >> 1] * len(order) + place[vertices])

    def last_before(lane: Array, at: Array) -> Array:
        """Return the last moment of a lane before each place; -1 where there is none."""
        found = np.searchsorted(keys, lane * len(order) + at) - 1
        there = (found >= 0) & (keys[found] // len(order) == lane)
        return np.where(there, keys[found] % len(order), -1)

    late = np.flatnonzero(source >= target)
    vertex = needs.source[late]
    known = vertex < 2 * len(acts)
    lane = lanes[np.where(known, vertex, 0) >> 1]
    source[late] = np.where(known, last_before(lane, target[late]), -1)
    alone = np.flatnonzero(np.bincount(target[source >= 0], minlength=len(order)) == 0)
    main = looked_up(*_main_lanes(graph, lanes), moments.rank[order[alone]])
    anchor = last_before(main, alone)
    source, target = np.concatenate((source, anchor)), np.concatenate((target, alone))
    there = source >= 0
    control = np.concatenate((needs.control, np.ones(len(alone), np.bool_)))
    return _Needs(source[there], target[there], control[there], np.zeros(int(there.sum()), np.int64)), len(late)


def _main_lanes(graph: DependencyGraph, lanes: Ints) -> tuple[Array, Array]:
    """Return the ranks, and the thread of each with the most activities."""
    acts = graph.activities
    host = np.flatnonzero(~acts.on_device[: acts.ranked])
    count = np.bincount(lanes[host])[lanes[host]]
    order = np.lexsort((lanes[host], -count, acts.rank[host]))
    rank, first = np.unique(acts.rank[host][order], return_index=True)
    return rank, lanes[host][order][first]


def _contracted(placed: tuple[Ints, Mask], moments: _Moments, needs: _Needs, meetings: Meetings, moved: int) -> Nodes:
    order, always = placed
    by_target = np.argsort(needs.target, kind="stable")
    source, target = needs.source[by_target], needs.target[by_target]
    first = np.searchsorted(target, np.arange(len(order) + 1))
    time, member = moments.time[order], moments.member[order]
    allowed = np.zeros(len(order), np.int64)
    np.maximum.at(allowed, target, time[source])
    lasts = time - allowed
    transfers = np.flatnonzero(member >= 0)
    lasts[transfers] = meetings.lasts[member[transfers]]
    plain = (lasts == 0) & (member < 0) & ~always
    stays, begins, found, control = _settled(first, source, needs.control[by_target], plain)
    rows = np.flatnonzero(stays)
    number = inverse_of(rows, len(order))
    owner, at = spread(begins[rows, 0], begins[rows, 1])
    chosen = order[rows]
    return Nodes(
        moments.rank[chosen], moments.activity[chosen], moments.before[chosen],
        member[rows], time[rows] - lasts[rows], lasts[rows],
        np.searchsorted(owner, np.arange(len(rows) + 1)), number[found[at]], control[at], meetings, moved,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _settled(first: Array, source: Array, control: Array, plain: Array) -> tuple[Array, Array, Array, Array]:
    """Return which moments become nodes, where dependencies of each begin and end, those, and which are of order."""
    # a `plain` moment is none if it has but one dependency, or if no more than one moment depends on it
    count = len(plain)
    through, uses = _passed(first, source, plain)
    most = len(source) + _MAX_TAKEN_OVER * count
    stays, spans, taken = np.zeros(count, np.bool_), np.zeros((count, 2), np.int64), np.zeros(count, np.bool_)
    found, ordered, seen = np.empty(most, np.int64), np.empty(most, np.bool_), np.full(count, -1, np.int64)
    size = 0
    for at in range(count):
        if through[at] != at or (plain[at] and uses[at] == 0):
            continue
        spans[at, 0] = size
        for edge in range(first[at], first[at + 1]):
            one = through[source[edge]]
            begin, end = (spans[one, 0], spans[one, 1]) if taken[one] else (0, 1)
            for inner in range(begin, end):
                each = found[inner] if taken[one] else one
                if seen[each] != at:
                    seen[each] = at
                    found[size], ordered[size] = each, ordered[inner] if taken[one] else control[edge]
                    size += 1
        spans[at, 1] = size
        taken[at] = plain[at] and uses[at] == 1 and size - spans[at, 0] <= _MAX_TAKEN_OVER
        stays[at] = not taken[at]
    return stays, spans, found[:size], ordered[:size]


@njit(nogil=True)
def _passed(first: Array, source: Array, plain: Array) -> tuple[Array, Array]:
    """Return the moment that each stands for, itself or its only dependency, and how many depend on each."""
    through, uses = np.arange(len(plain)), np.zeros(len(plain), np.int64)
    for at in range(len(plain)):
        begin, end = first[at], first[at + 1]
        same = plain[at] and end > begin
        for edge in range(begin + 1, end):
            same = same and through[source[edge]] == through[source[begin]]
        if same:
            through[at] = through[source[begin]]
    for at in range(len(plain) - 1, -1, -1):
        if through[at] == at and not (plain[at] and uses[at] == 0):
            for edge in range(first[at], first[at + 1]):
                uses[through[source[edge]]] += 1
    return through, uses
