"""Pauses of host threads that end right behind work of another thread of their process: each waits for that work.

A pause is a stretch of a thread in which no operator runs: between two operators, or inside a region in which nothing
else was recorded (`wait_for_writer`). What waits for whom is a matter of what the program does there, not of the thread
on which it happened: a thread per snapshot, a future per batch and the threads of a pool never repeat on one thread. So
pauses are compared by their *role*, the names around them, and what they may wait for by the names of the work that
ends before them. A wait of a role that did not bind, because the work was over by then, is found by counting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, joined, marked
from htagraph.core.kinds import ANNOTATIONS, ActivityKind, of_kinds
from htagraph.core.parents import outermost
from htagraph.graph.activities import Edges, lane_moments
from htagraph.graph.evidence.accept import Ends, behind_ends, confidence
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.threads import HandOvers, HostThread, what_of
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["pauses", "places", "works_of"]


class _Pauses(NamedTuple):
    """Stretches of a rank's threads in which no operator runs, by their end."""

    target: Array
    """The vertex behind each."""
    lane: Array
    begin: Ints
    """When each begins, ns."""
    end: Ints
    """When each ends, ns."""
    role: npt.NDArray[np.uint64]
    """Equal for pauses between activities of the same names, on any thread."""
    waits: Mask
    """Which are long, and not explained yet."""

    def of_role(self, rows: Array) -> _Pauses:
        """Return some of them."""
        times = self.begin[rows], self.end[rows]
        return _Pauses(self.target[rows], self.lane[rows], *times, self.role[rows], self.waits[rows])


def pauses(job: RecordedJob, threads: Sequence[HostThread], known: Edges) -> HandOvers:
    """Return who waits in pauses of a rank's threads for the work of which other thread.

    `known` are the edges between threads that are known already; pauses in which one of them ends are explained.
    """
    parts: list[HandOvers] = []
    if len(threads) > 1:
        lanes = marked([thread.lane for thread in threads], len(job.lanes) + 1)
        found = _pauses(job, threads, lanes, known)
        works = works_of(job, threads, lanes)
        made = Ends.of(works, job.moment(2 * works + 1))
        names = what_of(job, made.row), job.activities.name[made.row]
        for rows in grouped(found.role):
            role = found.of_role(rows)
            if np.count_nonzero(role.waits) >= LIMITS.often:
                parts += _waits(job, role, made, names)
    source, target, confidence = joined(parts, 3)
    return source, target, confidence


def _pauses(job: RecordedJob, threads: Sequence[HostThread], lanes: Mask, known: Edges) -> _Pauses:
    acts = job.activities
    source, target, owner = job.slices
    own = np.flatnonzero(lanes[acts.lane[source >> 1]] & (job.loaders < 0) & (job.outside.region < 0))
    own = own[(owner[own] < 0) | of_kinds(acts.kind[owner[own]], (*ANNOTATIONS, ActivityKind.PYTHON))]
    source, target = source[own].astype(np.int64), target[own].astype(np.int64)
    begin, end = job.moment(source), job.moment(target)
    order = np.argsort(end, kind="stable")
    source, target, begin, end = (each[order] for each in (source, target, begin, end))
    lane = acts.lane[target >> 1]
    sure = known.target[known.confidence >= Confidence.EVEN].astype(np.int64)
    reached = np.sort(lane_moments(acts, sure >> 1, job.moment(sure)))
    first, last = (lane_moments(acts, target >> 1, each) for each in (begin, end))
    explained = np.searchsorted(reached, last, "right") > np.searchsorted(reached, first, "right")
    role = mixed(places(job, source), places(job, target))
    return _Pauses(target, lane, begin, end, role, (end - begin >= LIMITS.turn_ns) & ~explained)


def places(job: RecordedJob, vertex: Array) -> npt.NDArray[np.uint64]:
    """Return a number per moment, equal for starts, or ends, of activities of one name in annotations of one name."""
    return mixed(what_of(job, vertex >> 1), vertex & 1)


def works_of(job: RecordedJob, threads: Sequence[HostThread], lanes: Mask) -> Array:
    """Return what threads of a rank work on: the operators inside no other one, and regions of threads without steps.

    A recording may begin inside a region, which is then not in it, while its operators are.
    """
    acts = job.activities
    parts = [np.zeros(0, np.int64)]
    for rank in sorted({job.lanes[thread.lane].rank for thread in threads}):
        of_rank = acts.of_rank(rank)
        kind, lane = acts.kind[of_rank], acts.lane[of_rank]
        above = np.where(acts.parent[of_rank] >= 0, acts.parent[of_rank] - of_rank.start, -1)
        steps = lanes[lane] & (kind == ActivityKind.STEP)
        regions = lanes[lane] & (kind == ActivityKind.ANNOTATION) & ~np.isin(lane, lane[steps])
        operators = lanes[lane] & (kind == ActivityKind.OP)
        parts += [of_rank.start + np.union1d(outermost(above, operators), outermost(above, regions))]
    return np.concatenate(parts)


def _waits(job: RecordedJob, role: _Pauses, made: Ends, names: tuple[Array, ...]) -> Iterator[HandOvers]:
    """Yield what releases the pauses of a role, if that is regular: work of one name, in the same region or in any."""
    found: list[tuple[int, float, int, Ends, Array, Array]] = []
    waited = np.flatnonzero(role.waits)
    over, idle = role.end[waited], (role.end - role.begin)[waited]
    near = made.last(over)[:, None] - np.arange(LIMITS.nearest_ends)
    for of_name in (made.take(of == each) for of in names for each in np.unique(of[np.maximum(near, 0)]).tolist()):
        odds = behind_ends(of_name, over, idle, LIMITS.turn_ns)  # the thread itself ends nothing while it is idle
        sure = confidence(odds)
        if sure:
            woken = np.flatnonzero(odds[-1])
            by = of_name.last(over[woken])
            delay = float(np.median(over[woken] - of_name.time[by]))
            found.append((len(woken), -delay, sure, of_name, waited[woken], by))
    if not found:
        return
    _, _, sure, by_name, woken, by = max(found, key=lambda candidate: candidate[:2])
    # work that waits for the same work elsewhere takes turns, by a lock: after a change it may take them otherwise
    turns = bool(np.isin(role.target >> 1, by_name.row).any())
    sure = min(sure, Confidence.COUNTED) if turns else sure
    yield 2 * by_name.row[by] + 1, role.target[woken], np.full(len(by), sure)
    yield from _counted(role, by_name, woken, by)


def _counted(role: _Pauses, made: Ends, woken: Array, by: Array) -> Iterator[HandOvers]:
    """Yield the waits of a role that did not bind: it takes the next of what was made each time, as in those seen."""
    ahead = by - woken
    usual = int(np.median(ahead))
    if (ahead == usual).mean() < LIMITS.nearly_all:
        return
    taker = np.setdiff1d(np.arange(len(role.end)), woken)
    maker = taker + usual
    known = (maker >= 0) & (maker < len(made.row))
    taker, maker = taker[known], maker[known]
    taker, maker = (each[made.time[maker] <= role.end[taker]] for each in (taker, maker))
    yield 2 * made.row[maker] + 1, role.target[taker], np.full(len(taker), Confidence.COUNTED)
