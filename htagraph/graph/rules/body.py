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
    acts = job.activities
    source, target, owner = job.slices()
    busy = (owner >= 0) & (job.loaders < 0)
    source, target, owner = source[busy], target[busy], owner[busy]
    host = Edges.of(source, target, job.between(source, target), EdgeKind.BODY, Provenance.ORDER, activity=owner)
    work = np.flatnonzero(acts.on_device)
    lasts = job.between(2 * work, 2 * work + 1)
    device = Edges.of(2 * work, 2 * work + 1, lasts, EdgeKind.BODY, Provenance.OBSERVED, activity=work)
    return Edges.concatenate([host, device])
