"""What a launch takes until its work starts, told apart from what the work waited for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import EdgeKind
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["latency"]

_UNKNOWN_NS = 10_000
"""ns: the most that a launch takes until its work starts, where no launch of a rank ever found its stream free.
Chosen: 4 to 8 µs are usual on CUDA devices. Doubled, such a launch may hold its work up by 20 µs in a what-if."""
_MAX_TIMES_USUAL = 4
"""Times the usual latency of the rank that the latency of one kind of call may be; above, these calls wait for
something that no edge describes, and the usual latency is taken. Chosen: graph launches and cooperative launches take
up to three times as long. Doubled, hidden waits of up to eight latencies count as latency."""


def latency(job: Job, edges: Edges) -> Edges:
    """Return the edges, LAUNCH with at most the usual latency of that rank's calls of that name.

    Usual is the median over works that found nothing to wait for: all they depend on was over when the call began. (The
    minimum would be a bound, but it predicts too early a start for work that had to queue.)
    """
    rows = np.flatnonzero(edges.kind == EdgeKind.LAUNCH)
    if not len(rows):
        return edges
    acts = job.activities
    call, work = edges.source[rows] // 2, edges.target[rows] // 2
    began, seen = job.moment(2 * call), edges.lag[rows]
    free = _held_until(job, edges)[work] <= began
    rank = acts.rank[call].astype(np.int64)
    of_rank = _medians(rank, seen, free, np.full(len(rows), _UNKNOWN_NS))
    of_class = _medians(rank << 32 | acts.name[call], seen, free, of_rank)
    usual = np.where(of_class > _MAX_TIMES_USUAL * of_rank, of_rank, of_class)
    lag = edges.lag.copy()
    lag[rows] = np.minimum(seen, np.maximum(0, usual))
    return replace(edges, lag=lag)


def _held_until(job: Job, edges: Edges) -> npt.NDArray[np.int64]:
    """Return for each activity when all was over that its start depends on, its launch apart."""
    into = (edges.target % 2 == 0) & (edges.kind != EdgeKind.LAUNCH) & job.activities.on_device[edges.target // 2]
    held = np.full(len(job.activities), np.iinfo(np.int64).min)
    np.maximum.at(held, edges.target[into] // 2, job.moment(edges.source[into]))
    return held


def _medians(
    group: npt.NDArray[np.int64], value: npt.NDArray[np.int64], use: npt.NDArray[np.bool_],
    otherwise: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Return for each row the median of the values in use of its group, of groups without any what is given."""
    groups, member = np.unique(group, return_inverse=True)
    member = member.ravel()
    rows = np.flatnonzero(use)
    rows = rows[np.lexsort((value[rows], member[rows]))]
    first = np.searchsorted(member[rows], np.arange(len(groups) + 1))
    some = first[1:] > first[:-1]
    middle = np.zeros(len(groups), np.int64)
    middle[some] = value[rows][((first[1:] + first[:-1]) // 2)[some]]
    return np.where(some[member], middle[member], otherwise)
