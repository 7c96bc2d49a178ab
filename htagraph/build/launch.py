"""LAUNCH: device work cannot start before the call that enqueued it has started, and the call needs its time."""

from __future__ import annotations

import numpy as np

from htagraph.activities import Activities, Edges
from htagraph.build.activities import Job
from htagraph.build.launches import graph_launches
from htagraph.kinds import ActivityKind, EdgeKind, Provenance

__all__ = ["launch"]

_UNKNOWN_LATENCY_NS = 10_000  # at most this much where no launch of a class ever found its stream idle


def launch(job: Job) -> Edges:
    """Return an edge from the start of each launch to the start of each piece of work with its correlation id.

    The nominal lag is the median of the latencies of that (rank, API) class where the stream was idle: what a launch
    would take whose work had to queue. (The minimum would be a bound, but it predicts too early a start.) The works of
    graph launches hang on GRAPH edges.
    """
    acts = job.activities
    work = np.flatnonzero(acts.on_device & (acts.cause >= 0))
    call_of = acts.cause[work]
    work = work[(acts.kind[call_of] == ActivityKind.LAUNCH) & ~graph_launches(job)[call_of]]
    call = acts.cause[work]
    latency = acts.start[work] - acts.start[call]
    return Edges.of(2 * call, 2 * work, _nominal(acts, work, call, latency), EdgeKind.LAUNCH, Provenance.OBSERVED)


def _nominal(acts: Activities, work: np.ndarray, call: np.ndarray, latency: np.ndarray) -> np.ndarray:
    """Return what a launch of each class usually takes until its work starts, ns."""
    idle = _stream_end_before(acts)[work] <= acts.start[call]
    classes, member = np.unique(acts.rank[call].astype(np.int64) << 32 | acts.name[call], return_inverse=True)
    nominal = np.zeros(len(classes), np.int64)
    order = np.argsort(member.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(member.ravel(), minlength=len(nominal)))
    for number, rows in enumerate(np.split(order, ends[:-1])):
        if not len(rows):
            continue
        free = latency[rows][idle[rows]]
        seen = np.median(free) if len(free) else min(latency[rows].min(), _UNKNOWN_LATENCY_NS)
        nominal[number] = max(0, int(seen))
    return nominal[member.ravel()]


def _stream_end_before(acts: Activities) -> np.ndarray:
    """Return for each device activity when all earlier work of its stream had ended; very early for the first."""
    out = np.full(len(acts), np.iinfo(np.int64).min)
    for lane in acts.by_stream():
        out[lane[1:]] = np.maximum.accumulate(acts.end[lane])[:-1]
    return out
