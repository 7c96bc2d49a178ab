"""The dependencies that really held, from the programs that ran, not from any trace."""

import gzip
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from htagraph.simulate.codes import Category, Op
from htagraph.simulate.emit import Ints
from htagraph.simulate.engine import CoreWait, Executed, arrivals_awaited
from htagraph.simulate.job import Job, JobGroup, RankPlace
from htagraph.simulate.template import NONE, Instruction

MOMENTS: Final[dict[str, tuple[str, str]]] = {
    "launch": ("start", "start"),  # a call, the kernel or copy that it enqueued
    "stream": ("end", "start"),  # a kernel or copy, the next one on its stream
    "event_wait": ("end", "start"),  # the last one before the record, the first one after the wait
    "host_sync": ("end", "end"),  # a kernel or copy, the blocking call that waited for it
    "memcpy_sync": ("end", "end"),  # a pageable copy, its own call
    "queue_full": ("end", "end"),  # the kernel or copy `queue_depth` places earlier, the launch that blocked
    "thread": ("end", "start"),  # last event of one thread, first event of the thread it handed over to
    "autograd": ("end", "start"),  # a forward op, its backward op
    "collective": ("start", "end"),  # a member, another member that waits for its arrival
    "p2p": ("start", "end"),  # the same for a send and its receive
}


class Dependency(NamedTuple):
    """`event_v` cannot be before `event_u`, at the moments that `MOMENTS` names for its kind."""

    rank_u: int
    event_u: int  # position in the rank's `traceEvents`
    rank_v: int
    event_v: int
    kind: str


class Member(NamedTuple):
    """One rank's part of a collective: arrival, wait and transfer add up to its end."""

    rank: int
    event: int  # position in the rank's `traceEvents`
    arrival_ns: int  # start of its kernel, on the true clock
    wait_ns: int  # until the last arrival that its end waits for
    transfer_ns: int  # from there to its end


class Collective(msgspec.Struct, frozen=True):
    """One logical collective."""

    id: int
    group: str
    ranks: tuple[int, ...]
    kind: str
    step: int
    bytes: int
    members: tuple[Member, ...]


class Step(NamedTuple):
    """One step of one rank, on the true clock."""

    rank: int
    step: int  # counted from 0
    start_ns: int  # of its ProfilerStep annotation
    end_ns: int  # of that annotation, or of the last device work launched in it if that is later


class FileClock(NamedTuple):
    """How a rank's file counts: file ns = true ns + offset_ns + drift + start_ns."""

    rank: int
    offset_ns: int
    drift_ppm: float
    start_ns: int  # what the file of an exact clock shows at true time 0


