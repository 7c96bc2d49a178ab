"""Which regions of a host thread wait for a process that was not recorded: environments, a request queue, a socket.

Nothing in the recording ends when such a wait ends. What shows the wait is its pace: the other process needs a steady
time for each item, so a wait is short where the thread's own work was long, and waits end at a steady pace. A region
that works by itself does not make up for the time of the work around it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.threads import places_of
from htagraph.graph.tolerances import LIMITS

__all__ = ["outside_waits"]


def outside_waits(job: RecordedJob) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return for each stretch of `RecordedJob.slices` (the region in which it waits for outside, since which vertex).

    Both are -1 for none. The vertex is where the thread may have asked, and also -1 where that is the end of the wait
    before. A site is all stretches in regions of one name on a thread that end with the same activity: each gets one
    item. It is one of waits if waits make up for the work before them: all, or those that follow the wait before by as
    many items.
    """
    acts = job.activities
    source, target, owner = job.slices()
    out, since = np.full(len(source), -1, np.int32), np.full(len(source), -1, np.int64)
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
        asked = _keep_pace(job, source[at], target[at], np.flatnonzero(long[at]))
        if asked is not None:
            out[at], since[at] = region[at], asked
    return out, since


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


def _keep_pace(job: RecordedJob, source: Array, target: Array, waited: Array) -> Array | None:
    """Return since when stretches of a site end at a pace of their own: a vertex of each, or -1; None if they do not.

    They are given by their vertices, in order; `waited` are the long ones. The pace counts from the end of the stretch
    before, or from a moment between the two, where the thread asks for what it waits for after other work.
    """
    start, end = job.moment(source), job.moment(target)
    items, wait, pace = np.diff(waited), end - start, np.diff(end[waited])
    long = np.isin(np.arange(1, len(end)), waited)
    every = (wait[1:], np.diff(end), np.diff(end)[long])  # short waits follow long work
    alike = [every, *((wait[waited[1:]][rows], pace[rows], pace[rows]) for rows in grouped(items))]
    # the first item of a recording may have been asked for before it
    found = any(_makes_up(w[first:], p[first:], steady[first:]) for w, p, steady in alike for first in (0, 1))
    best, least = np.full(len(end), -1, np.int64), float(every[2].std()) if found else np.inf
    for asked in _moments_between(job, source, target):
        known = np.flatnonzero(asked[1:] >= 0) + 1
        took = (end - job.moment(asked))[known]
        if _makes_up(wait[known], took, took[long[known - 1]], LIMITS.tried) and took.std() < LIMITS.most * least:
            best, least, found = asked, float(took.std()) / LIMITS.most, True
    return best if found else None


def _moments_between(job: RecordedJob, source: Array, target: Array) -> Iterator[Array]:
    """Yield the moments of one kind that a thread has between stretches, the last before each, -1 for none."""
    acts, lane = job.activities, job.activities.lane
    vertices = job.boundaries[job.boundaries_of(int(acts.rank[source[0] >> 1]))].astype(np.int64)
    vertices = vertices[lane[vertices >> 1] == lane[source[0] >> 1]]
    above = acts.parent[vertices >> 1]
    vertices = vertices[(above < 0) | (acts.kind[above] != ActivityKind.OP) | (np.isin(vertices, (source, target)))]
    name = np.where(acts.kind == ActivityKind.STEP, -1, acts.name)
    key = 2 * name[vertices >> 1] + (vertices & 1)
    behind, last = places_of(vertices, target[:-1]), places_of(vertices, source[1:])
    middle = len(last) // 2
    for each in np.unique(key[behind[middle] + 1 : last[middle] + 1])[: LIMITS.tried].tolist():
        of_kind = np.flatnonzero(key == each)
        at = of_kind[np.maximum(np.searchsorted(of_kind, last, side="right") - 1, 0)]
        between = (at > behind) & (at <= last)
        if between.mean() >= LIMITS.nearly_all:
            yield np.append([-1], np.where(between, vertices[at], -1))


def _makes_up(wait: Array, pace: Array, steady: Array, alternatives: int = 1) -> bool:
    """Return whether waits make up for the work before them, beyond chance, so that some of the paces vary less.

    `pace` is the time up to the end of each wait, ns, counted in one of some `alternatives`.
    """
    work = pace - wait
    if len(wait) < LIMITS.proof or not wait.std() or not work.std() or not len(steady):
        return False
    follows = float(np.corrcoef(wait, work)[0, 1])
    chance = max(0.0, 1 - follows**2) ** ((len(wait) - 2) / 2)  # no less than for independent normal values
    return follows < 0 and chance * alternatives < LIMITS.chance and bool(steady.std() < LIMITS.most * wait.std())
