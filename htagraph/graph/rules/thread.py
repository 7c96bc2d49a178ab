"""THREAD: a thread hands work to another thread of its rank and waits for it (autograd engine, gloo). Lag 0; inferred.

Edges lead from the moment of the hand-over on the calling thread to the start of the first activity on the worker
thread, and from the end of the worker's last activity to the moment when the caller goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import is_backward, is_collective_call
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["thread"]

_MAX_BUSY_GAP_NS = 100_000
"""ns: a thread that recorded nothing for longer was waiting for something; as in `graph.gaps`. Chosen: Python between
two operators takes 5 to 50 µs. Doubled, fewer wake-ups get a guessed edge."""
_GUESS = 30
"""Percent: confidence of the edge to a thread when it is unknown who woke it. Chosen: below every edge that is inferred
from evidence. It is shown, and `acyclic` drops the least confident edge of a cycle. Doubled, `graph.gaps` takes such
edges for evidence of who hands a worker its work."""
_COLLECTIVE_CONFIDENCE = 80
"""Percent: confidence of the edges around gloo's collectives, matched by order and by idle time of the caller. Chosen:
below the edges around backward, of which the recording shows more. Used like `_GUESS`. It cannot be doubled."""
_BACKWARD_DOUBT = 5
"""Percentage points that the confidence of edges around backward is below the share of the worker's activities that
run while the caller is blocked: the times fit, but no id proves it. Chosen. Doubled, these edges have 80 to 90 % in
place of 85 to 95 %, with no other effect."""
_MIN_INSIDE = 0.9
"""Share of a worker's activities that must run while its caller records nothing: nearly all, because the caller may run
backward operators of the host itself. Chosen. It cannot be doubled; at 1, one such operator hides the caller."""


def thread(job: Job) -> Edges:
    """Return the edges by which threads of one rank wait for each other, all inferred from time.

    Autograd engine: a worker thread runs while its caller records nothing. Its first activity in such a stretch waits
    for the caller's last moment before the stretch; the caller's next moment waits for the end of its last activity.

    Gloo: the n-th collective on gloo's threads waits for the start of the n-th operator that enqueues one. The thread
    that enqueued it waits for its end if it was idle then, and had been for at least half of that idle stretch.

    Any other thread: what woke it is unknown. Its first activity, and the first after each long pause, waits for the
    latest moment on the rank's busiest thread or device, so that it moves with the job in a what-if.
    """
    parts = [_edges([], [], 100)]
    for rank in job.traces:
        threads = _threads(job, rank)
        callers = [candidate for candidate in threads if not candidate.is_worker]
        linked = []
        for worker in threads:
            if worker.is_worker and callers:
                parts.append(_around_backward(job, worker, callers))
                linked += [worker] if len(parts[-1]) else []
        parts += [_around_collectives(job, rank, caller) for caller in callers]
        known = np.unique(np.concatenate([part.target for part in parts]))
        main = next(iter([*callers, *threads]), None)
        clock = _pulse(job, rank, main)
        others = [other for other in threads if other is not main and other not in linked]
        parts += [_awakened(other, *clock, known) for other in others]
    return Edges.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Thread:
    """A host thread: its moments in order, and its top-level activities."""

    vertices: np.ndarray
    """Starts and ends of its activities, in order."""
    times: np.ndarray
    """When they were recorded, ns."""
    idle: np.ndarray
    """Whether no operator or call runs right after each moment."""
    tops: np.ndarray
    """The activities that no other one on the thread encloses."""
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
    """Return the rank's threads, the one with the most activities first; on ties, the one that starts first.

    A worker spends most of its time in backward operators. Where another thread has the steps, a thread that runs any
    backward operator is a worker.
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
        backward = (forward_thread[tops] > 0) | np.isin(acts.name[tops], _backward_names(job, tops))
        begins, ends = job.moment(2 * tops), job.moment(2 * tops + 1)
        takes = (ends - begins).astype(np.float64)  # damaged durations may sum to more than an integer holds
        beside = bool(len(with_steps)) and acts.lane[opened[0]] not in with_steps
        is_worker = 2 * takes[backward].sum() > takes.sum() or backward.all() or (beside and backward.any())
        idle = job.at_work[part] < 0
        threads.append(_Thread(vertices, job.moment(vertices), idle, tops, begins, ends, bool(is_worker)))
    return sorted(threads, key=lambda thread: (-len(thread.vertices), int(thread.times[0])))


