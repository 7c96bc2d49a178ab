from __future__ import annotations

import math

import numpy as np
import pytest

import htagraph as hg
from tests.strategies import kernel, load
from tests.trace.kineto.test_samples import counter


def test_statistics_are_those_of_the_samples_and_of_the_busy_device() -> None:
    events = [
        kernel("gemm", 10, 5),
        kernel("gemm", 15, 5),
        counter("Power (W)", 9, 100.0),
        counter("Power (W)", 10, 300.0),
        counter("Power (W)", 19.999, 400.0),
        counter("Power (W)", 20, 200.0),
        counter("Power (W)", 21, None),
        counter("Power (W)", 12, 50.0, "GPU 1 Counters"),
    ]
    first, other = hg.device_samples(load(events), by="counter").to_dict("records")
    assert first == {
        "rank": 0, "device": 0, "counter": "Power (W)", "count": 4, "mean": 250.0, "std": pytest.approx(129.0994),
        "min": 100.0, "p25": 175.0, "median": 250.0, "p75": 325.0, "max": 400.0, "mean_busy": 350.0,
    }  # fmt: skip
    assert (other["device"], other["mean"], other["count"]) == (1, 50.0, 1)
    assert math.isnan(other["mean_busy"])  # device 1 ran nothing


def test_a_value_that_is_no_number_is_a_row_over_time() -> None:
    table = hg.device_samples(load([kernel("gemm", 0, 5), counter("Power (W)", 1, None)]))
    assert np.isnan(table["value"]).tolist() == [True]
    assert not len(hg.device_samples(load([kernel("gemm", 0, 5), counter("Power (W)", 1, None)]), by="counter"))


def test_another_order_is_refused() -> None:
    with pytest.raises(ValueError, match="by='device'"):
        hg.device_samples(load([kernel("gemm", 0, 5)]), by="device")  # type: ignore[arg-type]
