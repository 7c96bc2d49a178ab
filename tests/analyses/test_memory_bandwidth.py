from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from tests.strategies import Json, complete, load

UP, DOWN = "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pageable)"


def copy(start: int, duration: int, bandwidth: float | None = None, name: str = UP, *, stream: int = 7) -> Json:
    event = complete("gpu_memcpy", name, start, duration, stream, stream=stream, device=0) | {"pid": 0}
    event["args"] |= {} if bandwidth is None else {"memory bandwidth (GB/s)": bandwidth}
    return event


def series(events: list[Json]) -> list[list[Any]]:
    table = hg.memory_bandwidth(load(events))
    return table[["copy", "time_us", "bandwidth_gb_s"]].to_numpy().tolist()


def test_bandwidths_of_copies_under_way_add_up() -> None:
    events = [copy(0, 10, 5.0), copy(4, 10, 2.0, stream=8)]
    assert series(events) == [
        ["Memcpy HtoD", 0.0, 5.0], ["Memcpy HtoD", 4.0, 7.0], ["Memcpy HtoD", 10.0, 2.0], ["Memcpy HtoD", 14.0, 0.0],
    ]  # fmt: skip


def test_kinds_are_apart() -> None:
    assert [row[0] for row in series([copy(0, 5), copy(1, 5, name=DOWN)])] == ["Memcpy DtoH"] * 2 + ["Memcpy HtoD"] * 2


def test_without_a_recorded_bandwidth_it_is_bytes_over_time_else_nothing() -> None:
    sized = copy(0, 10)
    sized["args"]["bytes"] = 20_000
    assert [row[2] for row in series([sized, copy(20, 5)])] == [2.0, 0.0, 0.0, 0.0]


def test_a_copy_without_duration_lasts_a_microsecond() -> None:
    assert [row[1:] for row in series([copy(0, 0, 3.0)])] == [[0.0, 3.0], [1.0, 0.0]]


def test_one_copy_behind_another_leaves_no_spike_and_no_rest() -> None:
    events = [copy(i, 1, 0.1 * i + 0.3) for i in range(9)]
    values = [row[2] for row in series(events)]
    assert max(values) == pytest.approx(1.1)
    assert values[-1] == 0.0


_COPIES = st.tuples(st.integers(0, 20), st.integers(1, 9), st.sampled_from((UP, DOWN)), st.integers(1, 9))


@pytest.mark.slow
@given(st.lists(_COPIES, max_size=8))
@settings(max_examples=50)
def test_at_each_moment_it_is_the_sum_of_the_copies_under_way(copies: list[tuple[int, int, str, int]]) -> None:
    events = [copy(start, took, each, name, stream=i) for i, (start, took, name, each) in enumerate(copies)]
    table = hg.memory_bandwidth(load(events))
    first = min((start for start, *_ in copies), default=0)
    for row in table.drop_duplicates(["copy", "time_us"], keep="last").to_dict("records"):
        at = round(row["time_us"]) + first
        under_way = [b for start, took, name, b in copies if row["copy"] in name and start <= at < start + took]
        assert row["bandwidth_gb_s"] == pytest.approx(sum(under_way))


@pytest.mark.parametrize("bandwidth", [float("inf"), 1e308, -3.0])
def test_a_bandwidth_that_cannot_be_is_unknown(bandwidth: float) -> None:
    event = copy(0, 10, bandwidth)
    event["args"]["bytes"] = 20_000
    assert series([event, copy(20, 10, bandwidth)]) == [
        ["Memcpy HtoD", 0.0, 2.0], ["Memcpy HtoD", 10.0, 0.0], ["Memcpy HtoD", 20.0, 0.0], ["Memcpy HtoD", 30.0, 0.0],
    ]  # fmt: skip


# by copy


def test_moments_without_a_copy_do_not_count() -> None:
    assert hg.memory_bandwidth(load([copy(0, 10, 4.0), copy(50, 30, 8.0)]), by="copy").to_dict("records") == [
        {"rank": 0, "copy": "Memcpy HtoD", "count": 2, "mean_gb_s": 6.0,
         "std_gb_s": pytest.approx(2.8284271247461903),
         "min_gb_s": 4.0, "p25_gb_s": 5.0, "median_gb_s": 6.0, "p75_gb_s": 7.0, "max_gb_s": 8.0,
         "busy_us": 40.0, "copied_gb": pytest.approx(0.00028),
         "mean_over_time_gb_s": pytest.approx(7.0)}
    ]  # fmt: skip


def test_bandwidth_over_time_is_what_was_copied() -> None:
    table = hg.memory_bandwidth(load([copy(0, 10, 4.0), copy(5, 10, 2.0)]), by="copy")
    assert table["copied_gb"].tolist() == [pytest.approx(6e-5)]
    assert table["busy_us"].tolist() == [15.0]
