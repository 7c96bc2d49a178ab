"""How a run goes on: ranks and streams, what each instruction does, and device work whose time is not known yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from htagraph.simulate.codes import Op, Purpose
from htagraph.simulate.costs import Durations, mix, uniform
from htagraph.simulate.job import Job, JobGroup, RankPlace
from htagraph.simulate.template import Instruction, Template


class CoreWait(NamedTuple):
    """A host thread that waited for a core, on the true clock."""

    rank: int
    step: int  # counted from 0; what follows the last step has its number plus one
    ready_ns: int  # when the thread was ready
    start_ns: int  # when it got a core


class Executed(NamedTuple):
    """One rank's step, executed: true start and end, ns, of every event of its template."""

    rank: int
    step: int
    template: Template
    start: list[int]
    end: list[int]
    released: frozenset[int]  # instructions that do not block as they usually do
    core_waits: list[CoreWait]


@dataclass(slots=True, eq=False)
class Stream:
    """A device queue of one rank."""

    owner: RankState
    ring: list[int | PendingWork]  # end of the kernel or copy `queue_depth` launches ago
    tail: int = 0  # end of the last kernel or copy with a known time
    until: int = 0  # the next kernel or copy waits until this time: the latest of the events that it waits for
    blockers: list[PendingWork] = field(default_factory=list)  # what the next one waits for, where that has no time yet
    pending: deque[PendingWork] = field(default_factory=deque)
    count: int = 0


@dataclass(slots=True, eq=False)
class PendingWork:
    """Device work that could not be timed when it was launched."""

    stream: Stream
    run: Run
    event: int
    ready: int  # earliest start by its launch
    until: int
    device: int
    gap: int
    blockers: list[PendingWork]
    party: Party | None = None
    start: int = -1
    end: int = -1
    waiters: list[Stream | RankState] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Run:
    """One (rank, step) being executed."""

    executed: Executed
    open: int = 0  # how many kernels and copies have no time yet
    left: bool = False  # the host has finished it


@dataclass(slots=True, eq=False)
class Party:
    """The members of one collective: which have arrived, and which arrivals each waits for."""

    sources: dict[int, list[int]] | None  # by rank, the ranks it waits for; None: all wait for all
    members: int
    joined: int = 0
    arrived: dict[int, PendingWork] = field(default_factory=dict)


Code = tuple[Callable[["RankState", int, Instruction], "PendingWork | None"], Instruction]


@dataclass(slots=True, eq=False)
class RankState:
    """The host of one rank, and its streams."""

    place: RankPlace
    engine: Simulation
    streams: list[Stream]
    now: int
    step: int = -1  # position in its schedule
    position: int = 0
    code: list[Code] = field(default_factory=list)
    cost: Durations = field(default_factory=lambda: Durations([], [], [], [], frozenset()))
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    slots: dict[int, int | PendingWork] = field(default_factory=dict)
    run: Run | None = None
    unfinished: deque[Run] = field(default_factory=deque)
    finished: bool = False


Prepare = Callable[[int, int], tuple[Template, list[Code], Durations]]


@dataclass(slots=True, eq=False)
class Simulation:
    """All ranks, and the collectives between them."""

    job: Job
    prepare: Prepare  # (rank, step position) → what to run
    ranks: list[RankState] = field(default_factory=list)
    parties: dict[tuple[int, int, int], Party] = field(default_factory=dict)
    ready: deque[RankState | Stream] = field(default_factory=deque)


EMPTY_SHARE: Final = 0.25
"""Share of the messages of an all-to-all that are empty. Chosen: enough that members wait for different peers; doubling
it makes members wait for fewer."""


def enqueue(rank: RankState, position: int, instruction: Instruction, ready: int) -> int | PendingWork:
    """Queue device work that may have to wait; return its end if that is known already, else the work itself."""
    stream, cost = rank.streams[instruction.stream], rank.cost
    assert rank.run is not None
    work = PendingWork(
        stream, rank.run, instruction.work, ready, stream.until, cost.device[position], cost.gap[position],
        stream.blockers,
    )  # fmt: skip
    stream.blockers = []
    if instruction.kind:
        work.party = _party(rank, instruction)
    rank.run.open += 1
    stream.pending.append(work)
    if len(stream.pending) == 1:
        advance(stream)
    return work if work.end < 0 else work.end


