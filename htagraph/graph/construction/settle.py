"""What is left of an edge's lag once all edges are known: calls that waited shrink, short pauses go to their cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import BLOCKING, LAUNCHES, TRANSFERS, EdgeKind
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["settle"]

_UNKNOWN_OWN_NS = 3_000
"""ns: what a blocking call takes by itself where every call of its name waited. Chosen: cudaStreamSynchronize with
nothing pending takes 2 to 4 µs. Doubled, a what-if without the wait leaves 3 µs more in such a call; recorded times
stay."""
_MAX_PAUSE_NS = 30_000
"""ns: the longest time before device work that counts as latency of the edge that held it up. Chosen: launch and
stream latencies are a few µs, a busy driver's tens. A longer pause stays a gap. Doubled, more gaps become lags, and
less time is reported as unexplained."""
_MAX_RETURN_NS = 200_000
"""ns: the longest time from the end of the awaited work to the return of the blocked call; 130 µs were seen in real
traces. A call that returned later was busy with something else. Doubled, such calls shrink with what they awaited."""
_STARTS = (*LAUNCHES, EdgeKind.STREAM, EdgeKind.EVENT_WAIT)

Array: TypeAlias = npt.NDArray[Any]
Change: TypeAlias = tuple[Array, Array]
"""(rows of edges, their new lags in ns)."""


@dataclass(frozen=True, eq=False)
class _Waits:
    """The edges of a job, when their ends were recorded, and which of them are about waiting."""

    job: Job
    edges: Edges
    source_time: npt.NDArray[np.int64]
    target_time: npt.NDArray[np.int64]
    may_wait: npt.NDArray[np.bool_]
    """Which edges lead to the end of a blocking call or of a member of a collective: it may have waited."""
    bodies: npt.NDArray[np.int64]
    """The BODY edges that end where an activity did wait: its last own stretch."""
    waited: npt.NDArray[np.bool_]
    """Which of the `may_wait` edges end where an activity did wait."""
    in_meeting: npt.NDArray[np.bool_]
    """Which activities are members of collectives."""


def settle(job: Job, edges: Edges) -> Edges:
    """Return the edges with the lags that a what-if can trust.

    A call that waited takes as long as its class does when nothing is pending; the rest of its duration is the wait,
    which follows from its other edge. What is then left before a moment is put on the edge that held it up: the latency
    of this launch, the pause of this stream, the return of this call. Only that edge: under other circumstances another
    one holds it up, with a latency of its own. What is too long for that stays a gap, and is reported as unexplained.

    Each stage returns the lags that it changes, given those that the stages before it left.
    """
    waits = _waits(job, edges)
    lag = edges.lag
    for stage in _STAGES:
        rows, settled = stage(waits, lag)
        lag = lag.copy()
        lag[rows] = settled
    return replace(edges, lag=lag)


def _waits(job: Job, edges: Edges) -> _Waits:
    acts = job.activities
    source_time, target_time = job.moment(edges.source), job.moment(edges.target)
    may_wait = np.isin(edges.kind, BLOCKING + TRANSFERS) & (edges.target % 2 == 1)
    rows = np.flatnonzero(may_wait)
    awaited = np.full(len(acts), np.iinfo(np.int64).min)
    np.maximum.at(awaited, edges.target[rows] // 2, source_time[rows])
    in_meeting = np.zeros(len(acts), np.bool_)
    in_meeting[edges.target[rows[np.isin(edges.kind[rows], TRANSFERS)]] // 2] = True
    last = _last_stretches(edges)
    bodies = np.flatnonzero(last & ((awaited[edges.activity] > source_time) | in_meeting[edges.activity]))
    waited = may_wait & np.isin(edges.target, edges.target[bodies])
    return _Waits(job, edges, source_time, target_time, may_wait, bodies, waited, in_meeting)


def _last_stretches(edges: Edges) -> npt.NDArray[np.bool_]:
    """Return which BODY edges end with their activity."""
    return (edges.kind == EdgeKind.BODY) & (edges.target == 2 * edges.activity + 1)


def _without_waits(waits: _Waits, lag: Array) -> Change:
    """Cut the last own stretch of each activity that waited to its own cost; a member of a collective has none."""
    bodies, activity = waits.bodies, waits.edges.activity[waits.bodies]
    own = np.minimum(lag[bodies], _own_cost(waits, lag))
    return bodies, np.where(waits.in_meeting[activity], 0, own)


def _handed_over(waits: _Waits, lag: Array) -> Change:
    """Set the own stretch of a thread to 0 where it stood still until another thread was done."""
    del lag  # whatever it was
    edges = waits.edges
    joined = edges.target[edges.kind == EdgeKind.THREAD]
    rows = np.flatnonzero((edges.kind == EdgeKind.BODY) & np.isin(edges.target, joined))
    return rows, np.zeros(len(rows), np.int64)


def _with_pauses(waits: _Waits, lag: Array) -> Change:
    """Add what is left before the start of device work, or the end of a wait, to the edge that held it up."""
    edges, acts = waits.edges, waits.job.activities
    held = np.isin(edges.kind, _STARTS) & acts.on_device[edges.target // 2] & (edges.target % 2 == 0)
    held |= waits.waited
    held[waits.bodies] = True
    rows = np.flatnonzero(held)
    allowed = waits.source_time[rows] + lag[rows]
    latest = _latest(edges.target[rows], allowed, 2 * len(acts))[edges.target[rows]]
    rest = waits.target_time[rows] - latest
    binding = (allowed == latest) & (rest > 0) & (rest <= _limits(waits.job, edges)[rows])
    return rows[binding], lag[rows[binding]] + rest[binding]


def _given_back(waits: _Waits, lag: Array) -> Change:
    """Give calls their time back that returned long after all they are thought to have waited for: it was their own.

    Where an id proves what was waited for, the rest stays a gap.
    """
    edges, bodies = waits.edges, waits.bodies
    count = 2 * len(waits.job.activities)
    into = np.flatnonzero(np.isin(edges.target, edges.target[bodies]))
    latest = _latest(edges.target[into], waits.source_time[into] + lag[into], count)
    proven = np.zeros(count, np.bool_)
    proven[edges.target[into[np.isin(edges.kind[into], BLOCKING) & (edges.confidence[into] == 100)]]] = True
    late = (waits.target_time[bodies] > latest[edges.target[bodies]]) & ~proven[edges.target[bodies]]
    rows = bodies[late]
    return rows, waits.target_time[rows] - waits.source_time[rows]


def _never_waited(waits: _Waits, lag: Array) -> Change:
    """Give calls that found nothing pending the usual return of their kind, in case a what-if makes them wait."""
    rows = np.flatnonzero(waits.may_wait & ~waits.waited)
    observed = waits.target_time[rows] - waits.source_time[rows]
    return rows, np.minimum(observed, _usual_returns(waits, lag)[waits.edges.kind[rows]])


_STAGES: tuple[Callable[[_Waits, Array], Change], ...] = (
    _without_waits, _handed_over, _with_pauses, _given_back, _never_waited,
)  # fmt: skip
"""In this order: pauses are what is left once waits are cut, and returns are usual only once pauses are on them."""


def _latest(target: Array, moment: Array, count: int) -> npt.NDArray[np.int64]:
    """Return for each of `count` vertices the latest of its moments, the least number where it has none."""
    out = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(out, target, moment)
    return out


def _own_cost(waits: _Waits, lag: Array) -> npt.NDArray[np.int64]:
    """Return for each of `bodies` the median duration, ns, of the rank's calls of that name that did not wait."""
    acts, activity = waits.job.activities, waits.edges.activity
    key = acts.rank.astype(np.int64) << 32 | acts.name
    wanted = key[activity[waits.bodies]]
    classes = np.unique(wanted)
    did_not = _last_stretches(waits.edges)
    did_not[waits.bodies] = False
    free = np.flatnonzero(did_not)
    free = free[np.isin(key[activity[free]], classes)]
    of_class = np.full(len(classes), _UNKNOWN_OWN_NS)
    member = np.searchsorted(classes, key[activity[free]])
    order = np.lexsort((lag[free], member))
    first = np.searchsorted(member[order], np.arange(len(classes) + 1))
    some = first[1:] > first[:-1]
    of_class[some] = lag[free][order][((first[1:] + first[:-1]) // 2)[some]]
    return of_class[np.searchsorted(classes, wanted)]


def _usual_returns(waits: _Waits, lag: Array) -> npt.NDArray[np.int64]:
    """Return by EdgeKind how long calls that waited take to return, ns."""
    usual = np.zeros(len(EdgeKind), np.int64)
    for kind in BLOCKING:
        of_kind = lag[waits.waited & (waits.edges.kind == kind)]
        usual[kind] = max(0, int(np.median(of_kind))) if len(of_kind) else 0
    return usual


def _limits(job: Job, edges: Edges) -> npt.NDArray[np.int64]:
    """Return how much of a pause each edge may take upon itself, ns."""
    limit = np.zeros(len(EdgeKind), np.int64)
    limit[list(_STARTS)] = _MAX_PAUSE_NS
    limit[list(BLOCKING)] = _MAX_RETURN_NS
    limit[list(TRANSFERS)] = np.iinfo(np.int64).max  # how long a transfer takes is what was to be known
    of_edge = limit[edges.kind]
    launched = np.isin(edges.kind, LAUNCHES)
    of_edge[launched] += job.activities.duration[edges.source[launched] // 2]  # loading a kernel's module, for example
    return of_edge
