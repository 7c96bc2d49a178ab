"""Whether the kernel with the most time and the slowest rank are named."""

from __future__ import annotations

import pandas as pd
import pytest

from htagraph.findings.verbs.kernels import slowest_rank, top_entry

TABLE = pd.DataFrame({"name": ["", "gemm"], "total_us": [70.0, 30.0], "share_percent": [70.0, 30.0]})


def test_what_has_a_name_comes_before_what_has_none() -> None:
    (line,) = top_entry(TABLE, "annotation", [])
    assert line.startswith("gemm takes the most device time (not counting work outside all annotations): 30.0 µs")
    assert top_entry(TABLE.iloc[:0], "name", []) == ["No device work was recorded."]


@pytest.mark.parametrize(("relative", "count"), [(1.05, 1), (1.5, 2)])
def test_a_rank_is_slow_where_a_kernel_takes_a_tenth_longer(relative: float, count: int) -> None:
    row = {"kind": "computation", "name": "gemm", "rank": [0, 1], "excess_us": [0.0, 9.0], "relative": [1.0, relative]}
    assert len(slowest_rank(pd.DataFrame(row), 2, ["x"])) == count
