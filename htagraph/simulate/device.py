"""Streams and collectives: when device work starts and ends."""

from typing import Final

from htagraph.simulate.codes import Purpose
from htagraph.simulate.draws import mix, uniform
from htagraph.simulate.groups import Group
from htagraph.simulate.job import Job
from htagraph.simulate.state import Party, RankState, Stream, Work
from htagraph.simulate.template import Instruction

EMPTY_SHARE: Final = 0.25
"""Share of the messages of an all-to-all that are empty. Chosen: enough that members wait for different peers; doubling
it makes members wait for fewer."""


def enqueue(rank: RankState, position: int, instruction: Instruction, ready: int) -> int | Work:
    """Queue device work that may have to wait; return its end if that is known already, else the work itself."""
    stream, cost = rank.streams[instruction.stream], rank.cost
    assert rank.run is not None
    work = Work(
        stream,
        rank.run,
        instruction.work,
        ready,
        stream.until,
        cost.device[position],
        cost.gap[position],
        stream.blockers,
    )
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


def arrivals_awaited(job: Job, group: Group, kind: str, step: int, order: int) -> dict[int, list[int]] | None:
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


def _arrive(work: Work, party: Party) -> None:
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


def _settle(work: Work, end: int) -> None:
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
