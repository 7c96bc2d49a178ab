"""THREAD: a thread that hands work to another one and waits for it: autograd's threads, and gloo's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import is_backward, is_collective_call
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["thread"]

_MAX_BUSY_GAP_NS = 100_000
"""ns: a thread that recorded nothing for longer waited for something; as in `graph.gaps`. Chosen: Python between two
operators takes 5 to 50 µs. Doubled, fewer wake-ups get a guessed edge."""
_GUESS = 30
"""Percent: confidence of the edge to a thread of which nobody knows who woke it. Chosen: below all that is inferred
from evidence. Shown, and used by `acyclic`."""
_MIN_INSIDE = 0.9
"""Share of a worker's activities that must run while one and the same thread does nothing: nearly all, as that thread
may run backward operators of the host itself. Chosen. It cannot be doubled; at 1 one such operator hides the link."""


def thread(job: Job) -> Edges:
    """Return the edges by which threads of one rank wait for each other, all inferred.

    A thread of the autograd engine works while its caller stands between two moments: its first activity there waits
    for the first of these moments, the second waits for its last activity. A collective on a thread of gloo waits for
    the operator that enqueued it, in order; the thread that enqueued it waits for its end, if it is idle then and was
    idle for most of the time before. What woke any other thread is not known: it is taken to follow the last moment of
    the rank's busiest thread or device, so that it moves with the job in a what-if instead of staying where it was.
    """
    parts = [_edges([], [], 100)]
    for rank in job.traces:
        threads = _threads(job, rank)
        callers = [each for each in threads if not each.is_worker]
        linked = []
        for worker in threads:
            if worker.is_worker and callers:
                parts.append(_around_backward(job, worker, callers))
                linked += [worker] if len(parts[-1]) else []
        parts += [_around_collectives(job, rank, caller) for caller in callers]
        known = np.unique(np.concatenate([part.target for part in parts]))
        main = next(iter([*callers, *threads]), None)
        clock = _pulse(job, rank, main)
        parts += [_awakened(each, *clock, known) for each in threads if each is not main and each not in linked]
    return Edges.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Thread:
    """A host thread: its moments in order, and the activities that lie in no other."""

    vertices: np.ndarray
    times: np.ndarray
    idle: np.ndarray
    """Whether no activity is at work behind each moment."""
    tops: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    is_worker: bool


def _edges(
    source: list[np.ndarray], target: list[np.ndarray], confidence: int, owner: list[np.ndarray] | None = None
) -> Edges:
    none = np.zeros(0, np.int64)
    ends = np.concatenate([none, *source]), np.concatenate([none, *target])
    activity = -1 if owner is None else np.concatenate([none, *owner])
    return Edges.of(*ends, 0, EdgeKind.THREAD, Provenance.INFERRED, confidence=confidence, activity=activity)


def _threads(job: Job, rank: int) -> list[_Thread]:
    """Return the rank's threads, the busiest first, of equally busy ones the one that begins first.

    Workers are those that mostly run backward operators, by time; beside a thread with steps, all that run any.
    """
    acts = job.activities
    owner = job.boundaries // 2
    of_rank = acts.of_rank(rank)
    rows = np.flatnonzero((owner >= of_rank.start) & (owner < of_rank.stop))
    forward_thread = acts.arg("fwd_thread_id")
    with_steps = np.unique(acts.lane[of_rank][acts.kind[of_rank] == ActivityKind.STEP])
    threads = []
    for part in np.split(rows, np.flatnonzero(np.diff(acts.lane[owner[rows]])) + 1) if len(rows) else []:
        vertices = job.boundaries[part].astype(np.int64)
        opened = vertices[vertices % 2 == 0] // 2
        tops = opened[acts.parent[opened] < 0]
        backward = (forward_thread[tops] > 0) | np.isin(acts.name[tops], _named(job, tops))
        begins, ends = job.moment(2 * tops), job.moment(2 * tops + 1)
        takes = (ends - begins).astype(np.float64)  # damaged durations may sum to more than an integer holds
        beside = bool(len(with_steps)) and acts.lane[opened[0]] not in with_steps
        is_worker = 2 * takes[backward].sum() > takes.sum() or backward.all() or (beside and backward.any())
        idle = job.at_work[part] < 0
        threads.append(_Thread(vertices, job.moment(vertices), idle, tops, begins, ends, bool(is_worker)))
    return sorted(threads, key=lambda thread: (-len(thread.vertices), int(thread.times[0])))


def _named(job: Job, activities: np.ndarray) -> list[int]:
    names = np.unique(job.activities.name[activities])
    return [int(name) for name in names if is_backward(job.names[name])]


def _around_backward(job: Job, worker: _Thread, callers: list[_Thread]) -> Edges:
    """Return edges between a worker and the thread that stands still while it works, whose time a hand-over takes."""
    inside = [_stretch_around(caller, worker.starts, worker.ends) for caller in callers]
    certain = [each for each in zip(inside, callers, strict=True) if (each[0] >= 0).mean() >= _MIN_INSIDE]
    if not certain:
        return _edges([], [], 100)
    stretch, caller = certain[0]  # the busiest: a thread that hardly does anything stands still beside all work
    share = float((stretch >= 0).mean())
    tops, stretch = worker.tops[stretch >= 0], stretch[stretch >= 0]
    first = np.concatenate(([True], stretch[1:] != stretch[:-1]))
    last = np.concatenate((first[1:], [True]))
    joined = stretch[last] + 1 < len(caller.vertices)
    source = [caller.vertices[stretch[first]], 2 * tops[last][joined] + 1]
    target = [2 * tops[first], caller.vertices[stretch[last][joined] + 1]]
    at = caller.vertices
    region = np.where(at % 2, job.activities.parent[at // 2], at // 2)
    owner = [region[stretch[first]], region[stretch[last][joined]]]
    return _edges(source, target, round(100 * share) - 5, owner)


def _stretch_around(caller: _Thread, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return after which of the caller's moments each interval lies, before the next; -1 where there is one inside."""
    at = np.searchsorted(caller.times, start, side="right") - 1
    behind = np.append(caller.times, np.iinfo(np.int64).max)[at + 1]
    return np.where((at >= 0) & (end <= behind), at, -1)


