"""Pauses of host threads that end right behind work of another thread of their process: each waits for that work.

A pause is a stretch of a thread in which no operator runs: between two operators, or inside a region in which nothing
else was recorded (`wait_for_writer`). Who waits for whom is a matter of the program, not of the thread on which the
wait happened: a thread per snapshot, a future per batch and the threads of a pool never repeat on one thread. So pauses
are compared by their *role*, the names around them, and the work that they may wait for by the names of the work that
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
from htagraph.graph.accept import Ends, behind_ends, confidence
from htagraph.graph.activities import Edges, lane_moments
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.threads import HandOvers, HostThread, what_of
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["pauses", "places", "works_of"]


class _Pauses(NamedTuple):
    """Stretches of a rank's threads in which no operator runs, by their end."""

    target: Array
    """The vertex behind each."""
    begin: Ints
    """When each begins, ns."""
    end: Ints
    """When each ends, ns."""
    role: npt.NDArray[np.uint64]
    """Equal for pauses between activities of the same names, on any thread."""
    is_long: Mask
    """Which are long."""
    waits: Mask
    """Which are long, and not explained yet."""

    def of_role(self, rows: Array) -> _Pauses:
        """Return the pauses of the given rows."""
        return _Pauses(
            self.target[rows],
            self.begin[rows],
            self.end[rows],
            self.role[rows],
            self.is_long[rows],
            self.waits[rows],
        )


class _Releaser(NamedTuple):
    """Work of one name that may release the pauses of a role."""

    delay_ns: float
    """How long after the end of the work the pauses end, the median."""
    confidence: int
    """How surely the work releases the pauses, percent."""
    made: Ends
    """The ends of all work of this name."""
    woken: Array
    """The pauses that the work releases, by their row in the role."""
    by: Array
    """The end, of `made`, that releases each of these pauses."""

    def rank(self) -> tuple[int, float]:
        """Return a key that is larger for a likelier releaser: more pauses, then less delay."""
        return len(self.woken), -self.delay_ns


def pauses(
    job: RecordedJob,
    threads: Sequence[HostThread],
    known: Edges,
) -> HandOvers:
    """Return who waits in pauses of a rank's threads for the work of which other thread.

    Args:
        job: the job.
        threads: the threads of one rank.
        known: the edges between threads that are known already; pauses in which one of the edges ends are explained.
    """
    of_roles: list[HandOvers] = []
    if len(threads) > 1:
        lanes = marked([thread.lane for thread in threads], len(job.lanes) + 1)
        idle = _pauses(job, lanes, known)
        works = works_of(job, threads, lanes)
        made = Ends.of(works, job.moment(2 * works + 1))
        names = what_of(job, made.row), job.activities.name[made.row]
        for rows in grouped(idle.role):
            role = idle.of_role(rows)
            unexplained = np.count_nonzero(role.waits)
            if unexplained >= LIMITS.often:
                of_roles += _waits(role, made, names)
            elif unexplained and np.count_nonzero(role.is_long) >= LIMITS.often:
                of_roles += _like_the_explained(role, made, names)
    source, target, sure = joined(of_roles, 3)
    return source, target, sure


def _pauses(job: RecordedJob, lanes: Mask, known: Edges) -> _Pauses:
    """Return the pauses of the threads on some lanes."""
    source_of_slice, target_of_slice, _ = job.slices
    idle = _idle_slices(job, lanes)
    by_end = np.argsort(job.moment(target_of_slice[idle]), kind="stable")
    idle = idle[by_end]
    source = source_of_slice[idle].astype(np.int64)
    target = target_of_slice[idle].astype(np.int64)
    begin = job.moment(source)
    end = job.moment(target)
    is_long = end - begin >= LIMITS.turn_ns
    return _Pauses(
        target,
        begin,
        end,
        mixed(places(job, source), places(job, target)),
        is_long,
        is_long & ~_explained(job, target, begin, end, known),
    )


def _idle_slices(job: RecordedJob, lanes: Mask) -> Array:
    """Return the slices of `RecordedJob.slices` in which a thread runs no operator and waits for no other process."""
    acts = job.activities
    source, _, owner = job.slices
    on_thread = lanes[acts.lane[source >> 1]]
    waits_outside = (job.loaders >= 0) | (job.outside.region >= 0)
    slices = np.flatnonzero(on_thread & ~waits_outside)
    owner = owner[slices]
    is_region = of_kinds(acts.kind[owner], (*ANNOTATIONS, ActivityKind.PYTHON))
    return slices[(owner < 0) | is_region]


def _explained(
    job: RecordedJob,
    target: Array,
    begin: Ints,
    end: Ints,
    known: Edges,
) -> Mask:
    """Return in which pauses a known edge ends that is sure enough.

    Args:
        job: the job.
        target: the vertex behind each pause.
        begin: when each pause begins, ns.
        end: when each pause ends, ns.
        known: the edges between threads that are known.
    """
    acts = job.activities
    is_sure = known.confidence >= Confidence.EVEN
    sure = known.target[is_sure].astype(np.int64)
    reached = np.sort(lane_moments(acts, sure >> 1, job.moment(sure)))
    row = target >> 1
    reached_at_begin = np.searchsorted(reached, lane_moments(acts, row, begin), "right")
    reached_at_end = np.searchsorted(reached, lane_moments(acts, row, end), "right")
    return reached_at_end > reached_at_begin


