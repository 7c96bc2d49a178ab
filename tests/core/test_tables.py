"""A table's types, docstring, headings and forms follow from its declaration."""

from __future__ import annotations

import pandas as pd
import pytest

from htagraph.core.tables import Col, Table, described, unit_of

IDLE = Table("Idle time", Col("rank stream", "int64"), Col("cause", "str", "why"), Col("idle_us", heading="lost_us"))
OTHER = Table("Other", Col("rank", "int64"), Col("idle_us"), Col("count", "int64", maybe=True))


def test_a_frame_has_the_columns_in_order_and_their_types() -> None:
    rows = {"idle_us": [1], "extra": [0], "cause": ["x"], "stream": [7.0], "rank": [0]}
    for frame in (IDLE.frame(pd.DataFrame(rows)), IDLE.frame([(0, 7, "x", 1)]), IDLE.frame()):
        assert dict(frame.dtypes.astype(str)) == IDLE.types
    assert IDLE.types == {"rank": "int64", "stream": "int64", "cause": "str", "idle_us": "float64"}


def test_a_docstring_names_the_columns() -> None:
    @described(IDLE, OTHER)
    def function() -> None:
        """Return it.

        Returns:
            One row per stream: {columns}.
            Sums.

            By rank: {columns}.
        """

    text = function.__doc__ or ""
    assert "stream: ``rank``, ``stream`` (int64), ``cause`` (str: why), ``idle_us`` (float64). Sums." in text
    assert "By rank: ``rank`` (int64), ``idle_us`` (float64), ``count`` (int64)." in text
    assert "Returns:\n" in text


def test_a_stripped_docstring_stays_none_to_read() -> None:
    def function() -> None: ...

    assert not described(IDLE)(function).__doc__


def test_columns_that_only_some_forms_have_are_known() -> None:
    assert OTHER.maybe == {"count"}


def test_a_table_of_some_columns_has_their_types_and_headings_in_the_order_asked_for() -> None:
    some = Table("Title", Col("rank step", "int64"), Col("idle_us", heading="lost_us"), Col("name", "str"))
    assert some.only("name step").types == {"name": "str", "step": "int64"}
    assert some.only("idle_us").headings == some.headings


def test_a_table_has_headings_whatever_its_title() -> None:
    assert IDLE.titled("Title").headings == IDLE.headings == {"idle_us": "lost_us"}


def test_the_largest_rows_come_first_and_equal_ones_in_their_order() -> None:
    of_two_forms = Table(
        "Device time", Col("name", "str"), Col("total_us device_us", maybe=True), rank_by="total_us device_us"
    )
    for column in ("total_us", "device_us"):
        frame = of_two_forms.ranked(pd.DataFrame({"name": list("abc"), column: [1.0, 2.0, 1.0]}))
        assert (frame["name"].tolist(), frame.index.tolist()) == (list("bac"), [0, 1, 2])
    assert of_two_forms.titled("Other").rank_by == of_two_forms.rank_by


@pytest.mark.parametrize(("name", "unit"), [("mean_us", "µs"), ("busbw_gb_s", "GB/s (10^9 bytes per second)")])
def test_the_end_of_a_name_is_its_unit(name: str, unit: str) -> None:
    assert unit_of(name) == unit
