"""`were_full`: whether all cores of a host were taken at some moments, where files say how many cores ranks may use.

The end of a thread's work then gives a core to a thread of any rank that waits for one. That the other thread goes on
right behind it does not say that it waited for this thread's work.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.recordings import cores_of_ranks, hosts_of
from htagraph.graph.tolerances import LIMITS

__all__ = ["were_full"]


def were_full(job: RecordedJob, rank: Array, moment: Array) -> Mask:
    """Return whether threads had all cores of a rank's host right before some moments.

    Args:
        job: the recorded job.
        rank: a rank of the host, for each moment.
        moment: the moments, ns.

    Returns:
        Whether as many threads of the host as it has cores were at work; False where their number is not known.
    """
    full = np.zeros(len(moment), np.bool_)
    host_of_rank = hosts_of(job.traces)
    for host in sorted(set(host_of_rank.values())):
        ranks = [candidate for candidate, its_host in host_of_rank.items() if its_host == host]
        cores = cores_of_ranks(job.traces, ranks)
        if cores is None:
            continue
        here = np.isin(rank, ranks)
        full[here] = _at_work(job, ranks, moment[here]) >= cores
    return full


def _at_work(job: RecordedJob, ranks: list[int], moment: Array) -> Ints:
    """Return how many host threads of some ranks were at work right before each moment, ns.

    A thread is at work in operators and calls, and between them unless it records nothing for long.
    """
    acts = job.activities
    source, target, running = job.slices
    begin = job.moment(source)
    end = job.moment(target)
    is_at_work = (running >= 0) | (end - begin < LIMITS.python_ns)
    is_at_work &= np.isin(acts.rank[source >> 1], ranks)
    begun = np.searchsorted(np.sort(begin[is_at_work]), moment, side="left")
    ended = np.searchsorted(np.sort(end[is_at_work]), moment, side="left")
    return np.asarray(begun - ended)
