"""What a recording shows of devices, and which collectives only the host asked for."""

from __future__ import annotations

from htagraph.queries.device_record import (
    DeviceRecord,
    collective_calls,
    device_record,
    ranks_with_device,
    unrecorded_ranks,
)
from tests.strategies import COMPUTE, complete, kernel, launch, load, op


def test_the_record_of_devices_is_one_of_four() -> None:
    recorded = load([launch(0, 5, 1), kernel(COMPUTE, 10, 5, 1)])
    assert device_record(recorded) is DeviceRecord.RECORDED
    ranges = complete("cuda_profiler_range", COMPUTE, 5, 80, 0)
    assert device_record(load([op("aten::mm", 0, 90), launch(5, 80, 1), ranges])) is DeviceRecord.COUNTED
    assert device_record(load([op("aten::mm", 0, 90), launch(5, 80, 1)])) is DeviceRecord.UNRECORDED
    assert device_record(load([op("aten::mm", 0, 90)])) is DeviceRecord.UNUSED


def test_ranks_whose_device_was_not_recorded_are_those_that_show_one_without_work() -> None:
    graph = load([op("aten::mm", 0, 90), launch(5, 80, 1)])
    assert ranks_with_device(graph).tolist() == unrecorded_ranks(graph).tolist() == [0]
    recorded = load([launch(0, 5, 1), kernel(COMPUTE, 10, 5, 1)])
    assert ranks_with_device(recorded).tolist() == [0]
    assert unrecorded_ranks(recorded).tolist() == []


def test_operators_that_ask_for_collectives_are_counted_by_name() -> None:
    asks = [op("c10d::allreduce_", 10 * number, 5) for number in range(2)]
    graph = load([*asks, op("c10d::alltoall_base_", 40, 5), op("aten::scatter", 60, 5)])
    assert collective_calls(graph) == {"c10d::allreduce_": 2, "c10d::alltoall_base_": 1}
