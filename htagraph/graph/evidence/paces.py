"""The pace of those who make items elsewhere, seen only in when a thread that takes them goes on.

Worker processes of a data loader, or any process that was not recorded, make the next items while the thread computes:
where it waits for each, one takes the time between two waits, which is longer than the wait itself.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array, Mask
from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["fetch_ns", "paces"]


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
