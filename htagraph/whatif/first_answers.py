"""Waits for the first of several answers: hedged requests, `wait(FIRST_COMPLETED)`, the first of `as_completed`.

The wait is released by a minimum, and a longest path has none. A thread hands out several tasks between two of its
waits, goes on with the end of one task, and never waits for another task that was still running then. The thread may
have waited for the first end of the two, or for the one task alone: the recording fits both, so that the minimum is
a reading, and no fact. A task that ended before the releasing one, and released nothing, refutes the minimum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Mask, coded, inverse_of, marked, run_starts
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
        return FirstAnswers(
            self.end[rows],
            self.wait[rows],
            self.released_by[rows],
        )


class _Passes(NamedTuple):
    """Inferred edges from one host thread to another: a task is handed out, or its end lets a thread go on."""

    edge: Array
    """The edges."""
    source: Array
    """The vertex that each edge leaves."""
    target: Array
    """The vertex that each edge enters."""

    def take(self, rows: Array) -> _Passes:
        """Return the given rows."""
        return _Passes(
            self.edge[rows],
            self.source[rows],
            self.target[rows],
        )


class _Released(NamedTuple):
    """Moments at which threads went on right behind work of other threads, by thread, then by time."""

    edge: Array
    """The edge from the end of the task that released each wait."""
    source: Array
    """The end of that task, a vertex."""
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

    def take(self, rows: Array) -> _HandedOut:
        """Return the given rows."""
        return _HandedOut(self.task[rows], self.wait[rows])


@once
def first_answers(graph: DependencyGraph) -> FirstAnswers:
    """Return the tasks that a thread may have asked for together with the task that released its wait.

    Each of the tasks was still running when the wait was over.
    """
    passes = _between_threads(graph)
    waits = _releases(graph, passes)
    if len(waits.edge) < LIMITS.often:
        none = np.zeros(0, np.int64)
        return FirstAnswers(none, none, none)
    tasks = _losers(waits, _handed_out(graph, passes, waits))
    answers = tasks.take(_may_be_second(graph, passes, waits, tasks))
    return FirstAnswers(
        2 * answers.task + 1,
        waits.vertex[answers.wait],
        waits.edge[answers.wait],
    )


def taken(state: State, answers: FirstAnswers) -> FirstAnswers | None:
    """Return the first answers that come before the recorded ones in a state; None if that has no order."""
    is_constraint = state.lag[answers.released_by] > NEVER
    answers = answers.take(np.flatnonzero(is_constraint))
    recorded_end = state.graph.edges.source[answers.released_by].astype(np.int64)
    replaced = state
    chosen = answers.take(np.zeros(0, np.int64))
    for _ in range(_MOST_ROUNDS):
        time = predict(replaced.graph, replaced.lag, replaced.gap, replaced.head)
        end_ns = time[answers.end]
        sooner = np.flatnonzero(end_ns < time[recorded_end])
        first = _first_rows(answers.released_by[sooner], end_ns[sooner])
        first_to_end = answers.take(sooner[first])
        if _same(first_to_end, chosen):
            break
        chosen = first_to_end
        next_state = _released_by(state, chosen)
        if next_state is None:
            return None
        replaced = next_state
    return chosen


def _same(answers: FirstAnswers, before: FirstAnswers) -> bool:
    same_ends = np.array_equal(answers.end, before.end)
    same_waits = np.array_equal(answers.wait, before.wait)
    return same_ends and same_waits


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


def _between_threads(graph: DependencyGraph) -> _Passes:
    """Return the inferred edges from one host thread to another one."""
    acts = graph.activities
    edges = graph.edges
    is_thread = of_kind(graph, EdgeKind.THREAD)
    is_inferred = edges.provenance == Provenance.INFERRED
    edge = np.flatnonzero(is_thread & is_inferred)
    passes = _Passes(
        edge,
        edges.source[edge].astype(np.int64),
        edges.target[edge].astype(np.int64),
    )
    source = passes.source >> 1
    target = passes.target >> 1
    is_apart = acts.lane[source] != acts.lane[target]
    is_host = ~acts.on_device[source] & ~acts.on_device[target]
    return passes.take(np.flatnonzero(is_apart & is_host))


def _releases(graph: DependencyGraph, passes: _Passes) -> _Released:
    """Return the waits that the end of an operator released: of several edges into one moment, the latest."""
    acts = graph.activities
    source_ns = graph.time[passes.source]
    target_ns = graph.time[passes.target]
    is_op = acts.kind[passes.source >> 1] == ActivityKind.OP
    is_near = target_ns - source_ns <= LIMITS.turn_ns
    released = np.flatnonzero(_is_end(passes.source) & is_op & is_near)
    latest = _first_rows(passes.target[released], -source_ns[released])
    waits = passes.take(released[latest])
    order = np.argsort(_by_lane(graph, waits.target), kind="stable")
    waits = waits.take(order)
    waiting = waits.target >> 1
    lane = acts.lane[waiting].astype(np.int64)
    is_step = acts.kind[waiting] == ActivityKind.STEP
    name = np.where(is_step, -1, acts.name[waiting])
    return _Released(
        waits.edge,
        waits.source,
        waits.target,
        lane,
        coded(lane, name, waits.target & 1),
        _by_lane(graph, waits.target),
    )


def _handed_out(graph: DependencyGraph, passes: _Passes, waits: _Released) -> _HandedOut:
    """Return the operators that threads handed out between two of their waits, each by the last edge into its start."""
    acts = graph.activities
    is_op = acts.kind[passes.target >> 1] == ActivityKind.OP
    starts = passes.take(np.flatnonzero(~_is_end(passes.target) & is_op))
    last = _first_rows(starts.target, -graph.time[starts.source])
    starts = starts.take(last)
    next_wait = np.searchsorted(waits.number, _by_lane(graph, starts.source), "right")
    wait = np.minimum(next_wait, len(waits.lane) - 1)
    is_last = next_wait == len(waits.lane)
    same_lane = waits.lane[wait] == acts.lane[starts.source >> 1]
    tasks = _HandedOut(starts.target >> 1, wait)
    return tasks.take(np.flatnonzero(same_lane & ~is_last))


def _losers(waits: _Released, tasks: _HandedOut) -> _HandedOut:
    """Return the tasks handed out before a wait that another task, handed out before it too, released."""
    is_winner = tasks.task == waits.source[tasks.wait] >> 1
    has_winner = marked(tasks.wait[is_winner], len(waits.edge))
    return tasks.take(np.flatnonzero(has_winner[tasks.wait] & ~is_winner))


def _may_be_second(graph: DependencyGraph, passes: _Passes, waits: _Released, tasks: _HandedOut) -> Mask:
    """Return which tasks were running as the wait was over, in waits of roles that may be for the first of several.

    A role may be if nearly each of its waits left a second task running. Tasks that their thread waits for before the
    role recurs are left out, and so are names whose tasks contradict a minimum: see `_may_be_first`.
    """
    begin_ns = graph.time[2 * tasks.task]
    end_ns = graph.time[2 * tasks.task + 1]
    over_ns = graph.time[waits.vertex[tasks.wait]]
    is_running = (begin_ns <= over_ns) & (end_ns > over_ns)
    is_dropped = ~_awaited(graph, passes, waits, tasks)
    second = is_running & is_dropped & _may_be_first(graph, waits, tasks)
    leaves_running = marked(tasks.wait[second], len(waits.edge))
    count = np.bincount(waits.role)
    leaving_count = np.bincount(waits.role, leaves_running)
    is_often = leaving_count >= LIMITS.often
    is_usual = leaving_count >= LIMITS.nearly_all * count
    role = waits.role[tasks.wait]
    return second & (is_often & is_usual)[role]


def _may_be_first(graph: DependencyGraph, waits: _Released, tasks: _HandedOut) -> Mask:
    """Return which tasks have a name that does not refute the minimum in the role of their wait.

    A task refutes it that ended before the releasing task, as the thread waited all the same.
    """
    end_ns = graph.time[2 * tasks.task + 1]
    released_ns = graph.time[waits.source[tasks.wait]]
    refutes = end_ns < released_ns - LIMITS.tick_ns
    name = graph.activities.name[tasks.task].astype(np.int64)
    role_and_name = coded(waits.role[tasks.wait], name)
    count = np.bincount(role_and_name)
    refuting_count = np.bincount(role_and_name, refutes)
    may_be_first = refuting_count <= LIMITS.damaged * count
    return may_be_first[role_and_name]


def _awaited(graph: DependencyGraph, passes: _Passes, waits: _Released, tasks: _HandedOut) -> Mask:
    """Return which tasks their thread waits for before the role of the wait recurs."""
    acts = graph.activities
    ends = passes.take(np.flatnonzero(_is_end(passes.source)))
    row_of_task = inverse_of(tasks.task, len(acts))
    row_of_end = row_of_task[ends.source >> 1]
    is_task = row_of_end >= 0
    row = row_of_end[is_task]
    target = ends.target[is_task]
    wait = tasks.wait[row]
    same_lane = acts.lane[target >> 1] == waits.lane[wait]
    is_before = _by_lane(graph, target) < _next_of_role(waits)[wait]
    return marked(row[same_lane & is_before], len(tasks.task))


def _next_of_role(waits: _Released) -> Array:
    """Return the number of the next wait of the same role; the greatest number where the role does not recur."""
    by_role = np.argsort(waits.role, kind="stable")
    role = waits.role[by_role]
    recurs = np.flatnonzero(role[1:] == role[:-1])
    wait = by_role[recurs]
    next_wait = by_role[recurs + 1]
    number = np.full(len(waits.edge), np.iinfo(np.int64).max)
    number[wait] = waits.number[next_wait]
    return number


def _first_rows(key: Array, order: Array) -> Array:
    """Return the row of each distinct key that comes first by `order`, by ascending key."""
    by_key = np.lexsort((order, key))
    starts = run_starts(key[by_key])
    return by_key[starts]


def _is_end(vertex: Array) -> Mask:
    """Return which vertices are ends of activities, and not starts."""
    is_end: Mask = vertex & 1 == 1
    return is_end


def _by_lane(graph: DependencyGraph, vertex: Array) -> Array:
    """Return numbers that order moments by thread, then by time."""
    if not len(vertex):
        return np.zeros(0, np.int64)
    stride = int(np.ptp(graph.time)) + 1
    lane = graph.activities.lane[vertex >> 1].astype(np.int64)
    return lane * stride + graph.time[vertex] - graph.time.min()
