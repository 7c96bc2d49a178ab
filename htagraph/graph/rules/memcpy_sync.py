"""MEMCPY_SYNC: end of a copy → end of the runtime call that started it and waits for it. Lag 0 plus the return time.

Known by the correlation id; which copies block follows from their names (pageable memory, synchronous calls), sizes and
times. A call that copies much pageable memory to the device returns once the last part is staged, before the copy ends:
its edge has a negative lag.
"""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Array, coded
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import BARE_COPY, names_like, names_that
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.waits import returns_by_rank
from htagraph.graph.tolerances import LIMITS

__all__ = ["memcpy_sync"]

_MAX_STAGED_BYTES = 65_536
"""bytes: a copy of pageable memory to the device of at most this size is staged, and its call returns at once; a larger
one waits for the stream first ("API synchronization behavior" of the CUDA Runtime API; in real traces, calls for
16,640 bytes take 25 µs on a stream that is busy for 30 ms). Doubled, copies of 64 to 128 KiB seem not to wait."""


def memcpy_sync(job: RecordedJob) -> Edges:
    """Return an edge from the end of each blocking copy to the end of its runtime call.

    A call waits for a copy from the device to pageable memory, and a synchronous call waits for any copy. A call for a
    copy from pageable memory waits for its stream and then until the last part is staged, unless the copy is small. In
    a class (call name, copy name) where some calls return early, only those that returned right after their copy are
    linked; a class whose names do not say that it blocks is linked if its calls are seen to wait. Copies whose names do
    not say the direction are of one class if they have one size too: programs read results of few bytes.
    """
    acts = job.activities
    copy = np.flatnonzero((acts.kind == ActivityKind.MEMORY) & (acts.cause >= 0))
    copy = copy[acts.kind[acts.cause[copy]] == ActivityKind.LAUNCH]
    pageable = names_like(job.naming.pageable, job.names, acts.name[copy])
    named = pageable | names_like(job.naming.blocking_copy, job.names, acts.name[acts.cause[copy]])
    to_host = names_like(job.naming.to_host, job.names, acts.name[copy])
    from_pageable = pageable & ~to_host & names_like(job.naming.to_device, job.names, acts.name[copy])
    size = acts.arg("bytes")[copy]
    waits = _return_after(job, copy, named, small=from_pageable & (size >= 0) & (size <= _MAX_STAGED_BYTES))
    returned = acts.end[acts.cause[copy]]  # calls that returned before the copy began cannot have waited for it
    during = returned >= acts.start[copy] - LIMITS.two_clocks_ns
    staged = from_pageable & ~waits & (size > _MAX_STAGED_BYTES) & during
    keep = waits | staged
    lag = np.where(staged, returned - acts.end[copy], 0)[keep]
    call, copy = acts.cause[copy[keep]], copy[keep]
    return Edges.of(2 * copy + 1, 2 * call + 1, np.minimum(lag, 0), EdgeKind.MEMCPY_SYNC, Provenance.OBSERVED)


def _return_after(job: RecordedJob, copy: Array, named: Array, small: Array) -> Array:
    """Return which calls waited until their copy had ended.

    Copies in `named` block by their names; a call need not wait for copies in `small`, which are staged at once.
    """
    acts, call = job.activities, job.activities.cause[copy]
    tolerance, _, soonest = returns_by_rank(job.calls, acts.rank[copy])
    after = acts.end[call] - acts.end[copy]
    # if the device's clock is early, even copies that no call waited for seem to end in time; not so in long calls
    long = acts.end[copy] - acts.start[call] > LIMITS.long_call_ns
    feasible = (after >= -tolerance) & (long | (after >= soonest - LIMITS.jitter_ns))
    group = coded(acts.rank[copy], acts.name[copy], acts.name[call], small, _size_of_class(job, copy))
    always = np.bincount(group, feasible)[group] >= (1 - LIMITS.damaged) * np.bincount(group)[group]
    right_behind = (after >= soonest) & (after <= soonest + LIMITS.long_call_ns)
    seen = np.bincount(group, long & right_behind)[group] >= LIMITS.often
    blocks = np.where(named & ~small, always | right_behind, always & seen) | (named & small & long & right_behind)
    return np.asarray(feasible & blocks)


def _size_of_class(job: RecordedJob, copy: Array) -> Array:
    """Return the bytes of copies whose names do not say the direction, and -1 for other copies."""
    acts = job.activities
    states_no_direction = names_that(lambda name: name == BARE_COPY, job.names)[acts.name[copy]]
    return np.where(states_no_direction, acts.arg("bytes")[copy], -1)
