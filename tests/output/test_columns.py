"""Tables as readers see them: units in headings, numbers as short as they need to be."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from htagraph.output.columns import columns_of
from htagraph.output.report import Wording


@pytest.mark.parametrize(
    ("name", "value", "heading", "cell"),
    [
        ("wait_us", 1234.4, "wait µs", "1,234"), ("wait_us", 12_345.0, "wait ms", "12.3"),
        ("count", 12_000, "count", "12,000"),
        ("mean_bytes", 25e6, "mean MB", "25.0"), ("busbw_gb_s", 28.94, "busbw GB/s", "28.9"),
        ("copied_gb", 0.006, "copied MB", "6.00"), ("copied_gb", 1.5, "copied GB", "1.50"),
        ("share_percent", 12.34, "share %", "12.3"),
        ("speedup", 1.23456, "speedup", "1.235"),
        ("rank", -1, "rank", "-"), ("matched", True, "matched", "yes"), ("file", "a/b/c.json", "file", "c.json"),
        ("wait_us", math.nan, "wait µs", "-"), ("speedup", math.inf, "speedup", "-"), ("op", "a\x1bb", "op", "a b"),
    ],
)  # fmt: skip
def test_a_cell_and_its_heading(name: str, value: object, heading: str, cell: str) -> None:
    (column,) = columns_of(pd.DataFrame({name: [value]}), Wording())
    assert (column.heading, column.cells) == (heading, [cell])
    assert column.is_number == (not isinstance(value, str))


def test_headings_may_say_more() -> None:
    (column,) = columns_of(pd.DataFrame({"pause_us": [1.0]}), Wording(headings={"pause_us": "idle_us"}))
    assert column.heading == "idle µs"


def test_no_rank_has_words_and_nothing_has_no_sign() -> None:
    frame = pd.DataFrame({"rank": [-1, 0], "charged_rank": [-1, 2], "lateness_us": [-0.0001, -0.5]})
    assert [column.cells for column in columns_of(frame, Wording())] == [
        ["-", "0"],
        ["nobody", "2"],
        ["0.000", "-0.500"],
    ]
