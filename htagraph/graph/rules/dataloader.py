"""DATALOADER: a thread waits for the data loader's next batch. Lag: the time that the batch takes.

Known by the name of the loader's annotation or operator. Its worker processes are not in the trace. They produce the
next batches while the thread computes, so where the thread waits for each batch, one batch takes the time between two
waits, which is longer than the wait itself.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array, Mask
from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.core.naming import has_loader_workers, names_that
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.threads import unnumbered_names
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["dataloader"]


def dataloader(job: RecordedJob) -> Edges:
    """Return the edges of data loaders, from names and times.

    Each stretch of a loader's self time, whether it is an annotation or an operator, is an edge whose lag is the whole
    stretch. Operators inside, which a loader without workers runs, have BODY edges of their own.

    A loader with workers that is waited for has one more edge per batch: from the end of the last wait before to the
    end of this one. Its lag is the time between the two: what the workers took. The stretch then costs only what it
    takes to fetch a batch that is ready, so that a faster loader hides behind the computation, and faster computation
    gains nothing where the loader is slower.
    """
    acts = job.activities
    source, target, _ = job.slices
    loads = np.flatnonzero(job.loaders >= 0)
    source, target, region = source[loads], target[loads], job.loaders[loads].astype(np.int64)
    lasts = job.moment(target) - job.moment(source)
    outside = job.outside[loads] >= 0
    of_workers = names_that(has_loader_workers, job.names)[acts.name[region]] & ~outside
    items = np.flatnonzero(outside)
    items = items[np.argsort(job.moment(source[items]), kind="stable")]
    around = region[items], target[items] >> 1
    sites = grouped(mixed(acts.lane[region[items]], *(unnumbered_names(acts, rows) for rows in around)))
    lag, parts = lasts.copy(), []
    for rows in [*_longest(job, region, lasts, of_workers), *(items[site] for site in sites)]:
        waited, edges = _workers_edges(job, target[rows], lasts[rows], region[rows])
        ready = lasts[rows][~waited & (lasts[rows] < 2 * LIMITS.turn_ns)]
        fetch = int(np.median(ready)) if len(ready) else LIMITS.turn_ns
        lag[rows[waited]] = np.minimum(fetch, lasts[rows[waited]])
        parts.append(edges)
    stretches = Edges.of(source, target, lag, EdgeKind.DATALOADER, Provenance.OBSERVED, activity=region)
    return Edges.concatenate([stretches, *parts])


def _longest(job: RecordedJob, region: Array, lasts: Array, eligible: Mask) -> list[Array]:
    """Return for each loader, known by thread and name, the longest stretch of each of its batches, by time."""
    acts = job.activities
    rows = np.flatnonzero(eligible)
    rows = rows[np.lexsort((-lasts[rows], region[rows]))]
    rows = rows[np.unique(region[rows], return_index=True)[1]]
    rows = rows[np.lexsort((acts.start[region[rows]], acts.lane[region[rows]]))]
    return [rows[of_loader] for of_loader in grouped(mixed(acts.lane[region[rows]], acts.name[region[rows]]))]


def _workers_edges(job: RecordedJob, resumes: Array, lasts: Array, region: Array) -> tuple[Mask, Edges]:
    """Return (for which batches of a loader its workers were waited for, an edge to the end of each of these waits).

    `resumes` is the vertex after the longest stretch of each batch, in order; `lasts` how long the stretch lasted, ns.
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
    edges = Edges.of(
        resumes[before], resumes[waited], lag, *kinds, confidence=Confidence.NAMED, activity=region[waited]
    )
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
