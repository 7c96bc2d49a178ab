"""Times of a DAG in which threads of a host share its cores: a thread that is ready waits until one is free.

An event simulation, because who gets a core depends on who is ready at that moment. Compiled by numba, cached on disk;
it knows arrays only. A thread has a core from when it gets one until it blocks, pauses or ends; who is ready first gets
the next core.
"""

from __future__ import annotations

import heapq
from typing import Any, Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit

__all__ = ["BLOCKS", "PAUSES", "RUNS", "CoreUsers", "Dag", "Shares", "shared", "taken"]

RUNS: Final = 0
"""A moment that a thread reaches without giving a core away, or that needs none."""
BLOCKS: Final = 1
"""A moment before which a thread gives the core away if other threads have to come first."""
PAUSES: Final = 2
"""A moment before which its thread gives its core away, and asks for one after a pause of its own."""

_HAPPENS: Final = 0
"""Kind of event: a vertex happens. At one moment, events of the smallest number come first."""
_BLOCKS: Final = 1
"""Kind of event: a thread can only wait before a vertex, unless other threads let it go on by then."""
_ASKS: Final = 2
"""Kind of event: a thread asks for a core before a vertex."""
_GIVES: Final = 3
"""Kind of event: a thread gives a core away before a vertex that other threads allow later."""
_BEGAN: Final = 4
"""Kind of event: a vertex was recorded; its thread has a core after that, also if none was free."""


class Dag(NamedTuple):
    """A DAG with its weights; see `traverse`."""

    in_offsets: Array
    out_offsets: Array
    target: Array
    lag: Array
    gap: Array
    head: Array
    live: Array
    """Which edges constrain anything."""


class CoreUsers(NamedTuple):
    """The threads that need cores."""

    host: Array
    """Of each vertex: the number of the host whose core its thread needs; -1 for none."""
    kind: Array
    """Of each vertex: `RUNS`, `BLOCKS` or `PAUSES`."""
    lane: Array
    """Of each vertex: the number of its thread."""
    then: Array
    """Of each vertex: the next vertex of its thread; -1 for none."""
    first: Array
    """Of each vertex: whether its thread begins there and has to be woken."""
    cores: Array
    """Of each host: the number of its cores."""
    by_time: Array
    """The vertices in the order in which they were recorded: who asks at the same moment gets cores in this order."""
    place: Array
    """Of each vertex: its place in this order."""
    soon: int
    """Within this, a thread that gets a core goes on, ns; a thread that does not was not ready."""
    jitter: int
    """So long before a core is free a waiting thread may have been recorded, ns."""
    most: int
    """How many threads wait at once, at most."""


class Shares(NamedTuple):
    """Of each vertex that is no `RUNS`: the parts of its gap, ns."""

    pause: Array
    """The pause of the thread before asking for a core."""
    wait: Array
    """How long the thread waited for a core."""
    wake: Array
    """How long after getting a core the moment came."""
    without: Array
    """Whether the thread went on though no core was free."""


class _Schedule(NamedTuple):
    """A job under way: its description, and the state of its vertices, threads and hosts.

    It is flat, since compiled code counts references to every array of a tuple inside a tuple.
    """

    in_offsets: Array
    """As in `Dag`."""
    out_offsets: Array
    target: Array
    lag: Array
    gap: Array
    live: Array
    host: Array
    """As in `CoreUsers`."""
    kind: Array
    lane: Array
    then: Array
    cores: Array
    place: Array
    soon: int
    jitter: int
    pause: Array
    """As in `Shares`."""
    wait: Array
    wake: Array
    without: Array
    recorded: Array
    """When each vertex was recorded, where shares are looked for; else nothing."""
    shared_gap: Array
    """The gaps that are looked for; else nothing."""
    allowed: Array
    """The latest moment that the edges so far allow each vertex."""
    reached: Array
    """Until when work of the same thread lasts before each vertex; the end of all times while open."""
    waiting: Array
    """How many edges into each vertex are still to come."""
    gave: Array
    """Whether the thread of each vertex gave its core away before."""
    asked: Array
    """Since when each vertex is ready for a core."""
    queue: Array
    """Of each host: the vertices that wait for a core, in any order."""
    queued: Array
    """Of each host: how many vertices wait for a core."""
    busy: Array
    """Of each host: how many of its cores are taken."""
    early: Array
    """Of each host: the vertices that were recorded before a core was free, in their order."""
    earlier: Array
    """Of each host: how many vertices were recorded before a core was free."""


