"""A job that has run: its events, its traces and its truth."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from htagraph.simulate.codes import Category
from htagraph.simulate.contention import ROUNDS, Slower, slowdowns
from htagraph.simulate.costs import Columns, Durations, columns, draw
from htagraph.simulate.emit import RankFile, Sink, Suffix, trace_name
from htagraph.simulate.engine import execute
from htagraph.simulate.group_args import Writer
from htagraph.simulate.groups import Group, Place, places
from htagraph.simulate.instructions import compile_code
from htagraph.simulate.job import Job
from htagraph.simulate.layout import Ints
from htagraph.simulate.program import epilogue, step
from htagraph.simulate.rank import STREAMS
from htagraph.simulate.state import Code, Executed
from htagraph.simulate.style import style
from htagraph.simulate.template import Template
from htagraph.simulate.truth import (
    MOMENTS,
    Clock,
    Step,
    Truth,
    collectives,
    dependencies,
    mean_step_ns,
    step_of,
)

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
    groups: tuple[Group, ...]
    places: tuple[Place, ...]
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
        start = style(job).start_ns
        steps = self._steps()
        return Truth(
            FORMAT,
            job.model_dump(mode="json"),
            mean_step_ns(steps),
            steps,
            tuple(Clock(r, job.offset_ns(r), job.drift(r) * 1e6, start) for r in range(job.ranks)),
            tuple(slow.model_dump(mode="json") for slow in job.slow_ranks),
            MOMENTS,
            tuple(inside + between),
            tuple(made),
        )

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

        Args:
            directory: Where; it is made if it does not exist.
            suffix: Whether the traces are gzipped.
            level: Of compression, 1 (fast) to 9 (small).
            truth: Whether the truth is written too, which takes as long as the traces.

        Returns:
            The traces' paths, by rank.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for place in self.places:
            paths.append(folder / trace_name(place.rank, suffix))
            with Sink(paths[-1], level) as sink:
                for piece in self._pieces(place):
                    sink.write(piece.encode())
        if truth:
            (folder / "truth").mkdir(exist_ok=True)
            with Sink(folder / "truth" / "truth.json.gz", level) as sink:
                sink.write(msgspec.json.encode(self.truth))
        return paths

    def text(self, rank: int) -> str:
        """Return the text of a rank's trace."""
        return "".join(self._pieces(self.places[rank]))

    def _pieces(self, place: Place) -> Iterator[str]:
        file, templates = self._file(place), self._templates(place)
        yield file.begin(templates)
        yield from file.steps(self.executed[place.rank])
        yield file.end(templates)

    def _file(self, place: Place) -> RankFile:
        return RankFile(Writer(self.job, style(self.job), place), list(self.groups))

    def _templates(self, place: Place) -> list[Template]:
        return list({id(one.template): one.template for one in self.executed[place.rank]}.values())

    def _steps(self) -> tuple[Step, ...]:
        last = self.job.steps
        return tuple(step_of(one) for steps in self.executed.values() for one in steps if one.step < last)

    def _events(self, place: Place) -> RankEvents:
        steps = self.executed[place.rank]
        writer = Writer(self.job, style(self.job), place)
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

    Args:
        job: The job.
        directory: Where; it is made if it does not exist.
        suffix: Whether the traces are gzipped.

    Returns:
        How many entries of `traceEvents` were written, over all ranks.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    groups, where = places(job)
    files = [RankFile(Writer(job, style(job), place), groups) for place in where]
    known: list[list[Template]] = [[] for _ in where]
    with ExitStack() as stack:
        sinks = [stack.enter_context(Sink(folder / trace_name(place.rank, suffix), 1)) for place in where]
        for one in run(job, where):
            file, sink = files[one.rank], sinks[one.rank]
            if not known[one.rank]:
                sink.write(file.begin([one.template]).encode())
            if not any(one.template is template for template in known[one.rank]):
                known[one.rank].append(one.template)
            for piece in file.steps([one]):
                sink.write(piece.encode())
        for file, sink, templates in zip(files, sinks, known, strict=True):
            sink.write(file.end(templates).encode())
    return sum(file.position for file in files)


def run(job: Job, where: list[Place], slower: Slower | None = None) -> Iterator[Executed]:
    """Compile every kind of rank's step once, and execute all steps; `slower` multiplies their device work."""
    slower = slower or {}
    compiled: dict[tuple[int, tuple[str, ...], bool], tuple[Template, list[Code]]] = {}
    costs: dict[tuple[int, bool], Columns] = {}

    def prepare(rank: int, position: int) -> tuple[Template, list[Code], Durations]:
        place, last = where[rank], position == job.steps
        key = (place.stage, tuple(place.roles), last)
        if key not in compiled:
            template = epilogue(job) if last else step(job, place)
            compiled[key] = template, compile_code(template)
        template, code = compiled[key]
        if (rank, last) not in costs:
            costs[rank, last] = columns(job, place, template)
        return (
            template,
            code,
            draw(job, rank, -1 if last else position, costs[rank, last], slower.get((rank, position), 1.0)),
        )

    return execute(job, where, len(STREAMS), prepare)
