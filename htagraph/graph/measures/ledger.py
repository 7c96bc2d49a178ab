"""`graph.ledger`: the work that a recording holds and lacks, by rank, before anything is concluded from it.

Launches without device work, steps in which a device did nothing and hosts without operators are facts of the
recording, and no facts of the job: a verdict that rests on them would describe the profiler.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from htagraph.core.arrays import Ints, Mask
from htagraph.core.intervals import Intervals, difference, length, union
from htagraph.core.kinds import ANNOTATIONS, ActivityKind, GapKind, of_kinds
from htagraph.core.naming import COUNTER_RANGE, is_whole_graph, names_that, needs_device
from htagraph.core.statistics import MOST
from htagraph.graph.measures.backward import Backward, backward_of
from htagraph.graph.measures.launch_calls import LaunchCalls, is_device_work, launch_calls, lost_places
from htagraph.graph.measures.waits import lacks_members
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = [
    "Ledger",
    "Part",
    "RankLedger",
    "keeps_counters",
    "ledger_of",
    "lost_between",
    "only_with_device",
    "unrecorded_host",
    "world_size",
]

_HOST_WORK = (ActivityKind.OP, ActivityKind.PYTHON, ActivityKind.HOST_COMMUNICATION)
_WRITERS = {"nsys": "Nsight Systems", "kineto": "PyTorch's profiler", "pftrace": "PyTorch's profiler"}


class Part(Enum):
    """A part of a job that a recording may lack."""

    DEVICE = "the work of devices"
    HOST = "operators of the host"
    GRAPHS = "the kernels of CUDA graphs"
    CALLS = "the launch calls of device work"
    PEERS = "the other ranks"
    THREADS = "threads of the host"
    MEANING = "the meaning of its rows"


_IN_BOTH = frozenset({Part.DEVICE, Part.CALLS, Part.MEANING})
"""The parts without which no comparison of two recordings holds, even where both recordings lack them."""


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
    lost_at_places: int
    """The part of these calls at places that lost nearly all their work; see `launch_calls.lost_places`."""
    graph_launches: int
    """Launches of whole CUDA graphs."""
    graph_launches_without_work: int
    """Launches of CUDA graphs without any recorded kernel."""
    partial_replays: int
    """Launches of CUDA graphs with fewer kernels than most launches of the same graph."""
    missing_in_replays: int
    """The kernels and copies that these launches lack."""
    steps: int
    """Steps that the recording names."""
    steps_without_work: int
    """Steps in which no device work was recorded."""
    device_work: int
    """Kernels, copies and memsets."""
    device_work_without_launch: int
    """Kernels, copies and memsets whose launch call is not in the file."""
    operators: int
    """Operators, Python functions and communication on host threads."""
    device_operators: int
    """The operators and annotations that only jobs with a device have."""
    backward: Backward
    """The time in which a thread waits for gradients, and how much of it shows who computes them."""
    window_ns: int
    """Time from the first to the last moment of the rank."""
    device_ns: int
    """Time in which any stream ran recorded work."""
    whole_graphs: int
    """CUDA graphs that were recorded as a whole: their kernels are unknown."""
    whole_graphs_ns: int
    """Time in which any stream ran such a graph."""
    meeting_ns: int
    """The part of this time in which devices ran nothing but collectives with ranks that were not read."""
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

        A complete recording has work for each launch: the share that may be missing is that of damaged events, and
        no place in the code may lose all its work. Most steps without work, while the device worked in some, are a gap
        of the recording, too. A job with operators that only devices have has work for a device. The other ranks are
        missing where a device does little but meet them: they set the pace. Threads are missing where a thread waits
        for gradients that no recorded thread computes. Kernels are missing where most device time is that of CUDA
        graphs recorded as a whole.
        """
        missing = set()
        is_kept_busy = self.device_ns >= LIMITS.nearly_all * self.window_ns
        lost_calls = self.lost_launches > max(1, LIMITS.damaged * self.launches)
        lost_calls |= self.lost_at_places > 0
        lost_calls |= self.partial_replays > 1 and self.missing_in_replays > LIMITS.damaged * self.device_work
        used = self.lost_launches or self.device_operators
        lost_all = bool(used) and not self.device_work
        lost_steps = bool(self.device_work) and self.steps_without_work > MOST * max(self.steps, LIMITS.few)
        if lost_calls or lost_all or lost_steps or self.is_alone:
            missing.add(Part.DEVICE)
        if self.whole_graphs_ns > MOST * self.device_ns:
            missing.add(Part.GRAPHS)
        if self.device_work >= LIMITS.few and not self.foreign_events:
            missing |= {Part.HOST} if not self.operators else set()
            lost_launches = self.device_work_without_launch > MOST * self.device_work
            # no late launch bounds a device that works nearly all the time
            missing |= {Part.CALLS} if lost_launches and not is_kept_busy else set()
        if is_kept_busy and self.meeting_ns > MOST * self.device_ns:
            missing.add(Part.PEERS)
        if self.backward.is_computed_elsewhere and self.operators >= LIMITS.few:
            missing.add(Part.THREADS)
        if self.foreign_events and not self.device_work and not self.launches:
            missing.add(Part.MEANING)
        return frozenset(missing)


