"""Hosts with few cores: a rank's host thread waits for a free core, and then runs until it blocks.

An event simulation of its own: a host gives a core to the thread that was ready first, the lower rank of two. A thread
gives its core away while it waits for a device, for a place in a stream's queue, or for another thread of its rank to
wake. Between two waits a thread depends on no other thread, so the stretch is executed once the thread has a core.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from htagraph.simulate.codes import Host, Op
from htagraph.simulate.engine import CoreWait, RankState, Simulation

__all__ = ["CoreSchedule", "grants", "run_thread", "schedule_of"]


class _Moment(IntEnum):
    """The kinds of events, in their order at one moment."""

    BLOCKS = 0
    ASKS = 1


class _Event(NamedTuple):
    time_ns: int
    moment: _Moment
    rank: int


@dataclass(slots=True)
class _HostCores:
    """The cores of one host."""

    free: int
    queue: list[tuple[int, int]] = field(default_factory=list)
    """The waiting threads, as a heap of (moment of readiness, ns; rank)."""


@dataclass(slots=True)
class _RunningThread:
    """The running or next thread of a rank: a rank's main and backward thread take turns."""

    has_core: bool = False
    blocks_ns: int | None = None
    """When the thread gives its core away; None while unknown."""


@dataclass(slots=True)
class CoreSchedule:
    """The owners of each host's cores, and the events to come."""

    engine: Simulation
    hosts: list[_HostCores]
    threads: list[_RunningThread]
    events: list[_Event] = field(default_factory=list)

    def host(self, rank: int) -> _HostCores:
        """Return the cores of a rank's host."""
        return self.hosts[rank // self.engine.job.gpus_per_node]


def schedule_of(engine: Simulation, cores_per_host: int) -> CoreSchedule:
    """Return the schedule of a job before the first event: each rank asks for a core at its first moment."""
    hosts = -(-len(engine.ranks) // engine.job.gpus_per_node)
    schedule = CoreSchedule(
        engine,
        [_HostCores(cores_per_host) for _ in range(hosts)],
        [_RunningThread() for _ in engine.ranks],
    )
    for rank in engine.ranks:
        _push(schedule, rank.now, _Moment.ASKS, rank)
    return schedule


def _push(schedule: CoreSchedule, time_ns: int, moment: _Moment, rank: RankState) -> None:
    heapq.heappush(schedule.events, _Event(time_ns, moment, rank.place.rank))


def grants(schedule: CoreSchedule) -> Iterator[RankState]:
    """Yield each rank once the rank has a core; the caller executes the rank before asking for the next."""
    while schedule.events:
        event = heapq.heappop(schedule.events)
        thread = schedule.threads[event.rank]
        host = schedule.host(event.rank)
        if event.moment is _Moment.ASKS:
            heapq.heappush(host.queue, (event.time_ns, event.rank))
        elif thread.blocks_ns == event.time_ns:
            thread.blocks_ns = None
            thread.has_core = False
            host.free += 1
        while host.free and host.queue:
            ready_ns, number = heapq.heappop(host.queue)
            host.free -= 1
            schedule.threads[number].has_core = True
            rank = schedule.engine.ranks[number]
            _begin(rank, ready_ns, event.time_ns)
            yield rank


def _begin(rank: RankState, ready_ns: int, start_ns: int) -> None:
    """Let a thread go on with a core; a blocking call returns at this moment."""
    if start_ns == ready_ns:
        return
    assert rank.run is not None
    rank.now = start_ns
    rank.run.executed.core_waits.append(CoreWait(rank.place.rank, rank.step, ready_ns, start_ns))
    if not rank.position:
        return
    _, instruction = rank.code[rank.position - 1]
    if instruction.op not in (Op.SPAWN, Op.JOIN):
        rank.end[instruction.call] = start_ns


def run_thread(schedule: CoreSchedule, rank: RankState, next_step: Callable[[RankState], bool]) -> None:
    """Run a rank's host until the next block, one step at most."""
    if rank.position == len(rank.code) and not next_step(rank):
        _block(schedule, rank, rank.now)
        return
    while rank.position < len(rank.code):
        function, instruction = rank.code[rank.position]
        blocks_ns = rank.now
        if instruction.host is not Host.THREAD:
            blocks_ns += rank.cost.host[rank.position]
        awaited = function(rank, rank.position, instruction)
        if awaited is not None:
            awaited.waiters.append(rank)
            _block(schedule, rank, blocks_ns)
            return
        rank.position += 1
        thread = schedule.threads[rank.place.rank]
        if rank.now > blocks_ns or not thread.has_core:
            _block(schedule, rank, blocks_ns)
            _push(schedule, rank.now, _Moment.ASKS, rank)
            return
        thread.blocks_ns = None
    schedule.engine.ready.append(rank)


def _block(schedule: CoreSchedule, rank: RankState, blocks_ns: int) -> None:
    """Let a thread give its core away at a moment, unless this has happened or is planned."""
    thread = schedule.threads[rank.place.rank]
    if thread.has_core and thread.blocks_ns != blocks_ns:
        thread.blocks_ns = blocks_ns
        _push(schedule, blocks_ns, _Moment.BLOCKS, rank)
