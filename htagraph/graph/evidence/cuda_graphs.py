"""Which launches replay a CUDA graph, and the branches of a graph: which kernels wait for kernels of its other streams.

Most traces do not record the dependencies inside a graph. Three things tell them: a graph begins after what its stream
did before, the stream goes on once all branches are over (capture demands it), and inside, a kernel that starts just as
one of another stream ends, launch after launch, waits for it. Where a trace records the dependencies (`graph_nodes`),
they take the place of the third.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, joined, marked, run_starts
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import is_graph_launch, names_that
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.graph_nodes import NodeWaits
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["graph_branches", "graph_launches", "graph_work"]


class _Alike(NamedTuple):
    """The launches of one graph: a row per launch, a column per kernel or copy, by stream and then by start."""

    work: Ints
    """Activities."""
    lane: Ints
    """The stream of each column."""
    start: Ints
    end: Ints


def graph_branches(job: RecordedJob, recorded: NodeWaits) -> tuple[Array, Array, Array]:
    """Return (source, target, confidence) of the waits between streams of CUDA graphs: target waits for source's end.

    Graphs on one stream have none: the order of the stream holds there. Inside a launch with `recorded` waits nothing
    is guessed.
    """
    inside = _Recorded.of(job, recorded)
    # the stream that computes most comes first
    places = {rank: {int(lane): i for i, lane in enumerate(lanes)} for rank, lanes in job.calls.lanes.items()}
    parts = [
        _waits(job, alike, places[int(job.activities.rank[alike.work[0, 0]])], inside)
        for alike in _launched_alike(job, inside)
    ]
    source, target, confidence = joined(parts, 3)
    acts = job.activities
    possible = (source >= 0) & (target >= 0)
    possible &= acts.end[source] <= acts.start[target] + LIMITS.tick_ns
    return source[possible], target[possible], confidence[possible]


class _Recorded(NamedTuple):
    """The waits inside graphs that the recording has, by activity."""

    launch: Mask
    """Launches that have recorded waits between nodes."""
    waits: Mask
    """Kernels and copies that wait for a node of their launch."""
    awaited: Mask
    """Kernels and copies that a node of their launch waits for."""

    @staticmethod
    def of(job: RecordedJob, waits: NodeWaits) -> _Recorded:
        """Return the masks for recorded waits."""
        count = len(job.activities)
        launches = job.activities.cause[waits.target]
        return _Recorded(
            marked(launches[launches >= 0], count), marked(waits.target, count), marked(waits.source, count)
        )


def _launched_alike(job: RecordedJob, inside: _Recorded) -> Iterator[_Alike]:
    """Yield the launches of each graph that uses several streams: same rank, names and streams, in the same order.

    Two launches whose recorded waits differ are not alike.
    """
    acts, work = job.activities, graph_work(job)
    if not len(work):
        return
    call, lane = acts.cause[work], acts.lane[work].astype(np.int64)
    first = run_starts(call)
    count = np.diff(np.append(first, len(work)))
    place = np.arange(len(work)) - np.repeat(first, count)
    shape = np.add.reduceat(mixed(acts.name[work], lane, place, inside.waits[work], inside.awaited[work]), first)
    several = lane[first] != lane[first + count - 1]
    for rows in grouped(mixed(shape, count, acts.rank[call[first]], inside.launch[call[first]])):
        if several[rows[0]]:
            at = work[first[rows][:, None] + np.arange(count[rows[0]])]
            yield _Alike(at, acts.lane[at[0]].astype(np.int64), acts.start[at], acts.end[at])


def _waits(
    job: RecordedJob,
    alike: _Alike,
    place: Mapping[int, int],
    inside: _Recorded,
) -> tuple[Array, Array, Array]:
    """Return (source, target, confidence) of the waits in and around the launches of one graph."""
    is_recorded = bool(inside.launch[job.activities.cause[alike.work[0, 0]]])
    inner = [] if is_recorded else list(_inside(alike))
    lanes, first = np.unique(alike.lane, return_index=True)
    last = np.append(first[1:], len(alike.lane)) - 1
    main = min((lane for lane in lanes.tolist() if lane in place), key=place.__getitem__)
    at = job.calls.position[job.activities.cause[alike.work[:, 0]]]
    before = job.calls.enqueued.last_before(np.full(len(at), main), at)
    behind = job.calls.enqueued.first_from(np.full(len(at), main), at + 1)
    if is_recorded:  # a graph begins with the nodes that wait for none, and is over when the nodes that none awaits are
        first = np.flatnonzero(~inside.waits[alike.work[0]])
        last = np.flatnonzero(~inside.awaited[alike.work[0]])
    begun = {target for _, target, _ in inner}
    parts = [(alike.work[:, i], alike.work[:, j], sure) for i, j, sure in inner]
    branches = (first[alike.lane[first] != main], last[alike.lane[last] != main])
    parts += [(before, alike.work[:, j], Confidence.SEEN) for j in branches[0].tolist() if j not in begun]
    parts += [(alike.work[:, i], behind, Confidence.SEEN) for i in branches[1].tolist()]
    if not parts:  # all nodes that begin or end the graph are on its main stream
        none = np.zeros(0, np.int64)
        return none, none, none
    source, target, sure = zip(*parts, strict=True)
    return np.concatenate(source), np.concatenate(target), np.repeat(sure, len(at))


def _inside(alike: _Alike) -> Iterator[tuple[int, int, int]]:
    """Yield (column waited for, column that waits, confidence), none that the order of a stream implies."""
    follows = np.append(False, alike.lane[1:] == alike.lane[:-1])
    pauses = alike.start[:, follows] - alike.end[:, np.append(follows[1:], False)]
    usual = max(0, int(np.median(pauses))) if pauses.size else 0
    before = np.where(follows, np.roll(alike.end, 1, axis=1), alike.start - LIMITS.window_ns - usual)
    free = np.where(alike.start - before > usual + LIMITS.tick_ns, before, alike.start)
    order, place = _in_time(alike)
    found: list[tuple[Array, Array, Array, Array]] = []
    for other in np.unique(alike.lane)[: LIMITS.tried].tolist():
        others = np.flatnonzero(alike.lane == other)
        until = (np.isin(order, others).cumsum(axis=1, dtype=np.int32), place)
        which, sure = _awaited(alike, others, free, until)
        which[others] = -1
        column = np.flatnonzero(_grows(which, np.cumsum(~follows)))
        found.append((np.full(len(column), other), column, others[which[column]], sure[column]))
    other, column, awaited, sure = (np.concatenate(each) for each in zip(*found, strict=True))
    for row in np.lexsort((column, other, alike.lane[column])).tolist():
        yield int(awaited[row]), int(column[row]), int(sure[row])


def _in_time(alike: _Alike) -> tuple[Array, Array]:
    """Return (the ends of a launch and then its starts and later starts in order of time, where each of them is).

    A row per launch. At one time, ends come first. A later start is a tick after the start.
    """
    times = np.concatenate([alike.end, alike.start, alike.start + LIMITS.tick_ns], axis=1)
    order = np.argsort(times, axis=1, kind="stable")
    place = np.empty(order.shape, np.int32)
    np.put_along_axis(place, order, np.arange(order.shape[1], dtype=np.int32)[None], axis=1)
    return order, place


def _grows(which: Array, part: Array) -> Mask:
    """Return which numbers are above 0 or 0 and above all before them in their part; parts are numbered upwards."""
    stride = which.max(initial=0) + 2
    keyed = which + stride * part
    return keyed > np.maximum(np.append(-1, np.maximum.accumulate(keyed)[:-1]), stride * part - 1)


def _awaited(alike: _Alike, others: Array, free: Array, until: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return (which kernel of another stream each kernel waits for, -1 for none; confidence), a row per column.

    The other stream has the columns `others`. A kernel could have started at `free`, ns, for its own stream; it is its
    start where that explains when it started. `until` says how many ends of the other stream come up to each place of
    `_in_time`, and gives the places.
    """
    count, columns = alike.start.shape
    come_up, place = until
    over, possible = (np.take_along_axis(come_up, place[:, at : at + columns], 1) for at in (columns, 2 * columns))
    latest = np.take_along_axis(alike.end[:, others], np.maximum(over - 1, 0), axis=1)
    near = (over > 0) & (latest > free) & (alike.start - latest <= LIMITS.window_ns)
    column = np.broadcast_to(np.arange(columns), (count, columns))[near]
    key, seen = np.unique(column * (len(others) + 1) + over[near], return_counts=True)
    column, awaited = key // (len(others) + 1), key % (len(others) + 1) - 1
    order = np.lexsort((awaited, -seen, column))
    best = order[np.append(True, np.diff(column[order]) > 0)] if len(order) else order
    most, which = np.zeros(columns, np.int64), np.full(columns, -1, np.int64)
    most[column[best]], which[column[best]] = seen[best], awaited[best]
    which[(which >= possible.min(axis=0)) | (most < LIMITS.most * (free < alike.start).sum(axis=0))] = -1
    return which, np.where(most >= LIMITS.often, Confidence.SEEN, Confidence.POSSIBLE)


def graph_launches(job: RecordedJob) -> Mask:
    """Return which activities are calls that launch a CUDA graph (many kernels and copies with one correlation id)."""
    acts = job.activities
    return (acts.kind == ActivityKind.LAUNCH) & names_that(is_graph_launch, job.names)[acts.name]


def graph_work(job: RecordedJob) -> Ints:
    """Return the kernels and copies of CUDA graphs, by launch, stream and start."""
    acts = job.activities
    work = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    work = work[graph_launches(job)[acts.cause[work]]]
    return work[np.lexsort((acts.start[work], acts.lane[work], acts.cause[work]))]
