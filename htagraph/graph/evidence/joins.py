"""The hidden half of a join: a barrier, a gather of futures or a `join` of threads waits for all, the last one binds.

One end releases a wait of this kind, and only that end shows in the recording: a change that makes another end the last
meets no edge. The hidden ends are known by their role: work of the same purpose (names that differ in numbers only) on
other threads than the one that released the wait, over before the release, and not yet taken by an earlier wait of the
same place. Whether a wait joins at all shows in the counts: a wait for one item of a queue ends with the first item
that is made, so that no second item lies between two waits; a wait that joins leaves equally many between any two.
Threads that are joined begin again behind the wait, and threads that fill a queue go on by themselves.
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
from htagraph.graph.accept import Ends
from htagraph.graph.activities import Edges, lane_moments
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.pauses import places, works_of
from htagraph.graph.evidence.threads import HandOvers, HostThread
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["joins"]

_NUMBER = re.compile(r"\d+")


class _Place(NamedTuple):
    """A place of a program where a thread waits: all moments at which the thread goes on there, by time."""

    lane: int
    """The thread."""
    vertex: Array
    """The moments."""
    time: Ints
    """When each moment was, ns."""
    waits: Array
    """Which of the moments are known to have waited."""


class _Rounds(NamedTuple):
    """Work of other threads, by the moment of a place that comes next: the items of a round."""

    items: Ends
    """The ends of the work."""
    number: Array
    """For each item: the number of the round, which is that of the moment of the place."""
    size: Array
    """For each moment of the place: how many items its round has."""


def joins(
    job: RecordedJob,
    threads: Sequence[HostThread],
    known: Edges,
) -> HandOvers:
    """Return the hidden half of the waits of a rank's threads.

    Args:
        job: the job.
        threads: the threads of one rank.
        known: the edges between the threads.
    """
    lanes = marked([thread.lane for thread in threads], len(job.lanes) + 1)
    releases = _releases(job, lanes, known)
    of_places: list[HandOvers] = []
    if len(threads) > 2 and len(releases):
        works = works_of(job, threads, lanes)
        of_places = list(_of_places(job, threads, releases, works))
    source, target, confidence = joined(of_places, 3)
    return source, target, confidence


def _releases(job: RecordedJob, lanes: Mask, known: Edges) -> Edges:
    """Return the known edges between threads that are sure enough."""
    lane = job.activities.lane
    from_thread = lanes[lane[known.source >> 1]]
    to_thread = lanes[lane[known.target >> 1]]
    is_sure = known.confidence >= Confidence.COUNTED
    return known.take(np.flatnonzero(from_thread & to_thread & is_sure))


def _of_places(
    job: RecordedJob,
    threads: Sequence[HostThread],
    releases: Edges,
    works: Array,
) -> Iterator[HandOvers]:
    """Yield the hidden half by the place of the wait and the purpose of the work that released the wait.

    Args:
        job: the job.
        threads: the threads of one rank.
        releases: the edges that release a wait.
        works: all work of the threads.
    """
    made = Ends.of(works, job.moment(2 * works + 1))
    releasing = releases.source >> 1
    # numbers of two calls cannot be compared
    purposes = _purposes(job, np.concatenate((made.row, releasing)))
    purpose_of_made = purposes[: len(made.row)]
    purpose_of_release = purposes[len(made.row) :]
    waiting_lane = job.activities.lane[releases.target >> 1]
    place_number = mixed(places(job, releases.target), waiting_lane)
    for rows in grouped(mixed(purpose_of_release, place_number)):
        if len(rows) < LIMITS.often:
            continue
        same_purpose = purpose_of_made == purpose_of_release[rows[0]]
        place = _place(job, threads, releases.target[rows])
        yield from _joined(
            job,
            place,
            made.take(same_purpose),
            releases.take(rows),
            works,
        )


def _purposes(job: RecordedJob, rows: Array) -> npt.NDArray[np.uint64]:
    """Return a number per activity, equal for names, and annotations around, that differ in numbers only."""
    acts = job.activities
    is_annotation = acts.kind == ActivityKind.ANNOTATION
    region = nearest(acts.parent, is_annotation, rows)
    in_region = region >= 0
    names_around = acts.name[region[in_region]]
    names = np.unique(np.concatenate((acts.name[rows], names_around)))
    codes: dict[str, int] = {}
    code_of_name = np.zeros(len(job.names) + 1, np.int64)
    for name in names.tolist():
        unnumbered = _NUMBER.sub("", job.names[name])
        code_of_name[name] = 1 + codes.setdefault(unnumbered, len(codes))
    code = code_of_name[acts.name[rows]]
    code_of_region = np.where(in_region, code_of_name[acts.name[region]], 0)
    return mixed(code, code_of_region)


def _place(job: RecordedJob, threads: Sequence[HostThread], vertex: Array) -> _Place:
    """Return all moments of a place on a thread; `vertex` has the moments known to have waited."""
    lane = int(job.activities.lane[vertex[0] >> 1])
    thread = next(thread for thread in threads if thread.lane == lane)
    number = places(job, vertex[:1])[0]
    here = np.flatnonzero(places(job, thread.vertices) == number)
    moments = thread.vertices[here]
    return _Place(
        lane,
        moments,
        thread.times[here],
        np.isin(moments, vertex),
    )


def _joined(
    job: RecordedJob,
    place: _Place,
    made: Ends,
    known: Edges,
    works: Array,
) -> Iterator[HandOvers]:
    """Yield the work of other threads between one moment of a place and the next, if its count is regular.

    Args:
        job: the job.
        place: the place, on one thread.
        made: work of the purpose that releases waits there.
        known: the edges that release waits there.
        works: all work of the threads.
    """
    elsewhere = job.activities.lane[made.row] != place.lane
    rounds = _rounds(place, made.take(elsewhere))
    waited = np.flatnonzero(place.waits)[1:]  # the first round may have begun before the recording
    usual = _usual_size(rounds.size[waited])
    # of more threads that take turns, each would seem to join all others: edges that grow with their square
    if not 2 <= usual <= LIMITS.tried:
        return
    goes_on = _goes_on(job, works, rounds, place)
    in_waited_round = np.isin(rounds.number, waited)
    if goes_on[in_waited_round].mean() > 1 - LIMITS.nearly_all:
        return
    source = 2 * rounds.items.row + 1
    target = place.vertex[rounds.number]
    is_known = np.isin(
        mixed(source, target),
        mixed(known.source, known.target),
    )
    in_usual_round = rounds.size[rounds.number] == usual
    is_new = in_usual_round & ~is_known
    # where it did not wait, items of a queue may have been made for a later round
    sure = np.where(
        place.waits[rounds.number],
        Confidence.ELSEWHERE,
        Confidence.COUNTED,
    )
    yield source[is_new], target[is_new], sure[is_new]


def _rounds(place: _Place, made: Ends) -> _Rounds:
    """Return the rounds of a place, without work that ends behind the last moment of the place."""
    number = np.searchsorted(place.time, made.time)
    is_before = number < len(place.time)
    number = number[is_before]
    size = np.bincount(number, minlength=len(place.time))
    return _Rounds(made.take(is_before), number, size)


def _usual_size(size: Array) -> int:
    """Return how many items nearly all rounds have, 0 if the rounds differ."""
    if not len(size):
        return 0
    usual = int(np.median(size))
    is_regular = (size == usual).mean() >= LIMITS.nearly_all
    return usual if is_regular else 0


def _goes_on(
    job: RecordedJob,
    works: Array,
    rounds: _Rounds,
    place: _Place,
) -> Mask:
    """Return for each item whether its thread goes on before the wait for the item is over.

    Threads that are joined begin again with the thread that joins them. Threads that fill a queue go on by themselves.
    """
    acts = job.activities
    items = rounds.items
    until = place.time[rounds.number]
    begins = np.sort(lane_moments(acts, works, job.moment(2 * works)))
    ended = lane_moments(acts, items.row, items.time)
    resumed = lane_moments(acts, items.row, until)
    begun_at_end = np.searchsorted(begins, ended)
    begun_at_resumption = np.searchsorted(begins, resumed)
    is_last = _last_of_thread(acts.lane[items.row], rounds)
    return is_last & (begun_at_resumption > begun_at_end)


def _last_of_thread(lane: Array, rounds: _Rounds) -> Mask:
    """Return which items are the last that their thread made in the round."""
    order = np.lexsort((rounds.items.time, lane, rounds.number))
    lane = lane[order]
    number = rounds.number[order]
    ends_thread = lane[1:] != lane[:-1]
    ends_round = number[1:] != number[:-1]
    is_last = np.zeros(len(order), np.bool_)
    is_last[order] = np.append(ends_thread | ends_round, True)
    return is_last
