"""Waits for a process that was not recorded: an inference from a steady pace, whatever the waits are called.

Nothing in the recording ends when such a wait ends, so that no name and no id can say so; `threads.outside_waits` finds
stretches that make up for the work before them. A thread that works by itself at a steady pace looks the same, where
its work is steady too: predictions are made with these edges and without.

Where a thread waits for each item that is made elsewhere, by worker processes of a data loader or by others, one item
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
    """What each of `waits` would have taken if nothing had to be waited for, ns."""
    paces: Edges
    """The edges from the end of the last wait before to that of each wait."""


def outside(job: RecordedJob) -> Outside:
    """Return the waits of a job for what was not recorded."""
    acts, (source, target, _) = job.activities, job.slices
    region = outside_waits(job)
    items = np.flatnonzero(region >= 0)
    items = items[np.argsort(job.moment(source[items]), kind="stable")]
    names = (unnumbered_names(acts, rows) for rows in (region[items], target[items] >> 1))
    none = np.zeros(0, np.int64)
    fetches, edges = [], [paces(job, none, none, none, Confidence.COUNTED)[1]]
    for site in grouped(mixed(acts.lane[region[items]], *names)):
        rows = items[site]
        lasts = job.moment(target[rows]) - job.moment(source[rows])
        waited, of_site = paces(job, target[rows], lasts, region[rows].astype(np.int64), Confidence.COUNTED)
        fetches.append((rows[waited], np.minimum(fetch_ns(lasts, waited), lasts[waited])))
        edges.append(of_site)
    waits, fetch = joined(fetches, 2)
    return Outside(region, waits, fetch, Edges.concatenate(edges))


def fetch_ns(lasts: Array, waited: Mask) -> int:
    """Return what it takes to fetch an item that is ready, ns: the median of those that nobody waited for."""
    ready = lasts[~waited & (lasts < 2 * LIMITS.turn_ns)]
    return int(np.median(ready)) if len(ready) else LIMITS.turn_ns


def paces(job: RecordedJob, resumes: Array, lasts: Array, region: Array, confidence: Confidence) -> tuple[Mask, Edges]:
    """Return (which items made elsewhere were waited for, an edge to the end of each of these waits).

    Its lag is the time between two of these ends: what it took to make the items in between.

    Args:
        job: the job.
        resumes: the vertex behind the longest stretch in which each item was waited for, by time.
        lasts: how long each stretch lasted, ns.
        region: the annotation, operator or frame of each stretch.
        confidence: how sure it is that the items are made elsewhere.
    """
    ends = job.moment(resumes)
    waited = np.flatnonzero(lasts >= 2 * LIMITS.turn_ns)
    workers = _workers(ends, waited)
    apart = np.diff(waited, prepend=waited[:1] - workers)
    before = waited - np.clip(apart, workers, LIMITS.ahead * workers)
    waited, before = waited[before >= 0], before[before >= 0]
    lag = ends[waited] - ends[before]
    pace = lag[1:] / (waited - before)[1:]
    if len(waited) > LIMITS.several and _spread(pace) > LIMITS.steady * _spread(lasts[waited[1:]]):
        waited, before, lag = waited[:0], before[:0], lag[:0]
    kinds = EdgeKind.DATALOADER, Provenance.INFERRED
    edges = Edges.of(resumes[before], resumes[waited], lag, *kinds, confidence=confidence, activity=region[waited])
    return np.isin(np.arange(len(ends)), waited), edges


def _workers(ends: Array, waited: Array) -> int:
    """Return how many workers take turns, as far as the waits show it; 1 if they do not.

    A worker prepares each of its batches in the same time, so that these ends lie equally far apart. `ends` is when the
    thread had each batch, ns; `waited` are the batches for which it waited.
    """
    apart = np.diff(waited)  # batches between one wait and the next
    usual = int(np.median(apart)) if len(apart) else 1
    if np.count_nonzero(apart == usual) >= LIMITS.typical * len(apart):
        return usual  # one wait for a batch of each worker
    spreads = {}
    for count in range(1, LIMITS.in_a_row + 1):
        own = waited[waited >= waited[0] + count]
        if len(own) < LIMITS.several - 1:
            break
        spreads[count] = _spread(ends[own] - ends[own - count])
    best = min(spreads, key=lambda count: spreads[count], default=1)
    return best if spreads and spreads[best] < LIMITS.most * spreads[1] else 1


def _spread(values: Array) -> float:
    """Return the mean distance of values from their median."""
    return float(np.mean(np.abs(values - np.median(values))))
