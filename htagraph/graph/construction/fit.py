"""Edges of the rules → edges that agree with the recorded times and form no cycle, with lags that are latencies.

`fit` drops impossible edges and reduces lags to what was observed, `acyclic` breaks cycles at their least certain edge,
`latency` takes the time that work waited out of the time from its launch to its start.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from htagraph.core.arrays import Ints, Mask, looked_up, marked
from htagraph.core.errors import Issue
from htagraph.core.kinds import LAUNCHES, EdgeKind, Provenance, edges_with, of_kinds
from htagraph.core.statistics import ordered_by
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["acyclic", "fit", "latency"]


def fit(job: RecordedJob, edges: Edges) -> tuple[Edges, tuple[Issue, ...]]:
    """Return the edges with lag = min(lag, recorded time from source to target), and what was refused as issues.

    No target then comes before its source plus the lag, so a replay reproduces the recorded times. An edge whose target
    comes before its source by more than a tolerance is a wrong inference or a wrong record, and is dropped, unless its
    rule says that the call returns before the work ends (a negative lag). Work that seems to start before its own
    launch shows how far the clocks of host and device disagree; it is kept and reported.
    """
    observed = job.moment(edges.target) - job.moment(edges.source)
    tolerance = np.full(len(EdgeKind), LIMITS.tick_ns)
    tolerance[list(edges_with("two_clocks"))] = LIMITS.two_clocks_ns
    tolerance[list(LAUNCHES)] = LIMITS.proven_by_id_ns
    back = np.flatnonzero(observed < 0)  # few
    kind = edges.kind[back]
    early = np.where(of_kinds(kind, edges_with("early")), np.minimum(edges.lag[back], 0), 0)
    possible = np.ones(len(edges), np.bool_)
    possible[back] = observed[back] >= early - tolerance[kind]
    detail = "dependencies that the recorded times contradict; left out"
    refused = _counted(job, "edge_refused", detail, edges.take(np.flatnonzero(~possible)))
    refused += _early(job, edges, observed, possible)
    if not possible.all():
        edges, observed = edges.take(possible), observed[possible]
    return replace(edges, lag=np.minimum(edges.lag, observed)), refused


def _early(job: RecordedJob, edges: Edges, observed: np.ndarray, possible: np.ndarray) -> tuple[Issue, ...]:
    early = possible & (edges.kind == EdgeKind.LAUNCH) & (observed < 0)
    rank = job.activities.rank[edges.target[early] // 2]
    owners, member, counts = np.unique(rank, return_inverse=True, return_counts=True)
    most = np.zeros(len(owners), np.int64)
    np.maximum.at(most, member, -observed[early])
    return tuple(
        Issue(
            str(job.traces[owner].path), "negative_launch_latency",
            f"work that starts before its launch, by up to {late_by / 1000:.1f} µs (clock error); kept", count, owner,
        )
        for owner, late_by, count in zip(owners.tolist(), most.tolist(), counts.tolist(), strict=True)
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
        stays = np.ones(len(edges), np.bool_)
        stays[worst] = False
        edges = edges.take(stays)


def _runs_forward(job: RecordedJob, edges: Edges) -> bool:
    """Return whether the times alone prove that there is no cycle; this is fast, and True for most traces.

    If no edge runs back in time, a cycle can only be within one moment. The edges within moments whose source has no
    incoming one are removed, round by round, until none is left.
    """
    lasts = job.moment(edges.target) - job.moment(edges.source)
    if len(lasts) and lasts.min() < 0:
        return False
    source, target = edges.source[lasts == 0], edges.target[lasts == 0]
    waits = np.zeros(2 * len(job.activities), np.bool_)
    for _ in range(LIMITS.tried):
        if not len(source):
            return True
        waits[target] = True
        left = waits[source]
        waits[target] = False
        source, target = source[left], target[left]
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


_UNKNOWN = np.iinfo(np.int64).min
"""No latency; no threshold."""


def latency(job: RecordedJob, edges: Edges) -> Edges:
    """Return the edges, with the lags of LAUNCH and GRAPH edges limited to the launch latency.

    What comes on top is waiting: for the stream, for an event, for work begun before the recording, or for something
    that no edge describes.
    """
    held = _held_until(job, edges)
    limited = _of_graphs(job, _of_calls(job, edges, held), held)
    return Edges.concatenate([limited, _behind_earlier_work(job, edges, held)])


def _behind_earlier_work(job: RecordedJob, edges: Edges, held: Ints) -> Edges:
    """Return an edge from the start of a rank's recording to the first work of each stream that was queued for long.

    It was launched before any launched work of the rank ran, and nothing else that is recorded held it up: the device
    was probably busy with work begun before the recording. Its end stays where it is, whatever becomes of the host.
    """
    acts = job.activities
    launched = np.flatnonzero(of_kinds(edges.kind, LAUNCHES))
    behind = marked(edges.target[edges.kind == EdgeKind.STREAM], 2 * len(acts))
    call, work = edges.source[launched] >> 1, edges.target[launched] >> 1
    first = np.full(max(job.traces, default=0) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, acts.rank[work], acts.start[work])
    early = acts.start[call] <= first[acts.rank[work]]
    several = np.bincount(acts.rank[work[early]], minlength=len(first)) >= LIMITS.often  # one may load its module
    early &= several[acts.rank[work]]
    free = np.maximum(held[work], job.moment(2 * call + 1))
    queued = early & ~behind[2 * work] & (job.moment(2 * work) - free > LIMITS.idle_start_ns)
    ranks = np.unique(acts.rank[work[queued]])
    own = [acts.of_rank(rank) for rank in ranks.tolist()]
    begins = np.array([rows.start + acts.start[rows].argmin() for rows in own], np.int64)
    source = looked_up(ranks, begins, acts.rank[work])
    queued &= source != call  # nothing moves the first call of a recording
    source, target = 2 * source[queued], 2 * work[queued]
    longest = np.zeros(len(first), np.int64)
    np.maximum.at(longest, acts.rank[target >> 1], job.moment(target) - free[queued])
    detail = "kernels were queued {:.3g} ms before they ran; the device was probably busy with earlier work"
    job.refused["latency"] = tuple(
        Issue(str(job.traces[rank].path), "queued_behind_earlier_work", detail.format(longest[rank] / 1e6), 1, rank)
        for rank, rows in zip(ranks.tolist(), own, strict=True)
        if longest[rank] > LIMITS.small * (acts.end[rows].max() - acts.start[rows].min())
    )
    lasts = job.moment(target) - job.moment(source)
    return Edges.of(source, target, lasts, EdgeKind.EVENT_WAIT, Provenance.INFERRED, confidence=Confidence.LIKELY)


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

    Work that waited for nothing else and started before such a call returned was handed over that late: the lag is the
    call's own time, all of it.
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
    late = _handed_over_late(job, edges.take(rows), held, LIMITS.times_usual * usual)
    lag, owner = edges.lag.copy(), edges.activity.copy()
    lag[rows] = np.where(late, seen, np.minimum(seen, usual))
    owner[rows[late]] = call[late]
    return replace(edges, lag=lag, activity=owner)


def _handed_over_late(job: RecordedJob, launches: Edges, held: Ints, usual: Ints) -> Mask:
    """Return for which edges, from launches to work, the call took so long that it alone made the work wait.

    `usual` is what may pass from the call, or from anything else that the work waited for, ns; `held` is that of
    `_held_until`.
    """
    starts = job.moment(launches.target)
    before_return = starts <= job.moment(launches.source + 1)
    free = np.maximum(held[launches.target // 2], job.moment(launches.source))
    return np.asarray(before_return & (starts - free > usual))


def _met_idle(job: RecordedJob, edges: Edges, rows: Ints, held: Ints) -> Mask:
    """Return for which edges, from launches to work, the work waited for nothing else.

    All that it depends on had happened when the call began, and it started soon after the call returned.
    """
    call, work = edges.source[rows] // 2, edges.target[rows] // 2
    soon = job.moment(2 * work) - job.moment(2 * call + 1) <= LIMITS.idle_start_ns
    return np.asarray(soon & (held[work] <= job.moment(2 * call)))


def _held_until(job: RecordedJob, edges: Edges) -> Ints:
    """Return for each activity when everything that its start depends on had happened, not counting its launch."""
    rows = np.flatnonzero(~of_kinds(edges.kind, edges_with("no_wait")))
    target = edges.target[rows]
    into = (target & 1 == 0) & job.activities.on_device[target >> 1]
    held = np.full(len(job.activities), np.iinfo(np.int64).min)
    np.maximum.at(held, target[into] >> 1, job.moment(edges.source[rows[into]]))
    return held


def _medians(group: Ints, value: Ints, use: Mask, otherwise: Ints) -> Ints:
    """Return for each row the median of its group's values in use; `otherwise` for a group without any."""
    known, median = ordered_by(group[use], value[use], lambda count: count // 2)
    of_row = looked_up(known, median, group, _UNKNOWN)
    return np.where(of_row == _UNKNOWN, otherwise, of_row)
