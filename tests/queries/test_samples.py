from __future__ import annotations

from htagraph.queries.samples import sampled
from tests.strategies import kernel, load
from tests.trace.kineto.test_samples import counter


def test_a_process_is_a_device_if_device_work_lies_in_it() -> None:
    events = [kernel("gemm", 10, 5), counter("a", 1, 1.0, 0), counter("b", 1, 1.0, 4711), counter("c", 1, 1.0, "Spans")]
    assert sampled(load(events))["device"].tolist() == [-1, -1, 0]


def test_samples_of_a_rank_are_in_the_order_of_device_counter_and_time() -> None:
    events = [
        kernel("gemm", 10, 5),
        counter("Power (W)", 30, 1.0, "GPU 1 Counters"),
        counter("Power (W)", 20, 2.0),
        counter("Power (W)", 5, 3.0),
        counter("Fan Speed (%)", 40, 4.0),
    ]
    table = sampled(load({3: events, 0: events}))
    assert table["rank"].tolist() == [0] * 4 + [3] * 4
    assert table[["device", "counter", "time_us", "value"]].to_numpy().tolist()[:4] == [
        [0, "Fan Speed (%)", 30.0, 4.0],
        [0, "Power (W)", -5.0, 3.0],
        [0, "Power (W)", 10.0, 2.0],
        [1, "Power (W)", 20.0, 1.0],
    ]
