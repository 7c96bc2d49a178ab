"""The job that edge rules see: moments on the common clock, and the stretches of its threads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from htagraph.core.kinds import ActivityKind
from htagraph.graph.clocks import Clock
from tests.strategies import Json, op, traces
from tests.waiting import by_hand


@pytest.mark.slow
@given(traces(tidy=True))
@settings(max_examples=20)
def test_slices_tile_each_thread_and_name_the_innermost_activity_at_work(events: list[Json]) -> None:
    job = by_hand(events)
    acts = job.activities
    source, target, owner = job.slices
    for lane in range(len(job.lanes)):
        rows = [row for row in range(len(acts)) if acts.lane[row] == lane and not acts.on_device[row]]
        rows = [row for row in rows if acts.kind[row] != ActivityKind.BOUNDARY]
        of_lane = [i for i in range(len(source)) if acts.lane[source[i] // 2] == lane]
        assert len(of_lane) == max(0, 2 * len(rows) - 1)
        for i in of_lane:
            begin, end = (int(job.moment(vertex[i : i + 1])[0]) for vertex in (source, target))
            assert begin <= end
            if begin < end:
                over = [row for row in rows if acts.start[row] <= begin and acts.end[row] >= end]
                at_work = [row for row in over if ActivityKind(acts.kind[row]).is_work]
                shortest = min((int(acts.duration[row]) for row in at_work), default=-1)
                assert (int(acts.duration[owner[i]]) if owner[i] >= 0 else -1) == shortest


def test_moments_are_on_the_common_clock() -> None:
    job = by_hand([op("a", 3, 4)])
    skewed = replace(job, clocks=(Clock(0, offset_ns=1_000),))
    assert (job.time - skewed.time).tolist() == [1_000, 1_000]
    assert skewed.moment(skewed.boundaries).tolist() == skewed.time[skewed.boundaries].tolist()
    assert job.moment(job.boundaries).tolist() == job.time.tolist()
