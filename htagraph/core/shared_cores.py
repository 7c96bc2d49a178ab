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
"""A moment that its thread reaches with the core that it has, or that needs none."""
BLOCKS: Final = 1
"""A moment before which its thread gives its core away if it has to wait for other threads."""
PAUSES: Final = 2
"""A moment before which its thread gives its core away, and asks for one after a pause of its own."""

_HAPPENS, _BLOCKS, _ASKS, _BEGAN = 0, 1, 2, 3
"""What an event is; at one moment, in this order."""


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
    """Of each vertex: the number of the host on a core of which its thread runs; -1 for none."""
    kind: Array
    """Of each vertex: `RUNS`, `BLOCKS` or `PAUSES`."""
    then: Array
    """Of each vertex: the next one of its thread; -1 for none."""
    first: Array
    """Which vertices are the first ones of their threads."""
    cores: Array
    """Of each host: how many cores it has."""
    by_time: Array
    """The vertices in the order in which they were recorded: who asks at the same moment gets cores in this order."""
    place: Array
    """Of each vertex: its place in this order."""
    soon: int
    """Within this, a thread that gets a core goes on, ns; one that does not was not ready."""
    most: int
    """How many threads wait at once, at most."""


class Shares(NamedTuple):
    """Of each vertex that is no `RUNS`: what its gap is made of, ns."""

    pause: Array
    """The thread's own pause before it asks for a core."""
    wait: Array
    """How long it waited for a core."""
    wake: Array
    """How long after it got a core the moment came."""
    without: Array
    """Which ones went on though no core was free."""


class _UnderWay(NamedTuple):
    """What is under way."""

    best: Array
    """The latest moment that the edges so far allow each vertex."""
    waiting: Array
    """How many edges into each vertex are still to come."""
    gave: Array
    """Whether the thread of each vertex gave its core away before it."""
    asked: Array
    """Since when each vertex is ready for a core."""
    queue: Array
    """Of each host: the vertices that wait for a core, in any order."""
    queued: Array
    """Of each host: how many these are."""
    busy: Array
    """Of each host: how many of its cores are taken."""
    recorded: Array
    """When each vertex was recorded, where shares are looked for; else nothing."""
    gap: Array
    """The gaps that are looked for; else nothing."""


def taken(dag: Dag, threads: CoreUsers, pause: Array, time: Array) -> Shares:
    """Return what the gaps of a recording are made of, given its times: who waited for a core, and how long.

    `pause` is how long each thread pauses by itself before a vertex, as far as that is known. It paused until the last
    moment at which it did not take a free core. `time` is what the weights give.
    """
    count = len(time)
    made = Shares(pause.copy(), np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.bool_))
    _simulate(_read(dag), threads, made, for_reading(time, np.int64), np.zeros(0, np.int64))
    return made


def shared(dag: Dag, threads: CoreUsers, shares: Shares) -> Array:
    """Return the gap of each vertex, ns, if threads wait for cores in a job with other weights."""
    gap = dag.gap.astype(np.int64)
    _simulate(_read(dag), threads, shares, np.zeros(0, np.int64), gap)
    return gap


def _read(dag: Dag) -> Dag:
    return Dag(
        for_reading(dag.in_offsets, np.int64),
        for_reading(dag.out_offsets, np.int64),
        for_reading(dag.target, np.int32),
        for_reading(dag.lag, np.int64),
        for_reading(dag.gap, np.int64),
        for_reading(dag.head, np.int64),
        for_reading(dag.live, np.bool_),
    )


