"""Threads that share out work and end, but for the last one, which goes on: a tree of sums, a counter of parts left.

A thread gives work to several threads. Some threads end behind a number of operators and release nobody; another one
has run as many operators, and goes on. If the work that ended was always over by then, the thread that goes on may have
been the last of a meeting: it needs the work of all threads, though it never waited for any. The recording fits
independent threads as well, so that the need is a reading, and no fact. Work that was still running as the other thread
went on refutes it.
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
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.weights import of_kind

__all__ = ["last_parts"]


class _HostEdges(NamedTuple):
    """Inferred edges by which a host thread goes on right behind a moment of another one."""

    source: Array
    """The moment that the other thread goes on behind."""
    target: Array
    """The moment at which a thread goes on."""


class _GivenStretches(NamedTuple):
    """Stretches of operators that threads run between one moment that another thread released and the next."""

    first: Array
    """The place of the first operator of each stretch in the operators by thread and time."""
    size: Array
    """How many operators each stretch has."""
    role: Array
    """Equal for stretches of equally many operators that have the same names at their begin and end."""
    round: Array
    """Equal for stretches that one thread gave between two of its waits."""

    def take(self, rows: Array) -> _GivenStretches:
        """Return the given rows."""
        return _GivenStretches(
            self.first[rows],
            self.size[rows],
            self.role[rows],
            self.round[rows],
        )


class _NeedsOfParts(NamedTuple):
    """Parts that ended, and operators by which threads beside them went on."""

    end: Array
    """The end of each part, a vertex."""
    begin: Array
    """The start of the operator that may need the part, a vertex."""
    site: Array
    """Equal for needs between the same roles."""


@once
def last_parts(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return needs of work that goes on: (the moment at which a part ended, the moment at which another went on)."""
    given = _given(graph)
    none = np.zeros(0, np.int64)
    if len(given.target) < LIMITS.often:
        return none, none
    operators = _operators(graph, given)
    stretches = _stretches(graph, given, operators)
    of_rounds = _pairs(given, operators, stretches)
    needs = _NeedsOfParts(*joined(of_rounds, 3))
    kept = _always_over(graph, needs)
    return needs.end[kept], needs.begin[kept]


def _given(graph: DependencyGraph) -> _HostEdges:
    """Return the inferred edges from one host thread to another one that goes on right behind it."""
    acts = graph.activities
    edges = graph.edges
    is_inferred = edges.provenance == Provenance.INFERRED
    rows = np.flatnonzero(of_kind(graph, EdgeKind.THREAD) & is_inferred)
    source = edges.source[rows].astype(np.int64)
    target = edges.target[rows].astype(np.int64)
    is_host = ~acts.on_device[source >> 1] & ~acts.on_device[target >> 1]
    is_apart = acts.lane[source >> 1] != acts.lane[target >> 1]
    is_near = graph.time[target] - graph.time[source] <= LIMITS.turn_ns
    kept = is_host & is_apart & is_near
    return _HostEdges(source[kept], target[kept])


def _operators(graph: DependencyGraph, given: _HostEdges) -> Array:
    """Return the outermost operators of the threads that are given work, by thread and time."""
    acts = graph.activities
    is_op = acts.kind == ActivityKind.OP
    in_op = np.append(is_op, False)[acts.parent]
    on_thread = np.isin(acts.lane, acts.lane[given.target >> 1])
    rows = np.flatnonzero(is_op & ~in_op & on_thread & graph.awake)
    order = np.argsort(_by_lane(graph, 2 * rows), kind="stable")
    return rows[order]


def _stretches(
    graph: DependencyGraph,
    given: _HostEdges,
    operators: Array,
) -> _GivenStretches:
    """Return the stretches of operators whose giver is known.

    A stretch begins where another thread lets its thread go on, or behind a pause.

    Args:
        graph: the graph.
        given: the edges that let threads go on.
        operators: all operators, by thread and time.
    """
    acts = graph.activities
    resumed = np.unique(_by_lane(graph, given.target))
    first = np.searchsorted(_by_lane(graph, 2 * operators), resumed)
    is_first = marked(first, len(operators) + 1)[:-1]
    is_first |= _begins(graph, operators)
    begins = np.flatnonzero(is_first)
    count = np.diff(np.append(begins, len(operators)))
    giver = _giver(graph, given, operators[begins])
    wait_of_giver = np.searchsorted(resumed, _by_lane(graph, giver), "right")
    name = acts.name[operators]
    stretches = _GivenStretches(
        begins,
        count,
        coded(name[begins], name[begins + count - 1], count),
        coded(acts.lane[giver >> 1], wait_of_giver),
    )
    return stretches.take(np.flatnonzero(giver >= 0))


