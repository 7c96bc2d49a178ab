"""Waits for the first of several answers: hedged requests, `wait(FIRST_COMPLETED)`, the first of `as_completed`.

Such a wait is released by a minimum, and a longest path has none. A thread hands out several tasks between two of its
waits, goes on with the end of one task, and never waits for another task that was still running then. The thread may
have waited for the first end of the two, or for the one task alone: the recording fits both, so that the minimum is
a reading, and no fact. A task that ended before the releasing one, and released nothing, refutes the minimum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Mask, coded
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.replay import predict
from htagraph.queries.weights import NEVER, State, of_kind
from htagraph.whatif.rewire import with_waits

__all__ = ["FirstAnswers", "first_answers", "taken"]

_MOST_ROUNDS = 8
"""How often moments are computed anew, as answers that come first let later tasks begin sooner. Chosen: a minimum of
two tasks settles in two rounds. Doubled, chains of tasks that wait for each other's first answers settle too."""


class FirstAnswers(NamedTuple):
    """Tasks that may release a wait in place of the task that did, if they end sooner."""

    end: Array
    """The end of each task that was still running, a vertex."""
    wait: Array
    """The vertex that waits."""
    released_by: Array
    """The edge by which another task released the wait."""

    def take(self, rows: Array) -> FirstAnswers:
        """Return the given rows."""
        return FirstAnswers(self.end[rows], self.wait[rows], self.released_by[rows])


class _Released(NamedTuple):
    """Moments at which threads went on right behind work of other threads, by thread, then by time."""

    edge: Array
    """The edge from the end of the task that released each wait."""
    vertex: Array
    """The moment that waited."""
    lane: Array
    """The thread that waited."""
    role: Array
    """Equal for waits of one thread before activities of one name."""
    number: Array
    """The moments in order, by thread and time: numbers of `_by_lane`."""


class _HandedOut(NamedTuple):
    """Tasks that a thread handed out before one of its waits, at most one row per task."""

    task: Array
    """The activity."""
    wait: Array
    """The row of `_Released` behind the handing out."""


@once
def first_answers(graph: DependencyGraph) -> FirstAnswers:
    """Return the tasks that may have been asked for together with those that released a wait, and ended later."""
    none = np.zeros(0, np.int64)
    waits = _releases(graph)
    if len(waits.edge) < LIMITS.often:
        return FirstAnswers(none, none, none)
    tasks = _handed_out(graph, waits)
    edges = graph.edges
    winner = edges.source[waits.edge[tasks.wait]].astype(np.int64) >> 1
    is_winner = tasks.task == winner
    has_winner = np.zeros(len(waits.edge), np.bool_)
    has_winner[tasks.wait[is_winner]] = True
    rows = np.flatnonzero(has_winner[tasks.wait] & ~is_winner)
    tasks = _HandedOut(tasks.task[rows], tasks.wait[rows])
    was_running = _may_be_second(graph, waits, tasks)
    task = tasks.task[was_running]
    wait = tasks.wait[was_running]
    return FirstAnswers(
        2 * task + 1,
        waits.vertex[wait],
        waits.edge[wait],
    )


def taken(state: State, answers: FirstAnswers) -> FirstAnswers | None:
    """Return the first answers that come before the recorded ones in a state; None if that has no order."""
    lag = state.lag
    answers = answers.take(np.flatnonzero(lag[answers.released_by] > NEVER))
    source = state.graph.edges.source.astype(np.int64)
    replaced, chosen = state, answers.take(np.zeros(0, np.int64))
    for _ in range(_MOST_ROUNDS):
        time = predict(replaced.graph, replaced.lag, replaced.gap, replaced.head)
        before = np.flatnonzero(time[answers.end] < time[source[answers.released_by]])
        by_end = before[np.lexsort((time[answers.end[before]], answers.released_by[before]))]
        first = by_end[np.unique(answers.released_by[by_end], return_index=True)[1]]
        then = answers.take(first)
        if np.array_equal(then.end, chosen.end) and np.array_equal(then.wait, chosen.wait):
            break
        chosen = then
        other = _released_by(state, chosen)
        if other is None:
            return None
        replaced = other
    return chosen


def _released_by(state: State, chosen: FirstAnswers) -> State | None:
    """Return the state in which other tasks release some waits; None if a task would wait for itself."""
    lag = state.lag.copy()
    lag[chosen.released_by] = NEVER
    lag_of_wait = state.lag[chosen.released_by]
    waits = Edges.of(
        chosen.end,
        chosen.wait,
        lag_of_wait,
        EdgeKind.THREAD,
        Provenance.INFERRED,
        confidence=1,
    )
    return with_waits(replace(state, lag=lag), waits, lag_of_wait, "first answers")


def _between_threads(graph: DependencyGraph) -> Array:
    """Return the inferred edges from one host thread to another one."""
    acts = graph.activities
    edges = graph.edges
    rows = np.flatnonzero(of_kind(graph, EdgeKind.THREAD) & (edges.provenance == Provenance.INFERRED))
    source = edges.source[rows] >> 1
    target = edges.target[rows] >> 1
    is_apart = acts.lane[source] != acts.lane[target]
    is_host = ~acts.on_device[source] & ~acts.on_device[target]
    return rows[is_apart & is_host].astype(np.int64)


