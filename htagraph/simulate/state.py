"""The state of a run: ranks, streams, and device work whose time is not known yet."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from htagraph.simulate.costs import Durations
from htagraph.simulate.groups import Place
from htagraph.simulate.job import Job
from htagraph.simulate.template import Instruction, Template


class Executed(NamedTuple):
    """One rank's step, executed: true start and end, ns, of every event of its template."""

    rank: int
    step: int
    template: Template
    start: list[int]
    end: list[int]
    released: frozenset[int]  # instructions that do not block as they usually do


@dataclass(slots=True, eq=False)
class Stream:
    """A device queue of one rank."""

    owner: "RankState"
    ring: list["int | Work"]  # end of the kernel or copy `queue_depth` launches ago
    tail: int = 0  # end of the last kernel or copy with a known time
    until: int = 0  # the next kernel or copy waits until this time: the latest of the events that it waits for
    blockers: list["Work"] = field(default_factory=list)  # what the next one waits for, where that has no time yet
    pending: deque["Work"] = field(default_factory=deque)
    count: int = 0


@dataclass(slots=True, eq=False)
class Work:
    """Device work that could not be timed when it was launched."""

    stream: Stream
    run: "Run"
    event: int
    ready: int  # earliest start by its launch
    until: int
    device: int
    gap: int
    blockers: list["Work"]
    party: "Party | None" = None
    start: int = -1
    end: int = -1
    waiters: list["Stream | RankState"] = field(default_factory=list)


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
    arrived: dict[int, Work] = field(default_factory=dict)


Code = tuple[Callable[["RankState", int, Instruction], "Work | None"], Instruction]


@dataclass(slots=True, eq=False)
class RankState:
    """The host of one rank, and its streams."""

    place: Place
    engine: "Engine"
    streams: list[Stream]
    now: int
    step: int = -1  # position in its schedule
    position: int = 0
    code: list[Code] = field(default_factory=list)
    cost: Durations = field(default_factory=lambda: Durations([], [], [], [], frozenset()))
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    slots: dict[int, "int | Work"] = field(default_factory=dict)
    run: Run | None = None
    unfinished: deque[Run] = field(default_factory=deque)
    finished: bool = False


Prepare = Callable[[int, int], tuple[Template, list[Code], Durations]]


@dataclass(slots=True, eq=False)
class Engine:
    """All ranks, and the collectives between them."""

    job: Job
    prepare: Prepare  # (rank, step position) → what to run
    ranks: list[RankState] = field(default_factory=list)
    parties: dict[tuple[int, int, int], Party] = field(default_factory=dict)
    ready: deque["RankState | Stream"] = field(default_factory=deque)
