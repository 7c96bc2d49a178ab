"""The final lags of the edges: waiting time is taken out of calls, and short pauses are added to their cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.kind_masks import of_kinds
from htagraph.core.kinds import BLOCKING, LAUNCHES, TRANSFERS, EdgeKind
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["settle"]

_UNKNOWN_OWN_NS = 3_000
"""ns: what a blocking call takes without waiting, if every call of its name waited. Chosen: cudaStreamSynchronize with
nothing pending takes 2 to 4 µs. Doubled, a what-if without the wait leaves 3 µs more in such a call; recorded times do
not change."""
_MAX_PAUSE_NS = 30_000
"""ns: the longest pause before device work that is added to the lag of its binding edge; a longer one stays a gap.
Chosen: launch and stream latencies are a few µs, tens of µs with a busy driver. Doubled, more gaps become lags, and
less time is reported as unexplained."""
_MAX_RETURN_NS = 200_000
"""ns: the longest time from the end of the awaited work to the return of the blocked call that is added to the lag.
Chosen: 130 µs occur in real traces; a call that returned later was busy with something else. Doubled, such calls shrink
in a what-if with the work that they waited for."""
_STARTS = (*LAUNCHES, EdgeKind.STREAM, EdgeKind.EVENT_WAIT)

Array: TypeAlias = npt.NDArray[Any]
Change: TypeAlias = tuple[Array, Array]
"""(rows of edges, their new lags in ns)."""


@dataclass(frozen=True, eq=False)
class _Waits:
    """The edges of a job, the recorded times of their ends, and which of them are waits."""

    job: Job
    edges: Edges
    source_time: npt.NDArray[np.int64]
    target_time: npt.NDArray[np.int64]
    may_wait: npt.NDArray[np.bool_]
    """Which edges lead to the end of a blocking call, or of a member of a collective, that may have waited."""
    bodies: npt.NDArray[np.int64]
    """The last BODY edge of each activity that did wait."""
    waited: npt.NDArray[np.bool_]
    """Which of the `may_wait` edges end where an activity did wait."""
    in_meeting: npt.NDArray[np.bool_]
    """Which activities are members of collectives."""
    in_loop: npt.NDArray[np.bool_]
    """Which vertices are moments of a loop that asks again and again whether work is over."""


def settle(job: Job, edges: Edges) -> Edges:
    """Return the edges with lags that stay valid in a what-if, where something else may be waited for.

    A call that waited gets the usual duration of its class without waiting; the rest of its duration is the wait, which
    the edge from the awaited work accounts for. The time then left before a vertex is added to its binding edge: the
    latency of this launch, the pause of this stream, the return of this call. The other edges into the vertex keep
    their lags, since in a what-if one of them may be binding. Time that is too long for that stays a gap, and is
    reported as unexplained.

    Each stage returns the lags that it changes, given the lags after the stages before it.
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
    meets = of_kinds(edges.kind, TRANSFERS) & (edges.activity >= 0)
    in_loop = np.zeros(2 * len(acts), np.bool_)
    in_loop[job.polled.vertex] = True
    may_wait = (of_kinds(edges.kind, BLOCKING) & (edges.target % 2 == 1) & ~in_loop[edges.target]) | meets
    rows = np.flatnonzero(may_wait)
    awaited = np.full(len(acts), np.iinfo(np.int64).min)
    np.maximum.at(awaited, np.where(meets[rows], edges.activity[rows], edges.target[rows] // 2), source_time[rows])
    in_meeting = np.zeros(len(acts), np.bool_)
    in_meeting[edges.activity[meets]] = True
    last = _last_stretches(edges)
    bodies = np.flatnonzero(last & ((awaited[edges.activity] > source_time) | in_meeting[edges.activity]))
    waited = may_wait & np.isin(edges.target, edges.target[bodies])
    return _Waits(job, edges, source_time, target_time, may_wait, bodies, waited, in_meeting, in_loop)


def _last_stretches(edges: Edges) -> npt.NDArray[np.bool_]:
    """Return which BODY edges lead to the end of their activity, or of its wait if work in it follows."""
    meets = of_kinds(edges.kind, TRANSFERS) & (edges.activity >= 0)
    released = 2 * np.arange(int(edges.activity.max(initial=0)) + 1) + 1
    released[edges.activity[meets]] = edges.target[meets]
    return (edges.kind == EdgeKind.BODY) & (edges.activity >= 0) & (edges.target == released[edges.activity])


def _without_waits(waits: _Waits, lag: Array) -> Change:
    """Cut the last BODY edge of each activity that waited to its duration without waiting (0 in a collective).

    That is what its wait's edge has as lag where the call works after the wait, else what is usual for its class.
    """
    bodies, activity = waits.bodies, waits.edges.activity[waits.bodies]
    after = _latest(waits.edges.target, np.where(waits.may_wait, waits.edges.lag, 0), 2 * len(waits.job.activities))
    after = after[waits.edges.target[bodies]]
    own = np.minimum(lag[bodies], np.where(after > 0, after, _own_cost(waits, lag)))
    return bodies, np.where(waits.in_meeting[activity], 0, own)


def _handed_over(waits: _Waits, lag: Array) -> Change:
    """Set the BODY edges to 0 during which a thread was blocked until another thread was done, or asked for work."""
    del lag  # the new lag does not depend on it
    edges = waits.edges
    joined = (edges.kind == EdgeKind.THREAD) | ((edges.kind == EdgeKind.HOST_SYNC) & waits.in_loop[edges.target])
    until = _latest(edges.target[joined], waits.source_time[joined], 2 * len(waits.job.activities))
    rows = np.flatnonzero(edges.kind == EdgeKind.BODY)
    rows = rows[until[edges.target[rows]] > waits.source_time[rows]]
    return rows, np.zeros(len(rows), np.int64)


def _with_pauses(waits: _Waits, lag: Array) -> Change:
    """Add the time left before the start of device work, or before the end of a wait, to the binding edge."""
    edges, acts = waits.edges, waits.job.activities
    held = of_kinds(edges.kind, _STARTS) & acts.on_device[edges.target // 2] & (edges.target % 2 == 0)
    held |= waits.waited
    held[waits.bodies] = True
    rows = np.flatnonzero(held)
    allowed = waits.source_time[rows] + lag[rows]
    latest = _latest(edges.target[rows], allowed, 2 * len(acts))[edges.target[rows]]
    rest = waits.target_time[rows] - latest
    binding = (allowed == latest) & (rest > 0) & (rest <= _limits(waits.job, edges)[rows])
    return rows[binding], lag[rows[binding]] + rest[binding]


def _given_back(waits: _Waits, lag: Array) -> Change:
    """Restore the duration of calls that returned long after all that they may have waited for: they did not wait.

    If an id proves what a call waited for, the rest stays a gap.
    """
    edges, bodies = waits.edges, waits.bodies
    count = 2 * len(waits.job.activities)
    into = np.flatnonzero(np.isin(edges.target, edges.target[bodies]))
    latest = _latest(edges.target[into], waits.source_time[into] + lag[into], count)
    proven = np.zeros(count, np.bool_)
    proven[edges.target[into[of_kinds(edges.kind[into], BLOCKING) & (edges.confidence[into] == 100)]]] = True
    late = (waits.target_time[bodies] > latest[edges.target[bodies]]) & ~proven[edges.target[bodies]]
    rows = bodies[late]
    return rows, waits.target_time[rows] - waits.source_time[rows]


def _never_waited(waits: _Waits, lag: Array) -> Change:
    """Set the lag into calls that had nothing to wait for to the usual return time, in case they wait in a what-if."""
    rows = np.flatnonzero(waits.may_wait & ~waits.waited & of_kinds(waits.edges.kind, BLOCKING))
    observed = waits.target_time[rows] - waits.source_time[rows]
    return rows, np.maximum(lag[rows], np.minimum(observed, _usual_returns(waits, lag)[waits.edges.kind[rows]]))


_STAGES: tuple[Callable[[_Waits, Array], Change], ...] = (
    _without_waits, _handed_over, _with_pauses, _given_back, _never_waited,
)  # fmt: skip
"""The order matters: pauses are what is left after waits are cut, and usual returns are measured after pauses are
added."""


def _latest(target: Array, moment: Array, count: int) -> npt.NDArray[np.int64]:
    """Return for each of `count` vertices the latest of the moments given for it, the smallest integer without any."""
    out = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(out, target, moment)
    return out


def _own_cost(waits: _Waits, lag: Array) -> npt.NDArray[np.int64]:
    """Return for each of `bodies` the median lag, ns, of the last BODY edges of the rank's calls that did not wait.

    The median is over calls of the same name.
    """
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
    """Return for each EdgeKind the median time that calls which waited take to return, ns."""
    usual = np.zeros(len(EdgeKind), np.int64)
    for kind in BLOCKING:
        of_kind = lag[waits.waited & (waits.edges.kind == kind) & (waits.edges.lag <= 0)]
        usual[kind] = max(0, int(np.median(of_kind))) if len(of_kind) else 0
    return usual


def _limits(job: Job, edges: Edges) -> npt.NDArray[np.int64]:
    """Return the longest pause that may be added to each edge, ns."""
    limit = np.zeros(len(EdgeKind), np.int64)
    limit[list(_STARTS)] = _MAX_PAUSE_NS
    limit[list(BLOCKING)] = _MAX_RETURN_NS
    limit[list(TRANSFERS)] = np.iinfo(np.int64).max  # the lag is the transfer time, however long
    of_edge = limit[edges.kind]
    launched = of_kinds(edges.kind, LAUNCHES)
    of_edge[launched] += job.activities.duration[
        edges.source[launched] // 2
    ]  # a long call delays its work, e.g. by loading a module
    return of_edge
