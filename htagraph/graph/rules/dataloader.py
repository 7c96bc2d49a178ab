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
from htagraph.graph.evidence.outside import fetch_ns, paces
from htagraph.graph.tolerances import Confidence

__all__ = ["dataloader"]


def dataloader(job: RecordedJob) -> Edges:
    """Return the edges of data loaders, from names and times.

    Each stretch of a loader's self time, whether it is an annotation or an operator, is an edge whose lag is the whole
    stretch. Operators inside, which a loader without workers runs, have BODY edges of their own.

    A loader with workers that is waited for has one more edge per batch: from the end of the last wait before to the
    end of this one. Its lag is the time between the two: the workers' time. The stretch then costs only the time
    that fetching a ready batch takes, so that a faster loader hides behind the computation, and faster
    computation gains nothing where the loader is slower.

    A wait for a process that was not recorded has such an edge, too (`evidence.outside`). No name proves the wait, so
    that the edge is inferred, and the stretch is time of the thread like any other.
    """
    acts = job.activities
    source, target, _ = job.slices
    loads = np.flatnonzero(job.loaders >= 0)
    source, target, region = source[loads], target[loads], job.loaders[loads].astype(np.int64)
    lasts = job.moment(target) - job.moment(source)
    of_workers = names_that(has_loader_workers, job.names)[acts.name[region]]
    lag = lasts.copy()
    by_loader: list[Edges] = []
    for rows in _longest(job, region, lasts, of_workers):
        waited, edges = paces(job, target[rows], lasts[rows], region[rows], Confidence.NAMED)
        lag[rows[waited]] = np.minimum(fetch_ns(lasts[rows], waited), lasts[rows[waited]])
        by_loader.append(edges)
    stretches = Edges.of(source, target, lag, EdgeKind.DATALOADER, Provenance.OBSERVED, activity=region)
    return Edges.concatenate([stretches, *by_loader, job.outside.paces])


def _longest(job: RecordedJob, region: Array, lasts: Array, eligible: Mask) -> list[Array]:
    """Return for each loader, known by thread and name, the longest stretch of each of its batches, by time."""
    acts = job.activities
    rows = np.flatnonzero(eligible)
    rows = rows[np.lexsort((-lasts[rows], region[rows]))]
    rows = rows[np.unique(region[rows], return_index=True)[1]]
    rows = rows[np.lexsort((acts.start[region[rows]], acts.lane[region[rows]]))]
    return [rows[of_loader] for of_loader in grouped(mixed(acts.lane[region[rows]], acts.name[region[rows]]))]
