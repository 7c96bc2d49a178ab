"""Which time of host threads is that of data loaders, known by the names of their annotations or operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import has_loader_workers, is_data_loader, names_that

if TYPE_CHECKING:
    from htagraph.graph.evidence.job import Job

__all__ = ["loaders", "waited_loaders", "worker_loads"]


def loaders(job: Job) -> npt.NDArray[np.int32]:
    """Return for each stretch of `Job.slices` the annotation or operator of a loader whose own time it is, else -1.

    What is open innermost has the time, also if it is an annotation in a Python frame. Python frames inside a loader
    with workers wait for these: their time is the loader's.
    """
    acts = job.activities
    names = names_that(is_data_loader, job.names)
    source, _, owner = job.slices()
    out = np.full(len(source), -1, np.int32)
    if not names.any():
        return out
    is_loader = np.append(names[acts.name], [False])
    around = acts.parent[source >> 1]
    here = np.flatnonzero(is_loader[owner] | is_loader[source >> 1] | is_loader[around])
    innermost = np.where(source[here] & 1, around[here], source[here] >> 1)
    out[here] = np.where(is_loader[innermost], innermost, np.where(is_loader[owner[here]], owner[here], -1))
    waits = np.flatnonzero((names & names_that(has_loader_workers, job.names))[acts.name] & ~acts.on_device)
    if len(waits) and ActivityKind.PYTHON in acts.kind:
        frames = np.flatnonzero((owner >= 0) & (acts.kind[owner] == ActivityKind.PYTHON))
        waited = _around(job, source[frames], waits)
        out[frames[waited >= 0]] = waited[waited >= 0]
    return out


def waited_loaders(job: Job, vertex: Array) -> npt.NDArray[np.int64]:
    """Return for each vertex the annotation or operator of a loader whose workers its thread waits for, or -1."""
    begins, region = job.worker_loads
    if not len(begins):
        return np.full(len(vertex), -1, np.int64)
    at = np.minimum(np.searchsorted(begins, vertex), len(begins) - 1)
    return np.where(begins[at] == vertex, region[at], -1).astype(np.int64)


def worker_loads(job: Job) -> tuple[Array, Array]:
    """Return (vertex where it begins, annotation or operator of the loader) of each wait for a loader's workers.

    They are sorted by vertex.
    """
    source, _, _ = job.slices()
    loads = np.flatnonzero(job.loaders >= 0)
    loads = loads[names_that(has_loader_workers, job.names)[job.activities.name[job.loaders[loads]]]]
    loads = loads[np.argsort(source[loads], kind="stable")]
    return source[loads], job.loaders[loads]


def _around(job: Job, vertex: Array, regions: Array) -> Array:
    """Return for each moment of a host thread the region on its thread that lasts then, the last to start; else -1."""
    acts = job.activities
    origin = int(acts.start.min())
    span = int((acts.start + acts.duration).max()) - origin + 1
    begin = acts.lane[regions].astype(np.int64) * span + acts.start[regions] - origin
    order = np.argsort(begin, kind="stable")
    at = np.searchsorted(
        begin[order], acts.lane[vertex // 2].astype(np.int64) * span + acts.moment(vertex) - origin, "right"
    )
    region = regions[order][np.maximum(at - 1, 0)]
    lasts = (at > 0) & (acts.lane[region] == acts.lane[vertex // 2])
    return np.where(lasts & (acts.moment(vertex) < acts.start[region] + acts.duration[region]), region, -1)
