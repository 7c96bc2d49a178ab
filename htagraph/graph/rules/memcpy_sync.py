"""MEMCPY_SYNC: a copy through pageable memory is over before its own runtime call returns."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import names_like
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job
from htagraph.graph.evidence.records import returns
from htagraph.graph.evidence.sites import mixed

__all__ = ["memcpy_sync"]

_MAX_RETURN_NS = 50_000
"""ns: a call that returns later than this after its copy did something else. Chosen: 4 to 20 µs are usual. Doubled,
in mixed classes calls that ended by chance after their copy are linked."""
_MIN_FEASIBLE = 0.99
"""Share of a class of copies whose call must return after them for the whole class to be taken as blocking. Chosen: a
few records are damaged. It cannot be doubled; at 1 one record decides."""
_SOONER_NS = 10_000
"""ns: by this much at most a copy's call returns sooner after its work than the syncs by which clocks are compared.
Chosen. Doubled, copies that nobody awaited pass as awaited."""
_LONG_NS = 200_000
"""ns: from the start of a call to the end of its copy; in so long a call clock errors decide nothing (they are at
most 20 µs). Chosen. Doubled, fewer copies are exempt from the test of `_SOONER_NS`."""


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
    soonest, tolerance = np.zeros((2, len(copy)), np.int64)
    calls = job.calls
    for rank in np.unique(acts.rank[copy]).tolist():
        clock, of_rank = returns(calls, rank), acts.rank[copy] == rank
        soonest[of_rank], tolerance[of_rank] = clock.soonest, clock.tolerance
    after = acts.end[call] - acts.end[copy]
    # by a device's clock that is early, even copies that nobody awaited are over in time: not in long calls
    long = acts.end[copy] - acts.start[call] > _LONG_NS
    feasible = (after >= -tolerance) & (long | (after >= soonest - _SOONER_NS))
    group = np.unique(mixed(acts.rank[copy], acts.name[copy], acts.name[call]), return_inverse=True)[1].ravel()
    always = np.bincount(group, feasible)[group] >= _MIN_FEASIBLE * np.bincount(group)[group]
    right_behind = (after >= soonest) & (after <= soonest + _MAX_RETURN_NS)
    keep = feasible & (always | right_behind)
    return Edges.of(2 * copy[keep] + 1, 2 * call[keep] + 1, 0, EdgeKind.MEMCPY_SYNC, Provenance.OBSERVED)
