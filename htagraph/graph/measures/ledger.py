"""`graph.ledger`: the work that a recording holds and lacks, by rank, before anything is concluded from it.

Launches without device work, steps in which a device did nothing and hosts without operators are facts of the
recording, and no facts of the job: a verdict that rests on them would describe the profiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.intervals import difference, length, union
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.core.naming import is_capture_begin, is_capture_end, is_graph_launch, is_memset_call, names_that
from htagraph.core.statistics import MOST
from htagraph.graph.activities import frozen
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Launches", "Ledger", "Part", "RankLedger", "is_device_work", "ledger_of"]

_HOST_WORK = (ActivityKind.OP, ActivityKind.PYTHON, ActivityKind.HOST_COMMUNICATION)
_WRITERS = {"nsys": "Nsight Systems", "kineto": "PyTorch's profiler", "pftrace": "PyTorch's profiler"}


class Part(Enum):
    """A part of a job that a recording may lack."""

    DEVICE = "the work of devices"
    HOST = "operators of the host"
    CALLS = "the launch calls of device work"
    MEANING = "the meaning of its rows"


class RankLedger(NamedTuple):
    """The work that the recording of one rank holds."""

    rank: int
    launches: int
    """Calls that enqueue kernels, copies or graphs, without calls inside the capture of a CUDA graph."""
    launches_without_work: int
    """Launches without a recorded kernel, copy or memset."""
    lost_launches: int
    """Launches without work that a complete recording has work for: no memsets, which may be of no bytes, and no calls
    whose work was still queued when the device's last recorded work ended."""
    graph_launches: int
    """Launches of whole CUDA graphs."""
    graph_launches_without_work: int
    steps: int
    steps_without_work: int
    """Steps in which no device work was recorded."""
    device_work: int
    """Kernels, copies and memsets."""
    device_work_without_launch: int
    operators: int
    """Operators, Python functions and communication on host threads."""
    window_ns: int
    """Time from the first to the last moment of the rank."""
    device_ns: int
    """Time in which any stream ran recorded work."""
    device_end_ns: int
    """From the first moment of the rank to the end of the last recorded work; 0 without work."""
    sync_ns: int
    """Time in calls that wait for a device."""
    sync_without_work_ns: int
    """The part of this time in which no recorded work ran."""
    foreign_events: int
    """Events of another program, with an unknown meaning."""
    devices_listed: int
    """Devices that the header of the file names."""
    devices_used: int
    """Devices with recorded work."""
    allocations: int
    """Samples of the allocator's counters."""
    writer: str
    """The program that wrote the file; empty where the graph was made of no file."""
    is_alone: bool
    """Whether no work of a device was recorded on this rank, while other ranks have some."""

    @property
    def lacks(self) -> frozenset[Part]:
        """The parts that the recording of this rank lacks.

        A complete recording has work for each launch: the share that may be missing is that of damaged events. Most
        steps without work, while the device worked in some, are a gap of the recording, too.
        """
        missing = set()
        lost_calls = self.lost_launches > max(1, LIMITS.damaged * self.launches)
        lost_all = bool(self.lost_launches) and not self.device_work
        lost_steps = bool(self.device_work) and self.steps_without_work > MOST * max(self.steps, LIMITS.few)
        if lost_calls or lost_all or lost_steps or self.is_alone:
            missing.add(Part.DEVICE)
        if self.device_work >= LIMITS.few and not self.foreign_events:
            missing |= {Part.HOST} if not self.operators else set()
            lost_launches = self.device_work_without_launch > MOST * self.device_work
            # no late launch bounds a device that works nearly all the time
            missing |= {Part.CALLS} if lost_launches and self.device_ns < LIMITS.nearly_all * self.window_ns else set()
        if self.foreign_events and not self.device_work and not self.launches:
            missing.add(Part.MEANING)
        return frozenset(missing)


@dataclass(frozen=True, eq=False)
class Launches:
    """Calls that enqueue work, as columns, by rank and in the order of activities; captures of graphs are left out."""

    activity: Ints
    works: Ints
    """Kernels, copies and memsets that were recorded of each call."""
    is_graph: Mask
    """Whether a call launches a whole CUDA graph."""
    is_lost: Mask
    """Whether a complete recording has work for a call that has none here."""


@dataclass(frozen=True, eq=False)
class Ledger:
    """The work that the recording of a job holds, by rank."""

    ranks: tuple[RankLedger, ...]
    launches: Launches

    @property
    def lacks(self) -> frozenset[Part]:
        """The parts that the recording of any rank lacks."""
        return frozenset(lost for rank in self.ranks for lost in rank.lacks)

    def lacking(self, lost: Part) -> tuple[RankLedger, ...]:
        """Return the ranks whose recording lacks a part."""
        return tuple(rank for rank in self.ranks if lost in rank.lacks)


def is_device_work(graph: DependencyGraph) -> Mask:
    """Return which activities are kernels, copies and memsets."""
    acts = graph.activities
    return acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER)


def ledger_of(graph: DependencyGraph) -> Ledger:
    """Return the ledger of a job; documented at `DependencyGraph.ledger`."""
    is_work = is_device_work(graph)
    launches = _launches(graph, is_work)
    foreign = {issue.rank: issue.count for issue in graph.issues if issue.what == "other_program"}
    ranks = [_rank_ledger(graph, rank, is_work, launches, foreign.get(rank, 0)) for rank in graph.ranks]
    used = any(rank.device_work for rank in ranks)
    return Ledger(tuple(rank._replace(is_alone=used and _did_nothing(rank)) for rank in ranks), launches)