class Truth(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything known about a simulated job: times, clocks, stragglers, dependencies, collectives, waits for cores."""

    format: str
    job: dict[str, Any]
    mean_step_ns: float  # (last end - first start) / steps, over all ranks
    steps: tuple[Step, ...]
    clocks: tuple[FileClock, ...]
    stragglers: tuple[dict[str, Any], ...]
    moments: dict[str, tuple[str, str]]
    dependencies: tuple[Dependency, ...]
    collectives: tuple[Collective, ...]
    core_waits: tuple[CoreWait, ...] = ()


def read_truth(path: Path | str) -> Truth:
    """Read a `truth.json.gz` back."""
    return msgspec.json.decode(gzip.decompress(Path(path).read_bytes()), type=Truth)


Ref = tuple[int, int]  # (step, event) of one rank


@dataclass
class _ProgramWalk:
    """A rank's program, followed a second time without times."""

    depth: int
    last: dict[int, Ref] = field(default_factory=dict)  # the last kernel or copy on each stream
    slots: dict[int, Ref | None] = field(default_factory=dict)
    awaited: dict[int, list[Ref]] = field(default_factory=dict)  # per stream
    queue: dict[int, deque[tuple[Ref, int]]] = field(default_factory=dict)  # kernels and copies, with their ends
    handed: Ref | None = None  # the event before a hand-over
    closed: Ref | None = None
    links: list[tuple[Ref, Ref, str]] = field(default_factory=list)


def step_of(executed: Executed) -> Step:
    """Return when a step began and ended."""
    works = [index for index, event in enumerate(executed.template.events) if event.category.on_device]
    return Step(executed.rank, executed.step, executed.start[0], max(executed.end[index] for index in (0, *works)))


def mean_step_ns(steps: Iterable[Step]) -> float:
    """Return (last end - first start) / steps, over all ranks, ns."""
    known = list(steps)
    count = len({step.step for step in known})
    return (max(step.end_ns for step in known) - min(step.start_ns for step in known)) / count


def dependencies(
    job: Job, executed: Mapping[int, list[Executed]], positions: Mapping[int, Mapping[int, Ints]]
) -> list[Dependency]:
    """Return the dependencies inside each rank; `positions` are those in the file, by rank, step and event."""
    links = []
    for rank, steps in executed.items():
        walk = _ProgramWalk(job.queue_depth)
        for one in steps:
            for position, instruction in enumerate(one.template.instructions):
                _follow(walk, one, position, instruction)
            walk.links += [
                ((one.step, event.forward), (one.step, index), "autograd")
                for index, event in enumerate(one.template.events)
                if event.forward != NONE and event.flow != NONE
            ]
        place = positions[rank]
        links += [
            Dependency(rank, int(place[u[0]][u[1]]), rank, int(place[v[0]][v[1]]), kind) for u, v, kind in walk.links
        ]
    return links


def _follow(walk: _ProgramWalk, one: Executed, position: int, instruction: Instruction) -> None:
    """Follow one instruction."""
    _hand_over(walk, one, instruction)
    blocking = position not in one.released
    call = (one.step, instruction.call)
    stream = instruction.stream
    op = instruction.op
    if op in (Op.LAUNCH, Op.COLLECTIVE, Op.NODE):
        _enqueue(walk, one, instruction)
    elif op is Op.RECORD:
        walk.slots[instruction.slot] = walk.last.get(stream)
    elif op is Op.WAIT:
        awaited = walk.slots[instruction.slot]
        walk.awaited.setdefault(stream, []).extend([awaited] if awaited else [])
    elif blocking and op in (Op.HOLD, Op.STREAM_SYNC, Op.DEVICE_SYNC, Op.EVENT_SYNC):
        kind = "memcpy_sync" if op is Op.HOLD else "host_sync"
        walk.links += [(work, call, kind) for work in _waited_for(walk, instruction)]


def _waited_for(walk: _ProgramWalk, instruction: Instruction) -> list[Ref]:
    if instruction.op is Op.DEVICE_SYNC:
        return list(walk.last.values())
    event = instruction.op is Op.EVENT_SYNC
    work = walk.slots[instruction.slot] if event else walk.last.get(instruction.stream)
    return [work] if work else []


def _enqueue(walk: _ProgramWalk, one: Executed, instruction: Instruction) -> None:
    stream = instruction.stream
    call, work = (one.step, instruction.call), (one.step, instruction.work)
    walk.links.append((call, work, "launch"))
    if stream in walk.last:
        walk.links.append((walk.last[stream], work, "stream"))
    walk.links += [(before, work, "event_wait") for before in walk.awaited.pop(stream, [])]
    walk.last[stream] = work
    if instruction.op is Op.NODE:  # the queue holds whole graphs
        return
    queue = walk.queue.setdefault(stream, deque(maxlen=walk.depth))
    if len(queue) == walk.depth and one.end[instruction.call] == queue[0][1]:
        walk.links.append((queue[0][0], call, "queue_full"))
    queue.append((work, one.end[instruction.work]))


def _hand_over(walk: _ProgramWalk, one: Executed, instruction: Instruction) -> None:
    """Link the last event of a thread with the first of the thread that takes over."""
    op = instruction.op
    if op in (Op.SPAWN, Op.JOIN):
        walk.handed = walk.closed
    elif instruction.call != NONE and op not in (Op.HOLD, Op.NODE):
        if one.template.events[instruction.call].category is Category.PYTHON_FUNCTION:
            return
        event = (one.step, instruction.call)
        if op is Op.END:
            walk.closed = event
            return
        if walk.handed is not None:
            walk.links.append((walk.handed, event, "thread"))
            walk.handed = None
        if op is not Op.BEGIN:
            walk.closed = event


def collectives(
    job: Job,
    places: list[RankPlace],
    executed: Mapping[int, list[Executed]],
    positions: Mapping[int, Mapping[int, Ints]],
) -> tuple[list[Collective], list[Dependency]]:
    """Return all collectives, and the dependencies between their members."""
    parties: dict[tuple[int, int, int], list[tuple[int, int, int, int]]] = {}  # rank, position, start, end of members
    about: dict[tuple[int, int, int], tuple[JobGroup, Instruction]] = {}
    for rank, steps in executed.items():
        for one in steps:
            for code in one.template.instructions:
                if code.op is Op.COLLECTIVE:
                    group = places[rank].roles[code.role]
                    key = (one.step, group.index, code.order)
                    about.setdefault(key, (group, code))
                    place = int(positions[rank][one.step][code.work])
                    parties.setdefault(key, []).append((rank, place, one.start[code.work], one.end[code.work]))
    made, links = [], []
    for number, (key, party) in enumerate(sorted(parties.items())):
        (step, _, order), (group, code) = key, about[key]
        awaited = arrivals_awaited(job, group, code.kind, step, order)
        arrival = {rank: (start, position) for rank, position, start, _ in party}
        pair = code.kind in ("send", "recv")
        members = []
        for rank, position, start, end in party:
            sources = awaited[rank] if awaited else group.ranks
            joined = max(start, *(arrival[source][0] for source in sources))
            members.append(Member(rank, position, start, joined - start, end - joined))
            links += [
                Dependency(source, arrival[source][1], rank, position, "p2p" if pair else "collective")
                for source in sources
                if source != rank
            ]
        kind = "send_recv" if pair else code.kind
        made.append(Collective(number, group.name, group.ranks, kind, step, code.size, tuple(members)))
    return made, links