def _backward_names(job: Job, activities: np.ndarray) -> list[int]:
    """Return which names of some activities are those of backward operators."""
    names = np.unique(job.activities.name[activities])
    return [int(name) for name in names if is_backward(job.names[name])]


def _around_backward(job: Job, worker: _Thread, callers: list[_Thread]) -> Edges:
    """Return the edges between a worker and the thread that is blocked while it runs.

    The time of the two hand-overs counts for the caller's innermost activity.
    """
    inside = [_stretch_around(caller, worker.starts, worker.ends) for caller in callers]
    fits = [(stretch, caller) for stretch, caller in zip(inside, callers, strict=True) if _fits(stretch)]
    if not fits:
        return _edges([], [], 100)
    stretch, caller = fits[0]  # the busiest: a thread that hardly does anything is idle beside any worker
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
    return _edges(source, target, round(100 * share) - _BACKWARD_DOUBT, owner)


def _fits(stretch: np.ndarray) -> bool:
    """Return whether nearly all of a worker's activities run between two moments of a thread."""
    return bool((stretch >= 0).mean() >= _MIN_INSIDE)


def _stretch_around(caller: _Thread, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """For each interval, return the index of the caller's last moment before it, or -1 if a moment is inside it."""
    at = np.searchsorted(caller.times, start, side="right") - 1
    behind = np.append(caller.times, np.iinfo(np.int64).max)[at + 1]
    return np.where((at >= 0) & (end <= behind), at, -1)


def _around_collectives(job: Job, rank: int, caller: _Thread) -> Edges:
    """Return the edges between the operators of a thread that enqueue collectives and gloo's threads that run them."""
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
    source, target = [*source, 2 * work[waited] + 1], [*target, caller.vertices[at[waited] + 1]]
    return _edges(source, target, _COLLECTIVE_CONFIDENCE)


def _pulse(job: Job, rank: int, main: _Thread | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices of the rank's busiest thread and of its device work, and their times, by time."""
    of_rank = job.activities.of_rank(rank)
    work = of_rank.start + np.flatnonzero(job.activities.on_device[of_rank])
    vertices = np.concatenate([main.vertices if main else work[:0], 2 * work, 2 * work + 1])
    time = job.moment(vertices)
    order = np.argsort(time, kind="stable")
    return vertices[order], time[order]


def _awakened(thread: _Thread, vertices: np.ndarray, times: np.ndarray, known: np.ndarray) -> Edges:
    """Return guessed edges to a thread's first activity, and the first after each long pause, where no edge is known.

    Args:
        thread: the thread.
        vertices: moments that may have woken it, by time.
        times: when they were recorded, ns.
        known: vertices into which THREAD edges lead already.
    """
    awoken = np.ones(len(thread.tops), np.bool_)
    awoken[1:] = thread.starts[1:] - np.maximum.accumulate(thread.ends)[:-1] > _MAX_BUSY_GAP_NS
    target = 2 * thread.tops[awoken]
    at = np.searchsorted(times, thread.starts[awoken]) - 1
    keep = (at >= 0) & ~np.isin(target, known)
    return _edges([vertices[at[keep]]], [target[keep]], _GUESS)


def _enqueues(job: Job, name: int) -> bool:
    """Return whether an operator of this name enqueues a collective."""
    return is_collective_call(job.names[name])