@njit(cache=True, nogil=True)
def _simulate(dag: Dag, threads: CoreUsers, shares: Shares, recorded: Array, gap: Array) -> None:
    """Run the job: with `recorded` times, write the shares; without these, write the gaps."""
    vertices, hosts = len(dag.gap), len(threads.cores)
    run = _UnderWay(
        np.full(vertices, np.iinfo(np.int64).min // 2), np.diff(dag.in_offsets), threads.first.copy(),
        np.zeros(vertices, np.int64), np.zeros((hosts, threads.most), np.int64), np.zeros(hosts, np.int64),
        np.zeros(hosts, np.int64), recorded, gap,
    )  # fmt: skip
    for edge in range(len(dag.lag)):
        if not dag.live[edge]:
            run.waiting[dag.target[edge]] -= 1
    events: list[Any] = [(np.int64(0), np.int64(0), np.int64(0))]
    events.pop()
    for vertex in range(vertices):
        if run.waiting[vertex] == 0:
            heapq.heappush(events, (np.int64(dag.head[vertex]), np.int64(_HAPPENS), np.int64(threads.place[vertex])))
    while len(events) > 0:
        now, what, number = heapq.heappop(events)
        vertex = threads.by_time[number]
        host = threads.host[vertex]
        if what == _HAPPENS:
            _happen(now, vertex, dag, threads, shares, run, events)
        elif what == _BLOCKS and run.waiting[vertex] > 0:
            run.gave[vertex] = True
            _give(now, host, threads, shares, run, events)
        elif what == _ASKS:
            _ask(now, vertex, threads, shares, run, events)
        elif what == _BEGAN and _in_queue(vertex, host, run):
            shares.without[vertex] = run.busy[host] >= threads.cores[host]
            _get(now, vertex, threads, shares, run, events)


@njit(no_cpython_wrapper=True)
def _happen(  # noqa: PLR0913, PLR0917 - the state of a run
    now: int,
    vertex: int,
    dag: Dag,
    threads: CoreUsers,
    shares: Shares,
    run: _UnderWay,
    events: Any,  # noqa: ANN401 - a heap
) -> None:
    """Let a vertex happen, and all that waits for nothing else."""
    host, then = threads.host[vertex], threads.then[vertex]
    if host >= 0 and dag.in_offsets[vertex] == dag.in_offsets[vertex + 1]:  # a thread that nothing wakes
        _pass_over(now, host, threads, shares, run)
        run.busy[host] += 1
    if host >= 0 and (then < 0 or threads.kind[then] == PAUSES):
        if then >= 0:
            run.gave[then] = True
        _give(now, host, threads, shares, run, events)
    until = now
    for edge in range(dag.out_offsets[vertex], dag.out_offsets[vertex + 1]):
        if not dag.live[edge]:
            continue
        target = dag.target[edge]
        allowed = now + dag.lag[edge]
        if target == then:
            until = max(until, allowed)
        run.best[target] = max(run.best[target], allowed)
        run.waiting[target] -= 1
        if run.waiting[target] == 0:
            _ready(target, dag, threads, shares, run, events)
    if host >= 0 and then >= 0 and threads.kind[then] == BLOCKS and run.waiting[then] > 0:
        heapq.heappush(events, (np.int64(until), np.int64(_BLOCKS), np.int64(threads.place[then])))


@njit(no_cpython_wrapper=True)
def _ready(vertex: int, dag: Dag, threads: CoreUsers, shares: Shares, run: _UnderWay, events: Any) -> None:  # noqa: ANN401
    """Let a vertex happen in time, or ask for a core first."""
    best, place = run.best[vertex], np.int64(threads.place[vertex])
    if threads.kind[vertex] == RUNS or threads.host[vertex] < 0:
        heapq.heappush(events, (np.int64(best + dag.gap[vertex]), np.int64(_HAPPENS), place))
        return
    if len(run.recorded):
        shares.pause[vertex] = min(shares.pause[vertex], max(dag.gap[vertex], 0))
    pause = shares.pause[vertex]
    if run.gave[vertex]:
        heapq.heappush(events, (np.int64(best + pause), np.int64(_ASKS), place))
        return
    if len(run.recorded):
        shares.wake[vertex] = dag.gap[vertex] - pause
    else:
        run.gap[vertex] = pause + shares.wake[vertex]
    heapq.heappush(events, (np.int64(best + pause + shares.wake[vertex]), np.int64(_HAPPENS), place))


@njit(no_cpython_wrapper=True)
def _ask(now: int, vertex: int, threads: CoreUsers, shares: Shares, run: _UnderWay, events: Any) -> None:  # noqa: ANN401
    """Queue for a core, and take a free one."""
    host = threads.host[vertex]
    _pass_over(now, host, threads, shares, run)
    run.asked[vertex] = now
    run.queue[host, run.queued[host]] = vertex
    run.queued[host] += 1
    if len(run.recorded):
        heapq.heappush(events, (np.int64(run.recorded[vertex]), np.int64(_BEGAN), np.int64(threads.place[vertex])))
    elif shares.without[vertex]:
        _get(now, vertex, threads, shares, run, events)
        return
    _serve(now, host, threads, shares, run, events)


@njit(no_cpython_wrapper=True)
def _serve(now: int, host: int, threads: CoreUsers, shares: Shares, run: _UnderWay, events: Any) -> None:  # noqa: ANN401
    """Give the free cores of a host to the threads that wait longest.

    In a recording, a thread that went on much later was not ready when a core was left to a thread behind it, or free.
    """
    while run.busy[host] < threads.cores[host]:
        first = -1
        for i in range(run.queued[host]):
            vertex = run.queue[host, i]
            if len(run.recorded) and run.recorded[vertex] > now + threads.soon:
                continue
            if first < 0 or _is_before(vertex, first, threads, run):
                first = vertex
        _not_ready(now, host, first, threads, shares, run)
        if first < 0:
            break
        _get(now, first, threads, shares, run, events)


@njit(no_cpython_wrapper=True)
def _is_before(one: int, other: int, threads: CoreUsers, run: _UnderWay) -> bool:
    """Return whether the thread of one vertex has waited longer for a core than that of another one."""
    if run.asked[one] != run.asked[other]:
        return bool(run.asked[one] < run.asked[other])
    return bool(threads.place[one] < threads.place[other])


@njit(no_cpython_wrapper=True)
def _give(now: int, host: int, threads: CoreUsers, shares: Shares, run: _UnderWay, events: Any) -> None:  # noqa: ANN401
    """Give a core back."""
    _pass_over(now, host, threads, shares, run)
    run.busy[host] -= 1
    _serve(now, host, threads, shares, run, events)


@njit(no_cpython_wrapper=True)
def _pass_over(now: int, host: int, threads: CoreUsers, shares: Shares, run: _UnderWay) -> None:
    """Let all threads that did not take a core, though one was free until now, be ready from now on."""
    if run.busy[host] < threads.cores[host]:
        _not_ready(now, host, -1, threads, shares, run)


@njit(no_cpython_wrapper=True)
def _not_ready(now: int, host: int, first: int, threads: CoreUsers, shares: Shares, run: _UnderWay) -> None:
    """Let threads that have waited longer than that of a vertex (all for -1) be ready from now on, as recorded."""
    if len(run.recorded) == 0:
        return
    for i in range(run.queued[host]):
        vertex = run.queue[host, i]
        if now > run.asked[vertex] and (first < 0 or _is_before(vertex, first, threads, run)):
            run.asked[vertex] = now
            shares.pause[vertex] = now - run.best[vertex]


@njit(no_cpython_wrapper=True)
def _get(now: int, vertex: int, threads: CoreUsers, shares: Shares, run: _UnderWay, events: Any) -> None:  # noqa: ANN401
    """Let a thread have a core from now on."""
    host = threads.host[vertex]
    for i in range(run.queued[host]):
        if run.queue[host, i] == vertex:
            run.queued[host] -= 1
            run.queue[host, i] = run.queue[host, run.queued[host]]
            break
    waited = now - run.asked[vertex]
    if len(run.recorded) == 0:
        run.gap[vertex] = shares.pause[vertex] + waited + shares.wake[vertex]
    elif shares.without[vertex]:
        shares.wake[vertex] = waited
    elif run.busy[host] < threads.cores[host] and run.recorded[vertex] == now:  # nobody made it wait
        shares.pause[vertex] += waited
    else:
        shares.wait[vertex] = waited
        shares.wake[vertex] = run.recorded[vertex] - now
    run.busy[host] += 1
    happens = now + shares.wake[vertex] * (not shares.without[vertex] or len(run.recorded) == 0)
    heapq.heappush(events, (np.int64(happens), np.int64(_HAPPENS), np.int64(threads.place[vertex])))


@njit(no_cpython_wrapper=True)
def _in_queue(vertex: int, host: int, run: _UnderWay) -> bool:
    """Return whether a vertex waits for a core."""
    return vertex in run.queue[host, : run.queued[host]]
