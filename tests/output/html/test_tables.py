"""Tables: cells as on the command line, whole names on hover."""

from __future__ import annotations

import pandas as pd

from htagraph.output.html.tables import table_of

HOSTILE = "void <b>k</b>(" + "x" * 5000 + ")"


def test_names_are_shortened_and_whole_on_hover() -> None:
    shown = table_of(pd.DataFrame({"name": [HOSTILE], "total_us": [12_345.6]}))
    assert "<b>" not in shown
    assert "total ms" in shown
    assert "12.3" in shown
    assert len(shown) < 3000


def test_an_empty_table_is_nothing() -> None:
    assert table_of(pd.DataFrame({"a": []})) == ""


def test_rows_link_to_where_they_are() -> None:
    shown = table_of(pd.DataFrame({"rank": [0, 1]}), link=["#a", "#b"].__getitem__)
    assert shown.count('<a href="#') == 2