@dataclass(frozen=True, eq=False)
class Ledger:
    """The work that the recording of a job holds, by rank."""

    ranks: tuple[RankLedger, ...]
    launches: LaunchCalls

    @property
    def lacks(self) -> frozenset[Part]:
        """The parts that the recording of any rank lacks."""
        return frozenset(lost for rank in self.ranks for lost in rank.lacks)

    def lacking(self, lost: Part) -> tuple[RankLedger, ...]:
        """Return the ranks whose recording lacks a part."""
        return tuple(rank for rank in self.ranks if lost in rank.lacks)


def ledger_of(graph: DependencyGraph) -> Ledger:
    """Return the ledger of a job; documented at `DependencyGraph.ledger`."""
    is_work = is_device_work(graph)
    launches = launch_calls(graph)
    backward = backward_of(graph)
    ranks = [
        _rank_ledger(graph, rank, is_work, launches, _foreign_events(graph, rank, is_work))._replace(
            backward=backward[rank]
        )
        for rank in graph.ranks
    ]
    used = any(rank.device_work for rank in ranks)
    return Ledger(tuple(rank._replace(is_alone=used and _did_nothing(rank)) for rank in ranks), launches)


def unrecorded_host(graph: DependencyGraph, recording: DependencyGraph | None = None) -> Mask:
    """Return the vertices whose gap is the time of a host without a recorded operator: nothing predicts this time.

    Args:
        graph: the job.
        recording: the job as recorded, where a change gave `graph` another structure.

    Returns:
        One value for each vertex.

    Example:
        >>> import htagraph as hg
        >>> bool(unrecorded_host(hg.load("data/demo")).any())
        False
    """
    ledger = graph.ledger if recording is None else recording.ledger
    ranks = [rank.rank for rank in ledger.lacking(Part.HOST)]
    is_untraced = graph.gap_kind == GapKind.HOST_UNTRACED
    return is_untraced & np.repeat(np.isin(graph.activities.rank, ranks), 2)


def only_with_device(graph: DependencyGraph, rows: slice) -> Mask:
    """Return which of some activities are operators or annotations that only jobs with a device have.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/gloo_ddp")
        >>> bool(only_with_device(graph, slice(0, len(graph.activities))).any())
        False
    """
    acts = graph.activities
    is_named = names_that(needs_device, graph.names)[acts.name[rows]]
    return is_named & of_kinds(acts.kind[rows], (ActivityKind.OP, *ANNOTATIONS))


def keeps_counters(graph: DependencyGraph) -> bool:
    """Return whether a profiler of counters wrote the recording: this profiler keeps no kernels.

    Example:
        >>> import htagraph as hg
        >>> keeps_counters(hg.load("data/demo"))
        False
    """
    return any(trace.in_categories(COUNTER_RANGE).any() for trace in graph.traces.values())


def world_size(graph: DependencyGraph) -> int:
    """Return how many ranks the job has, as the files say; 0 where no file says so.

    Example:
        >>> import htagraph as hg
        >>> world_size(hg.load("data/demo"))
        4
    """
    return max((trace.facts.world_size for trace in graph.traces.values()), default=0)


def lost_between(before: DependencyGraph, after: DependencyGraph) -> frozenset[Part]:
    """Return the parts whose loss makes two recordings incomparable.

    Device work, launch calls and the meaning of rows must be in both recordings. Operators and the other ranks must be
    in both or in none of the two, so that like is compared with like.

    Args:
        before: the job before.
        after: the job after.

    Returns:
        The parts that one of the recordings lacks; none where the two are comparable.

    Example:
        >>> import htagraph as hg
        >>> lost_between(hg.load("data/demo"), hg.load("data/demo"))
        frozenset()
    """
    lacks_before = before.ledger.lacks
    lacks_after = after.ledger.lacks
    lost = ((lacks_before | lacks_after) & _IN_BOTH) | (lacks_before ^ lacks_after)
    return lost - {Part.DEVICE} if keeps_counters(before) and keeps_counters(after) else lost


