"""Whether kernels names what takes the most device time, and what to run next."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.device_time import top_entry

TABLE = pd.DataFrame({"name": ["", "gemm"], "total_us": [70.0, 30.0], "share_percent": [70.0, 30.0]})


def test_what_has_a_name_comes_before_what_has_none() -> None:
    (line,) = top_entry(TABLE, "annotation", [])
    assert line.startswith("gemm takes the most device time (not counting work outside all annotations): 30.0 µs")
    assert top_entry(TABLE.iloc[:0], "name", []) == ["No device work was recorded."]
    for kind, half in (
        ("op", "op=gemm"),
        ("computation", "kind=computation,name=*gemm*"),
    ):  # an operator may wait for what it asks for
        only = TABLE.iloc[1:].assign(kind=kind)
        _, command = top_entry(only, "name", [], {half: 9.0}.__getitem__)
        assert command.endswith(f"'{half}:0.5'" if "*" in half else f"{half}:0.5")
        assert "half of that would hardly" in top_entry(only, "name", [], lambda _: 0.0)[0]


def test_a_kernel_with_a_name_of_lines_sends_to_its_operators() -> None:
    long = TABLE.iloc[1:].assign(kind="computation", name="sm90_" * 30)
    _, command = top_entry(long, "name", [], lambda _: 15.0)
    assert command == "To see which operators launch it: htagraph kernels --by operator"


def test_time_of_operators_is_device_time_where_they_launch_work() -> None:
    launching = TABLE.iloc[1:].assign(kind="op", device_us=30.0, device_count=[3])
    assert "takes the most device time" in top_entry(launching, "operator", [])[0]