def _party(rank: RankState, instruction: Instruction) -> Party:
    group = rank.place.roles[instruction.role]
    key = (group.index, rank.step, instruction.order)
    parties = rank.engine.parties
    if key not in parties:
        sources = arrivals_awaited(rank.engine.job, group, instruction.kind, rank.step, instruction.order)
        parties[key] = Party(sources, len(group.ranks))
    party = parties[key]
    party.joined += 1
    if party.joined == party.members:
        del parties[key]
    return party


def arrivals_awaited(job: Job, group: JobGroup, kind: str, step: int, order: int) -> dict[int, list[int]] | None:
    """Return, per member, the ranks whose arrival its end waits for; None if all wait for all.

    A broadcast waits for its root, the group's first rank. A member of an all-to-all waits for those that
    have bytes for it: a quarter of the messages, drawn by key, are empty.
    """
    if kind == "broadcast":
        return {rank: [group.ranks[0], rank] for rank in group.ranks}
    if kind != "all_to_all":
        return None
    base = mix(job.seed, group.index + 1, step, order, Purpose.TRAFFIC)
    return {
        rank: [peer for peer in group.ranks if peer == rank or uniform(base, mix(peer, rank)) >= EMPTY_SHARE]
        for rank in group.ranks
    }


def latency_ns(job: Job) -> int:
    """Return the time from the end of awaited device work to the start of the work that waits for it, ns."""
    return round(job.event_latency_us * 1e3)


def advance(stream: Stream) -> None:
    """Time the work at the head of a stream, and the next, as long as everything it waits for is known."""
    latency = latency_ns(stream.owner.engine.job)
    while stream.pending:
        work = stream.pending[0]
        if work.start >= 0:  # a collective that has arrived
            return
        for blocker in work.blockers:
            if blocker.end < 0:
                blocker.waiters.append(stream)
                return
        awaited = max([blocker.end + latency for blocker in work.blockers], default=0)
        work.start = max(work.ready, stream.tail + (0 if work.party else work.gap), work.until, awaited)
        work.run.executed.start[work.event] = work.start
        if work.party is None:
            _settle(work, work.start + work.device)
        else:
            _arrive(work, work.party)


def _arrive(work: PendingWork, party: Party) -> None:
    """Add a member's arrival to its collective, and time the members that waited for this arrival only."""
    arrived = party.arrived
    arrived[work.stream.owner.place.rank] = work
    if party.sources is None:
        if len(arrived) == party.members:
            joined = max(member.start for member in arrived.values())
            for member in arrived.values():
                _settle(member, joined + member.device + member.gap)
        return
    for rank, member in arrived.items():
        sources = party.sources[rank]
        if member.end < 0 and all(source in arrived for source in sources):
            joined = max(arrived[source].start for source in sources)
            _settle(member, joined + member.device + member.gap)


def _settle(work: PendingWork, end: int) -> None:
    """Set the end of the work at the head of its stream, and wake the streams and ranks that wait for it."""
    work.end = end
    work.run.executed.end[work.event] = end
    work.run.open -= 1
    stream = work.stream
    stream.pending.popleft()
    stream.tail = end
    ready = stream.owner.engine.ready
    ready.extend(work.waiters)
    ready.append(stream)


def compile_code(template: Template) -> list[Code]:
    """Return a template's instructions with the function that executes each."""
    return [(_EXECUTE[instruction.op], instruction) for instruction in template.instructions]


def _begin(rank: RankState, position: int, instruction: Instruction) -> None:
    rank.start[instruction.call] = rank.now
    rank.now += rank.cost.host[position]


def _end(rank: RankState, position: int, instruction: Instruction) -> None:
    rank.now += rank.cost.host[position]
    rank.end[instruction.call] = rank.now


