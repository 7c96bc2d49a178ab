"""What else a wait joins: a barrier, a gather of futures or a `join` of threads waits for all, and the last one binds.

One end releases such a wait, and only that one shows in the recording: a change that makes another one the last meets
no edge. Others are known by their role: work of the same purpose (names that differ in numbers only) on other threads
than the one that released the wait, over before the release, and not yet taken by an earlier wait of the same place.
Whether a wait joins at all shows in the counts: a wait for one item of a queue ends with the first item that is made,
so that no other one lies between two waits; one that joins leaves equally many between any two. Threads that are joined
begin again behind the wait, and those that fill a queue go on by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, joined, marked
from htagraph.core.kinds import ActivityKind
from htagraph.core.parents import nearest
from htagraph.graph.activities import Edges, lane_moments
from htagraph.graph.evidence.accept import Ends
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.pauses import places, works_of
from htagraph.graph.evidence.threads import HandOvers, HostThread
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["joins"]

_NUMBER = re.compile(r"\d+")


class _Place(NamedTuple):
    """A place of a program where a thread waits: all moments at which it goes on there, by time."""

    lane: int
    vertex: Array
    time: Ints
    waits: Array
    """Which of them are known to have waited."""


def joins(job: RecordedJob, threads: Sequence[HostThread], known: Edges) -> HandOvers:
    """Return what else the waits of a rank's threads waited for; `known` are the edges between them."""
    parts: list[HandOvers] = []
    lanes, lane = marked([thread.lane for thread in threads], len(job.lanes) + 1), job.activities.lane
    between = lanes[lane[known.source >> 1]] & lanes[lane[known.target >> 1]]
    known = known.take(np.flatnonzero(between & (known.confidence >= Confidence.COUNTED)))
    if len(threads) > 2 and len(known):
        works = works_of(job, threads, lanes)
        made = Ends.of(works, job.moment(2 * works + 1))
        both = _purposes(job, np.concatenate((made.row, known.source >> 1)))  # numbers are of one call
        purpose, release = both[: len(made.row)], both[len(made.row) :]
        target = mixed(places(job, known.target), lane[known.target >> 1])
        for rows in grouped(mixed(release, target)):
            if len(rows) >= LIMITS.often:
                of_purpose = made.take(purpose == release[rows[0]])
                parts += _joined(job, _place(job, threads, known.target[rows]), of_purpose, known.take(rows), works)
    source, vertex, confidence = joined(parts, 3)
    return source, vertex, confidence


def _purposes(job: RecordedJob, rows: Array) -> npt.NDArray[np.uint64]:
    """Return a number per activity, equal for names, and annotations around, that differ in numbers only."""
    acts = job.activities
    region = nearest(acts.parent, acts.kind == ActivityKind.ANNOTATION, rows)
    codes: dict[str, int] = {}
    name = np.unique(np.concatenate((acts.name[rows], acts.name[region[region >= 0]])))
    plain = np.zeros(len(job.names) + 1, np.int64)
    plain[name] = [1 + codes.setdefault(_NUMBER.sub("", job.names[each]), len(codes)) for each in name.tolist()]
    return mixed(plain[acts.name[rows]], np.where(region >= 0, plain[acts.name[region]], 0))


def _place(job: RecordedJob, threads: Sequence[HostThread], vertex: Array) -> _Place:
    """Return all moments of the place on a thread of which some are given."""
    lane = int(job.activities.lane[vertex[0] >> 1])
    thread = next(each for each in threads if each.lane == lane)
    here = np.flatnonzero(places(job, thread.vertices) == places(job, vertex[:1])[0])
    return _Place(lane, thread.vertices[here], thread.times[here], np.isin(thread.vertices[here], vertex))


def _go_on(job: RecordedJob, works: Array, made: Ends, at: Array, until: Ints) -> Mask:
    """Return for what was made which threads go on before the wait `at` that it was made for is over, `until`, ns.

    Threads that are joined begin again with those that join them. Those that fill a queue go on by themselves.
    """
    acts = job.activities
    begins = np.sort(lane_moments(acts, works, job.moment(2 * works)))
    ended, resumed = (lane_moments(acts, made.row, moment) for moment in (made.time, until))
    order = np.lexsort((made.time, acts.lane[made.row], at))
    lane, of = acts.lane[made.row][order], at[order]
    last = np.zeros(len(order), np.bool_)
    last[order] = np.append((lane[1:] != lane[:-1]) | (of[1:] != of[:-1]), True)
    return last & (np.searchsorted(begins, resumed) > np.searchsorted(begins, ended))


def _joined(job: RecordedJob, place: _Place, made: Ends, known: Edges, works: Array) -> Iterator[HandOvers]:
    """Yield what else was made, on other threads, between one moment of a place and the next, if that is regular."""
    made = made.take(job.activities.lane[made.row] != place.lane)
    at = np.searchsorted(place.time, made.time)  # the moment of the place that comes next
    made, at = made.take(at < len(place.time)), at[at < len(place.time)]
    count = np.bincount(at, minlength=len(place.time))
    waited = np.flatnonzero(place.waits)[1:]  # the first round may have begun before the recording
    usual = int(np.median(count[waited])) if len(waited) else 0
    if usual < 2 or (count[waited] == usual).mean() < LIMITS.nearly_all:
        return
    if _go_on(job, works, made, at, place.time[at])[np.isin(at, waited)].mean() > 1 - LIMITS.nearly_all:
        return
    source, target = 2 * made.row + 1, place.vertex[at]
    new = (count[at] == usual) & ~np.isin(mixed(source, target), mixed(known.source, known.target))
    # where it did not wait, items of a queue may have been made for a later round
    sure = np.where(place.waits[at], Confidence.ELSEWHERE, Confidence.COUNTED)
    yield source[new], target[new], sure[new]
