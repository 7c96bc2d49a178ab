"""The page of one activity, as `htagraph serve` shows it: the answer of `event_report`, with links to walk."""

from __future__ import annotations

from typing import Final

import pandas as pd

from htagraph.core.naming import short_name
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.html.page import NOTHING, Html, Section, element, join, page, table_of
from htagraph.output.reports.activities import event_report

__all__ = ["event_page"]

_TITLES: Final = {
    "activity": "Activity",
    "waits_for": "What it waited for",
    "waited_for_by": "What waited for it",
    "inside": "Inside",
    "arguments": "Arguments",
}
"""Titles of tables in the order of the page."""
_OTHER: Final = {"waits_for": "other_activity", "waited_for_by": "other_activity", "inside": "activity"}
"""The column of a table that numbers the activities to walk to."""


def event_page(graph: DependencyGraph, activity: int, *, events: str, rows: int) -> bytes:
    """Return a page on an activity, whose tables lead to other activities.

    Args:
        graph: the job.
        activity: number of the activity.
        events: the address of the pages of activities, without the number.
        rows: rows of a table that are shown.

    Returns:
        An HTML file, which needs no script.

    Raises:
        SelectionError: the activity is not in the graph.

    Example:
        >>> import htagraph as hg
        >>> shown = event_page(hg.load("data/demo"), 1205, events="/event/", rows=200)
        >>> b"What it waited for" in shown, b"/event/" in shown
        (True, True)
    """
    report = event_report(graph, activity)
    sections = []
    for name, title in _TITLES.items():
        table = report.tables[name]
        if len(table):
            sections.append(Section(name.replace("_", "-"), title, _table(table, _OTHER.get(name, ""), events, rows)))
    name = short_name(graph.names[graph.activities.name[activity]])
    back = element("a", "In the timeline", href=f"/#on=job&event={activity}")
    notes = join(element("p", sentence) for sentence in report.sentences)
    lead = join((element("p", f"Activity {activity:,}. ", back, class_="lead"), notes))
    return page(f"{name} · htagraph", sections, lead=lead)


def _table(table: pd.DataFrame, other: str, events: str, rows: int) -> Html:
    """Return the first rows of a table, with links to the activities of a column."""
    shown = table.head(rows)
    links = [f"{events}{number}" for number in shown[other].tolist()] if other else ()
    more = len(table) - len(shown)
    note = element("p", f"{more:,} more rows are not shown.", class_="note") if more else NOTHING
    return element("div", table_of(shown, links=links, links_heading="activity"), note)
