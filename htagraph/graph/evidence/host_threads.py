"""The host threads of a rank: their moments, when they are idle, and which of them are autograd's workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ActivityKind
from htagraph.graph.evidence.job import Job

__all__ = ["HostThread", "host_threads"]


@dataclass(frozen=True, eq=False)
class HostThread:
    """A host thread: its moments in order, and its top-level activities."""

    lane: int
    vertices: npt.NDArray[np.int64]
    """Starts and ends of its activities, in order."""
    times: npt.NDArray[np.int64]
    """When they were recorded, ns."""
    running: npt.NDArray[np.int32]
    """The innermost operator or call that runs right after each moment, or -1."""
    tops: npt.NDArray[np.int64]
    """The activities that no other one on the thread encloses."""
    starts: npt.NDArray[np.int64]
    """When each of `tops` starts, ns."""
    ends: npt.NDArray[np.int64]
    """When each of `tops` ends, ns."""
    is_worker: bool
    """Whether it is a thread of the autograd engine."""

    def with_worker(self, worker: HostThread) -> HostThread:
        """Return the moments of this thread and of a worker that runs while this thread is blocked, as of one thread.

        The lane and the top-level activities are this thread's.
        """
        times = np.concatenate((self.times, worker.times))
        order = np.argsort(times, kind="stable")
        both = np.maximum(*(each.running_at(times) for each in (self, worker)))
        own = np.concatenate((self.running, worker.running))
        running = np.where(own >= 0, own, both)[order].astype(np.int32)
        return replace(
            self, vertices=np.concatenate((self.vertices, worker.vertices))[order], times=times[order], running=running
        )

    def running_at(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the innermost operator or call that runs right after each time (ns), or -1."""
        at = np.searchsorted(self.times, times, side="right") - 1
        return np.where(at >= 0, self.running[at], -1).astype(np.int32)


def host_threads(job: Job, rank: int) -> list[HostThread]:
    """Return the rank's threads, the one with the most activities first; on ties, the one that starts first.

    A worker spends most of its time in backward operators. Where another thread has the steps, a thread that runs any
    backward operator is a worker.
    """
    acts = job.activities
    of_rank, own = acts.of_rank(rank), job.boundaries_of(rank)
    boundaries, at_work = job.boundaries[own].astype(np.int64), job.at_work[own]
    lanes = acts.lane[boundaries >> 1]
    with_steps = np.unique(acts.lane[of_rank][acts.kind[of_rank] == ActivityKind.STEP])
    threads = []
    cuts = [0, *(np.flatnonzero(np.diff(lanes)) + 1).tolist(), len(lanes)]
    for first, last in pairwise(cuts if len(lanes) else ()):
        vertices = boundaries[first:last]
        opened = vertices[vertices & 1 == 0] >> 1
        tops = opened[acts.parent[opened] < 0]
        backward = (job.forward_thread[tops] > 0) | job.backward_names[acts.name[tops]]
        begins, ends = job.moment(2 * tops), job.moment(2 * tops + 1)
        takes = (ends - begins).astype(np.float64)  # damaged durations may sum to more than an integer holds
        lane = int(acts.lane[opened[0]])
        beside = bool(len(with_steps)) and lane not in with_steps
        is_worker = 2 * takes[backward].sum() > takes.sum() or backward.all() or (beside and backward.any())
        running = at_work[first:last]
        threads.append(HostThread(lane, vertices, job.moment(vertices), running, tops, begins, ends, bool(is_worker)))
    return sorted(threads, key=lambda thread: (-len(thread.vertices), int(thread.times[0])))
