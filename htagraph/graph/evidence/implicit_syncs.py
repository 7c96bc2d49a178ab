"""Runtime calls that wait for the whole device without saying so: `cudaFree`, loading a module.

Some are known by name: the documentation says that they synchronize. Any other call is known by its times: it was long,
and it returned right after the end of all that had been enqueued before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.core.naming import is_graph_launch, is_memory_call, names_like, names_that
from htagraph.graph.evidence.call_sites import grouped
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.wait_hypotheses import Returns, returns
from htagraph.graph.evidence.work_before import last_ends, work_before
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["ImplicitSyncs", "implicit_syncs"]


@dataclass(frozen=True, eq=False)
class ImplicitSyncs:
    """Which call waits for which work, one row for each call and stream with work before it."""

    source: npt.NDArray[np.int64]
    """The last work that was enqueued on a stream before the call."""
    call: npt.NDArray[np.int64]
    """The activity that waits."""
    own: npt.NDArray[np.int64]
    """What the call did once all that work had ended, ns."""
    confidence: npt.NDArray[np.int64]
    """Percent."""


def implicit_syncs(calls: Calls) -> ImplicitSyncs:
    """Return the runtime calls that wait for the device without being synchronizations, and what they wait for."""
    acts = calls.job.activities
    host = np.flatnonzero(of_kinds(acts.kind, (ActivityKind.RUNTIME, ActivityKind.LAUNCH)))
    documented = names_like(calls.job.naming.implicit_sync, calls.job.names, acts.name[host])
    plain = ~documented & (acts.duration[host] >= LIMITS.long_call_ns)
    if plain.any():
        other = [names_that(fits, calls.job.names) for fits in (is_memory_call, is_graph_launch)]
        plain &= ~(other[0] | other[1])[acts.name[host]]
    chosen = documented | plain
    call, by_name = host[chosen], documented[chosen]
    source, pairs, over, clock = _work_before(calls, call)
    confidence = np.where(by_name, _known_by_name(calls, call, over, clock), _known_by_times(calls, call, over, clock))
    own = acts.end[call] - np.maximum(acts.start[call], over)
    keep = confidence[pairs] > 0
    source, pairs = source[keep], pairs[keep]
    return ImplicitSyncs(source, call[pairs], np.maximum(0, own[pairs]), confidence[pairs])


def _work_before(calls: Calls, call: Array) -> tuple[Array, Array, Array, dict[int, Returns]]:
    """Return pairs (last work on a stream before a call, index of the call), when all of it ended, and `returns`.

    The third column has a row per call, ns; the last result is by rank.
    """
    acts, sources, owners = calls.job.activities, [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    over = np.full(len(call), np.iinfo(np.int64).min)
    clock: dict[int, Returns] = {}
    for of_rank in grouped(acts.rank[call]):
        rank = int(acts.rank[call[of_rank[0]]])
        of_rank = of_rank[np.argsort(acts.start[call[of_rank]], kind="stable")]
        known = calls.of_rank(rank)
        at = known.start + np.searchsorted(acts.start[calls.row[known]], acts.start[call[of_rank]])
        clock[rank] = returns(calls, rank) if rank in calls.lanes else Returns()
        source, number = work_before(calls, rank, at, acts.lane[call[of_rank]])
        over[of_rank] = last_ends(calls, rank, at)
        sources.append(source)
        owners.append(of_rank[number])
    return np.concatenate(sources), np.concatenate(owners), over, clock


def _known_by_name(calls: Calls, call: Array, over: Array, clock: dict[int, Returns]) -> Array:
    """Return the confidence of each call as one whose documentation says that it waits; 0 where the times refute it."""
    acts = calls.job.activities
    tolerance = _by_rank(acts.rank[call], {rank: each.tolerance for rank, each in clock.items()})
    pending = over > acts.start[call] + LIMITS.two_clocks_ns
    refuted = pending & (over > acts.end[call] + tolerance)
    name = acts.name[call]
    count = np.maximum(1, np.bincount(name, pending))[name]
    possible = np.bincount(name, refuted)[name] <= LIMITS.most * count
    seen = np.bincount(name, pending & ~refuted)[name] > 0
    return np.where(possible & ~refuted, np.where(seen, Confidence.SURE, Confidence.LIKELY), 0)


def _known_by_times(calls: Calls, call: Array, over: Array, clock: dict[int, Returns]) -> Array:
    """Return the confidence of each call as one that was seen to wait; 0 where it was not."""
    acts, rank = calls.job.activities, calls.job.activities.rank[call]
    window = _by_rank(rank, {each: known.window for each, known in clock.items()})
    soonest = _by_rank(rank, {each: known.soonest for each, known in clock.items()})
    waited, after = over - acts.start[call], acts.end[call] - over
    long = waited >= LIMITS.times_window * window
    right = long & (after >= soonest) & (after <= window)
    name = acts.name[call]
    share = np.bincount(name, right)[name] / np.maximum(1, np.bincount(name, long)[name])
    sure = np.minimum(Confidence.SEEN, 100 * share * (1 - window / np.maximum(waited, window)))
    return np.where(right & (share >= LIMITS.most), sure, 0).astype(np.int64)


def _by_rank(rank: Array, value: dict[int, int]) -> Array:
    return np.fromiter((value[each] for each in rank.tolist()), np.int64, len(rank))
