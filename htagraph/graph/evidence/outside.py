"""Waits for a process that was not recorded: an inference from a steady pace, whatever the waits are called.

Nothing in the recording ends when such a wait ends, so that no name and no id can say so; `threads.outside_waits` finds
stretches that make up for the work before them. A thread that works by itself at a steady pace looks the same, where
its work is steady too: predictions are made with these edges and without.

Where a thread waits for each item that is made elsewhere, by workers of a data loader or by another process, one item
takes the time between two waits, which is longer than the wait itself: the makers go on while the thread computes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, joined
from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.threads import outside_waits, unnumbered_names
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["Outside", "fetch_ns", "outside", "paces"]


class Outside(NamedTuple):
    """Where the threads of a job wait for processes that were not recorded."""

    region: Array
    """For each stretch of `RecordedJob.slices`: the region in which it waits for outside, or -1."""
    waits: Array
    """The stretches that waited."""
    fetch: Ints
    """How long each of `waits` would have taken if nothing had to be waited for, ns."""
    paces: Edges
    """The edges from the end of the last wait before to that of each wait."""


def outside(job: RecordedJob) -> Outside:
    """Return the waits of a job for work that was not recorded."""
    source, target, _ = job.slices
    region = outside_waits(job)
    items = np.flatnonzero(region >= 0)
    by_start = np.argsort(job.moment(source[items]), kind="stable")
    items = items[by_start]
    none = np.zeros(0, np.int64)
    no_pace = paces(job, none, none, none, Confidence.COUNTED)
    first = _first_moments(job)
    edges = [no_pace[1]]
    fetches: list[tuple[Array, Array]] = []
    for site in grouped(_sites(job, region[items], target[items] >> 1)):
        rows = items[site]
        lasts = job.moment(target[rows]) - job.moment(source[rows])
        waited, edges_of_site = paces(
            job,
            target[rows],
            lasts,
            region[rows].astype(np.int64),
            Confidence.COUNTED,
            int(first[job.activities.lane[region[rows[0]]]]),
        )
        fetch = np.minimum(fetch_ns(lasts, waited), lasts[waited])
        fetches.append((rows[waited], fetch))
        edges.append(edges_of_site)
    waits, fetch_of_waits = joined(fetches, 2)
    return Outside(
        region,
        waits,
        fetch_of_waits,
        Edges.concatenate(edges),
    )


def _first_moments(job: RecordedJob) -> Array:
    """Return for each lane the vertex at which its recording begins."""
    lane, row = np.unique(job.activities.lane, return_index=True)
    out = np.full(len(job.lanes) + 1, -1, np.int64)
    out[lane] = 2 * row
    return out


def _sites(job: RecordedJob, region: Array, behind: Array) -> Array:
    """Return a number per wait, equal for waits of one thread between activities of the same names.

    Args:
        job: the job.
        region: the region in which each wait is.
        behind: the activity behind each wait.
    """
    acts = job.activities
    return mixed(
        acts.lane[region],
        unnumbered_names(acts, region),
        unnumbered_names(acts, behind),
    )


def fetch_ns(lasts: Array, waited: Mask) -> int:
    """Return how long it takes to fetch an item that is ready, ns: the median of the items that nobody waited for."""
    is_short = lasts < 2 * LIMITS.turn_ns
    ready = lasts[~waited & is_short]
    return int(np.median(ready)) if len(ready) else LIMITS.turn_ns


def paces(
    job: RecordedJob,
    resumes: Array,
    lasts: Array,
    region: Array,
    confidence: Confidence,
    first: int = -1,
) -> tuple[Mask, Edges]:
    """Return (which items made elsewhere were waited for, an edge to the end of each of these waits).

    Its lag is the time between two of these ends: how long it took to make the items in between. An item that was begun
    before the recording comes when it was recorded to come, whatever the thread does: it counts from `first`.

    Args:
        job: the job.
        resumes: the vertex behind the longest stretch in which each item was waited for, by time.
        lasts: how long each stretch lasted, ns.
        region: the annotation, operator or frame of each stretch.
        confidence: how sure it is that the items are made elsewhere.
        first: the vertex at which the recording of the thread begins; -1 to leave out items begun before the recording.
            A wait with which the recording begins is left out, too: the time of no item shows before it.
    """
    ends = job.moment(resumes)
    waited = np.flatnonzero(lasts >= 2 * LIMITS.turn_ns)
    before = _waits_before(waited, _workers(ends, waited))
    has_before = before >= 0
    is_told = has_before | _begins_later(job, first, ends[waited] - lasts[waited])
    waited = waited[is_told]
    before = before[is_told]
    has_before = before >= 0
    if not has_before.any() or not _is_steady(ends, lasts, waited[has_before], before[has_before]):
        waited = waited[:0]
        before = before[:0]
        has_before = has_before[:0]
    source = np.where(has_before, resumes[before], first)
    edges = Edges.of(
        source,
        resumes[waited],
        ends[waited] - job.moment(source),
        EdgeKind.OUTSIDE,
        Provenance.INFERRED,
        confidence=confidence,
        activity=region[waited],
    )
    was_waited_for = np.isin(np.arange(len(ends)), waited)
    return was_waited_for, edges


def _begins_later(job: RecordedJob, first: int, begin_ns: Array) -> Mask:
    """Return which stretches begin behind a vertex; none behind vertex -1.

    Args:
        job: the job.
        first: the vertex.
        begin_ns: when each stretch begins, ns.
    """
    if first < 0:
        return np.zeros(len(begin_ns), np.bool_)
    return begin_ns > job.moment(np.array([first]))[0]


def _waits_before(waited: Array, workers: int) -> Array:
    """Return for each wait the item from whose end the time of its own item counts; below 0 if it was not recorded.

    Args:
        waited: the items for which a thread waited.
        workers: how many workers take turns.
    """
    before_first = waited[:1] - workers
    apart = np.diff(waited, prepend=before_first)
    return waited - np.clip(apart, workers, LIMITS.ahead * workers)


def _is_steady(
    ends: Array,
    lasts: Array,
    waited: Array,
    before: Array,
) -> bool:
    """Return whether the time per item varies less than the waits do, or the waits are too few to tell.

    Args:
        ends: when the thread had each item, ns.
        lasts: how long it waited for each item, ns.
        waited: the items for which it waited.
        before: for each of these, the item from whose end the time counts.
    """
    if len(waited) <= LIMITS.often:
        return True
    lag = ends[waited] - ends[before]
    items = waited - before
    pace = lag[1:] / items[1:]
    return _spread(pace) <= LIMITS.steady * _spread(lasts[waited[1:]])


def _workers(ends: Array, waited: Array) -> int:
    """Return how many workers take turns, as far as the waits show it; 1 if they do not.

    A worker prepares each of its batches in the same time, so that these ends lie equally far apart. `ends` is when the
    thread had each batch, ns; `waited` are the batches for which it waited.
    """
    apart = np.diff(waited)  # batches between one wait and the next
    usual = int(np.median(apart)) if len(apart) else 1
    if np.count_nonzero(apart == usual) >= LIMITS.typical * len(apart):
        return usual  # one wait for a batch of each worker
    spreads: dict[int, float] = {}
    for count in range(1, LIMITS.in_a_row + 1):
        later = waited[waited >= waited[0] + count]
        if len(later) < LIMITS.often:
            break
        spreads[count] = _spread(ends[later] - ends[later - count])
    if not spreads:
        return 1
    best = min(spreads, key=lambda count: spreads[count])
    return best if spreads[best] < LIMITS.most * spreads[1] else 1


def _spread(values: Array) -> float:
    """Return the mean distance of values from their median."""
    distance = np.abs(values - np.median(values))
    return float(np.mean(distance))
