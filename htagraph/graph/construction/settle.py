"""The final lags of the edges: waiting time is taken out of calls, and short pauses are added to their cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, looked_up, marked
from htagraph.core.kinds import BLOCKING, LAUNCHES, TRANSFERS, EdgeKind, edges_with, of_kinds
from htagraph.core.statistics import ordered_by
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS

__all__ = ["settle"]

_NEVER = np.iinfo(np.int64).min
"""Before any recorded moment; no threshold."""
_STARTS = edges_with("starts")

Change: TypeAlias = tuple[Array, Array]
"""(rows of edges, their new lags in ns)."""


@dataclass(frozen=True, eq=False)
class _Waits:
    """The edges of a job, and which of them are waits. Rows of edges are ascending."""

    job: RecordedJob
    edges: Edges
    by_kind: Mapping[int, Ints]
    """The edges of each kind that has any."""
    may_wait: Ints
    """Edges to the end of a blocking call, or of a member of a collective, that may have waited."""
    last: Ints
    """BODY edges to the end of their activity, or of its wait if work in it follows."""
    bodies: Ints
    """Those of activities that did wait."""
    released: Mask
    """Which vertices `bodies` lead to."""
    in_meeting: Mask
    """Which activities are members of collectives."""
    in_loop: Mask
    """Which vertices are moments of a loop that asks again and again whether work is over."""

    @cached_property
    def waited(self) -> Ints:
        """Those of `may_wait` that end where an activity did wait."""
        return self.may_wait[self.released[self.edges.target[self.may_wait]]]

    def source_time(self, rows: Array) -> Ints:
        """Return when the sources of edges were recorded, ns."""
        return self.job.moment(self.edges.source[rows])

    def target_time(self, rows: Array) -> Ints:
        """Return when the targets of edges were recorded, ns."""
        return self.job.moment(self.edges.target[rows])


def settle(job: RecordedJob, edges: Edges) -> Edges:
    """Return the edges with lags that stay valid in a what-if, where something else may be waited for.

    A call that waited gets the usual duration of its class without waiting; the rest of its duration is the wait, which
    the edge from the awaited work accounts for. The time then left before a vertex is added to its binding edge: the
    latency of this launch, the pause of this stream, the return of this call. The other edges into the vertex keep
    their lags, since in a what-if one of them may be binding. Time that is too long for that stays a gap, and is
    reported as unexplained.

    Each stage returns the lags that it changes, given the lags after the stages before it.
    """
    waits, lag = _waits(job, edges), edges.lag.copy()
    for stage in _STAGES:
        rows, settled = stage(waits, lag)
        lag[rows] = settled
    return replace(edges, lag=lag)


def _waits(job: RecordedJob, edges: Edges) -> _Waits:
    acts, by_kind = job.activities, _by_kind(edges)
    meets = _of(by_kind, TRANSFERS)
    meets = meets[edges.activity[meets] >= 0]
    in_loop = marked(job.polled.vertex[~job.polled.over], 2 * len(acts))
    calls = _of(by_kind, BLOCKING)
    calls = calls[(edges.target[calls] & 1 == 1) & ~in_loop[edges.target[calls]]]
    may_wait = np.union1d(calls, meets) if len(meets) else calls
    awaited = np.full(len(acts), np.iinfo(np.int64).min)
    ends = edges.target[may_wait] >> 1
    member = np.searchsorted(may_wait, meets)
    ends[member] = edges.activity[meets]
    np.maximum.at(awaited, ends, job.moment(edges.source[may_wait]))
    in_meeting = marked(edges.activity[meets], len(acts))
    last = _last_stretches(edges, _of(by_kind, (EdgeKind.BODY,)), meets)
    activity = edges.activity[last]
    bodies = last[(awaited[activity] > job.moment(edges.source[last])) | in_meeting[activity]]
    released = marked(edges.target[bodies], 2 * len(acts))
    return _Waits(job, edges, by_kind, may_wait, last, bodies, released, in_meeting, in_loop)


def _by_kind(edges: Edges) -> dict[int, Ints]:
    """Return the edges of each kind that has any, ascending."""
    order = np.argsort(edges.kind, kind="stable")
    count = np.bincount(edges.kind, minlength=len(EdgeKind))
    behind = np.cumsum(count)
    return {kind: order[behind[kind] - count[kind] : behind[kind]] for kind in np.flatnonzero(count).tolist()}


def _of(by_kind: Mapping[int, Array], kinds: Sequence[EdgeKind]) -> Ints:
    """Return the edges of some kinds, ascending."""
    parts = [by_kind[kind] for kind in kinds if kind in by_kind]
    return np.sort(np.concatenate(parts)) if len(parts) > 1 else parts[0] if parts else np.zeros(0, np.int64)


def _last_stretches(edges: Edges, bodies: Array, meets: Array) -> Ints:
    """Return the BODY edges to the end of their activity, or of its wait if work in it follows.

    Of a member of a collective, also those to the end of another member on the thread: a send may be pending meanwhile.
    """
    target, activity = edges.target[bodies], edges.activity[bodies]
    ends = target == 2 * activity + 1
    if len(meets):
        released = 2 * np.arange(int(edges.activity.max()) + 1) + 1
        released[edges.activity[meets]] = edges.target[meets]
        ends = target == released[activity]
        member, until = (np.zeros(len(released) * 2, np.bool_) for _ in range(2))
        member[edges.activity[meets]], until[edges.target[meets]] = True, True
        ends |= member[activity] & until[target]
    return bodies[ends & (activity >= 0)]


def _without_waits(waits: _Waits, lag: Array) -> Change:
    """Cut the last BODY edge of each activity that waited to its duration without waiting (0 in a collective).

    That is what its wait's edge has as lag where the call works after the wait, else what is usual for its class.
    """
    edges, bodies, activity = waits.edges, waits.bodies, waits.edges.activity[waits.bodies]
    after = np.zeros(2 * len(waits.job.activities), np.int64)
    np.maximum.at(after, edges.target[waits.may_wait], edges.lag[waits.may_wait])
    after = after[edges.target[bodies]]
    own = np.minimum(lag[bodies], np.where(after > 0, after, _own_cost(waits, lag)))
    return bodies, np.where(waits.in_meeting[activity], 0, own)


def _handed_over(waits: _Waits, lag: Array) -> Change:
    """Set the BODY edges to 0 during which a thread was blocked until another thread was done, or asked for work."""
    del lag  # the new lag does not depend on it
    edges = waits.edges
    joined = _of(waits.by_kind, (EdgeKind.THREAD, EdgeKind.HOST_SYNC))
    joined = joined[(edges.kind[joined] == EdgeKind.THREAD) | waits.in_loop[edges.target[joined]]]
    until = _latest(edges.target[joined], waits.source_time(joined), 2 * len(waits.job.activities))
    rows = _of(waits.by_kind, (EdgeKind.BODY,))
    rows = rows[until[edges.target[rows]] > _NEVER]  # few, and only their times are looked up
    rows = rows[until[edges.target[rows]] > waits.source_time(rows)]
    return rows, np.zeros(len(rows), np.int64)


def _with_pauses(waits: _Waits, lag: Array) -> Change:
    """Add the time left before the start of device work, or before the end of a wait, to the binding edge."""
    edges, acts = waits.edges, waits.job.activities
    starts = _of(waits.by_kind, _STARTS)
    starts = starts[acts.on_device[edges.target[starts] >> 1] & (edges.target[starts] & 1 == 0)]
    rows = np.concatenate((starts, waits.waited, waits.bodies))  # one that is there twice is changed alike
    target = edges.target[rows]
    allowed = waits.source_time(rows) + lag[rows]
    latest = _latest(target, allowed, 2 * len(acts))[target]
    rest = waits.target_time(rows) - latest
    binding = (allowed == latest) & (rest > 0) & (rest <= _limits(waits.job, edges, rows))
    return rows[binding], lag[rows[binding]] + rest[binding]


def _given_back(waits: _Waits, lag: Array) -> Change:
    """Restore the duration of calls that returned long after all that they may have waited for: they did not wait.

    If an id proves what a call waited for, the rest stays a gap.
    """
    edges, bodies = waits.edges, waits.bodies
    count = 2 * len(waits.job.activities)
    into = np.flatnonzero(waits.released[edges.target])
    latest = _latest(edges.target[into], waits.source_time(into) + lag[into], count)
    proven = marked(edges.target[into[of_kinds(edges.kind[into], BLOCKING) & (edges.confidence[into] == 100)]], count)
    late = (waits.target_time(bodies) > latest[edges.target[bodies]]) & ~proven[edges.target[bodies]]
    rows = bodies[late]
    return rows, waits.target_time(rows) - waits.source_time(rows)


def _never_waited(waits: _Waits, lag: Array) -> Change:
    """Set the lag into calls that had nothing to wait for to the usual return time, in case they wait in a what-if."""
    edges, rows = waits.edges, waits.may_wait
    rows = rows[~waits.released[edges.target[rows]] & of_kinds(edges.kind[rows], BLOCKING)]
    observed = waits.target_time(rows) - waits.source_time(rows)
    return rows, np.maximum(lag[rows], np.minimum(observed, _usual_returns(waits, lag)[edges.kind[rows]]))


_STAGES: tuple[Callable[[_Waits, Array], Change], ...] = (
    _without_waits, _handed_over, _with_pauses, _given_back, _never_waited,
)  # fmt: skip
"""The order matters: pauses are what is left after waits are cut, and usual returns are measured after pauses are
added."""


def _latest(target: Array, moment: Array, count: int) -> Ints:
    """Return for each of `count` vertices the latest of the moments given for it, the smallest integer without any."""
    out = np.full(count, _NEVER)
    np.maximum.at(out, target, moment)
    return out


def _own_cost(waits: _Waits, lag: Array) -> Ints:
    """Return for each of `bodies` the median lag, ns, of the last BODY edges of the rank's calls that did not wait.

    The median is over calls of the same name.
    """
    acts, activity = waits.job.activities, waits.edges.activity
    own = activity[waits.bodies]
    wanted = acts.rank[own].astype(np.int64) << 32 | acts.name[own]
    named = marked(acts.name[own], len(waits.job.names))
    free = waits.last[named[acts.name[activity[waits.last]]]]
    free = free[~np.isin(free, waits.bodies)]
    key = acts.rank[activity[free]].astype(np.int64) << 32 | acts.name[activity[free]]
    known, median = ordered_by(key, lag[free], lambda count: count // 2)
    return looked_up(known, median, wanted, LIMITS.own_call_ns)


def _usual_returns(waits: _Waits, lag: Array) -> Ints:
    """Return for each EdgeKind the median time that calls which waited take to return, ns."""
    usual = np.zeros(len(EdgeKind), np.int64)
    kinds = waits.edges.kind[waits.waited]
    for kind in BLOCKING:
        rows = waits.waited[kinds == kind]
        of_kind = lag[rows[waits.edges.lag[rows] <= 0]]
        usual[kind] = max(0, int(np.median(of_kind))) if len(of_kind) else 0
    return usual


def _limits(job: RecordedJob, edges: Edges, rows: Array) -> Ints:
    """Return the longest pause that may be added to some edges, ns."""
    limit = np.zeros(len(EdgeKind), np.int64)
    limit[list(_STARTS)] = LIMITS.queued_ns
    limit[list(BLOCKING)] = LIMITS.longest_return_ns
    limit[list(TRANSFERS)] = np.iinfo(np.int64).max  # the lag is the transfer time, however long
    of_edge = limit[edges.kind[rows]]
    launched = of_kinds(edges.kind[rows], LAUNCHES)
    # a long call delays its work, e.g. by loading a module
    of_edge[launched] += job.activities.duration[edges.source[rows[launched]] >> 1]
    return of_edge
