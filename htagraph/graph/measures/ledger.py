"""`graph.ledger`: the work that a recording holds and lacks, by rank, before anything is concluded from it.

Launches without device work, steps in which a device did nothing and hosts without operators are facts of the
recording, and no facts of the job: a verdict that rests on them would describe the profiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, marked
from htagraph.core.intervals import length, union
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.core.naming import is_capture_begin, is_capture_end, is_graph_launch, names_that
from htagraph.core.statistics import MOST
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Ledger", "Part", "RankLedger", "ledger_of"]

_HOST_WORK = (ActivityKind.OP, ActivityKind.PYTHON, ActivityKind.HOST_COMMUNICATION)


class Part(Enum):
    """A part of a job that a recording may lack."""

    DEVICE = "the work of devices"
    HOST = "operators of the host"
    MEANING = "the meaning of its rows"


class RankLedger(NamedTuple):
    """The work that the recording of one rank holds."""

    rank: int
    launches: int
    """Calls that enqueue kernels, copies or graphs, without calls inside the capture of a CUDA graph."""
    launches_without_work: int
    """Launches without a recorded kernel, copy or memset."""
    graph_launches: int
    """Launches of whole CUDA graphs."""
    graph_launches_without_work: int
    steps: int
    steps_without_work: int
    """Steps in which no device work was recorded."""
    device_work: int
    """Kernels, copies and memsets."""
    operators: int
    """Operators, Python functions and communication on host threads."""
    window_ns: int
    """Time from the first to the last moment of the rank."""
    device_ns: int
    """Time in which any stream ran recorded work."""
    sync_ns: int
    """Time in calls that wait for a device."""
    foreign_events: int
    """Events of another program, with an unknown meaning."""

    @property
    def lacks(self) -> frozenset[Part]:
        """The parts that the recording of this rank lacks.

        Most launches without work, or most steps without work while the device worked in some, are a gap of the
        recording: a complete one has work for three of four launches even where it is cut in the middle.
        """
        few = LIMITS.few
        missing = set()
        empty_launches = self.launches_without_work > MOST * max(self.launches, few)
        empty_graphs = self.graph_launches_without_work > MOST * max(self.graph_launches, few)
        empty_steps = bool(self.device_work) and self.steps_without_work > MOST * max(self.steps, few)
        if empty_launches or empty_graphs or empty_steps:
            missing.add(Part.DEVICE)
        if self.device_work >= few and not self.operators and not self.foreign_events:
            missing.add(Part.HOST)
        if self.foreign_events and not self.device_work and not self.launches:
            missing.add(Part.MEANING)
        return frozenset(missing)


@dataclass(frozen=True)
class Ledger:
    """The work that the recording of a job holds, by rank."""

    ranks: tuple[RankLedger, ...]

    @property
    def lacks(self) -> frozenset[Part]:
        """The parts that the recording of any rank lacks."""
        return frozenset(lost for rank in self.ranks for lost in rank.lacks)

    def lacking(self, lost: Part) -> tuple[RankLedger, ...]:
        """Return the ranks whose recording lacks a part."""
        return tuple(rank for rank in self.ranks if lost in rank.lacks)


def ledger_of(graph: DependencyGraph) -> Ledger:
    """Return the ledger of a job; documented at `DependencyGraph.ledger`."""
    acts = graph.activities
    with_work = marked(acts.cause[acts.cause >= 0], len(acts))
    is_launch = (acts.kind == ActivityKind.LAUNCH) & ~_inside_captures(graph)
    is_graph = names_that(is_graph_launch, graph.names)[acts.name] & is_launch
    is_work = acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER)
    foreign = {issue.rank: issue.count for issue in graph.issues if issue.what == "other_program"}
    ledgers = []
    for rank in graph.ranks:
        of_rank = acts.of_rank(rank)
        work = of_rank.start + np.flatnonzero(is_work[of_rank])
        empty = ~with_work[of_rank]
        launches = is_launch[of_rank]
        graphs = is_graph[of_rank]
        kind = acts.kind[of_rank]
        times = graph.time[2 * of_rank.start : 2 * of_rank.stop]
        waits_ns = acts.duration[of_rank][kind == ActivityKind.SYNC]
        step_count, empty_steps = _steps(graph, rank, work)
        ledgers.append(
            RankLedger(
                rank=rank,
                launches=int(np.count_nonzero(launches)),
                launches_without_work=int(np.count_nonzero(launches & empty)),
                graph_launches=int(np.count_nonzero(graphs)),
                graph_launches_without_work=int(np.count_nonzero(graphs & empty)),
                steps=step_count,
                steps_without_work=empty_steps,
                device_work=len(work),
                operators=int(np.count_nonzero(of_kinds(kind, _HOST_WORK))),
                window_ns=int(np.ptp(times)) if len(times) else 0,
                device_ns=length(union(graph.time[2 * work], graph.time[2 * work + 1])),
                sync_ns=int(waits_ns.sum()),
                foreign_events=foreign.get(rank, 0),
            )
        )
    return Ledger(tuple(ledgers))


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
