from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

import htagraph as hg
from tests import oracles
from tests.strategies import COMMUNICATE, COMPUTE, Json, kernel, load, traces


def test_communication_beside_computation_is_hidden() -> None:
    events = [kernel(COMPUTE, 0, 30), kernel(COMMUNICATE, 20, 40, stream=20)]
    assert hg.overlap(load(events)).to_dict("records") == [
        {
            "rank": 0,
            "executor": "device",
            "communication_us": 40.0,
            "computation_us": 30.0,
            "hidden_us": 10.0,
            "beside_us": 0.0,
            "overlap_percent": 25.0,
        },
    ]


def test_without_communication_there_is_no_share() -> None:
    assert math.isnan(hg.overlap(load([kernel(COMPUTE, 0, 30)]))["overlap_percent"].iloc[0])


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_what_is_hidden_is_what_the_slow_sweep_finds(events: list[Json]) -> None:
    at = oracles.kinds_by_moment(oracles.works(events))
    (row,) = hg.overlap(load(events)).to_dict("records")
    if at:
        assert row["communication_us"] == sum("communication" in kinds for kinds in at)
        assert row["hidden_us"] == sum({"communication", "computation"} <= kinds for kinds in at)


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_no_more_is_hidden_than_there_is_of_either(events: list[Json]) -> None:
    (row,) = hg.overlap(load(events)).to_dict("records")
    assert 0 <= row["hidden_us"] <= min(row["communication_us"], row["computation_us"])
