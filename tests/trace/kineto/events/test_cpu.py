from __future__ import annotations

from typing import Any

import pytest

from htagraph.trace.kineto.events import parse_event
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
    ],
)
def test_values_on_the_host_are_read_as_what_they_mean(cat: str, key: str, written: Any, name: str, value: Any) -> None:
    read = getattr(parse_event(event(cat, {key: written})).args, name)
    assert (read, type(read)) == (value, type(value) if key != "theoretical occupancy %" else float)
