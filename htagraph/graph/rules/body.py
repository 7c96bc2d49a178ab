"""BODY: the time that an activity itself takes. Lag: that duration, as recorded.

A kernel or copy has one BODY edge, from its start to its end; that of a stream's recorded wait, whose end another edge
gives, has no lag. A host activity has one for each stretch of its self time, between the activities that it encloses.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["body"]


def body(job: RecordedJob) -> Edges:
    """Return an edge for every stretch of self time; the lags of one activity sum to its self time.

    The time of data loaders has edges of its own. A stretch in which a frame waits for a process that was not recorded
    has the duration of a stretch without a wait.
    """
    return Edges.concatenate(_stretches(job))


def _stretches(job: RecordedJob) -> Iterator[Edges]:
    source, target, owner = job.slices
    busy = (owner >= 0) & (job.loaders < 0)
    lasts = job.moment(target)
    lasts -= job.moment(source)
    lasts[job.outside.waits] = job.outside.fetch
    source, target, owner, lasts = source[busy], target[busy], owner[busy], lasts[busy]
    yield Edges.of(source, target, lasts, EdgeKind.BODY, Provenance.ORDER, activity=owner)
    work = np.flatnonzero(job.activities.on_device)
    lasts = job.moment(2 * work + 1) - job.moment(2 * work)
    is_wait = np.isin(work, job.serial_work.waited)
    lasts[is_wait] = 0  # it lasts until the work ends that it waits for
    yield Edges.of(2 * work, 2 * work + 1, lasts, EdgeKind.BODY, Provenance.OBSERVED, activity=work)
    lent = np.flatnonzero(job.activities.borrowed)  # no duration, at the start of the launch that they are inside of
    for ends in ((2 * job.activities.parent[lent], 2 * lent), (2 * lent, 2 * lent + 1)):
        yield Edges.of(ends[0], ends[1], 0, EdgeKind.BODY, Provenance.INFERRED, activity=lent)