def places(job: RecordedJob, vertex: Array) -> npt.NDArray[np.uint64]:
    """Return a number per moment, equal for starts, or ends, of activities of one name in annotations of one name."""
    return mixed(what_of(job, vertex >> 1), vertex & 1)


def works_of(
    job: RecordedJob,
    threads: Sequence[HostThread],
    lanes: Mask,
) -> Array:
    """Return the work that a thread may wait for: outermost operators, regions of threads without steps, and transfers.

    A recording may begin inside a region, which is then not in it, while its operators are. A transfer counts on any
    thread: another thread may have asked for the transfer.

    Args:
        job: the job.
        threads: the threads.
        lanes: for each lane, whether it is one of the threads.
    """
    ranks = {job.lanes[thread.lane].rank for thread in threads}
    works = [np.zeros(0, np.int64)]
    works += [_works_of_rank(job, rank, lanes) for rank in sorted(ranks)]
    return np.concatenate(works)


def _works_of_rank(job: RecordedJob, rank: int, lanes: Mask) -> Array:
    acts = job.activities
    of_rank = acts.of_rank(rank)
    kind = acts.kind[of_rank]
    lane = acts.lane[of_rank]
    parent = acts.parent[of_rank]
    above = np.where(parent >= 0, parent - of_rank.start, -1)
    on_thread = lanes[lane]
    steps = on_thread & (kind == ActivityKind.STEP)
    has_steps = np.isin(lane, lane[steps])
    regions = on_thread & (kind == ActivityKind.ANNOTATION) & ~has_steps
    operators = on_thread & (kind == ActivityKind.OP)
    transfers = np.flatnonzero(kind == ActivityKind.HOST_COMMUNICATION)
    outer = np.union1d(outermost(above, operators), outermost(above, regions))
    return of_rank.start + np.union1d(outer, transfers)


def _waits(
    role: _Pauses,
    made: Ends,
    names: tuple[Array, ...],
) -> Iterator[HandOvers]:
    """Yield who releases the pauses of a role, if that is regular: work of one name, in the same region or in any.

    Args:
        role: the pauses.
        made: the ends of all work of the threads.
        names: the name of each work, in two ways: with the region around the work, and alone.
    """
    releasers = list(_releasers(role, made, names))
    if not releasers:
        return
    likeliest = max(releasers, key=_Releaser.rank)
    releasing = likeliest.made.row
    sure = likeliest.confidence
    # work that waits for the same work elsewhere takes turns, by a lock: after a change it may take them otherwise
    if np.isin(role.target >> 1, releasing).any():
        sure = min(sure, Confidence.COUNTED)
    woken = likeliest.woken
    source = 2 * releasing[likeliest.by] + 1
    yield source, role.target[woken], np.full(len(woken), sure)
    yield from _counted(role, likeliest)


def _like_the_explained(
    role: _Pauses,
    made: Ends,
    names: tuple[Array, ...],
) -> Iterator[HandOvers]:
    """Yield who releases the few pauses of a role that no edge explains, like the last pause of a recording.

    All long pauses of the role tell which work does.

    Args:
        role: the pauses.
        made: the ends of all work of the threads.
        names: the name of each work, in two ways: with the region around the work, and alone.
    """
    all_long = role._replace(waits=role.is_long)
    unexplained = role.target[role.waits]
    for source, target, sure in _waits(all_long, made, names):
        is_new = np.isin(target, unexplained)
        yield source[is_new], target[is_new], sure[is_new]


def _releasers(
    role: _Pauses,
    made: Ends,
    names: tuple[Array, ...],
) -> Iterator[_Releaser]:
    """Yield which work may release the pauses of a role, of the work that ends shortly before them."""
    if not len(made.row):
        return
    waited = np.flatnonzero(role.waits)
    over = role.end[waited]
    idle = over - role.begin[waited]
    nearest_ends = made.last(over)[:, None] - np.arange(LIMITS.nearest_ends)
    nearest_ends = np.maximum(nearest_ends, 0)
    for names_of_made in names:
        for name in np.unique(names_of_made[nearest_ends]).tolist():
            of_name = made.take(names_of_made == name)
            # the thread itself ends nothing while it is idle
            odds = behind_ends(of_name, over, idle, LIMITS.turn_ns)
            sure = confidence(odds)
            if not sure:
                continue
            woken = np.flatnonzero(odds[-1])
            by = of_name.last(over[woken])
            delay = over[woken] - of_name.time[by]
            yield _Releaser(
                float(np.median(delay)),
                sure,
                of_name,
                waited[woken],
                by,
            )


def _counted(role: _Pauses, releaser: _Releaser) -> Iterator[HandOvers]:
    """Yield the waits of a role that did not bind: each takes the next end, as the waits that were seen do."""
    made = releaser.made
    ahead = releaser.by - releaser.woken
    usual = int(np.median(ahead))
    if (ahead == usual).mean() < LIMITS.nearly_all:
        return
    taker = np.setdiff1d(np.arange(len(role.end)), releaser.woken)
    maker = taker + usual
    was_recorded = (maker >= 0) & (maker < len(made.row))
    taker = taker[was_recorded]
    maker = maker[was_recorded]
    is_over = made.time[maker] <= role.end[taker]
    taker = taker[is_over]
    maker = maker[is_over]
    yield (
        2 * made.row[maker] + 1,
        role.target[taker],
        np.full(len(taker), Confidence.COUNTED),
    )