def _pass(rank: RankState, position: int, instruction: Instruction) -> None:
    rank.now += rank.cost.host[position]


def _call(rank: RankState, position: int, instruction: Instruction) -> None:
    _begin(rank, position, instruction)
    rank.end[instruction.call] = rank.now


def _end_of(work: int | PendingWork) -> int:
    """Return when work ends, or -1 while that is not known."""
    return work.end if isinstance(work, PendingWork) else work


def _launch(rank: RankState, position: int, instruction: Instruction) -> PendingWork | None:
    stream = rank.streams[instruction.stream]
    oldest = stream.ring[stream.count % len(stream.ring)]
    if isinstance(oldest, PendingWork) and oldest.end < 0:
        return oldest
    ready = rank.now + rank.cost.latency[position]
    _begin(rank, position, instruction)
    rank.end[instruction.call] = rank.now = max(rank.now, _end_of(oldest))
    stream.ring[stream.count % len(stream.ring)] = _follow_stream(rank, position, instruction, ready)
    stream.count += 1
    return None


def _follow_stream(rank: RankState, position: int, instruction: Instruction, ready: int) -> int | PendingWork:
    """Let work start behind what is on its stream; return its end, or the work while that is not known."""
    stream = rank.streams[instruction.stream]
    if stream.pending or stream.blockers or instruction.kind:
        return enqueue(rank, position, instruction, ready)
    start = max(ready, stream.tail + rank.cost.gap[position], stream.until)
    end = start + rank.cost.device[position]
    rank.start[instruction.work] = start
    rank.end[instruction.work] = end
    stream.tail = end
    return end


def _node(rank: RankState, position: int, instruction: Instruction) -> None:
    _follow_stream(rank, position, instruction, rank.start[instruction.call] + rank.cost.latency[position])


def _record(rank: RankState, position: int, instruction: Instruction) -> None:
    _call(rank, position, instruction)
    rank.slots[instruction.slot] = _last(rank.streams[instruction.stream])


def _wait(rank: RankState, position: int, instruction: Instruction) -> None:
    _call(rank, position, instruction)
    stream = rank.streams[instruction.stream]
    awaited = rank.slots[instruction.slot]
    if isinstance(awaited, PendingWork) and awaited.end < 0:
        stream.blockers.append(awaited)
    else:
        stream.until = max(stream.until, _end_of(awaited) + latency_ns(rank.engine.job))


def _last(stream: Stream) -> int | PendingWork:
    return stream.pending[-1] if stream.pending else stream.tail


def _block(rank: RankState, position: int, instruction: Instruction) -> PendingWork | None:
    """Return from a blocking call, or from the copy just launched, at the end of what it waits for."""
    awaited: list[int | PendingWork] = []
    if position in rank.cost.released:
        pass
    elif instruction.op is Op.EVENT_SYNC:
        awaited = [rank.slots[instruction.slot]]
    else:
        streams = rank.streams if instruction.op is Op.DEVICE_SYNC else [rank.streams[instruction.stream]]
        awaited = [_last(stream) for stream in streams if stream.count]
    for work in awaited:
        if isinstance(work, PendingWork) and work.end < 0:
            return work
    if instruction.op is not Op.HOLD:
        _call(rank, position, instruction)
    if awaited:
        rank.now = max(rank.now, max(map(_end_of, awaited)) + rank.cost.latency[position])
        rank.end[instruction.call] = rank.now
    return None


_EXECUTE: dict[Op, Callable[[RankState, int, Instruction], PendingWork | None]] = {
    Op.BEGIN: _begin,
    Op.END: _end,
    Op.CALL: _call,
    Op.NODE: _node,
    Op.RECORD: _record,
    Op.WAIT: _wait,
    **dict.fromkeys((Op.WORK, Op.SPAWN, Op.JOIN), _pass),
    **dict.fromkeys((Op.LAUNCH, Op.COLLECTIVE), _launch),
    **dict.fromkeys((Op.HOLD, Op.EVENT_SYNC, Op.STREAM_SYNC, Op.DEVICE_SYNC), _block),
}
