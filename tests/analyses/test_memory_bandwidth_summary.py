from __future__ import annotations

import pytest

import htagraph as hg
from tests.strategies import Json, complete, load

BANDWIDTH = "memory bandwidth (GB/s)"


def copy(start: int, duration: int, bandwidth: float) -> Json:
    where = {"stream": 7, "device": 0, BANDWIDTH: bandwidth}
    return complete("gpu_memcpy", "Memcpy DtoD (Device -> Device)", start, duration, 7, **where) | {"pid": 0}


def test_moments_without_a_copy_do_not_count() -> None:
    assert hg.memory_bandwidth_summary(load([copy(0, 10, 4.0), copy(50, 30, 8.0)])).to_dict("records") == [
        {"rank": 0, "copy": "Memcpy DtoD", "count": 2, "mean": 6.0, "std": pytest.approx(2.8284271247461903),
         "min": 4.0, "p25": 5.0, "median": 6.0, "p75": 7.0, "max": 8.0, "busy_us": 40.0, "gb": pytest.approx(0.00028),
         "mean_over_time_gb_s": pytest.approx(7.0)}
    ]  # fmt: skip


def test_bandwidth_over_time_is_what_was_copied() -> None:
    table = hg.memory_bandwidth_summary(load([copy(0, 10, 4.0), copy(5, 10, 2.0)]))
    assert table["gb"].tolist() == [pytest.approx(6e-5)]
    assert table["busy_us"].tolist() == [15.0]
