from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

import htagraph as hg
from tests import oracles
from tests.strategies import COMMUNICATE, COMPUTE, COPY, Json, kernel, load, traces


def totals(events: list[Json]) -> dict[frozenset[str], float]:
    table = hg.kernel_types(load(events))
    return {frozenset(kinds.split(" + ")): us for kinds, us in zip(table["kinds"], table["total_us"], strict=True)}


def test_each_moment_belongs_to_the_combination_that_runs() -> None:
    events = [kernel(COMPUTE, 0, 30), kernel(COMMUNICATE, 20, 40, stream=20), kernel(COPY, 25, 3, stream=30)]
    table = hg.kernel_types(load(events))
    assert table["kinds"].tolist() == [
        "communication", "computation", "computation + communication", "computation + communication + memory",
    ]  # fmt: skip
    assert table["total_us"].tolist() == [30, 20, 7, 3]
    assert table["share_percent"].tolist() == [50, 100 * 20 / 60, 100 * 7 / 60, 5]


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_combinations_are_what_the_slow_sweep_finds(events: list[Json]) -> None:
    done = oracles.works(events)
    if done:
        assert totals(events) == oracles.combinations(done)


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_rows_sum_to_the_busy_time(events: list[Json]) -> None:
    graph = load(events)
    (row,) = hg.temporal_breakdown(graph).to_dict("records")
    busy = hg.kernel_types(graph)["total_us"].sum()
    assert math.isclose(busy, row["window_us"] - row["idle_us"], abs_tol=1e-6)
