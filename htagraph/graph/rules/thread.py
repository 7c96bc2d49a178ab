"""THREAD: a thread hands work to another thread of its rank and waits for it (autograd engine, gloo). Lag 0; inferred.

Edges lead from the moment of the hand-over on the calling thread to the start of the first activity on the worker
thread, and from the end of the worker's last activity to the moment when the caller goes on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from htagraph.core.arrays import Array, Mask, coded, marked
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import (
    is_asking,
    is_collective_call,
    is_giving,
    is_source_frame,
    is_taking,
    names_that,
    transfer_direction,
)
from htagraph.core.parents import nearest
from htagraph.core.statistics import middles
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.recordings import on_one_host
from htagraph.graph.evidence.threads import HostThread, hand_overs, host_threads, waited_loaders
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["thread"]


def thread(job: RecordedJob) -> Edges:
    """Return the edges by which threads of one rank wait for each other, all inferred from time.

    Autograd engine: a worker thread runs while its caller records nothing. Its first activity in such a stretch waits
    for the caller's last moment before the stretch; the caller's next moment waits for the end of its last activity.

    Gloo: the n-th collective on gloo's threads waits for the start of the n-th operator that enqueues one. The thread
    that enqueued it waits for its end, whether or not that wait blocked (`evidence.host_waits`). A thread that went on
    before the record of the collective ended, since gloo's thread had lost its core, has the recorded, negative lag.

    Producers and consumers, futures: a thread that regularly goes on right after an operator of another thread ends
    waits for it (`evidence.threads`). Ranks of one host may do so, too: what they also talk by (a socket, a lock of a
    file, shared memory) was not recorded.

    Pauses of one role, on whichever threads, wait for work that ends right before (`evidence.pauses`), and a wait that
    joins several threads waits for all (`evidence.joins`).

    Locks and queues of Python, where stacks were recorded: a call that takes one for long waits for the last call of
    another thread that releases this lock, or adds to this queue. Python that is blocked while another thread has the
    interpreter waits for this thread.

    Any other thread: what woke it is unknown. Its first activity, and the first after each long pause, waits for the
    latest moment on the rank's busiest thread or device, so that it moves with the job in a what-if. If it wakes while
    the rank waits for a data loader's workers (a thread that pins batches), its pause is a wait for these too.
    """
    parts = [_interpreted(job)]
    beside = on_one_host(job.traces) and not job.activities.on_device.any()
    takers: list[HostThread] = []
    for rank in job.traces:
        own = len(parts)
        threads = host_threads(job, rank)
        callers = [candidate for candidate in threads if not candidate.is_worker]
        linked = []
        for worker in threads:
            if worker.is_worker and callers:
                parts.append(_around_backward(job, worker, callers))
                linked += [worker] if len(parts[-1]) else []
        parts += _around_collectives(job, rank, threads)
        free = [each for each in threads if each not in linked and not _runs_collectives(job, each)]
        made, taken, confidence = hand_overs(job, free)
        parts += [_edges([made], [taken], confidence), _released(job, rank)]
        takers += free if beside else []
        parts += _by_roles(job, free, Edges.concatenate(parts[own:]))
        known = Edges.concatenate(parts[own:])
        main = next(iter([*callers, *threads]), None)
        clock = _pulse(job, rank, main)
        others = [other for other in threads if other is not main and other not in linked]
        is_known = marked(known.target, 2 * len(job.activities))
        parts += [_awakened(job, other, clock, known, is_known) for other in others]
    made, taken, confidence = hand_overs(job, takers)
    parts.append(_edges([made], [taken], confidence))
    return Edges.concatenate(parts)


def _by_roles(job: RecordedJob, threads: list[HostThread], known: Edges) -> list[Edges]:
    """Return the new edges into pauses of a rank's threads, and the edges of joins."""
    if len(threads) < 2:
        return []
    from htagraph.graph.evidence.joins import joins  # many jobs have one thread
    from htagraph.graph.evidence.pauses import pauses

    made, taken, confidence = pauses(job, threads, known)
    paused = _edges([made], [taken], confidence)
    made, taken, confidence = joins(job, threads, Edges.concatenate([known, paused]))
    return [paused, _edges([made], [taken], confidence)]


def _edges(
    source: list[Array], target: list[Array], confidence: int | Array, owner: list[Array] | None = None
) -> Edges:
    none = np.zeros(0, np.int64)
    ends = np.concatenate([none, *source]), np.concatenate([none, *target])
    activity = -1 if owner is None else np.concatenate([none, *owner])
    return Edges.of(*ends, 0, EdgeKind.THREAD, Provenance.INFERRED, confidence=confidence, activity=activity)


