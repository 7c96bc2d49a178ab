"""Calls of data loaders, and the pace of the worker processes for which they wait.

Worker processes are not in the trace. They make the next batches while the thread computes, so where the thread waits
for each batch, one batch takes the time between two waits, which is longer than the wait itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Mask
from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.core.naming import has_loader_workers, names_that
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.outside import fetch_ns, paces
from htagraph.graph.tolerances import Confidence

__all__ = ["Loads", "loads"]


class Loads(NamedTuple):
    """The time of the data loaders of a job."""

    stretches: Edges
    """An edge along each stretch of a loader's own time."""
    paces: Edges
    """The edges from the end of the last wait for a batch of workers to the end of the next wait."""


def loads(job: RecordedJob) -> Loads:
    """Return the calls of a job's data loaders, and the pace of the loaders' workers.

    A loader with workers that is waited for has one more edge per batch: from the end of the last wait before to the
    end of this one. Its lag is the time between the two: the workers' time. The stretch then costs only the time
    that fetching a ready batch takes, so that a faster loader hides behind the computation, and faster
    computation gains nothing where the loader is slower.
    """
    acts = job.activities
    source, target, _ = job.slices
    rows = np.flatnonzero(job.loaders >= 0)
    source = source[rows]
    target = target[rows]
    region = job.loaders[rows].astype(np.int64)
    lasts = job.moment(target) - job.moment(source)
    of_workers = names_that(has_loader_workers, job.names)[acts.name[region]]
    lag = lasts.copy()
    by_loader: list[Edges] = []
    for batches in _longest(job, region, lasts, of_workers):
        waited, edges = paces(
            job,
            target[batches],
            lasts[batches],
            region[batches],
            Confidence.NAMED,
        )
        late = batches[waited]
        ready_ns = fetch_ns(lasts[batches], waited)
        lag[late] = np.minimum(ready_ns, lasts[late])
        by_loader.append(edges)
    stretches = Edges.of(
        source,
        target,
        lag,
        EdgeKind.DATALOADER,
        Provenance.OBSERVED,
        activity=region,
    )
    no_edges = stretches.take(rows[:0])
    return Loads(
        stretches,
        Edges.concatenate([no_edges, *by_loader]),
    )


def _longest(job: RecordedJob, region: Array, lasts: Array, eligible: Mask) -> list[Array]:
    """Return for each loader, known by thread and name, the longest stretch of each of its batches, by time."""
    acts = job.activities
    rows = np.flatnonzero(eligible)
    by_region = np.lexsort((-lasts[rows], region[rows]))
    rows = rows[by_region]
    _, longest = np.unique(
        region[rows],
        return_index=True,
    )
    rows = rows[longest]
    batch = region[rows]
    by_time = np.lexsort((acts.start[batch], acts.lane[batch]))
    rows = rows[by_time]
    batch = batch[by_time]
    loader = mixed(acts.lane[batch], acts.name[batch])
    return [rows[of_loader] for of_loader in grouped(loader)]
