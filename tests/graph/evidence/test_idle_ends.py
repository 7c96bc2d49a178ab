from __future__ import annotations

import numpy as np
import pytest

from htagraph import EdgeKind
from htagraph.graph.evidence.idle_ends import idle_ends
from tests.oracles import edges_by_name
from tests.strategies import Json, kernel, launch, load
from tests.waiting import by_hand

NONE = np.zeros(0, np.int64)


def idle(until: float, *more: Json) -> list[Json]:
    """Stream 7 is idle from 20 to `until` µs, though what runs then was launched at 2; stream 20 is busy to 1000."""
    events = [launch(0, 1, 1), launch(1, 1, 2), launch(2, 1, 3)]
    works = [kernel("a", 10, 10, 1), kernel("other", 15, 985, 2, stream=20), kernel("b", until, 10, 3)]
    return [*events, *works, *more]


def pairs(events: list[Json]) -> list[tuple[str, str, int]]:
    job = by_hand(events)
    name = [job.names[code] for code in job.activities.name]
    found = zip(*(column.tolist() for column in idle_ends(job.calls, NONE, NONE)), strict=True)
    return [(name[u], name[v], sure) for u, v, sure in found]


def test_a_stream_that_goes_on_just_as_work_of_another_one_ends_waited_for_it() -> None:
    assert pairs(idle(1003)) == [("other", "b", 80)]
    assert edges_by_name(load(idle(1003)), EdgeKind.EVENT_WAIT) == [("other.end", "b.start", 3)]


@pytest.mark.parametrize("until", [1030, 990, 60])
def test_work_that_starts_at_another_time_waited_for_something_else(until: float) -> None:
    assert pairs(idle(until)) == []


def test_work_launched_only_then_waited_for_its_launch() -> None:
    events = idle(1003)
    events[2] = launch(995, 1, 3)
    assert pairs(events) == []


def test_work_enqueued_later_cannot_have_been_waited_for() -> None:
    events = idle(1003)
    events[1], events[2] = launch(2, 1, 2), launch(1, 1, 3)
    assert pairs(events) == []


def test_many_ends_on_other_streams_make_it_chance() -> None:
    busy = [event for i in range(60) for event in (launch(1, 0.01, 100 + i), kernel("x", 20 + 16 * i, 9, 100 + i, 30))]
    assert pairs(idle(1003, *busy)) == []


def test_what_is_known_to_be_waited_for_is_not_explained_twice() -> None:
    job = by_hand(idle(1003))
    name = [job.names[code] for code in job.activities.name]
    known = (np.array([name.index("other")]), np.array([name.index("b")]))
    assert len(idle_ends(job.calls, *known)[0]) == 0
