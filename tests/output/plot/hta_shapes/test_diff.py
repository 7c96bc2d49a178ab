"""Whether two jobs are drawn side by side."""

from __future__ import annotations

import pandas as pd
import pytest

from htagraph.output.plot.hta_shapes.diff import counts_diff, duration_diff

TABLE = pd.DataFrame(
    {
        "test_counts": [3], "test_total_duration": [30], "control_counts": [2], "control_total_duration": [50],
        "diff_counts": [1], "diff_duration": [-20],
    },
    index=["aten::mm"],
)  # fmt: skip


def test_there_is_a_bar_per_job_and_one_of_the_difference() -> None:
    assert [(bar.name, list(bar.y)) for bar in counts_diff(TABLE).data] == [
        ("test", [3]), ("control", [2]), ("Difference", [1]),
    ]  # fmt: skip
    assert [list(bar.y) for bar in duration_diff(TABLE).data] == [[30], [50], [-20]]


def test_another_table_is_refused() -> None:
    with pytest.raises(ValueError, match="pass the result of compare_traces"):
        counts_diff(TABLE.drop(columns="test_total_duration"))
