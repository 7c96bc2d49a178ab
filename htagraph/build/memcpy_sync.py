"""MEMCPY_SYNC: a copy through pageable memory is over before its own runtime call returns."""

from __future__ import annotations

import numpy as np

from htagraph.activities import Edges
from htagraph.build.activities import Job
from htagraph.build.calls import Calls
from htagraph.build.records import returns
from htagraph.build.sites import mixed
from htagraph.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.naming import names_like

__all__ = ["memcpy_sync"]

_RETURN_NS = 50_000  # a call that returns later than this after its copy did something else
_FEASIBLE = 0.99


def memcpy_sync(job: Job) -> Edges:
    """Return an edge from the end of each copy that its runtime call waited for to the end of that call.

    Calls wait for copies through pageable memory, and calls that are not asynchronous wait for any. Small copies to the
    device are staged, and their call returns before: of a class (call, copy) that did so, only those are linked that
    returned right after their copy.
    """
    acts = job.activities
    copy = np.flatnonzero((acts.kind == ActivityKind.MEMORY) & (acts.cause >= 0))
    copy = copy[acts.kind[acts.cause[copy]] == ActivityKind.LAUNCH]
    blocks = names_like(job.naming.pageable, job.names, acts.name[copy])
    blocks |= names_like(job.naming.blocking_copy, job.names, acts.name[acts.cause[copy]])
    copy = copy[blocks]
    call = acts.cause[copy]
    soonest = np.zeros(len(copy), np.int64)
    calls = Calls.of(job) if len(copy) else None
    for rank in np.unique(acts.rank[copy]).tolist():
        soonest[acts.rank[copy] == rank] = returns(calls, rank).soonest if calls else 0
    after = acts.end[call] - acts.end[copy]
    feasible = after >= soonest
    group = np.unique(mixed(acts.rank[copy], acts.name[copy], acts.name[call]), return_inverse=True)[1].ravel()
    always = np.bincount(group, feasible)[group] >= _FEASIBLE * np.bincount(group)[group]
    keep = feasible & (always | (after <= soonest + _RETURN_NS))
    return Edges.of(2 * copy[keep] + 1, 2 * call[keep] + 1, 0, EdgeKind.MEMCPY_SYNC, Provenance.OBSERVED)