def _did_nothing(rank: RankLedger) -> bool:
    """Return whether a rank has neither device work nor launches, though it computes and its machine has devices."""
    return not rank.device_work and not rank.launches and rank.operators >= LIMITS.few and rank.devices_listed > 0


def _launches(graph: DependencyGraph, is_work: Mask) -> Launches:
    """Return the launches of all ranks, and which of them lost their work."""
    acts = graph.activities
    calls = np.flatnonzero((acts.kind == ActivityKind.LAUNCH) & ~_inside_captures(graph))
    linked = is_work & (acts.cause >= 0)
    works = np.bincount(acts.cause[linked], minlength=len(acts))[calls]
    last_end = np.full(max(graph.ranks, default=0) + 1, np.iinfo(np.int64).min)
    work = np.flatnonzero(is_work)
    np.maximum.at(last_end, acts.rank[work], acts.end[work])
    last_launch = np.full(len(last_end), np.iinfo(np.int64).min)
    served = calls[works > 0]
    np.maximum.at(last_launch, acts.rank[served], acts.start[served])
    start = acts.start[calls]
    rank = acts.rank[calls]
    was_queued = (start > last_launch[rank]) & (start < last_end[rank])
    fills = names_that(is_memset_call, graph.names)[acts.name[calls]]
    return Launches(
        activity=frozen(calls),
        works=frozen(works),
        is_graph=frozen(names_that(is_graph_launch, graph.names)[acts.name[calls]]),
        is_lost=frozen((works == 0) & ~fills & ~was_queued),
    )


def _rank_ledger(graph: DependencyGraph, rank: int, is_work: Mask, launches: Launches, foreign: int) -> RankLedger:
    """Return the ledger of one rank."""
    acts = graph.activities
    rows = acts.of_rank(rank)
    work = rows.start + np.flatnonzero(is_work[rows])
    kind = acts.kind[rows]
    calls = slice(*np.searchsorted(launches.activity, (rows.start, rows.stop)))
    is_empty = launches.works[calls] == 0
    is_graph = launches.is_graph[calls]
    waits = rows.start + np.flatnonzero(kind == ActivityKind.SYNC)
    ran = union(graph.time[2 * work], graph.time[2 * work + 1])
    waited = union(graph.time[2 * waits], graph.time[2 * waits + 1])
    times = graph.time[2 * rows.start : 2 * rows.stop]
    step_count, empty_steps = _steps(graph, rank, work)
    devices = np.array([lane.device for lane in graph.lanes], np.int64)
    trace = graph.traces.get(rank)
    return RankLedger(
        rank=rank,
        launches=len(is_empty),
        launches_without_work=int(np.count_nonzero(is_empty)),
        lost_launches=int(np.count_nonzero(launches.is_lost[calls])),
        graph_launches=int(np.count_nonzero(is_graph)),
        graph_launches_without_work=int(np.count_nonzero(is_graph & is_empty)),
        steps=step_count,
        steps_without_work=empty_steps,
        device_work=len(work),
        device_work_without_launch=int(np.count_nonzero(acts.cause[work] < 0)),
        operators=int(np.count_nonzero(of_kinds(kind, _HOST_WORK))),
        window_ns=int(np.ptp(times)) if len(times) else 0,
        device_ns=length(ran),
        device_end_ns=int(graph.time[2 * work + 1].max() - times.min()) if len(work) else 0,
        sync_ns=int(acts.duration[waits].sum()),
        sync_without_work_ns=length(difference(waited, ran)),
        foreign_events=foreign,
        devices_listed=len(trace.facts.devices) if trace else 0,
        devices_used=len(np.unique(devices[acts.lane[work]])),
        allocations=len(trace.instants) if trace else 0,
        writer="another program" if foreign else _WRITERS.get(trace.format, trace.format) if trace else "",
        is_alone=False,
    )


class _StepCounts(NamedTuple):
    steps: int
    without_work: int


def _steps(graph: DependencyGraph, rank: int, work: Ints) -> _StepCounts:
    """Return the number of steps of a rank, and of its steps without device work."""
    spans = graph.step_spans
    rows = np.flatnonzero(spans.rank == rank)
    if not len(rows):
        return _StepCounts(0, 0)
    begin, end = union(graph.time[2 * work], graph.time[2 * work + 1])
    step_begin = graph.time[spans.start[rows]]
    step_end = graph.time[spans.end[rows]]
    # the first stretch of work that ends behind the step's begin must begin before the step's end
    place = np.searchsorted(end, step_begin, side="right")
    next_begin = np.append(begin, np.iinfo(np.int64).max)[place]
    return _StepCounts(len(rows), int((next_begin >= step_end).sum()))


def _inside_captures(graph: DependencyGraph) -> Mask:
    """Return which activities lie inside the capture of a CUDA graph on their thread: they enqueue no work."""
    acts = graph.activities
    begins = np.flatnonzero(names_that(is_capture_begin, graph.names)[acts.name])
    inside = np.zeros(len(acts), np.bool_)
    if not len(begins):
        return inside
    ends = np.flatnonzero(names_that(is_capture_end, graph.names)[acts.name])
    for lane in np.unique(acts.lane[begins]).tolist():
        on_lane = np.flatnonzero(acts.lane == lane)
        opened = _count_before(acts.start[begins[acts.lane[begins] == lane]], acts.start[on_lane])
        closed = _count_before(acts.start[ends[acts.lane[ends] == lane]], acts.start[on_lane])
        inside[on_lane] = opened > closed
    return inside


def _count_before(moments: Array, bounds: Array) -> Ints:
    """Return how many of the moments lie before each bound."""
    return np.searchsorted(np.sort(moments), bounds).astype(np.int64)
