"""The page of one activity has the tables of its report, and says how many rows are not shown."""

from __future__ import annotations

import pytest

from htagraph import SelectionError
from htagraph.output.html.event_page import event_page
from htagraph.output.reports.activities import event_report
from tests.reach import DATA, graph_of


def test_every_table_of_the_report_with_rows_has_a_section() -> None:
    graph = graph_of(DATA / "demo")
    shown = event_page(graph, 1205, events="/event/", rows=200).decode()
    for name, table in event_report(graph, 1205).tables.items():
        assert (f'<section id="{name.replace("_", "-")}"' in shown) == (len(table) > 0)


def test_rows_that_are_not_shown_are_counted() -> None:
    graph = graph_of(DATA / "demo")
    more = len(event_report(graph, 1205).tables["waits_for"]) - 1
    assert f"{more} more rows are not shown" in event_page(graph, 1205, events="/event/", rows=1).decode()


def test_an_activity_that_is_not_there_is_refused() -> None:
    with pytest.raises(SelectionError):
        event_page(graph_of(DATA / "demo"), 10**9, events="/event/", rows=1)
