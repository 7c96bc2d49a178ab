"""Times of a DAG in which stretches of work take turns: users of a resource that are active at once are equally fast.

An event simulation, because how fast work is depends on which work is active at that moment. Compiled by numba, cached
on disk; it knows arrays only. A resource has places: as many users as it has places are not slowed down, and more users
share the places equally. All active users of a resource are then equally fast, so that one clock per resource, which
runs slower under load, tells when each user is done.
"""

from __future__ import annotations

import heapq
from typing import Any, Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit
from htagraph.core.shared_cores import Dag

__all__ = ["TurnUsers", "demands", "moments"]

_ENDS: Final = 0
"""Kind of event: a stretch of known length ends. At one moment, events of the smallest number come first."""
_SERVES: Final = 1
"""Kind of event: a resource is done with the user that needs least of it."""
_HAPPENS: Final = 2
"""Kind of event: a vertex happens."""


class TurnUsers(NamedTuple):
    """The stretches of work that take turns: lags of edges, then gaps of vertices."""

    resource: Array
    """Of each edge, then of each vertex: the number of the resource that its lag or gap uses; -1 for none."""
    places: Array
    """Of each resource: how many users are not slowed down."""
    most: int
    """How many users a resource has at once, at most."""


class _Turns(NamedTuple):
    """A job under way."""

    in_offsets: Array
    """As in `Dag`."""
    out_offsets: Array
    target: Array
    lag: Array
    gap: Array
    live: Array
    resource: Array
    """As in `TurnUsers`."""
    places: Array
    is_recorded: bool
    """Whether weights are as recorded, so that demands are looked for."""
    demand: Array
    """Of each edge, then of each vertex: how long its stretch takes alone, ns; written where weights are recorded."""
    time: Array
    """When each vertex happens, ns."""
    allowed: Array
    """The latest moment that the edges so far allow each vertex."""
    waiting: Array
    """How many edges into each vertex are still to come."""
    began: Array
    """When each stretch began, ns."""
    length: Array
    """How long each stretch takes, ns, once that is known."""
    clock: Array
    """Of each resource: how much of it a user got that was there all the time, ns."""
    read_at: Array
    """Of each resource: when its clock was read, ns."""
    version: Array
    """Of each resource: how often its users have changed."""
    users: Array
    """Of each resource: how many users are active."""
    user: Array
    """Of each resource: the numbers of its active users."""
    done_at: Array
    """Of each resource: the reading of its clock at which each active user is done."""


def demands(dag: Dag, users: TurnUsers) -> Array:
    """Return how long stretches of a recording would take alone.

    Args:
        dag: the recorded job.
        users: the stretches that take turns.

    Returns:
        Of each edge, then of each vertex: how long its lag or gap takes alone, ns; 0 if it uses no resource.
    """
    demand = np.zeros(len(users.resource))
    _simulate(_read(dag), users, demand, True)  # noqa: FBT003 - compiled code takes no names
    return demand


def moments(dag: Dag, users: TurnUsers, demand: Array) -> Array:
    """Return when each vertex happens if stretches take turns, ns.

    Args:
        dag: the job with its new weights, of which those of stretches are not read.
        users: the stretches that take turns.
        demand: how long each stretch takes alone, ns, as `demands` returns them.
    """
    return np.asarray(_simulate(_read(dag), users, demand, False))  # noqa: FBT003 - compiled code takes no names


def _read(dag: Dag) -> Dag:
    return Dag(
        in_offsets=for_reading(dag.in_offsets, np.int64),
        out_offsets=for_reading(dag.out_offsets, np.int64),
        target=for_reading(dag.target, np.int32),
        lag=for_reading(dag.lag, np.int64),
        gap=for_reading(dag.gap, np.int64),
        head=for_reading(dag.head, np.int64),
        live=for_reading(dag.live, np.bool_),
    )