def _foreign_events(graph: DependencyGraph, rank: int, is_work: Mask) -> int:
    """Return how many events of a rank have an unknown meaning, as another program wrote them.

    PyTorch's profiler gives each event a category. Events without a known one, beside PyTorch's own operators, are rows
    of a device that PyTorch's profiler does not know; a few of them are damage.
    """
    counts = Counter[str]()
    for issue in graph.issues:
        if issue.rank == rank:
            counts[issue.what] += issue.count
    unread = counts["category_missing"] + counts["unknown_category"]
    rows = graph.activities.of_rank(rank)
    is_many = unread >= LIMITS.few and unread > LIMITS.damaged * (unread + rows.stop - rows.start)
    is_device = is_many and not is_work[rows].any()
    return counts["other_program"] + (unread if is_device else 0)


def _did_nothing(rank: RankLedger) -> bool:
    """Return whether a rank has neither device work nor launches, though it computes and its machine has devices."""
    return not rank.device_work and not rank.launches and rank.operators >= LIMITS.few and rank.devices_listed > 0


def _is_launched(graph: DependencyGraph, work: Ints) -> Mask:
    """Return which device work has a launch call in the file: an operator around it does not say when it was launched.

    Args:
        graph: the job.
        work: device work, as indices into the activities.
    """
    acts = graph.activities
    cause = acts.cause[work]
    return (cause >= 0) & (acts.kind[cause] == ActivityKind.LAUNCH)


def _rank_ledger(graph: DependencyGraph, rank: int, is_work: Mask, launches: LaunchCalls, foreign: int) -> RankLedger:
    """Return the ledger of one rank."""
    acts = graph.activities
    rows = acts.of_rank(rank)
    kind = acts.kind[rows]
    work = rows.start + np.flatnonzero(is_work[rows])
    meets = work[lacks_members(graph)[work]]
    works_alone = np.setdiff1d(work, meets)
    waits = rows.start + np.flatnonzero(kind == ActivityKind.SYNC)
    graphs = work[names_that(is_whole_graph, graph.names)[acts.name[work]]]
    ran = _busy(graph, work)
    waited = _busy(graph, waits)
    moments = graph.time[2 * rows.start : 2 * rows.stop]
    calls = slice(*np.searchsorted(launches.activity, (rows.start, rows.stop)))
    is_empty = launches.works[calls] == 0
    is_graph = launches.is_graph[calls]
    steps = _steps(graph, rank, work)
    source = _file_facts(graph, rank, foreign)
    return RankLedger(
        rank=rank,
        launches=len(is_empty),
        launches_without_work=_count(is_empty),
        lost_launches=_count(launches.is_lost[calls]),
        lost_at_places=lost_places(graph, launches, calls),
        graph_launches=_count(is_graph),
        graph_launches_without_work=_count(is_graph & is_empty),
        partial_replays=_count(launches.missing[calls] > 0),
        missing_in_replays=int(launches.missing[calls].sum()),
        steps=steps.steps,
        steps_without_work=steps.without_work,
        device_work=len(work),
        device_work_without_launch=_count(~_is_launched(graph, work)),
        operators=_count(of_kinds(kind, _HOST_WORK)),
        device_operators=_count(only_with_device(graph, rows)),
        backward=Backward(0, 0),
        window_ns=int(np.ptp(moments)) if len(moments) else 0,
        device_ns=length(ran),
        whole_graphs=len(graphs),
        whole_graphs_ns=length(_busy(graph, graphs)),
        meeting_ns=length(difference(_busy(graph, meets), _busy(graph, works_alone))),
        device_end_ns=int(ran[1][-1] - moments.min()) if len(ran[1]) else 0,
        sync_ns=length(waited),
        sync_without_work_ns=length(difference(waited, ran)),
        foreign_events=foreign,
        devices_listed=source.devices,
        devices_used=len(_devices_of(graph, work)),
        allocations=source.allocations,
        writer=source.writer,
        is_alone=False,
    )


def _busy(graph: DependencyGraph, rows: Ints) -> Intervals:
    """Return the time in which any of some activities runs."""
    return union(graph.time[2 * rows], graph.time[2 * rows + 1])


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _devices_of(graph: DependencyGraph, work: Ints) -> Ints:
    """Return the devices that did some work, each once."""
    devices = np.array([lane.device for lane in graph.lanes], np.int64)
    return np.unique(devices[graph.activities.lane[work]])


class _FileFacts(NamedTuple):
    """Facts of the file of one rank."""

    devices: int
    allocations: int
    writer: str


def _file_facts(graph: DependencyGraph, rank: int, foreign: int) -> _FileFacts:
    """Return how many devices and allocations the file of a rank names, and the program that wrote the file."""
    trace = graph.traces.get(rank)
    if trace is None:
        return _FileFacts(0, 0, "")
    writer = "another program" if foreign else _WRITERS.get(trace.format, trace.format)
    return _FileFacts(len(trace.facts.devices), len(trace.instants), writer)


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
