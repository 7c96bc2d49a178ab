"""Which regions of a host thread wait for a process that was not recorded: environments, a request queue, a socket.

Nothing in the recording ends when such a wait ends. What shows the wait is its pace: the other process needs a steady
time for each item, so a wait is short where the thread's own work was long, and waits end at a steady pace. A region
that works by itself does not make up for the time of the work around it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS

__all__ = ["outside_waits"]


def outside_waits(job: RecordedJob) -> npt.NDArray[np.int32]:
    """Return for each stretch of `RecordedJob.slices` the region in which it waits for outside, else -1.

    A site is all stretches in regions of one name on a thread that end with the same activity: each gets one item. It
    is one of waits if some waits make up for the work before them: those that follow the wait before by as many items.
    """
    acts = job.activities
    source, target, owner = job.slices()
    out = np.full(len(source), -1, np.int32)
    lasts = job.moment(target) - job.moment(source)
    activity = source >> 1
    region = np.where(source & 1, acts.parent[activity], activity)
    frame = of_kinds(acts.kind, (ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.PYTHON))
    free = (region >= 0) & ((owner < 0) | (owner == region)) & frame[region]
    name = np.where(acts.kind == ActivityKind.STEP, -1, acts.name)  # which has a number in it
    key = mixed(acts.lane[region], name[region], name[target >> 1], target & 1)
    long = free & (lasts >= 2 * LIMITS.turn_ns)
    sites, count = np.unique(key[long], return_counts=True)
    rows = np.flatnonzero(free & np.isin(key, sites[count > LIMITS.proof]))
    for site in grouped(key[rows]):
        at = rows[site][np.argsort(job.moment(source[rows[site]]), kind="stable")]
        if _woken_inside(job, target[at[long[at]]]):
            continue
        if _keep_pace(job.moment(source[at]), job.moment(target[at]), np.flatnonzero(long[at])):
            out[at] = region[at]
    return out


def _woken_inside(job: RecordedJob, resumes: Array) -> bool:
    """Return whether most stretches of a thread, given by the vertices behind them, end soon after recorded work does.

    That is work of the same rank on another thread or on a device, or communication, which may be the thread's own.
    """
    acts, first = job.activities, resumes[0] >> 1
    own = acts.of_rank(int(acts.rank[first]))
    works = (acts.on_device[own] | (acts.kind[own] == ActivityKind.OP)) & (acts.lane[own] != acts.lane[first])
    ends = np.sort(acts.end[own][works | (acts.kind[own] == ActivityKind.HOST_COMMUNICATION)])
    if not len(ends):
        return False
    moment = job.moment(resumes)
    before = ends[np.maximum(np.searchsorted(ends, moment, side="right") - 1, 0)]
    return bool((np.abs(moment - before) <= LIMITS.turn_ns).mean() > LIMITS.most)


def _keep_pace(start: Array, end: Array, waited: Array) -> bool:
    """Return whether stretches, given by when they start and end in order, ns, end at a pace of their own.

    `waited` are the long ones.
    """
    items, wait, pace = np.diff(waited), end - start, np.diff(end[waited])
    alike = [(wait[waited][1:][rows], pace[rows], pace[rows]) for rows in grouped(items)]
    every = wait[1:], np.diff(end), np.isin(np.arange(1, len(end)), waited)  # short waits follow long work
    alike.append((*every[:2], every[1][every[2]]))
    # the first item of a recording may have been asked for before it
    return any(_makes_up(*(column[first:] for column in each)) for each in alike for first in (0, 1))


def _makes_up(wait: Array, pace: Array, steady: Array) -> bool:
    """Return whether waits make up for the work before them, beyond chance, so that some of the paces vary less.

    `pace` is the time from the end of the wait before to that of each wait, ns.
    """
    work = pace - wait
    if len(wait) < LIMITS.proof or not wait.std() or not work.std() or not len(steady):
        return False
    follows = float(np.corrcoef(wait, work)[0, 1])
    chance = max(0.0, 1 - follows**2) ** ((len(wait) - 2) / 2)  # no less than for independent normal values
    return follows < 0 and chance < LIMITS.chance and bool(steady.std() < LIMITS.most * wait.std())