@njit(cache=True, nogil=True)
def _simulate(dag: Dag, users: TurnUsers, demand: Array, is_recorded: bool) -> Array:  # noqa: FBT001
    """Run the job and return its times; write the demands if its weights are as recorded."""
    vertices = len(dag.gap)
    stretches = len(users.resource)
    resources = len(users.places)
    turns = _Turns(
        dag.in_offsets,
        dag.out_offsets,
        dag.target,
        dag.lag,
        dag.gap,
        dag.live,
        users.resource,
        users.places,
        is_recorded,
        demand,
        dag.head.copy(),
        np.full(vertices, np.iinfo(np.int64).min // 2),
        np.diff(dag.in_offsets),
        np.zeros(stretches, np.int64),
        np.zeros(stretches, np.int64),
        np.zeros(resources, np.float64),
        np.zeros(resources, np.float64),
        np.zeros(resources, np.int64),
        np.zeros(resources, np.int64),
        np.zeros((resources, users.most), np.int64),
        np.zeros((resources, users.most), np.float64),
    )
    events: list[Any] = [(np.float64(0), np.int64(0), np.int64(0), np.int64(0))]
    events.pop()
    _begin(dag.head, turns, events)
    now = 0.0
    while len(events) > 0:
        moment, kind, number, version = heapq.heappop(events)
        now = max(now, moment)
        if kind == _HAPPENS:
            _happen(now, number, turns, events)
        elif kind == _ENDS:
            _end(now, number, turns, events)
        elif version == turns.version[number]:
            _serve(now, number, turns, events)
    return turns.time


@njit(no_cpython_wrapper=True)
def _begin(head: Array, turns: _Turns, events: Any) -> None:  # noqa: ANN401 - a heap
    """Let the vertices happen that no live edge leads to."""
    for edge in range(len(turns.lag)):
        if not turns.live[edge]:
            turns.waiting[turns.target[edge]] -= 1
    for vertex in range(len(turns.gap)):
        if turns.waiting[vertex] == 0:
            _plan(head[vertex], _HAPPENS, vertex, turns, events)


@njit(no_cpython_wrapper=True)
def _plan(moment: float, kind: int, number: int, turns: _Turns, events: Any) -> None:  # noqa: ANN401
    """Plan an event of a vertex, of a stretch, or of a resource whose users have changed."""
    version = turns.version[number] if kind == _SERVES else 0
    heapq.heappush(events, (np.float64(moment), np.int64(kind), np.int64(number), np.int64(version)))


@njit(no_cpython_wrapper=True)
def _happen(now: float, vertex: int, turns: _Turns, events: Any) -> None:  # noqa: ANN401
    """Let a vertex happen: its edges begin."""
    time = turns.time[vertex]
    first = turns.out_offsets[vertex]
    end = turns.out_offsets[vertex + 1]
    for edge in range(first, end):
        if not turns.live[edge]:
            continue
        if turns.resource[edge] < 0:
            _allow(now, turns.target[edge], time + turns.lag[edge], turns, events)
        else:
            _start(now, edge, time, turns, events)


@njit(no_cpython_wrapper=True)
def _allow(now: float, vertex: int, moment: int, turns: _Turns, events: Any) -> None:  # noqa: ANN401
    """Note when an edge allows a vertex; after the last edge into it, let its gap begin."""
    turns.allowed[vertex] = max(turns.allowed[vertex], moment)
    turns.waiting[vertex] -= 1
    if turns.waiting[vertex] > 0:
        return
    stretch = len(turns.lag) + vertex
    if turns.resource[stretch] < 0:
        turns.time[vertex] = turns.allowed[vertex] + turns.gap[vertex]
        _plan(turns.time[vertex], _HAPPENS, vertex, turns, events)
    else:
        _start(now, stretch, turns.allowed[vertex], turns, events)


@njit(no_cpython_wrapper=True)
def _start(now: float, stretch: int, began: int, turns: _Turns, events: Any) -> None:  # noqa: ANN401
    """Let a stretch begin once its beginning is reached: an edge may allow a moment to come, or one that is over."""
    turns.began[stretch] = began
    if began > now:
        turns.length[stretch] = -1
        _plan(began, _ENDS, stretch, turns, events)
    else:
        _join(now, stretch, turns, events)


@njit(no_cpython_wrapper=True)
def _join(now: float, stretch: int, turns: _Turns, events: Any) -> None:  # noqa: ANN401
    """Let a stretch use its resource from now on; its past did not slow anybody down."""
    passed = now - turns.began[stretch]
    if turns.is_recorded:
        turns.length[stretch] = _recorded_length(stretch, turns)
        turns.demand[stretch] = min(passed, turns.length[stretch])
        left = turns.length[stretch] - passed
        _plan(turns.began[stretch] + turns.length[stretch], _ENDS, stretch, turns, events)
    else:
        left = turns.demand[stretch] - passed
        turns.length[stretch] = np.int64(np.rint(turns.demand[stretch]))
        if left <= 0:
            _plan(now, _ENDS, stretch, turns, events)
    if left > 0:
        _add(now, stretch, left, turns, events)


@njit(no_cpython_wrapper=True)
def _recorded_length(stretch: int, turns: _Turns) -> int:
    """Return the recorded lag or gap of a stretch, ns."""
    edges = len(turns.lag)
    return int(turns.lag[stretch] if stretch < edges else turns.gap[stretch - edges])


@njit(no_cpython_wrapper=True)
def _rate(resource: int, turns: _Turns) -> float:
    """Return how fast each user of a resource is, as a share of its speed alone."""
    users = turns.users[resource]
    places = turns.places[resource]
    return 1.0 if users <= places else places / users


@njit(no_cpython_wrapper=True)
def _read_clock(now: float, resource: int, turns: _Turns) -> None:
    """Let the clock of a resource go on until now."""
    passed = now - turns.read_at[resource]
    turns.clock[resource] += passed * _rate(resource, turns)
    turns.read_at[resource] = now


@njit(no_cpython_wrapper=True)
def _add(now: float, stretch: int, left: float, turns: _Turns, events: Any) -> None:  # noqa: ANN401
    """Add an active user of a resource, which needs so much work more, ns."""
    resource = turns.resource[stretch]
    _read_clock(now, resource, turns)
    count = turns.users[resource]
    turns.user[resource, count] = stretch
    turns.done_at[resource, count] = turns.clock[resource]
    if not turns.is_recorded:
        turns.done_at[resource, count] += left
    turns.users[resource] = count + 1
    _plan_service(now, resource, turns, events)


@njit(no_cpython_wrapper=True)
def _plan_service(now: float, resource: int, turns: _Turns, events: Any) -> None:  # noqa: ANN401
    """Plan when the resource is done with the next user, unless recorded times say so."""
    turns.version[resource] += 1
    if turns.is_recorded or turns.users[resource] == 0:
        return
    first = _first_done(resource, turns)
    left = max(turns.done_at[resource, first] - turns.clock[resource], 0.0)
    _plan(now + left / _rate(resource, turns), _SERVES, resource, turns, events)


@njit(no_cpython_wrapper=True)
def _first_done(resource: int, turns: _Turns) -> int:
    """Return the place of the active user of a resource that is done first."""
    first = 0
    for index in range(1, turns.users[resource]):
        if turns.done_at[resource, index] < turns.done_at[resource, first]:
            first = index
    return first


@njit(no_cpython_wrapper=True)
def _serve(now: float, resource: int, turns: _Turns, events: Any) -> None:  # noqa: ANN401
    """Let the user of a resource that needs least of it be done."""
    first = _first_done(resource, turns)
    stretch = turns.user[resource, first]
    _leave(now, first, resource, turns)
    _plan_service(now, resource, turns, events)
    turns.length[stretch] = np.int64(np.rint(now - turns.began[stretch]))
    _pass_on(now, stretch, turns, events)


@njit(no_cpython_wrapper=True)
def _leave(now: float, index: int, resource: int, turns: _Turns) -> None:
    """Take away an active user of a resource, given its place."""
    _read_clock(now, resource, turns)
    last = turns.users[resource] - 1
    turns.user[resource, index] = turns.user[resource, last]
    turns.done_at[resource, index] = turns.done_at[resource, last]
    turns.users[resource] = last


@njit(no_cpython_wrapper=True)
def _end(now: float, stretch: int, turns: _Turns, events: Any) -> None:  # noqa: ANN401
    """End a stretch of known length, or begin one whose beginning is reached."""
    if turns.length[stretch] < 0:
        turns.length[stretch] = 0
        _join(now, stretch, turns, events)
        return
    resource = turns.resource[stretch]
    if turns.is_recorded:
        for index in range(turns.users[resource]):
            if turns.user[resource, index] == stretch:
                began_at = turns.done_at[resource, index]
                _leave(now, index, resource, turns)
                turns.demand[stretch] += turns.clock[resource] - began_at
                break
    _pass_on(now, stretch, turns, events)


@njit(no_cpython_wrapper=True)
def _pass_on(now: float, stretch: int, turns: _Turns, events: Any) -> None:  # noqa: ANN401
    """Let the vertex behind a stretch go on."""
    edges = len(turns.lag)
    moment = turns.began[stretch] + turns.length[stretch]
    if stretch < edges:
        _allow(now, turns.target[stretch], moment, turns, events)
    else:
        vertex = stretch - edges
        turns.time[vertex] = moment
        _plan(moment, _HAPPENS, vertex, turns, events)