def _around_collectives(job: Job, rank: int, caller: _Thread) -> Edges:
    acts = job.activities
    of_rank = np.arange(acts.of_rank(rank).start, acts.of_rank(rank).stop)
    work = of_rank[acts.kind[of_rank] == ActivityKind.HOST_COMMUNICATION]
    opened = caller.vertices[caller.vertices % 2 == 0] // 2
    calls = opened[np.isin(acts.name[opened], [name for name in np.unique(acts.name[opened]) if _enqueues(job, name)])]
    if not len(work) or len(calls) != len(work):
        return _edges([], [], 100)
    work = work[np.argsort(job.moment(2 * work), kind="stable")]
    source, target = [2 * calls], [2 * work]
    end = job.moment(2 * work + 1)
    at = np.searchsorted(caller.times, end, side="right") - 1
    awaited = (at >= 0) & (at + 1 < len(caller.times))
    work, end, at = work[awaited], end[awaited], at[awaited]
    waited = caller.idle[at] & (2 * end >= caller.times[at] + caller.times[at + 1])
    return _edges([*source, 2 * work[waited] + 1], [*target, caller.vertices[at[waited] + 1]], 80)


def _pulse(job: Job, rank: int, main: _Thread | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices of the rank's busiest thread and of its device work, and their times, in order of time."""
    of_rank = job.activities.of_rank(rank)
    work = of_rank.start + np.flatnonzero(job.activities.on_device[of_rank])
    vertices = np.concatenate([main.vertices if main else work[:0], 2 * work, 2 * work + 1])
    time = job.moment(vertices)
    order = np.argsort(time, kind="stable")
    return vertices[order], time[order]


def _awakened(thread: _Thread, vertices: np.ndarray, times: np.ndarray, known: np.ndarray) -> Edges:
    """Return edges to what a thread began first, or after a pause, and nothing is known to have held it up."""
    awoken = np.ones(len(thread.tops), np.bool_)
    awoken[1:] = thread.starts[1:] - np.maximum.accumulate(thread.ends)[:-1] > _MAX_BUSY_GAP_NS
    target = 2 * thread.tops[awoken]
    at = np.searchsorted(times, thread.starts[awoken]) - 1
    keep = (at >= 0) & ~np.isin(target, known)
    return _edges([vertices[at[keep]]], [target[keep]], _GUESS)


def _enqueues(job: Job, name: int) -> bool:
    return is_collective_call(job.names[name])