def _begins(graph: DependencyGraph, operators: Array) -> Mask:
    """Return which operators are the first of their thread, or begin behind a pause."""
    lane = graph.activities.lane[operators]
    pause_ns = graph.time[2 * operators[1:]] - graph.time[2 * operators[:-1] + 1]
    begins = np.ones(len(operators), np.bool_)
    begins[1:] = (lane[1:] != lane[:-1]) | (pause_ns >= LIMITS.turn_ns)
    return begins


def _giver(
    graph: DependencyGraph,
    given: _HostEdges,
    operators: Array,
) -> Array:
    """Return the moment at which another thread let each operator begin; -1 where none is near.

    Where no edge tells it, this is the last moment of the rank at which a thread gave work to another one.

    Args:
        graph: the graph.
        given: the edges that let threads go on.
        operators: the operators.
    """
    begin = 2 * operators
    order = np.argsort(_by_rank(graph, given.source), kind="stable")
    source = given.source[order]
    last = np.searchsorted(_by_rank(graph, source), _by_rank(graph, begin), "right") - 1
    giver = source[np.maximum(last, 0)]
    rank = graph.activities.rank
    is_given = last >= 0
    is_given &= rank[giver >> 1] == rank[operators]
    is_given &= graph.time[begin] - graph.time[giver] <= LIMITS.turn_ns
    nearest_giver = np.where(is_given, giver, -1)
    by_target = np.argsort(given.target, kind="stable")
    known_giver = looked_up(given.target[by_target], given.source[by_target], begin)
    return np.where(known_giver >= 0, known_giver, nearest_giver)


def _pairs(
    given: _HostEdges,
    operators: Array,
    stretches: _GivenStretches,
) -> Iterator[_NeedsOfParts]:
    """Yield the needs by round, from stretches that release nobody to longer stretches beside them.

    Args:
        given: the edges that let threads go on.
        operators: all operators, by thread and time.
        stretches: the stretches of operators.
    """
    last = operators[stretches.first + stretches.size - 1]
    is_silent = ~np.isin(2 * last + 1, given.source)
    roles = int(stretches.role.max(initial=0)) + 1
    for rows in grouped(stretches.round):
        if not 2 <= len(rows) <= LIMITS.tried:
            continue
        beside = stretches.take(rows)
        goes_on = beside.size[:, None] < beside.size
        is_need = goes_on & is_silent[rows][:, None]
        ended, longer = np.nonzero(is_need)
        behind = operators[beside.first[longer] + beside.size[ended]]
        site = beside.role[ended].astype(np.int64) * roles + beside.role[longer]
        yield _NeedsOfParts(2 * last[rows[ended]] + 1, 2 * behind, site)


def _always_over(graph: DependencyGraph, needs: _NeedsOfParts) -> Mask:
    """Return the needs of sites that recur, in nearly all of which the part was over as the other one went on."""
    if not len(needs.site):
        return np.zeros(0, np.bool_)
    was_over = graph.time[needs.end] < graph.time[needs.begin]
    site = coded(needs.site)
    count = np.bincount(site)
    over_count = np.bincount(site, was_over)
    is_often = over_count >= LIMITS.often
    is_usual = over_count >= LIMITS.nearly_all * count
    kept: Mask = was_over & (is_often & is_usual)[site]
    return kept


def _by_lane(graph: DependencyGraph, vertex: Array) -> Array:
    """Return numbers that order moments by thread, then by time."""
    return _numbers(graph, graph.activities.lane, vertex)


def _by_rank(graph: DependencyGraph, vertex: Array) -> Array:
    """Return numbers that order moments by rank, then by time."""
    return _numbers(graph, graph.activities.rank, vertex)


def _numbers(
    graph: DependencyGraph,
    owner: Array,
    vertex: Array,
) -> Array:
    """Return numbers that order moments by the owner of their activity, then by time.

    Args:
        graph: the graph.
        owner: a number for each activity.
        vertex: the moments.
    """
    stride = int(np.ptp(graph.time)) + 1
    number = owner[vertex >> 1].astype(np.int64)
    return number * stride + graph.time[vertex] - graph.time.min()
