"""The execution of all ranks' programs, in exact int64 ns.

Every time is the latest of some other times plus a duration, and nothing depends on the order of evaluation. So device
work is timed as soon as everything it waits for is known: work behind a collective that lacks a member stays pending,
and a rank's host stops only where it needs the end of pending work.
"""

from collections.abc import Iterator

from htagraph.simulate.codes import Purpose
from htagraph.simulate.device import advance
from htagraph.simulate.draws import mix, uniform
from htagraph.simulate.groups import Place
from htagraph.simulate.job import Job
from htagraph.simulate.state import Engine, Executed, Prepare, RankState, Run, Stream


def execute(job: Job, places: list[Place], streams: int, prepare: Prepare) -> Iterator[Executed]:
    """Run the job, yielding each rank's steps in order as they become complete.

    Args:
        job: The job.
        places: The ranks.
        streams: How many streams a rank has.
        prepare: Gives the program and durations of (rank, step); step `job.steps` is the epilogue.

    Raises:
        RuntimeError: If ranks wait for each other forever.
    """
    engine = Engine(job, prepare)
    for place in places:
        skew = round(uniform(mix(job.seed, place.rank, Purpose.SKEW), 0) * job.start_skew_us * 1e3)
        state = RankState(place, engine, [], skew)
        state.streams = [Stream(state, [0] * job.queue_depth) for _ in range(streams)]
        engine.ranks.append(state)
        engine.ready.append(state)
    while engine.ready:
        item = engine.ready.popleft()
        owner = item if isinstance(item, RankState) else item.owner
        if isinstance(item, RankState):
            _proceed(item)
        else:
            advance(item)
        yield from _complete(owner)
    stuck = [state.place.rank for state in engine.ranks if not state.finished or state.unfinished]
    if stuck:
        message = f"ranks {stuck} wait for collectives that other ranks never join: the programs do not match"
        raise RuntimeError(message)


def _complete(rank: RankState) -> Iterator[Executed]:
    while rank.unfinished and rank.unfinished[0].left and not rank.unfinished[0].open:
        yield rank.unfinished.popleft().executed


def _next_step(rank: RankState) -> bool:
    if rank.run is not None:
        rank.run.left = True
    rank.step += 1
    if rank.step > rank.engine.job.steps:
        rank.finished = True
        return False
    template, rank.code, rank.cost = rank.engine.prepare(rank.place.rank, rank.step)
    count = len(template.events)
    rank.start, rank.end = [0] * count, [0] * count
    rank.run = Run(Executed(rank.place.rank, rank.step, template, rank.start, rank.end, rank.cost.released))
    rank.unfinished.append(rank.run)
    rank.position = 0
    return True


def _proceed(rank: RankState) -> None:
    """Run a rank's host until it needs the end of untimed device work, one step at most."""
    if rank.position == len(rank.code) and not _next_step(rank):
        return
    position, code = rank.position, rank.code
    count = len(code)
    while position < count:
        function, instruction = code[position]
        blocker = function(rank, position, instruction)
        if blocker is not None:
            rank.position = position
            blocker.waiters.append(rank)
            return
        position += 1
    rank.position = position
    rank.engine.ready.append(rank)