def _around_backward(job: RecordedJob, worker: HostThread, callers: list[HostThread]) -> Edges:
    """Return the edges between a worker and the thread that is blocked while it runs.

    The time of the two hand-overs counts for the caller's innermost activity. The edges are as sure as the share of the
    worker's activities that run while the caller is blocked, less what an id would add.
    """
    inside = [_stretch_around(caller, worker.starts, worker.ends) for caller in callers]
    nearly_all = [bool((stretch >= 0).mean() >= LIMITS.nearly_all) for stretch in inside]
    fits = [each for each, fit in zip(zip(inside, callers, strict=True), nearly_all, strict=True) if fit]
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
    return _edges(source, target, round(100 * share) - (Confidence.PROVEN - Confidence.SURE), owner)


def _stretch_around(caller: HostThread, start: Array, end: Array) -> Array:
    """For each interval, return the index of the caller's last moment before it, or -1 if a moment is inside it."""
    at = np.searchsorted(caller.times, start, side="right") - 1
    behind = np.append(caller.times, np.iinfo(np.int64).max)[at + 1]
    return np.where((at >= 0) & (end <= behind), at, -1)


def _around_collectives(job: RecordedJob, rank: int, threads: list[HostThread]) -> list[Edges]:
    """Return the edges between operators that enqueue collectives, gloo's threads that run them, and who waits."""
    acts = job.activities
    own = acts.of_rank(rank)
    works = own.start + np.flatnonzero(acts.kind[own] == ActivityKind.HOST_COMMUNICATION)
    if not len(works):
        return []
    ops = own.start + np.flatnonzero(acts.kind[own] == ActivityKind.OP)
    # sends and receives run on the thread that calls
    enqueues = names_that(lambda name: is_collective_call(name) and not transfer_direction(name), job.names)
    calls = ops[enqueues[acts.name[ops]]]
    works = works[~np.isin(acts.lane[works], acts.lane[calls])]
    if not len(works) or not len(calls):
        return []
    from htagraph.graph.evidence.host_waits import enqueued_works, host_waits  # few jobs have gloo's threads

    calls, works = enqueued_works(job, calls, works)
    parts = [_edges([2 * calls], [2 * works], Confidence.LIKELY)]
    callers = (thread for thread in threads if not thread.is_worker and not _runs_collectives(job, thread))
    caller = next(callers, None)
    for thread in threads:
        own = acts.lane[calls] == thread.lane
        if own.any():
            joined = caller.with_worker(thread) if caller and thread.is_worker else thread
            work, resumes, confidence = host_waits(job, joined, calls[own], works[own])
            early = np.minimum(0, job.moment(resumes) - job.moment(2 * work + 1))
            parts.append(replace(_edges([2 * work + 1], [resumes], confidence), lag=early))
    return parts


def _runs_collectives(job: RecordedJob, thread: HostThread) -> bool:
    """Return whether a thread is one of gloo's."""
    return bool((job.activities.kind[thread.tops] == ActivityKind.HOST_COMMUNICATION).mean() > LIMITS.most)


def _released(job: RecordedJob, rank: int) -> Edges:
    """Return the edges to the ends of long waits for a lock or a queue, from what gave it on another thread."""
    acts, own = job.activities, job.activities.of_rank(rank)
    frames = own.start + np.flatnonzero(acts.kind[own] == ActivityKind.PYTHON)
    takes, gives = (frames[names_that(which, job.names)[acts.name[frames]]] for which in (is_taking, is_giving))
    takes = takes[acts.duration[takes] >= LIMITS.turn_ns]
    if not (len(takes) and len(gives)):
        return _edges([], [], Confidence.LIKELY)
    objects: dict[str, int] = {}
    ends, begins = job.moment(2 * takes + 1), job.moment(2 * gives)
    wanted, given = (
        np.array([objects.setdefault(job.names[name].partition(" of ")[2], len(objects)) for name in acts.name[rows]])
        for rows in (takes, gives)
    )
    # of the gives of an object, by time, the last one before a wait ended
    first, span = min(ends.min(), begins.min()), np.ptp(np.append(ends, begins)) + 1
    order = np.lexsort((begins, given))
    last = order[np.searchsorted(given[order] * span + begins[order] - first, wanted * span + ends - first) - 1]
    late = ends - begins[last]
    seen = (given[last] == wanted) & (late > 0) & (late <= LIMITS.turn_ns)
    seen &= acts.lane[gives[last]] != acts.lane[takes]
    return _edges([2 * gives[last[seen]]], [2 * takes[seen] + 1], Confidence.LIKELY)


