from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from htagraph.trace.kineto.events import Kernel, KernelArgs, parse_event
from tests.trace.kineto.events.made import event


@pytest.mark.parametrize(
    ("cat", "key", "written", "name", "value"),
    [
        ("cuda_runtime", "ptr", "0x63010000000e", "ptr", 0x63010000000E),
        ("cuda_runtime", "src", "(nil)", "src", "(nil)"),
        ("cuda_runtime", "bytes", "9216", "bytes", 9216),
        ("cuda_runtime", "external id", 862, "external_id", 862),
        ("mtia_runtime", "mem size", "14139908 bytes", "mem_size", 14139908),
        ("mtia_runtime", "stream_id", "108", "stream_id", 108),
        ("overhead", "overhead occupancy", "12%", "overhead_occupancy", 12.0),
        ("user_annotation", "finished", "false", "finished", False),
        ("cpu_op", "Process Group Ranks", [0, 1], "process_group_ranks", "[0, 1]"),
        ("cpu_op", "Input dims", [[2, 3], [[1], []]], "input_dims", [[2, 3], [[1], []]]),
        ("python_function", "Python parent id", None, "python_parent_id", None),
        ("kernel", "context", "0x0000000000000010", "context", 16),
        ("kernel", "blocks per SM", "inf", "blocks_per_sm", float("inf")),
        ("kernel", "theoretical occupancy %", 50, "achieved_occupancy", 50),
        ("kernel", "appended_rel_to_start", "-4.125", "appended_rel_to_start", Decimal("-4.125")),
        ("kernel", "Comms Id", 2**64 - 1, "comms_id", 2**64 - 1),
        ("gpu_memcpy", "memory bandwidth (GB/s)", "N/A", "memory_bandwidth", None),
        ("cuda_sync", "stream", 4294967295, "stream", 4294967295),
        ("cuda_sync", "wait_on_cuda_event_record_corr_id", -1, "wait_on_record", -1),
    ],
)
def test_values_are_read_as_what_they_mean(cat: str, key: str, written: Any, name: str, value: Any) -> None:
    read = getattr(parse_event(event(cat, {key: written})).args, name)
    assert (read, type(read)) == (value, type(value) if key != "theoretical occupancy %" else float)


def test_not_a_number_is_read() -> None:
    parsed = parse_event(event("kernel", {"warps per SM": "-nan"}))
    assert isinstance(parsed, Kernel)
    assert str(parsed.args.warps_per_sm) == "nan"


def test_models_are_built_by_python_names() -> None:
    kernel = Kernel(ph="X", cat="kernel", ts=Decimal(1), args=KernelArgs(stream=7, shared_memory=64))
    written = kernel.model_dump(by_alias=True, exclude_unset=True)
    assert written["args"] == {"stream": 7, "shared memory": 64}
    assert parse_event(written) == kernel
