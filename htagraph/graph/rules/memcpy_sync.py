"""MEMCPY_SYNC: end of a copy → end of the runtime call that started it and waits for it. Lag 0 plus the return time.

Known by the correlation id; which copies block follows from their names (pageable memory, synchronous calls) and times.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import names_like
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.call_sites import mixed
from htagraph.graph.evidence.job import Job
from htagraph.graph.evidence.wait_hypotheses import returns

__all__ = ["memcpy_sync"]

_MAX_RETURN_NS = 50_000
"""ns: a call that returns later than this after its copy was busy with something else. Chosen: 4 to 20 µs are usual.
Doubled, where only some calls of a class wait, more calls that ended after their copy by chance are linked."""
_MIN_FEASIBLE = 0.99
"""A whole class (call name, copy name) is taken as blocking if this share of its calls return after their copy.
Chosen: a few records are damaged. It cannot be doubled; at 1, a single record decides."""
_SOONER_NS = 10_000
"""ns: a blocking copy's call may return this much sooner after the end of the copy than stream syncs do, by which host
and device clocks are compared. Chosen. Doubled, copies that no call waited for pass as blocking."""
_LONG_NS = 200_000
"""ns from the start of a call to the end of its copy: in a call this long, clock errors (at most 20 µs) cannot make a
copy look awaited. Chosen. Doubled, fewer copies are exempt from the test of `_SOONER_NS`."""


def memcpy_sync(job: Job) -> Edges:
    """Return an edge from the end of each blocking copy to the end of its runtime call.

    Every call waits for a copy through pageable memory, and a synchronous call waits for any copy. Small copies to the
    device are staged, and their call returns early: in a class (call name, copy name) where that happens, only the
    calls that returned right after their copy are linked.
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
    # if the device's clock is early, even copies that no call waited for seem to end in time; not so in long calls
    long = acts.end[copy] - acts.start[call] > _LONG_NS
    feasible = (after >= -tolerance) & (long | (after >= soonest - _SOONER_NS))
    group = np.unique(mixed(acts.rank[copy], acts.name[copy], acts.name[call]), return_inverse=True)[1].ravel()
    always = np.bincount(group, feasible)[group] >= _MIN_FEASIBLE * np.bincount(group)[group]
    right_behind = (after >= soonest) & (after <= soonest + _MAX_RETURN_NS)
    keep = feasible & (always | right_behind)
    return Edges.of(2 * copy[keep] + 1, 2 * call[keep] + 1, 0, EdgeKind.MEMCPY_SYNC, Provenance.OBSERVED)