def _interpreted(job: RecordedJob) -> Edges:
    """Return the edges to the ends of stretches of Python, far longer than usual, from what had the interpreter then.

    That is a function of another thread of the rank, which runs all the time and not much longer. Built-in functions
    may give the interpreter away, and who waits for a thread or a process needs none.
    """
    acts, rows = job.activities, job.slices
    source, target, owner = (of[(rows[2] >= 0) & (acts.kind[rows[2]] == ActivityKind.PYTHON)] for of in rows)
    begin, end, name, lane = job.moment(source), job.moment(target), acts.name[owner], acts.lane[owner]
    asks = names_that(lambda each: is_asking(each) or is_taking(each), job.names)[acts.name]
    long = np.flatnonzero(end - begin >= LIMITS.turn_ns)
    long = long[nearest(acts.parent, asks, owner[long]) < 0]
    holds = long[names_that(is_source_frame, job.names)[name[long]]]
    holds = holds[np.argsort(begin[holds], kind="stable")]
    parts = [_edges([], [], 100)]
    for own in np.unique(lane[long]).tolist() if len(holds) else ():
        others = holds[(acts.rank[owner[holds]] == job.lanes[own].rank) & (lane[holds] != own)]
        waits = long[lane[long] == own] if len(others) else long[:0]
        had = others[np.maximum(np.searchsorted(begin[others], (begin[waits] + end[waits]) // 2) - 1, 0)]
        both = np.minimum(end[had], end[waits]) - np.maximum(begin[had], begin[waits])
        most = (both >= LIMITS.nearly_all * (end - begin)[waits]) & (both > LIMITS.most * (end - begin)[had])
        waits, had = waits[most], had[most]
        if not len(waits):
            continue
        alike = np.flatnonzero((lane == own) & np.isin(name, name[waits]))
        usual = dict(zip(name[alike].tolist(), np.add(*middles((end - begin)[alike], coded(name[alike]))), strict=True))
        far = [2 * (end - begin)[row] >= LIMITS.times_usual * usual[name[row]] for row in waits.tolist()]
        edges = _edges([target[had[far]]], [target[waits[far]]], Confidence.LIKELY)
        parts.append(replace(edges, lag=np.minimum(0, end[waits[far]] - end[had[far]])))
    return Edges.concatenate(parts)


def _pulse(job: RecordedJob, rank: int, main: HostThread | None) -> tuple[Array, Array]:
    """Return the vertices of the rank's busiest thread and of its device work, and their times, by time."""
    of_rank = job.activities.of_rank(rank)
    work = (of_rank.start + np.flatnonzero(job.activities.on_device[of_rank])).astype(np.int32)
    vertices = np.concatenate([main.vertices if main else work[:0], 2 * work, 2 * work + 1])
    time = job.moment(vertices)
    order = np.argsort(time, kind="stable")
    return vertices[order], time[order]


def _awakened(
    job: RecordedJob,
    thread: HostThread,
    clock: tuple[Array, Array],
    known: Edges,
    is_known: Mask,
) -> Edges:
    """Return guessed edges to a thread's first activity, and the first after each long pause, where no edge is known.

    `is_known` marks the vertices that edges of `known` lead to. An edge that is known explains no wake-up during a wait
    for a data loader's workers that began after its source.
    """
    vertices, times = clock
    awoken = np.ones(len(thread.tops), np.bool_)
    pause = thread.starts[1:] - np.maximum.accumulate(thread.ends)[:-1]
    # threads of Python that take turns pause for longer
    usual = np.quantile(pause, 0.25) if len(pause) >= LIMITS.often else 0.0
    awoken[1:] = pause > max(LIMITS.python_ns, min(LIMITS.times_usual * usual, LIMITS.turn_ns))
    target = 2 * thread.tops[awoken]
    at = np.searchsorted(times, thread.starts[awoken]) - 1
    source, target = vertices[at[at >= 0]], target[at >= 0]
    loader = waited_loaders(job, source)
    keep = ~is_known[target]
    for row in np.flatnonzero(~keep & (loader >= 0)).tolist():  # one per batch at most
        keep[row] = not (job.moment(known.source[known.target == target[row]]) >= job.moment(source[row])).any()
    return _edges([source[keep]], [target[keep]], Confidence.GUESS, [loader[keep]])
