"""Branches of a CUDA graph: which of its kernels wait for kernels of its other streams.

Traces do not record the dependencies inside a graph. Three things tell them: a graph begins after what its stream did
before, the stream goes on once all branches are over (capture demands it), and inside, a kernel that starts just as one
of another stream ends, launch after launch, waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.graph.evidence.call_sites import grouped, mixed
from htagraph.graph.evidence.job import Job
from htagraph.graph.evidence.launches import graph_launches
from htagraph.graph.evidence.wait_hypotheses import TOLERANCE_NS

__all__ = ["graph_branches"]

Array: TypeAlias = npt.NDArray[Any]
_WINDOW_NS = 10_000
"""ns: a kernel that starts this soon after another one ended may have waited for it. Chosen, as for other waits of
streams: a few µs on any device. Doubled, kernels that start by chance within 20 µs seem to wait."""
_MIN_SHARE = 0.5
"""Share of the launches in which its own stream does not explain when a kernel starts, in which the kernel waited for
must explain it. Chosen: more than half. It cannot be doubled; at 1, one late kernel hides a branch."""
_SEEN_OFTEN = 3
"""Launches in which a wait must be seen for full confidence. Chosen: two may agree by chance. Doubled, graphs launched
three to five times have less certain branches."""
_BY_LAW, _SEEN, _SEEN_ONCE = 90, 90, 60
"""Percent: confidence of a wait that capture demands, of one seen in several launches, and of one seen in fewer.
Chosen. It is shown, and `acyclic` drops the least confident edge of a cycle. They cannot be doubled."""


@dataclass(frozen=True, eq=False)
class _Alike:
    """The launches of one graph: a row per launch, a column per kernel or copy, by stream and then by start."""

    work: npt.NDArray[np.int64]
    """Activities."""
    lane: npt.NDArray[np.int64]
    """The stream of each column."""
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]


def graph_branches(job: Job) -> tuple[Array, Array, Array]:
    """Return (source, target, confidence) of the waits between streams of CUDA graphs: target waits for source's end.

    Graphs on one stream have none: the order of the stream holds there.
    """
    parts = [_waits(job, alike) for alike in _launched_alike(job)]
    columns = zip(*parts, strict=True) if parts else ((), (), ())
    source, target, confidence = (np.concatenate([np.zeros(0, np.int64), *column]) for column in columns)
    acts = job.activities
    possible = (source >= 0) & (target >= 0)
    possible &= acts.end[source] <= acts.start[target] + TOLERANCE_NS
    return source[possible], target[possible], confidence[possible]


def _launched_alike(job: Job) -> Iterator[_Alike]:
    """Yield the launches of each graph that uses several streams: same rank, names and streams, in the same order."""
    acts = job.activities
    work = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    work = work[graph_launches(job)[acts.cause[work]]]
    work = work[np.lexsort((acts.start[work], acts.lane[work], acts.cause[work]))]
    if not len(work):
        return
    call, lane = acts.cause[work], acts.lane[work].astype(np.int64)
    first = np.flatnonzero(np.append(True, call[1:] != call[:-1]))
    count = np.diff(np.append(first, len(work)))
    place = np.arange(len(work)) - np.repeat(first, count)
    shape = np.add.reduceat(mixed(acts.name[work], lane, place), first)
    several = lane[first] != lane[first + count - 1]
    for rows in grouped(mixed(shape, count, acts.rank[call[first]])):
        if several[rows[0]]:
            at = work[first[rows][:, None] + np.arange(count[rows[0]])]
            yield _Alike(at, acts.lane[at[0]].astype(np.int64), acts.start[at], acts.end[at])


def _waits(job: Job, alike: _Alike) -> tuple[Array, Array, Array]:
    """Return (source, target, confidence) of the waits in and around the launches of one graph."""
    inner = list(_inside(alike))
    lanes, first = np.unique(alike.lane, return_index=True)
    last = np.append(first[1:], len(alike.lane)) - 1
    on_rank = job.calls.lanes[int(job.activities.rank[alike.work[0, 0]])]
    main = next(int(lane) for lane in on_rank if lane in lanes)  # where the rank computes most
    at = job.calls.position[job.activities.cause[alike.work[:, 0]]]
    before = job.calls.enqueued.last_before(np.full(len(at), main), at)
    behind = job.calls.enqueued.first_from(np.full(len(at), main), at + 1)
    begun = {target for _, target, _ in inner}
    parts = [(alike.work[:, i], alike.work[:, j], sure) for i, j, sure in inner]
    parts += [(before, alike.work[:, j], _BY_LAW) for j in first[lanes != main].tolist() if j not in begun]
    parts += [(alike.work[:, i], behind, _BY_LAW) for i in last[lanes != main].tolist()]
    source, target, sure = zip(*parts, strict=True)
    return np.concatenate(source), np.concatenate(target), np.repeat(sure, len(at))


def _inside(alike: _Alike) -> Iterator[tuple[int, int, int]]:
    """Yield (column waited for, column that waits, confidence), none that the order of a stream implies."""
    lanes = np.unique(alike.lane)
    columns = {lane: np.flatnonzero(alike.lane == lane) for lane in lanes.tolist()}
    follows = np.flatnonzero(alike.lane[1:] == alike.lane[:-1])
    pauses = alike.start[:, follows + 1] - alike.end[:, follows]
    usual = max(0, int(np.median(pauses))) if pauses.size else 0
    for lane, own in columns.items():
        for other, others in columns.items():
            known = -1
            for place, column in enumerate(own.tolist() if other != lane else ()):
                start = alike.start[:, column]
                before = alike.end[:, own[place - 1]] if place else start - _WINDOW_NS - usual
                late = start - before > usual + TOLERANCE_NS
                wait = _awaited(alike.end[:, others], start, np.where(late, before, start))
                if wait is not None and wait[0] > known:
                    known = wait[0]
                    yield int(others[known]), column, wait[1]


def _awaited(ends: Array, start: Array, free: Array) -> tuple[int, int] | None:
    """Return (which kernel of another stream a kernel waits for, confidence), or None.

    Args:
        ends: when each kernel of the other stream ended, ns; a row per launch.
        start: when the waiting kernel started in each launch, ns.
        free: when it could have started for its own stream, ns; `start` itself where that explains when it started.
    """
    over, possible = ((ends <= start[:, None] + error).sum(axis=1) for error in (0, TOLERANCE_NS))
    latest = ends[np.arange(len(ends)), np.maximum(over - 1, 0)]
    late, near = free < start, (over > 0) & (latest > free) & (start - latest <= _WINDOW_NS)
    if not near.any():
        return None
    which, seen = np.unique(over[near] - 1, return_counts=True)
    best, count = int(which[seen.argmax()]), int(seen.max())
    if best >= possible.min() or count < _MIN_SHARE * late.sum():
        return None
    return best, _SEEN if count >= _SEEN_OFTEN else _SEEN_ONCE