def _releases(graph: DependencyGraph) -> _Released:
    """Return the waits that the end of an operator released: of several edges into one moment, the latest."""
    acts = graph.activities
    edges = graph.edges
    rows = _between_threads(graph)
    source = edges.source[rows].astype(np.int64)
    target = edges.target[rows].astype(np.int64)
    is_end = (source & 1 == 1) & (acts.kind[source >> 1] == ActivityKind.OP)
    is_near = graph.time[target] - graph.time[source] <= LIMITS.turn_ns
    released = np.flatnonzero(is_end & is_near)
    by_target = released[np.lexsort((-graph.time[source[released]], target[released]))]
    latest = by_target[np.unique(target[by_target], return_index=True)[1]]
    number = _by_lane(graph, target[latest])
    latest = latest[np.argsort(number, kind="stable")]
    vertex = target[latest]
    name = np.where(acts.kind[vertex >> 1] == ActivityKind.STEP, -1, acts.name[vertex >> 1])
    lane = acts.lane[vertex >> 1].astype(np.int64)
    return _Released(
        rows[latest],
        vertex,
        lane,
        coded(lane, name, vertex & 1),
        _by_lane(graph, vertex),
    )


def _handed_out(graph: DependencyGraph, waits: _Released) -> _HandedOut:
    """Return the operators that threads handed out between two of their waits, each by the last edge into its start."""
    acts = graph.activities
    edges = graph.edges
    rows = _between_threads(graph)
    target = edges.target[rows].astype(np.int64)
    rows = rows[(target & 1 == 0) & (acts.kind[target >> 1] == ActivityKind.OP)]
    source = edges.source[rows].astype(np.int64)
    task = edges.target[rows].astype(np.int64) >> 1
    by_task = np.lexsort((-graph.time[source], task))
    last = by_task[np.unique(task[by_task], return_index=True)[1]]
    wait = np.searchsorted(waits.number, _by_lane(graph, source[last]), "right")
    found = np.minimum(wait, len(waits.lane) - 1)
    is_known = (wait < len(waits.lane)) & (waits.lane[found] == acts.lane[source[last] >> 1])
    return _HandedOut(task[last][is_known], found[is_known])


def _may_be_second(graph: DependencyGraph, waits: _Released, tasks: _HandedOut) -> Mask:
    """Return which tasks were running as the wait was over, in waits of roles that may be for the first of several.

    A role is one if nearly each of its waits left such a task running. Names are left out whose tasks ended before the
    releasing one, which released the wait all the same, and tasks that their thread waits for before the role recurs.
    """
    time = graph.time
    begin = time[2 * tasks.task]
    end = time[2 * tasks.task + 1]
    over = time[waits.vertex[tasks.wait]]
    released = time[graph.edges.source[waits.edge[tasks.wait]]]
    role = waits.role[tasks.wait]
    case = coded(role, graph.activities.name[tasks.task].astype(np.int64))
    count = np.bincount(case)
    refuted = np.bincount(case, end < released - LIMITS.tick_ns)
    may_be_first = refuted[case] <= LIMITS.damaged * count[case]
    is_running = (begin <= over) & (end > over)
    is_dropped = ~_awaited(graph, waits, tasks)
    second = is_running & may_be_first & is_dropped
    left_running = np.zeros(len(waits.edge), np.bool_)
    left_running[tasks.wait[second]] = True
    rounds = np.bincount(waits.role)
    with_second = np.bincount(waits.role, left_running)
    recurs = (with_second >= LIMITS.often) & (with_second >= LIMITS.nearly_all * rounds)
    return second & recurs[role]


def _awaited(graph: DependencyGraph, waits: _Released, tasks: _HandedOut) -> Mask:
    """Return which tasks their thread waits for before the role of the wait recurs."""
    next_number = np.full(len(waits.edge), np.iinfo(np.int64).max)
    by_role = np.argsort(waits.role, kind="stable")
    follows = np.flatnonzero(np.diff(waits.role[by_role]) == 0)
    next_number[by_role[follows]] = waits.number[by_role[follows + 1]]
    edges = graph.edges
    acts = graph.activities
    rows = _between_threads(graph)
    source = edges.source[rows].astype(np.int64)
    target = edges.target[rows].astype(np.int64)
    is_end = source & 1 == 1
    source = source[is_end]
    target = target[is_end]
    order = np.argsort(tasks.task, kind="stable")
    place = np.searchsorted(tasks.task[order], source >> 1)
    found = order[np.minimum(place, len(order) - 1)] if len(order) else place
    is_task = tasks.task[found] == source >> 1 if len(order) else np.zeros(len(source), np.bool_)
    found = found[is_task]
    target = target[is_task]
    same_lane = acts.lane[target >> 1] == waits.lane[tasks.wait[found]]
    is_before = _by_lane(graph, target) < next_number[tasks.wait[found]]
    out = np.zeros(len(tasks.task), np.bool_)
    out[found[same_lane & is_before]] = True
    return out


def _by_lane(graph: DependencyGraph, vertex: Array) -> Array:
    """Return numbers that order moments by thread, then by time."""
    if not len(vertex):
        return np.zeros(0, np.int64)
    stride = int(np.ptp(graph.time)) + 1
    lane = graph.activities.lane[vertex >> 1].astype(np.int64)
    return lane * stride + graph.time[vertex] - graph.time.min()
