"""Calls that enqueue device work, and the recorded work of each call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import is_capture_begin, is_capture_end, is_graph_launch, is_memset_call, names_that
from htagraph.graph.activities import Activities, frozen
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["LaunchCalls", "inside_captures", "is_device_work", "launch_calls", "lost_places"]


@dataclass(frozen=True, eq=False)
class LaunchCalls:
    """Calls that enqueue work, as columns in the order of activities; calls inside captures are left out."""

    activity: Ints
    """The number of each call among the activities."""
    works: Ints
    """Number of recorded activities of devices that each call enqueued."""
    is_graph: Mask
    """Whether a call launches a whole CUDA graph."""
    is_lost: Mask
    """Whether a complete recording has work for a call that has none here."""
    missing: Ints
    """Number of kernels and copies that each replay of a CUDA graph lacks, beside most replays of the same graph."""


def is_device_work(graph: DependencyGraph) -> Mask:
    """Return which activities are kernels, copies and memsets."""
    acts = graph.activities
    return acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER)


def launch_calls(graph: DependencyGraph) -> LaunchCalls:
    """Return the calls of all ranks that enqueue work, and whether the recording lost the work of each.

    A complete recording has no work for two kinds of calls: memsets, which may be of no bytes, and the last calls of a
    device that was still busy with earlier work when the recording ended.

    Args:
        graph: the job.

    Returns:
        One row for each call outside the capture of a CUDA graph.

    Example:
        >>> import htagraph as hg
        >>> calls = launch_calls(hg.load("data/demo"))
        >>> len(calls.activity), int(calls.works.min()), bool(calls.is_lost.any())
        (2508, 1, False)
    """
    acts = graph.activities
    is_launch = acts.kind == ActivityKind.LAUNCH
    calls = np.flatnonzero(is_launch & ~inside_captures(acts, graph.names))
    works = np.bincount(acts.cause[acts.cause >= 0], minlength=len(acts))[calls]
    is_memset = names_that(is_memset_call, graph.names)[acts.name[calls]]
    is_lost = (works == 0) & ~is_memset & ~_was_queued(graph, calls, works)
    is_graph = names_that(is_graph_launch, graph.names)[acts.name[calls]]
    return LaunchCalls(
        activity=frozen(calls),
        works=frozen(works),
        is_graph=frozen(is_graph),
        is_lost=frozen(is_lost),
        missing=frozen(_missing_in_replays(graph, calls, works, is_graph)),
    )


def _missing_in_replays(graph: DependencyGraph, calls: Ints, works: Ints, is_graph: Mask) -> Ints:
    """Return how many kernels and copies each replay lacks, beside most replays of the same graph on its rank.

    Every replay of a graph runs the same nodes. The last replay of a rank may be cut by the end of the recording, and
    nothing is said of graphs without an id or with few replays.

    Args:
        graph: the job.
        calls: the calls that enqueue work.
        works: the number of recorded activities of each call.
        is_graph: whether each call launches a CUDA graph.

    Returns:
        One count for each call; 0 for every call that is no replay.
    """
    acts = graph.activities
    missing = np.zeros(len(calls), np.int64)
    rank = acts.rank[calls]
    start = acts.start[calls]
    graph_of = _graph_ids(graph)[calls]
    is_replay = is_graph & (works > 0)
    is_replay &= graph_of >= 0
    last = _latest(
        rank[is_replay],
        start[is_replay],
        graph.ranks,
    )
    is_replay &= start < last[rank]
    replay = np.flatnonzero(is_replay)
    pairs = np.column_stack([rank, graph_of])[replay]
    _, number = np.unique(
        pairs,
        axis=0,
        return_inverse=True,
    )
    number = number.ravel()
    for group in range(int(number.max(initial=-1)) + 1):
        alike = replay[number == group]
        usual = _usual_count(works[alike])
        missing[alike] = np.maximum(usual - works[alike], 0)
    return missing


def _usual_count(works: Ints) -> int:
    """Return how much work most replays of a graph have; 0 where no count is that of most, or replays are few."""
    counts, often = np.unique(
        works,
        return_counts=True,
    )
    if len(works) < LIMITS.few or often.max() <= LIMITS.most * len(works):
        return 0
    return int(counts[often.argmax()])


def _graph_ids(graph: DependencyGraph) -> Ints:
    """Return the id of the CUDA graph that each activity launched; -1 for every other activity."""
    acts = graph.activities
    graph_of = np.full(len(acts), -1, np.int64)
    is_launched = is_device_work(graph)
    is_launched &= acts.cause >= 0
    graph_id = acts.arg("graph_id")
    np.maximum.at(
        graph_of,
        acts.cause[is_launched],
        graph_id[is_launched],
    )
    return graph_of


def lost_places(graph: DependencyGraph, calls: LaunchCalls, rows: slice) -> int:
    """Return how many calls lost their work at places that lost nearly all work, in some rows of the calls.

    A place is a name of calls inside an operator of one name: copies of one kind, or the collectives of a stream, are
    a small share of all calls.

    Args:
        graph: the job.
        calls: the calls of the job.
        rows: the rows of one rank.

    Returns:
        The number of calls; 0 where every place has recorded work.
    """
    acts = graph.activities
    activity = calls.activity[rows]
    name = acts.name[activity].astype(np.int64)
    operator = np.where(acts.parent[activity] >= 0, acts.name[acts.parent[activity]], -1)
    _, place = np.unique(name * (len(graph.names) + 1) + operator, return_inverse=True)
    lost = np.bincount(place, calls.is_lost[rows])
    every = np.bincount(place)
    is_gone = (lost >= LIMITS.often) & (lost >= LIMITS.nearly_all * every)
    return int(lost[is_gone].sum())


def _was_queued(graph: DependencyGraph, calls: Ints, works: Ints) -> Mask:
    """Return which calls come behind the last call with work, and before the end of the last work, of their rank.

    The device was busy with earlier work when each of these calls returned.
    """
    acts = graph.activities
    served = calls[works > 0]
    work = np.flatnonzero(is_device_work(graph))
    last_served = _latest(acts.rank[served], acts.start[served], graph.ranks)
    last_end = _latest(acts.rank[work], acts.end[work], graph.ranks)
    rank = acts.rank[calls]
    start = acts.start[calls]
    return (start > last_served[rank]) & (start < last_end[rank])


def _latest(rank: Array, moment: Ints, ranks: tuple[int, ...]) -> Ints:
    """Return the latest moment of each rank, by its number; the earliest of all times for a rank without any."""
    latest = np.full(max(ranks, default=0) + 1, np.iinfo(np.int64).min)
    np.maximum.at(latest, rank, moment)
    return latest


def inside_captures(acts: Activities, names: Sequence[str]) -> Mask:
    """Return which activities lie inside the capture of a CUDA graph on their thread: they enqueue no work.

    Args:
        acts: the activities of a job.
        names: the names that activities have by number.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> bool(inside_captures(graph.activities, graph.names).any())
        False
    """
    begins = np.flatnonzero(names_that(is_capture_begin, names)[acts.name])
    ends = np.flatnonzero(names_that(is_capture_end, names)[acts.name])
    inside = np.zeros(len(acts), np.bool_)
    for lane in np.unique(acts.lane[begins]).tolist():
        on_lane = np.flatnonzero(acts.lane == lane)
        opened = _count_before(acts, begins, on_lane, lane)
        closed = _count_before(acts, ends, on_lane, lane)
        inside[on_lane] = opened > closed
    return inside


def _count_before(acts: Activities, calls: Ints, on_lane: Ints, lane: int) -> Ints:
    """Return how many calls of a lane start before each activity of this lane.

    Args:
        acts: the activities of a job.
        calls: calls on any lane.
        on_lane: the activities of the lane.
        lane: the number of the lane.

    Returns:
        One count for each activity.
    """
    moments = np.sort(acts.start[calls[acts.lane[calls] == lane]])
    return np.searchsorted(moments, acts.start[on_lane]).astype(np.int64)
