"""Edges of the rules → edges that agree with the recorded times and form no cycle, with lags that are latencies.

`fit` drops impossible edges and reduces lags to what was observed, `acyclic` breaks cycles at their least certain edge,
`latency` takes the time that work waited out of the time from its launch to its start. `settle` gives the final lags:
waiting time is taken out of calls, and short pauses are added to their cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, joined, looked_up, marked, run_starts
from htagraph.core.computing import in_parts, rows_where
from htagraph.core.errors import Issue
from htagraph.core.intervals import union
from htagraph.core.kinds import BLOCKING, LAUNCHES, TRANSFERS, EdgeKind, edges_with, of_kinds
from htagraph.core.statistics import ordered_by
from htagraph.graph.activities import Edges
from htagraph.graph.construction.earlier_work import behind_earlier_work, with_waits_for_earlier_work
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS

__all__ = ["acyclic", "fit", "latency", "settle"]

_NEVER = np.iinfo(np.int64).min
"""Before any recorded moment, or no latency; no threshold."""
_STARTS = edges_with("starts")

_Change: TypeAlias = tuple[Array, Array]
"""(rows of edges, their new lags in ns)."""


def fit(job: RecordedJob, edges: Edges) -> tuple[Edges, tuple[Issue, ...]]:
    """Return the edges with lag = min(lag, recorded time from source to target), and what was refused as issues.

    No target then comes before its source plus the lag, so a replay reproduces the recorded times. An edge whose target
    comes before its source by more than a tolerance is a wrong inference or a wrong record, and is dropped, unless its
    rule says that the call returns before the work ends (a negative lag). Work that seems to start before its own
    launch shows how far the clocks of host and device disagree; it is kept and reported.
    """
    lag, parts = np.empty(len(edges), np.int64), []
    for part in in_parts(len(edges)):
        observed = job.moment(edges.target[part]) - job.moment(edges.source[part])
        np.minimum(edges.lag[part], observed, out=lag[part])
        early = np.flatnonzero(observed < 0)
        parts.append((part.start + early, observed[early]))
    tolerance = np.full(len(EdgeKind), LIMITS.tick_ns)
    tolerance[list(edges_with("two_clocks"))] = LIMITS.two_clocks_ns
    tolerance[list(LAUNCHES)] = LIMITS.proven_by_id_ns
    back, observed = joined(parts, 2)  # few
    kind = edges.kind[back]
    early = np.where(of_kinds(kind, edges_with("early")), np.minimum(edges.lag[back], 0), 0)
    possible = observed >= early - tolerance[kind]
    detail = "dependencies that the recorded times contradict; left out"
    refused = _counted(job, "edge_refused", detail, edges.take(back[~possible]))
    refused += _early(job, edges.take(back[possible]), observed[possible])
    edges = replace(edges, lag=lag)
    return edges if possible.all() else edges.take(~marked(back[~possible], len(edges))), refused


def _early(job: RecordedJob, edges: Edges, observed: Ints) -> tuple[Issue, ...]:
    launched = edges.kind == EdgeKind.LAUNCH
    rank = job.activities.rank[edges.target[launched] // 2]
    owners, member, counts = np.unique(rank, return_inverse=True, return_counts=True)
    most = np.zeros(len(owners), np.int64)
    np.maximum.at(most, member, -observed[launched])
    return tuple(  # the worst file first: where one row speaks for several, it has the text of the first
        Issue(
            str(job.traces[owner].path), "negative_launch_latency",
            f"work that starts before its launch, by up to {-late_by / 1000:.1f} µs (clock error); kept", count, owner,
        )
        for late_by, owner, count in sorted(zip((-most).tolist(), owners.tolist(), counts.tolist(), strict=True))
    )  # fmt: skip


def acyclic(job: RecordedJob, edges: Edges) -> tuple[Edges, tuple[Issue, ...]]:
    """Return the edges without cycles, and what was dropped as issues.

    Cycles come from edges that run back in time by less than the clock error, and from dependencies between activities
    of length 0 at one moment. Of the edges on cycles, the least confident are dropped first; among those, edges that
    run back in time.
    """
    if _runs_forward(job, edges):
        return edges, ()
    dropped: list[Edges] = []
    while True:
        on_circle = _on_circles(2 * len(job.activities), edges)
        suspects = np.flatnonzero(on_circle)
        suspects = suspects[~of_kinds(edges.kind[suspects], edges_with("lane"))]
        if not len(suspects):
            detail = "dependencies that lead in a circle; left out"
            return edges, _counted(job, "cycle_broken", detail, Edges.concatenate(dropped)) if dropped else ()
        doubt = 2 * (100 - edges.confidence[suspects].astype(np.int64)) + (edges.lag[suspects] < 0)
        worst = suspects[doubt == doubt.max()]
        dropped.append(edges.take(worst))
        edges = edges.take(~marked(worst, len(edges)))


def _runs_forward(job: RecordedJob, edges: Edges) -> bool:
    """Return whether the times alone prove that there is no cycle; this is fast, and True for most traces.

    A cycle goes back wherever it goes forward: it lies within one moment, or within a stretch of time that edges run
    back over. The edges within these whose source has no incoming one are removed, round by round, until none is left.
    """

    def moments(rows: Array | slice) -> tuple[Ints, Ints]:
        return job.moment(edges.source[rows]), job.moment(edges.target[rows])

    source, target = moments(rows_where(lambda part: np.greater(*moments(part)), len(edges)))  # those back in time
    bounds = (np.column_stack(union(target, source)) + np.arange(2)).ravel()  # their ends included

    def is_inside(part: slice) -> Mask:
        source, target = moments(part)
        place = np.searchsorted(bounds, target, side="right")  # odd within a stretch
        within, inside = np.flatnonzero(place & 1), source == target
        inside[within] |= np.searchsorted(bounds, source[within], side="right") == place[within]
        return np.asarray(inside)

    inside = rows_where(is_inside, len(edges))
    begin, end = edges.source[inside], edges.target[inside]
    waits = np.zeros(2 * len(job.activities), np.bool_)
    for _ in range(LIMITS.tried):
        if not len(begin):
            return True
        waits[end] = True
        left = waits[begin]
        waits[end] = False
        begin, end = begin[left], end[left]
    return False


def _on_circles(count: int, edges: Edges) -> np.ndarray:
    """Return which edges are on a cycle or between two cycles: no topological order, from either end, reaches them."""
    from htagraph.core import traverse  # numba takes a moment to load

    stuck = np.ones(count, np.bool_)
    for source, target in ((edges.source, edges.target), (edges.target, edges.source)):
        offsets, order = traverse.counting_order(source, count)
        ordered = traverse.topological_order(offsets, target[order])
        if len(ordered) == count:
            return np.zeros(len(edges), np.bool_)
        stuck[ordered] = False
    return stuck[edges.source] & stuck[edges.target]


def _counted(job: RecordedJob, what: str, detail: str, edges: Edges) -> tuple[Issue, ...]:
    """Return an issue for each rank and kind of some edges."""
    rank = job.activities.rank
    of_edge = np.maximum(rank[edges.target // 2], rank[edges.source // 2])  # a JOIN has no rank
    by_rank_and_kind = Counter(zip(of_edge.tolist(), edges.kind.tolist(), strict=True))
    return tuple(
        Issue(
            str(job.traces[owner].path) if owner in job.traces else "", what, f"{EdgeKind(kind).label} {detail}",
            count, owner,
        )
        for (owner, kind), count in sorted(by_rank_and_kind.items())
    )  # fmt: skip


def latency(job: RecordedJob, edges: Edges) -> Edges:
    """Return the edges, with the lags of LAUNCH and GRAPH edges limited to the launch latency.

    The rest is waiting: for the stream, for an event, for work begun before the recording, or for a cause that no edge
    describes.
    """
    held = _held_until(job, edges)
    queued = behind_earlier_work(job, edges, held)  # few, and mostly none
    np.maximum.at(held, queued.target >> 1, job.moment(queued.target))
    limited = _of_graphs(job, _of_calls(job, edges, held), held)
    return with_waits_for_earlier_work(job, limited, queued)


def _of_graphs(job: RecordedJob, edges: Edges, held: Ints) -> Edges:
    """Return the edges, with the lag of each GRAPH edge limited to the least latency of the rank's graphs of that size.

    The latency grows with the size. Only launches count whose work waited for nothing else. Without any, or if even
    those took much longer, the work can start once the call has returned and an ordinary launch latency has passed: by
    then all of it was handed over.
    """
    rows = np.flatnonzero((edges.kind == EdgeKind.GRAPH) & (edges.lag > 0))
    if not len(rows):
        return edges
    acts, call = job.activities, edges.source[rows] // 2
    size = np.bincount(edges.source[edges.kind == EdgeKind.GRAPH] // 2, minlength=len(acts))
    _, member = np.unique(acts.rank[call].astype(np.int64) << 32 | size[call], return_inverse=True)
    seen = edges.lag[rows]
    free = _met_idle(job, edges, rows, held)
    least, handed_over = np.full((2, len(rows)), np.iinfo(np.int64).max // LIMITS.times_usual)
    np.minimum.at(least, member.ravel()[free], seen[free])
    np.minimum.at(handed_over, member.ravel(), acts.duration[call] + LIMITS.launch_ns)
    usual = np.where(least > LIMITS.times_usual * handed_over, handed_over, least)
    lag = edges.lag.copy()
    lag[rows] = np.minimum(seen, usual[member.ravel()])
    return replace(edges, lag=lag)


def _of_calls(job: RecordedJob, edges: Edges, held: Ints) -> Edges:
    """Return the edges, with the lag of each LAUNCH edge limited to the usual latency of the rank's calls of that name.

    The usual latency is the median over kernels and copies that waited for nothing else: everything that they depend on
    had ended when the call began. (The minimum would be a bound, but it predicts too early a start for queued work.)
    Calls that took long themselves, as the first one of a kernel that has to be loaded, say nothing of it.

    Work that waited for nothing else and started before such a call returned, or as soon after as an idle device starts
    work, was handed over that late, since the call took so long: the lag is the call's own time, all of it.
    """
    rows = np.flatnonzero(edges.kind == EdgeKind.LAUNCH)
    if not len(rows):
        return edges
    acts = job.activities
    call = edges.source[rows] // 2
    seen, free = edges.lag[rows], _met_idle(job, edges, rows, held) & (acts.duration[call] <= LIMITS.idle_start_ns)
    rank = acts.rank[call].astype(np.int64)
    of_rank = _medians(rank, seen, free, np.full(len(rows), LIMITS.launch_ns))
    of_class = _medians(rank << 32 | acts.name[call], seen, free, of_rank)
    usual = np.maximum(0, np.where(of_class > LIMITS.times_usual * of_rank, of_rank, of_class))
    starts, begun, returned = (job.moment(each) for each in (edges.target[rows], 2 * call, 2 * call + 1))
    free = np.maximum(held[edges.target[rows] // 2], begun)
    handed_over_late = starts <= returned + usual
    late = handed_over_late & (starts - free > LIMITS.times_usual * usual)
    lag, owner = edges.lag.copy(), edges.activity.copy()
    lag[rows] = np.where(late, seen, np.minimum(seen, usual))
    owner[rows[late]] = call[late]
    return replace(edges, lag=lag, activity=owner)


def _met_idle(job: RecordedJob, edges: Edges, rows: Ints, held: Ints) -> Mask:
    """Return for which edges, from launches to work, the work waited for nothing else, and started soon."""
    call, work = edges.source[rows] // 2, edges.target[rows] // 2
    soon = job.moment(2 * work) - job.moment(2 * call + 1) <= LIMITS.idle_start_ns
    return np.asarray(soon & (held[work] <= job.moment(2 * call)))


def _held_until(job: RecordedJob, edges: Edges) -> Ints:
    """Return for each activity when everything that its start depends on had happened, not counting its launch."""
    held = np.full(len(job.activities), np.iinfo(np.int64).min)
    for part in in_parts(len(edges)):
        rows = part.start + np.flatnonzero(~of_kinds(edges.kind[part], edges_with("no_wait")))
        target = edges.target[rows]
        into = (target & 1 == 0) & job.activities.on_device[target >> 1]
        np.maximum.at(held, target[into] >> 1, job.moment(edges.source[rows[into]]))
    return held


def _medians(group: Ints, value: Ints, use: Mask, otherwise: Ints) -> Ints:
    """Return for each row the median of its group's values in use; `otherwise` for a group without any."""
    known, median = ordered_by(group[use], value[use], lambda count: count // 2)
    of_row = looked_up(known, median, group, _NEVER)
    return np.where(of_row == _NEVER, otherwise, of_row)


@dataclass(frozen=True, eq=False)
class _Waits:
    """The edges of a job, and which of them are waits. Rows of edges are ascending."""

    job: RecordedJob
    edges: Edges
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
    acts, meets = job.activities, np.flatnonzero(of_kinds(edges.kind, TRANSFERS))
    meets = meets[edges.activity[meets] >= 0]
    in_loop = marked(job.polled.vertex[~job.polled.over], 2 * len(acts))
    calls = np.flatnonzero(of_kinds(edges.kind, BLOCKING))
    calls = calls[(edges.target[calls] & 1 == 1) & ~in_loop[edges.target[calls]]]
    may_wait = np.union1d(calls, meets) if len(meets) else calls
    awaited = np.full(len(acts), np.iinfo(np.int64).min)
    ends = edges.target[may_wait] >> 1
    member = np.searchsorted(may_wait, meets)
    ends[member] = edges.activity[meets]
    np.maximum.at(awaited, ends, job.moment(edges.source[may_wait]) + _of_parts(edges, may_wait))
    in_meeting = marked(edges.activity[meets], len(acts))
    last = _last_stretches(edges, meets, len(acts))
    bodies = last[((awaited > _NEVER) | in_meeting)[edges.activity[last]]]  # few
    activity = edges.activity[bodies]
    bodies = bodies[(awaited[activity] > job.moment(edges.source[bodies])) | in_meeting[activity]]
    released = marked(edges.target[bodies], 2 * len(acts))
    return _Waits(job, edges, may_wait, last, bodies, released, in_meeting, in_loop)


def _of_parts(edges: Edges, rows: Array) -> Ints:
    """Return for waits for a part of some work how long the work runs until then, ns; 0 for waits for its end."""
    is_part = of_kinds(edges.kind[rows], BLOCKING) & (edges.source[rows] & 1 == 0)
    return np.where(is_part, edges.lag[rows], 0)


def _last_stretches(edges: Edges, meets: Array, count: int) -> Ints:
    """Return the BODY edges to the end of their activity, or of its wait if work in it follows.

    Of a member of a collective, also those to the end of another member on the thread: a send may be pending meanwhile.
    """
    released = 2 * np.arange(count) + 1
    released[edges.activity[meets]] = edges.target[meets]
    member, until = marked(edges.activity[meets], count), marked(edges.target[meets], 2 * count)

    def is_last(part: slice) -> Mask:
        target, activity = edges.target[part], edges.activity[part]
        own = (edges.kind[part] == EdgeKind.BODY) & (activity >= 0)
        return np.asarray(own & ((target == released[activity]) | (member[activity] & until[target])))

    return rows_where(is_last, len(edges))


def _without_waits(waits: _Waits, lag: Array) -> _Change:
    """Cut the last BODY edge of each activity that waited to its duration without waiting (0 in a collective).

    That is what its wait's edge has as lag where the call works after the wait, else what is usual for its class.
    """
    edges, bodies, activity = waits.edges, waits.bodies, waits.edges.activity[waits.bodies]
    behind_end = edges.lag[waits.may_wait] - _of_parts(edges, waits.may_wait)
    after = _latest(edges.target[waits.may_wait], behind_end, edges.target[bodies])
    own = np.minimum(lag[bodies], np.where(after > 0, after, _own_cost(waits, lag)))
    return bodies, np.where(waits.in_meeting[activity], 0, own)


def _handed_over(waits: _Waits, lag: Array) -> _Change:
    """Set the BODY edges to 0 during which a thread was blocked until another thread was done, or asked for work."""
    del lag  # the new lag does not depend on it
    edges = waits.edges
    over = np.flatnonzero(of_kinds(edges.kind, (EdgeKind.THREAD, EdgeKind.HOST_SYNC)))
    over = over[(edges.kind[over] == EdgeKind.THREAD) | waits.in_loop[edges.target[over]]]
    ends = marked(edges.target[over], 2 * len(waits.job.activities))
    rows = rows_where(lambda part: ends[edges.target[part]], len(edges))  # few
    rows = rows[edges.kind[rows] == EdgeKind.BODY]
    rows = rows[_latest(edges.target[over], waits.source_time(over), edges.target[rows]) > waits.source_time(rows)]
    return rows, np.zeros(len(rows), np.int64)


def _with_pauses(waits: _Waits, lag: Array) -> _Change:
    """Add the time left before the start of device work, or before the end of a wait, to the binding edge."""
    edges, acts = waits.edges, waits.job.activities
    starts = np.flatnonzero(of_kinds(edges.kind, _STARTS))
    starts = starts[acts.on_device[edges.target[starts] >> 1] & (edges.target[starts] & 1 == 0)]
    rows = np.concatenate((starts, waits.waited, waits.bodies))  # one that is there twice is changed alike
    target = edges.target[rows]
    allowed = waits.source_time(rows) + lag[rows]
    latest = _latest(target, allowed, target)
    rest = waits.target_time(rows) - latest
    binding = (allowed == latest) & (rest > 0) & (rest <= _limits(waits.job, edges, rows))
    return rows[binding], lag[rows[binding]] + rest[binding]


def _given_back(waits: _Waits, lag: Array) -> _Change:
    """Restore the duration of calls that returned long after all that they may have waited for: they did not wait.

    If an id proves what a call waited for, the rest stays a gap.
    """
    edges, bodies = waits.edges, waits.bodies
    into = rows_where(lambda part: waits.released[edges.target[part]], len(edges))
    latest = _latest(edges.target[into], waits.source_time(into) + lag[into], edges.target[bodies])
    proven = edges.target[into[of_kinds(edges.kind[into], BLOCKING) & (edges.confidence[into] == 100)]]
    late = (waits.target_time(bodies) > latest) & ~np.isin(edges.target[bodies], proven)
    rows = bodies[late]
    return rows, waits.target_time(rows) - waits.source_time(rows)


def _never_waited(waits: _Waits, lag: Array) -> _Change:
    """Set the lag into calls that had nothing to wait for to the usual return time, in case they wait in a what-if."""
    edges, rows = waits.edges, waits.may_wait
    rows = rows[~waits.released[edges.target[rows]] & of_kinds(edges.kind[rows], BLOCKING)]
    observed = waits.target_time(rows) - waits.source_time(rows)
    return rows, np.maximum(lag[rows], np.minimum(observed, _usual_returns(waits, lag)[edges.kind[rows]]))


_STAGES: tuple[Callable[[_Waits, Array], _Change], ...] = (
    _without_waits, _handed_over, _with_pauses, _given_back, _never_waited,
)  # fmt: skip
"""The order matters: pauses are what is left after waits are cut, and usual returns are measured after pauses are
added."""


def _latest(target: Array, moment: Array, wanted: Array) -> Ints:
    """Return for each wanted vertex the latest of the moments given for it, the smallest integer without any."""
    order = np.argsort(target, kind="stable")  # edges of one rule are mostly in this order
    known, first = target[order], run_starts(target[order])
    latest = np.maximum.reduceat(moment[order], first) if len(first) else moment
    return looked_up(known[first], latest, wanted, _NEVER)


def _own_cost(waits: _Waits, lag: Array) -> Ints:
    """Return for each of `bodies` the median lag, ns, of the rank's calls of that name that did not wait."""
    acts = waits.job.activities
    activity = waits.edges.activity
    own = activity[waits.bodies]
    is_used = marked(acts.name[own], len(waits.job.names))
    free = waits.last[is_used[acts.name[activity[waits.last]]]]
    free = free[~np.isin(free, waits.bodies)]
    known, median = ordered_by(
        _classes(waits.job, activity[free]),
        lag[free],
        lambda count: count // 2,
    )
    wanted = _classes(waits.job, own)
    return looked_up(known, median, wanted, LIMITS.own_call_ns)


def _classes(job: RecordedJob, activity: Array) -> Ints:
    """Return one number for the rank and the name of each activity, and whether it is of a device.

    The profiler before Kineto gave device work the name of its operator.
    """
    acts = job.activities
    place = 2 * acts.rank[activity].astype(np.int64) + acts.on_device[activity]
    return place << 32 | acts.name[activity]


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
    limit[list(BLOCKING)] = LIMITS.long_call_ns
    limit[list(TRANSFERS)] = np.iinfo(np.int64).max  # the lag is the transfer time, however long
    of_edge = limit[edges.kind[rows]]
    launched = of_kinds(edges.kind[rows], LAUNCHES)
    # a long call delays its work, e.g. by loading a module
    of_edge[launched] += job.activities.duration[edges.source[rows[launched]] >> 1]
    return of_edge
