"""A job that has run: its events, its traces and its truth; and how it runs, in exact int64 ns.

Every time is the latest of some other times plus a duration, and nothing depends on the order of evaluation. So device
work is timed as soon as everything it waits for is known: work behind a collective that lacks a member stays pending,
and a rank's host stops only where it needs the end of pending work.

A kernel that runs beside a collective shares the device with it, and takes longer. What will run beside it is not known
when it is timed, so the job is run several times: the overlaps of each run give the durations of the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from htagraph.simulate.codes import Category, DeviceWork, Purpose
from htagraph.simulate.cores import grants, run_thread, schedule_of
from htagraph.simulate.costs import Durations, Float, InstructionColumns, columns, draw, mix, uniform
from htagraph.simulate.emit import Ints, RankFile, Suffix, sink, trace_name
from htagraph.simulate.engine import (
    Code,
    CoreWait,
    Executed,
    Prepare,
    RankState,
    Run,
    Simulation,
    Stream,
    advance,
    compile_code,
)
from htagraph.simulate.fair_cores import fair_schedule_of, go_on, served
from htagraph.simulate.formats import STYLES, Writer
from htagraph.simulate.job import Job, JobGroup, RankPlace, places
from htagraph.simulate.next_json import Dialect, in_next_dialect
from htagraph.simulate.program import STREAMS, epilogue, step
from htagraph.simulate.samples import samples_of
from htagraph.simulate.template import Template
from htagraph.simulate.truth import MOMENTS, FileClock, Step, Truth, collectives, dependencies, mean_step_ns, step_of

FORMAT = "htagraph simulated truth 1"


@dataclass(frozen=True)
class RankEvents:
    """All events of one rank that the simulator timed, as columns, step by step in program order."""

    rank: int
    category: npt.NDArray[np.int8]  # Category
    name: npt.NDArray[np.object_]
    lane: Ints  # thread id of host events, stream id of device events
    step: Ints  # counted from 0; what follows the last step has its number plus one
    start_ns: Ints  # true clock
    end_ns: Ints
    position: Ints  # in the file's `traceEvents`
    correlation: Ints  # same number on a call and its work, within one step; -1 elsewhere

    def select(self, *categories: Category) -> Ints:
        """Return the indices of events of some categories."""
        return np.flatnonzero(np.isin(self.category, categories))


@dataclass(frozen=True)
class Simulated:
    """A job that has run.

    Example:
        >>> done = simulate(Job(ranks=2, steps=2, layers=1))
        >>> len(done.ranks), len(done.truth.collectives)
        (2, 2)
    """

    job: Job
    groups: tuple[JobGroup, ...]
    places: tuple[RankPlace, ...]
    executed: dict[int, list[Executed]]

    @cached_property
    def positions(self) -> dict[int, dict[int, Ints]]:
        """Of each rank, step and event of its program, the position in the rank's `traceEvents`."""
        result = {}
        for place in self.places:
            file = self._file(place)
            file.begin(self._templates(place))
            result[place.rank] = file.place(self.executed[place.rank])
        return result

    @cached_property
    def ranks(self) -> tuple[RankEvents, ...]:
        """The events of every rank."""
        return tuple(self._events(place) for place in self.places)

    @cached_property
    def truth(self) -> Truth:
        """Everything that is known of the job."""
        job = self.job
        made, between = collectives(job, list(self.places), self.executed, self.positions)
        inside = dependencies(job, self.executed, self.positions)
        start = STYLES[job.era].start_ns
        steps = self._steps()
        return Truth(
            FORMAT, job.model_dump(mode="json"), mean_step_ns(steps), steps,
            tuple(FileClock(r, job.offset_ns(r), job.drift(r) * 1e6, start) for r in range(job.ranks)),
            tuple(slow.model_dump(mode="json") for slow in job.slow_ranks), MOMENTS, tuple(inside + between),
            tuple(made), self._core_waits(),
        )  # fmt: skip

    @property
    def mean_step_ns(self) -> float:
        """(last end - first start) / steps, over all ranks, ns."""
        return mean_step_ns(self._steps())

    def step_times(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Return start and end, true ns, of each (rank, step counted from 0).

        A step starts with its ProfilerStep annotation and ends with it, or with the last device work launched
        inside it if that is later.
        """
        return {(step.rank, step.step): (step.start_ns, step.end_ns) for step in self._steps()}

    def write(
        self, directory: Path | str, *, suffix: Suffix = ".json.gz", level: int = 6, truth: bool = True
    ) -> list[Path]:
        """Write one trace per rank, and `truth/truth.json.gz` beside them.

        `level` is that of compression, 1 (fast) to 9 (small). The truth takes as long as the traces. It returns the
        traces' paths, by rank.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for place in self.places:
            paths.append(folder / trace_name(place.rank, suffix))
            with sink(paths[-1], level) as write:
                for piece in self._pieces(place):
                    write(piece.encode())
        if truth:
            (folder / "truth").mkdir(exist_ok=True)
            with sink(folder / "truth" / "truth.json.gz", level) as write:
                write(msgspec.json.encode(self.truth))
        return paths

    def text(self, rank: int) -> str:
        """Return the text of a rank's trace."""
        return "".join(self._pieces(self.places[rank]))

    def _pieces(self, place: RankPlace) -> Iterator[str]:
        """Yield the text of a trace in the dialect of the job's backend; events keep their positions."""
        written = self._as_kineto(place)
        if self.job.backend == "cupti":
            trace = json.loads("".join(written))
            samples = samples_of(trace["traceEvents"])
            yield json.dumps(in_next_dialect(trace, Dialect(samples=samples)))
        else:
            yield from written

    def _as_kineto(self, place: RankPlace) -> Iterator[str]:
        file, templates = self._file(place), self._templates(place)
        yield file.begin(templates)
        yield from file.steps(self.executed[place.rank])
        yield file.end(templates)

    def _file(self, place: RankPlace) -> RankFile:
        return RankFile(Writer(self.job, STYLES[self.job.era], place), list(self.groups))

    def _templates(self, place: RankPlace) -> list[Template]:
        return list({id(one.template): one.template for one in self.executed[place.rank]}.values())

    def _core_waits(self) -> tuple[CoreWait, ...]:
        steps = chain.from_iterable(self.executed.values())
        return tuple(wait for executed in steps for wait in executed.core_waits)

    def _steps(self) -> tuple[Step, ...]:
        last = self.job.steps
        return tuple(step_of(one) for steps in self.executed.values() for one in steps if one.step < last)

    def _events(self, place: RankPlace) -> RankEvents:
        steps = self.executed[place.rank]
        writer = Writer(self.job, STYLES[self.job.era], place)
        events = [event for one in steps for event in one.template.events]
        lanes = [writer.stream(e.lane) if e.category.on_device else writer.thread(e.lane) for e in events]
        return RankEvents(
            place.rank,
            np.array([event.category for event in events], np.int8),
            np.array([event.name for event in events], np.object_),
            np.array(lanes, np.int64),
            np.concatenate([np.full(len(one.start), one.step, np.int64) for one in steps]),
            np.concatenate([np.array(one.start, np.int64) for one in steps]),
            np.concatenate([np.array(one.end, np.int64) for one in steps]),
            np.concatenate([self.positions[place.rank][one.step] for one in steps]),
            np.array([event.correlation for event in events], np.int64),
        )


def simulate(job: Job) -> Simulated:
    """Run a training job and keep everything: the same job gives the same result, to the ns.

    Args:
        job: The job, with its changes.

    Returns:
        Its traces and their truth.

    Example:
        >>> job = Job(ranks=2, steps=1, layers=1)
        >>> faster = job.model_copy(update={"network_gb_s": 2 * job.network_gb_s})
        >>> simulate(faster).mean_step_ns < simulate(job).mean_step_ns
        True
    """
    groups, where = places(job)
    slower: Slower = {}
    for _ in range(ROUNDS if job.contention else 1):
        executed: dict[int, list[Executed]] = {place.rank: [] for place in where}
        for one in run(job, where, slower):
            executed[one.rank].append(one)
        slower = slowdowns(job.contention, executed) if job.contention else slower
    return Simulated(job, tuple(groups), tuple(where), executed)


def write_stream(job: Job, directory: Path | str, *, suffix: Suffix = ".json.gz") -> int:
    """Run a job and write its traces step by step, without truth: memory stays small however long it runs.

    It returns how many entries of `traceEvents` were written, over all ranks.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    groups, where = places(job)
    files = [RankFile(Writer(job, STYLES[job.era], place), groups) for place in where]
    known: list[list[Template]] = [[] for _ in where]
    with ExitStack() as stack:
        sinks = [stack.enter_context(sink(folder / trace_name(place.rank, suffix), 1)) for place in where]
        for one in run(job, where):
            file, write = files[one.rank], sinks[one.rank]
            if not known[one.rank]:
                write(file.begin([one.template]).encode())
            if not any(one.template is template for template in known[one.rank]):
                known[one.rank].append(one.template)
            for piece in file.steps([one]):
                write(piece.encode())
        for file, write, templates in zip(files, sinks, known, strict=True):
            write(file.end(templates).encode())
    return sum(file.position for file in files)


def scale_job(events: int, *, ranks: int = 1) -> Job:
    """Return a job whose traces hold about `events` complete (X) events in all: 10^3 to 10^8.

    Example:
        >>> scale_job(1_000_000).steps, scale_job(100_000, ranks=4).ranks
        (447, 4)
    """
    small = events // ranks < 20_000  # chosen: below, steps of 12 layers would be too few and too coarse
    job = Job(ranks=ranks, layers=2 if small else 12, steps=1)
    _, where = places(job)
    template = step(job, where[0])
    syncs = sum(bool(event.kind) and event.category.is_call for event in template.events)
    per_step = len(template.events) + syncs + len(template.annotated)
    return job.model_copy(update={"steps": max(1, round(events / ranks / per_step))})


def run(job: Job, where: list[RankPlace], slower: Slower | None = None) -> Iterator[Executed]:
    """Compile every kind of rank's step once, and execute all steps; `slower` multiplies their device work."""
    slower = slower or {}
    compiled: dict[tuple[int, tuple[str, ...], bool], tuple[Template, list[Code]]] = {}
    costs: dict[tuple[int, bool], InstructionColumns] = {}

    def prepare(rank: int, position: int) -> tuple[Template, list[Code], Durations]:
        place, last = where[rank], position == job.steps
        key = (place.stage, tuple(place.roles), last)
        if key not in compiled:
            template = epilogue(job) if last else step(job, place)
            compiled[key] = template, compile_code(template)
        template, code = compiled[key]
        if (rank, last) not in costs:
            costs[rank, last] = columns(job, place, template)
        more = slower.get((rank, position), 1.0)
        return template, code, draw(job, rank, -1 if last else position, costs[rank, last], more)

    return execute(job, where, len(STREAMS), prepare)


ROUNDS: Final = 4
"""Runs of a job with contention. Chosen: durations hardly change after the third; doubling it doubles the time a
simulation takes."""

Slower = Mapping[tuple[int, int], Float]


def slowdowns(contention: float, executed: Mapping[int, Iterable[Executed]]) -> Slower:
    """Return, by (rank, step), a factor for each instruction's device work.

    `contention` is by how much longer a kernel takes that runs beside collectives all the time, 0.3 for 30 %.
    """
    factors: dict[tuple[int, int], Float] = {}
    for rank, steps in executed.items():
        runs = list(steps)
        busy = [
            (run.start[i.work], run.end[i.work])
            for run in runs
            for i in run.template.instructions
            if i.device is DeviceWork.COLLECTIVE
        ]
        edges, covered = _coverage(np.array(sorted(busy), np.int64).reshape(-1, 2))
        for run in runs:
            factor = np.ones(len(run.template.instructions))
            rows = [n for n, i in enumerate(run.template.instructions) if i.device is DeviceWork.COMPUTE]
            works = [run.template.instructions[row].work for row in rows]
            start = np.array([run.start[work] for work in works], np.float64)
            end = np.array([run.end[work] for work in works], np.float64)
            if len(edges):
                beside = np.interp(end, edges, covered) - np.interp(start, edges, covered)
                factor[rows] = 1 + contention * beside / np.maximum(1, end - start)
            factors[rank, run.step] = factor
    return factors


def _coverage(busy: Ints) -> tuple[Float, Float]:
    """Return (moments, ns that the intervals cover before each moment); the intervals are sorted by start."""
    moments: list[float] = []
    covered: list[float] = []
    total, reach = 0.0, float("-inf")
    for start, end in busy.tolist():
        begin = max(start, reach)
        if end > begin:
            moments += [begin, end]
            covered += [total, total + end - begin]
            total += end - begin
            reach = end
    return np.array(moments), np.array(covered)


def execute(job: Job, places: list[RankPlace], streams: int, prepare: Prepare) -> Iterator[Executed]:
    """Run the job, yielding each rank's steps in order as they become complete.

    `prepare` gives the program and durations of (rank, step); step `job.steps` is the epilogue. Ranks that wait for
    each other forever raise a RuntimeError.
    """
    engine = Simulation(job, prepare)
    for place in places:
        skew = round(uniform(mix(job.seed, place.rank, Purpose.SKEW), 0) * job.start_skew_us * 1e3)
        state = RankState(place, engine, [], skew)
        state.streams = [Stream(state, [0] * job.queue_depth) for _ in range(streams)]
        engine.ranks.append(state)
    if job.cores_per_host is None:
        engine.ready.extend(engine.ranks)
        yield from _drain(engine, _proceed)
    else:
        execute = _execute_fairly if job.fair_cores else _execute_on_cores
        yield from execute(engine, job.cores_per_host)
    stuck = [state.place.rank for state in engine.ranks if not state.finished or state.unfinished]
    if stuck:
        message = f"ranks {stuck} wait for collectives that other ranks never join: the programs do not match"
        raise RuntimeError(message)


def _execute_on_cores(engine: Simulation, cores_per_host: int) -> Iterator[Executed]:
    """Run ranks that share the cores of their hosts, and yield completed steps."""
    for rank in engine.ranks:
        _next_step(rank)
    schedule = schedule_of(engine, cores_per_host)
    for rank in grants(schedule):
        engine.ready.append(rank)
        yield from _drain(engine, lambda state: run_thread(schedule, state, _next_step))


def _execute_fairly(engine: Simulation, cores_per_host: int) -> Iterator[Executed]:
    """Run ranks that share the cores of their hosts by short turns, and yield completed steps."""
    for rank in engine.ranks:
        _next_step(rank)
    schedule = fair_schedule_of(engine, cores_per_host)
    for rank in served(schedule):
        engine.ready.append(rank)
        yield from _drain(engine, lambda state: go_on(schedule, state, _next_step))


def _drain(engine: Simulation, proceed: Callable[[RankState], None]) -> Iterator[Executed]:
    """Run hosts and streams until every one is blocked, and yield completed steps."""
    while engine.ready:
        item = engine.ready.popleft()
        owner = item if isinstance(item, RankState) else item.owner
        if isinstance(item, RankState):
            proceed(item)
        else:
            advance(item)
        yield from _complete(owner)


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
    rank.run = Run(Executed(rank.place.rank, rank.step, template, rank.start, rank.end, rank.cost.released, []))
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
