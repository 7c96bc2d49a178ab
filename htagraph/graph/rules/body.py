"""BODY: the time that an activity itself takes. Lag: that duration, as recorded.

A kernel or copy has one BODY edge, from its start to its end. A host activity has one for each stretch of its self
time, between the activities that it encloses.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["body"]


def body(job: RecordedJob) -> Edges:
    """Return an edge for every stretch of self time; the lags of one activity sum to its self time.

    The time of data loaders has edges of its own.
    """
    return Edges.concatenate(of_lanes(job) for of_lanes in (_of_threads, _of_streams))


def _of_threads(job: RecordedJob) -> Edges:
    source, target, owner = job.slices()
    busy = (owner >= 0) & (job.loaders < 0)
    source, target, owner = source[busy], target[busy], owner[busy]
    lasts = job.between(source, target)
    return Edges.of(source, target, lasts, EdgeKind.BODY, Provenance.ORDER, activity=owner)


def _of_streams(job: RecordedJob) -> Edges:
    work = np.flatnonzero(job.activities.on_device)
    lasts = job.between(2 * work, 2 * work + 1)
    return Edges.of(2 * work, 2 * work + 1, lasts, EdgeKind.BODY, Provenance.OBSERVED, activity=work)
