"""Hosts whose cores are shared fairly: threads that outnumber the cores all work on, equally fast, in short turns.

An event simulation of its own, instruction by instruction, because how long an instruction takes depends on which other
threads of the host are at work meanwhile. A thread needs no core while it waits for a device, for a place in a stream's
queue, or for another thread of its rank to wake.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from htagraph.simulate.codes import Host
from htagraph.simulate.engine import RankState, Simulation

__all__ = ["FairSchedule", "fair_schedule_of", "go_on", "served"]


class _FairMoment(IntEnum):
    """The kinds of events, in their order at one moment."""

    IS_SERVED = 0
    WAKES = 1
    BEGINS = 2


class _FairEvent(NamedTuple):
    time_ns: float
    moment: _FairMoment
    number: int
    """The rank; of `IS_SERVED`, the host."""
    version: int
    """How often the host's threads had changed, for `IS_SERVED`."""


@dataclass(slots=True)
class _FairHost:
    """The threads of a host that are at work."""

    work_ns: float = 0.0
    """How much work a thread has done that was there all the time."""
    read_at_ns: float = 0.0
    version: int = 0
    done_at_ns: dict[int, float] = field(default_factory=dict)
    """By rank: how much this work has to be for its thread's instruction to be over."""

    def speed(self, cores: int) -> float:
        """Return how fast each thread is, as a share of its speed alone."""
        return min(1.0, cores / max(len(self.done_at_ns), 1))

    def work_until(self, now_ns: float, cores: int) -> None:
        """Let all threads work until a moment."""
        self.work_ns += (now_ns - self.read_at_ns) * self.speed(cores)
        self.read_at_ns = now_ns


@dataclass(slots=True)
class FairSchedule:
    """The threads at work on each host, and the events to come."""

    engine: Simulation
    cores: int
    hosts: list[_FairHost]
    now_ns: float = 0.0
    events: list[_FairEvent] = field(default_factory=list)

    def host_of(self, rank: int) -> int:
        """Return the number of a rank's host."""
        return rank // self.engine.job.gpus_per_node


def fair_schedule_of(engine: Simulation, cores_per_host: int) -> FairSchedule:
    """Return the schedule of a job before the first event: each rank begins at its first moment."""
    hosts = -(-len(engine.ranks) // engine.job.gpus_per_node)
    schedule = FairSchedule(engine, cores_per_host, [_FairHost() for _ in range(hosts)])
    for rank in engine.ranks:
        _copy_costs(rank)
        _plan(schedule, rank.now, _FairMoment.BEGINS, rank.place.rank)
    return schedule


def _copy_costs(rank: RankState) -> None:
    """Let a rank have costs of its own, which the schedule may write to."""
    rank.cost = rank.cost._replace(host=list(rank.cost.host))


def _plan(schedule: FairSchedule, time_ns: float, moment: _FairMoment, number: int) -> None:
    version = schedule.hosts[number].version if moment is _FairMoment.IS_SERVED else 0
    heapq.heappush(schedule.events, _FairEvent(time_ns, moment, number, version))


def served(schedule: FairSchedule) -> Iterator[RankState]:
    """Yield each rank whose next instruction had its time; the caller executes it before asking for the next."""
    while schedule.events:
        event = heapq.heappop(schedule.events)
        schedule.now_ns = max(schedule.now_ns, event.time_ns)
        if event.moment is _FairMoment.BEGINS:
            _begin(schedule, event.number)
        elif event.moment is _FairMoment.WAKES:
            yield schedule.engine.ranks[event.number]
        elif event.version == schedule.hosts[event.number].version:
            yield _serve(schedule, event.number)


def _begin(schedule: FairSchedule, number: int) -> None:
    """Let a rank's next instruction begin."""
    rank = schedule.engine.ranks[number]
    _, instruction = rank.code[rank.position]
    cost_ns = rank.cost.host[rank.position]
    if instruction.host is Host.THREAD or not cost_ns:
        _plan(schedule, rank.now + cost_ns, _FairMoment.WAKES, number)
        return
    place = schedule.host_of(number)
    host = schedule.hosts[place]
    host.work_until(schedule.now_ns, schedule.cores)
    host.done_at_ns[number] = host.work_ns + cost_ns
    _plan_service(schedule, place)


def _plan_service(schedule: FairSchedule, place: int) -> None:
    """Plan which thread of a host is done next."""
    host = schedule.hosts[place]
    host.version += 1
    if host.done_at_ns:
        left_ns = min(host.done_at_ns.values()) - host.work_ns
        until_ns = schedule.now_ns + max(left_ns, 0.0) / host.speed(schedule.cores)
        _plan(schedule, until_ns, _FairMoment.IS_SERVED, place)


def _serve(schedule: FairSchedule, place: int) -> RankState:
    """Let the thread of a host that is done first be done; its instruction took as long as that."""
    host = schedule.hosts[place]
    host.work_until(schedule.now_ns, schedule.cores)
    number = min(host.done_at_ns, key=lambda each: (host.done_at_ns[each], each))
    del host.done_at_ns[number]
    _plan_service(schedule, place)
    rank = schedule.engine.ranks[number]
    rank.cost.host[rank.position] = max(round(schedule.now_ns) - rank.now, 0)
    return rank


def go_on(schedule: FairSchedule, rank: RankState, next_step: Callable[[RankState], bool]) -> None:
    """Execute a rank's instruction, and let the next one begin, unless this one has to wait."""
    function, instruction = rank.code[rank.position]
    awaited = function(rank, rank.position, instruction)
    if awaited is not None:
        awaited.waiters.append(rank)
        return
    rank.position += 1
    if rank.position == len(rank.code):
        if not next_step(rank):
            return
        _copy_costs(rank)
    _plan(schedule, rank.now, _FairMoment.BEGINS, rank.place.rank)