def taken(dag: Dag, threads: CoreUsers, pause: Array, time: Array) -> Shares:
    """Return the parts of the gaps of a recording: which threads waited for a core, and how long.

    A thread paused until the last moment at which it did not take a free core.

    Args:
        dag: the recorded job.
        threads: the threads that need cores.
        pause: how long each thread pauses by itself before a vertex, at most, ns.
        time: the recorded time of each vertex, which is the one that the weights give, ns.

    Returns:
        The parts of each gap, ns.
    """
    count = len(time)
    shares = Shares(
        pause=pause.copy(),
        wait=np.zeros(count, np.int64),
        wake=np.zeros(count, np.int64),
        without=np.zeros(count, np.bool_),
    )
    no_gaps = np.zeros(0, np.int64)
    _simulate(_read(dag), threads, shares, for_reading(time, np.int64), no_gaps)
    return shares


def shared(dag: Dag, threads: CoreUsers, shares: Shares) -> Array:
    """Return the gap of each vertex if threads wait for cores in a job with other weights.

    Args:
        dag: the job with its new weights.
        threads: the threads that need cores.
        shares: the parts of the gaps of the recording, of which waits for cores are made anew.

    Returns:
        The gap of each vertex, ns.
    """
    gap = dag.gap.astype(np.int64)
    no_times = np.zeros(0, np.int64)
    _simulate(_read(dag), threads, shares, no_times, gap)
    return gap


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
def _simulate(dag: Dag, threads: CoreUsers, shares: Shares, recorded: Array, gap: Array) -> None:
    """Run the job: with `recorded` times, write the shares; without times, write the gaps."""
    vertices = len(dag.gap)
    hosts = len(threads.cores)
    schedule = _Schedule(
        dag.in_offsets,
        dag.out_offsets,
        dag.target,
        dag.lag,
        dag.gap,
        dag.live,
        threads.host,
        threads.kind,
        threads.lane,
        threads.then,
        threads.cores,
        threads.place,
        threads.soon,
        threads.jitter,
        shares.pause,
        shares.wait,
        shares.wake,
        shares.without,
        recorded,
        gap,
        np.full(vertices, np.iinfo(np.int64).min // 2),
        np.full(vertices, np.iinfo(np.int64).max),
        np.diff(dag.in_offsets),
        threads.first.copy(),
        np.zeros(vertices, np.int64),
        np.zeros((hosts, threads.most), np.int64),
        np.zeros(hosts, np.int64),
        np.zeros(hosts, np.int64),
        np.zeros((hosts, threads.most), np.int64),
        np.zeros(hosts, np.int64),
    )
    events: list[Any] = [(np.int64(0), np.int64(0), np.int64(0))]
    events.pop()
    _begin(dag.head, schedule, events)
    while len(events) > 0:
        now, kind, place = heapq.heappop(events)
        vertex = threads.by_time[place]
        _react(now, kind, vertex, schedule, events)


@njit(no_cpython_wrapper=True)
def _begin(head: Array, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401 - a heap
    """Let the vertices happen that no live edge leads to."""
    for edge in range(len(schedule.lag)):
        if not schedule.live[edge]:
            schedule.waiting[schedule.target[edge]] -= 1
    for vertex in range(len(schedule.gap)):
        if schedule.waiting[vertex] == 0:
            _plan(head[vertex], _HAPPENS, vertex, schedule, events)


@njit(no_cpython_wrapper=True)
def _plan(moment: int, kind: int, vertex: int, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401
    """Plan an event of a vertex."""
    place = schedule.place[vertex]
    heapq.heappush(events, (np.int64(moment), np.int64(kind), np.int64(place)))


@njit(no_cpython_wrapper=True)
def _react(now: int, kind: int, vertex: int, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401
    """Do an event."""
    host = schedule.host[vertex]
    if kind == _HAPPENS:
        _happen(now, vertex, schedule, events)
    elif kind == _BLOCKS and schedule.waiting[vertex] > 0:
        schedule.gave[vertex] = True
        _give(now, vertex, schedule, events)
    elif kind == _GIVES:
        _give(now, vertex, schedule, events)
    elif kind == _ASKS:
        _ask(now, vertex, schedule, events)
    elif kind == _BEGAN and not _is_recorded(schedule):
        _get(now, vertex, schedule, events)
    elif kind == _BEGAN and _in_queue(vertex, host, schedule):
        _begin_as_recorded(now, vertex, schedule, events)


@njit(no_cpython_wrapper=True)
def _begin_as_recorded(now: int, vertex: int, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401
    """Let a thread without a core go on as recorded: on a core that has been free, or without."""
    host = schedule.host[vertex]
    schedule.without[vertex] = not _has_free_core(host, schedule)
    _pass_over(now, host, schedule)
    _get(now, vertex, schedule, events)
    if schedule.without[vertex]:
        _keep_early(vertex, host, schedule)


@njit(no_cpython_wrapper=True)
def _pass_to_early(now: int, giver: int, schedule: _Schedule) -> None:
    """Let the first thread that went on just before another thread gives a core away have waited for this core."""
    host = schedule.host[giver]
    is_passed = _forget_early(giver, schedule)
    count = schedule.earlier[host]
    schedule.earlier[host] = 0
    for index in range(count):
        vertex = schedule.early[host, index]
        late = now - schedule.recorded[vertex]
        if late > schedule.jitter:
            continue
        if is_passed:
            _keep_early(vertex, host, schedule)
        else:
            _divide_early(now, vertex, schedule)
            is_passed = True


@njit(no_cpython_wrapper=True)
def _forget_early(giver: int, schedule: _Schedule) -> bool:
    """Forget early moments of the thread of a vertex; return whether there were any."""
    host = schedule.host[giver]
    lane = schedule.lane[giver]
    count = schedule.earlier[host]
    schedule.earlier[host] = 0
    for index in range(count):
        vertex = schedule.early[host, index]
        if schedule.lane[vertex] != lane:
            _keep_early(vertex, host, schedule)
    return bool(schedule.earlier[host] < count)


@njit(no_cpython_wrapper=True)
def _keep_early(vertex: int, host: int, schedule: _Schedule) -> None:
    """Add a vertex to the early ones of a host, if there is room."""
    count = schedule.earlier[host]
    if count < schedule.early.shape[1]:
        schedule.early[host, count] = vertex
        schedule.earlier[host] = count + 1


@njit(no_cpython_wrapper=True)
def _divide_early(now: int, vertex: int, schedule: _Schedule) -> None:
    """Write that a thread recorded a moment ago waited for the core that is free now."""
    _not_ready(now, schedule.host[vertex], vertex, schedule)
    schedule.without[vertex] = False
    schedule.wait[vertex] = now - schedule.asked[vertex]
    schedule.wake[vertex] = schedule.recorded[vertex] - now


@njit(no_cpython_wrapper=True)
def _has_free_core(host: int, schedule: _Schedule) -> bool:
    """Return whether a core of a host is free."""
    return bool(schedule.busy[host] < schedule.cores[host])


@njit(no_cpython_wrapper=True)
def _is_recorded(schedule: _Schedule) -> bool:
    """Return whether the job has recorded times, from which shares are made."""
    return len(schedule.recorded) > 0


@njit(no_cpython_wrapper=True)
def _happen(now: int, vertex: int, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401
    """Let a vertex happen, and the vertices that wait for nothing else."""
    host = schedule.host[vertex]
    then = schedule.then[vertex]
    if host >= 0:
        _pass_core(now, vertex, schedule, events)
    until = _release(now, vertex, schedule, events)
    if host >= 0 and then >= 0 and schedule.kind[then] == BLOCKS and schedule.waiting[then] > 0:
        _plan(until, _BLOCKS, then, schedule, events)


@njit(no_cpython_wrapper=True)
def _pass_core(now: int, vertex: int, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401
    """Take a core for a thread that nothing wakes, and give the core of a thread that pauses or ends back."""
    host = schedule.host[vertex]
    then = schedule.then[vertex]
    first = schedule.in_offsets[vertex]
    end = schedule.in_offsets[vertex + 1]
    if first == end:
        _pass_over(now, host, schedule)
        schedule.busy[host] += 1
    if then < 0:
        _give(now, vertex, schedule, events)
    elif schedule.kind[then] == PAUSES:
        schedule.gave[then] = True
        _give(now, vertex, schedule, events)


@njit(no_cpython_wrapper=True)
def _release(now: int, vertex: int, schedule: _Schedule, events: Any) -> int:  # noqa: ANN401
    """Tell the targets of a vertex that it happened; return until when its thread is at work, ns."""
    then = schedule.then[vertex]
    until = now
    first = schedule.out_offsets[vertex]
    end = schedule.out_offsets[vertex + 1]
    for edge in range(first, end):
        if not schedule.live[edge]:
            continue
        target = schedule.target[edge]
        allowed = now + schedule.lag[edge]
        if target == then:
            until = max(until, allowed)
            schedule.reached[target] = until
        schedule.allowed[target] = max(schedule.allowed[target], allowed)
        schedule.waiting[target] -= 1
        if schedule.waiting[target] == 0:
            _ready(target, schedule, events)
    return until


@njit(no_cpython_wrapper=True)
def _ready(vertex: int, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401
    """Let a vertex happen in time, or ask for a core first."""
    allowed = schedule.allowed[vertex]
    gap = schedule.gap[vertex]
    if schedule.kind[vertex] == RUNS or schedule.host[vertex] < 0:
        _plan(allowed + gap, _HAPPENS, vertex, schedule, events)
        return
    if _is_recorded(schedule):
        schedule.pause[vertex] = min(schedule.pause[vertex], max(gap, 0))
    pause = schedule.pause[vertex]
    if _blocks_until(allowed, vertex, schedule):
        schedule.gave[vertex] = True
        _plan(schedule.reached[vertex], _GIVES, vertex, schedule, events)
    if schedule.gave[vertex]:
        _plan(allowed + pause, _ASKS, vertex, schedule, events)
        return
    if _is_recorded(schedule):
        schedule.wake[vertex] = gap - pause
    else:
        schedule.shared_gap[vertex] = pause + schedule.wake[vertex]
    _plan(allowed + pause + schedule.wake[vertex], _HAPPENS, vertex, schedule, events)


@njit(no_cpython_wrapper=True)
def _blocks_until(allowed: int, vertex: int, schedule: _Schedule) -> bool:
    """Return whether a thread with a core blocks before a vertex, since other threads allow the vertex later."""
    if schedule.gave[vertex]:
        return False
    if schedule.kind[vertex] != BLOCKS:
        return False
    return bool(schedule.reached[vertex] < allowed)


@njit(no_cpython_wrapper=True)
def _ask(now: int, vertex: int, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401
    """Queue for a core, and take a free one."""
    host = schedule.host[vertex]
    _pass_over(now, host, schedule)
    schedule.asked[vertex] = now
    if schedule.without[vertex]:
        _plan(now + schedule.wake[vertex], _BEGAN, vertex, schedule, events)
        return
    schedule.queue[host, schedule.queued[host]] = vertex
    schedule.queued[host] += 1
    if _is_recorded(schedule):
        _plan(schedule.recorded[vertex], _BEGAN, vertex, schedule, events)
    _serve(now, host, schedule, events)


@njit(no_cpython_wrapper=True)
def _serve(now: int, host: int, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401
    """Give the free cores of a host to the threads that wait longest."""
    while _has_free_core(host, schedule):
        first = _first_in_queue(now, host, schedule)
        _not_ready(now, host, first, schedule)
        if first < 0:
            break
        _get(now, first, schedule, events)


@njit(no_cpython_wrapper=True)
def _first_in_queue(now: int, host: int, schedule: _Schedule) -> int:
    """Return the vertex whose thread waits longest for a core of a host; -1 for none.

    In a recording, a thread that went on much later was not ready when a core was left to a thread behind it, or free.
    """
    first = -1
    soon = now + schedule.soon
    for index in range(schedule.queued[host]):
        vertex = schedule.queue[host, index]
        if _is_recorded(schedule) and schedule.recorded[vertex] > soon:
            continue
        if first < 0 or _is_before(vertex, first, schedule):
            first = vertex
    return first


@njit(no_cpython_wrapper=True)
def _is_before(vertex: int, other_vertex: int, schedule: _Schedule) -> bool:
    """Return whether the thread of one vertex has waited longer for a core than the thread of another vertex."""
    asked = schedule.asked[vertex]
    other_asked = schedule.asked[other_vertex]
    if asked != other_asked:
        return bool(asked < other_asked)
    place = schedule.place[vertex]
    other_place = schedule.place[other_vertex]
    return bool(place < other_place)


@njit(no_cpython_wrapper=True)
def _give(now: int, vertex: int, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401
    """Give the core of the thread of a vertex back."""
    host = schedule.host[vertex]
    _pass_over(now, host, schedule)
    schedule.busy[host] -= 1
    if schedule.earlier[host] > 0:
        _pass_to_early(now, vertex, schedule)
    _serve(now, host, schedule, events)


@njit(no_cpython_wrapper=True)
def _pass_over(now: int, host: int, schedule: _Schedule) -> None:
    """Let all threads that did not take a core, though one was free until now, be ready from now on."""
    if _has_free_core(host, schedule):
        _not_ready(now, host, -1, schedule)


@njit(no_cpython_wrapper=True)
def _not_ready(now: int, host: int, first: int, schedule: _Schedule) -> None:
    """Let threads that have waited longer than that of a vertex (all for -1) be ready from now on, as recorded."""
    if not _is_recorded(schedule):
        return
    for index in range(schedule.queued[host]):
        vertex = schedule.queue[host, index]
        is_passed_over = first < 0 or _is_before(vertex, first, schedule)
        if is_passed_over and now > schedule.asked[vertex]:
            schedule.asked[vertex] = now
            schedule.pause[vertex] = now - schedule.allowed[vertex]


@njit(no_cpython_wrapper=True)
def _get(now: int, vertex: int, schedule: _Schedule, events: Any) -> None:  # noqa: ANN401
    """Let a thread have a core from now on."""
    host = schedule.host[vertex]
    _leave_queue(vertex, host, schedule)
    schedule.busy[host] += 1
    waited = now - schedule.asked[vertex]
    happens = now
    if _is_recorded(schedule):
        _divide_gap(now, vertex, waited, schedule)
    elif schedule.without[vertex]:
        schedule.shared_gap[vertex] = schedule.pause[vertex] + waited
    else:
        schedule.shared_gap[vertex] = schedule.pause[vertex] + waited + schedule.wake[vertex]
    if not schedule.without[vertex]:
        happens += schedule.wake[vertex]
    _plan(happens, _HAPPENS, vertex, schedule, events)


@njit(no_cpython_wrapper=True)
def _divide_gap(now: int, vertex: int, waited: int, schedule: _Schedule) -> None:
    """Write which parts of a recorded gap were a pause, a wait for the core that the thread gets now, and its wake."""
    if schedule.without[vertex]:
        schedule.wake[vertex] = waited
    else:
        schedule.wait[vertex] = waited
        schedule.wake[vertex] = schedule.recorded[vertex] - now


@njit(no_cpython_wrapper=True)
def _leave_queue(vertex: int, host: int, schedule: _Schedule) -> None:
    """Take a vertex out of the queue of its host."""
    for index in range(schedule.queued[host]):
        if schedule.queue[host, index] == vertex:
            schedule.queued[host] -= 1
            schedule.queue[host, index] = schedule.queue[host, schedule.queued[host]]
            break


@njit(no_cpython_wrapper=True)
def _in_queue(vertex: int, host: int, schedule: _Schedule) -> bool:
    """Return whether a vertex waits for a core."""
    return vertex in schedule.queue[host, : schedule.queued[host]]
