"""Tables: cells as on the command line, whole names on hover."""

from __future__ import annotations

import pandas as pd

from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.temporal_breakdown import temporal_breakdown
from htagraph.output.html.tables import definition, table_of

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
    shown = table_of(pd.DataFrame({"rank": [0, 1]}), links=["#a", "#b"])
    assert shown.count('<a href="#') == 2


def test_a_definition_says_what_the_numbers_are_and_not_how_to_call() -> None:
    shown = definition(temporal_breakdown)
    assert "window, from its first to its last device" in shown
    assert not [word for word in ("Returns:", "int64", "Args:", "&gt;&gt;&gt;") if word in shown]
    assert "<p>- kernel_wait: another edge" in definition(idle_breakdown)
    assert definition(lambda: None) == ""
