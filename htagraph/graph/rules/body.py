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
    """Yield the edges of threads, of devices, and of borrowed activities."""
    yield _on_hosts(job)
    yield _on_devices(job)
    yield from _borrowed(job)


def _on_hosts(job: RecordedJob) -> Edges:
    """Return an edge for each stretch of self time on a thread of the host."""
    source, target, owner = job.slices
    lasts = job.moment(target)
    lasts -= job.moment(source)
    lasts[job.outside.waits] = job.outside.fetch
    busy = (owner >= 0) & (job.loaders < 0)
    return Edges.of(source[busy], target[busy], lasts[busy], EdgeKind.BODY, Provenance.ORDER, activity=owner[busy])


def _on_devices(job: RecordedJob) -> Edges:
    """Return an edge for each kernel, copy and recorded wait of a stream."""
    work = np.flatnonzero(job.activities.on_device)
    start = 2 * work
    end = start + 1
    lasts = job.moment(end) - job.moment(start)
    is_wait = np.isin(work, job.serial_work.waited)
    lasts[is_wait] = 0  # it lasts until the work ends that it waits for
    return Edges.of(start, end, lasts, EdgeKind.BODY, Provenance.OBSERVED, activity=work)


def _borrowed(job: RecordedJob) -> Iterator[Edges]:
    """Yield the edges of borrowed activities, which have no duration and are at the start of the launch around."""
    lent = np.flatnonzero(job.activities.borrowed)
    start = 2 * lent
    launch_start = 2 * job.activities.parent[lent]
    yield Edges.of(launch_start, start, 0, EdgeKind.BODY, Provenance.INFERRED, activity=lent)
    yield Edges.of(start, start + 1, 0, EdgeKind.BODY, Provenance.INFERRED, activity=lent)
