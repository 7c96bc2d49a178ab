from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from tests.strategies import COMPUTE, Json, jobs, kernel, load, op


@given(jobs())
@settings(max_examples=20)
def test_the_activities_of_a_rank_lie_together(job: dict[int, list[Json]]) -> None:
    acts = load(job).activities
    for rank in range(11):
        rows = np.arange(len(acts))[acts.of_rank(rank)]
        assert rows.tolist() == np.flatnonzero(acts.rank == rank).tolist()


@given(jobs())
@settings(max_examples=20)
def test_each_stream_has_its_work_in_the_order_of_time(job: dict[int, list[Json]]) -> None:
    acts = load(job).activities
    streams = [stream.tolist() for stream in acts.by_stream()]
    assert sorted(row for stream in streams for row in stream) == np.flatnonzero(acts.on_device).tolist()
    assert all(stream == sorted(stream, key=lambda row: (acts.start[row], row)) for stream in streams)
    assert [sorted({int(acts.lane[row]) for row in stream}) for stream in streams] == [
        [lane] for lane in sorted(set(acts.lane[acts.on_device].tolist()))
    ]


def test_without_device_work_there_is_no_stream() -> None:
    assert load([op("a", 0, 1)]).activities.by_stream() == []
    assert [each.tolist() for each in load([kernel(COMPUTE, 0, 1)]).activities.by_stream()] == [[0]]
