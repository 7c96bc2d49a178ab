"""Tables of results as HTML: the headings and cells of the command line, with whole names on hover."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from htagraph.output.columns import columns_of, cut_all
from htagraph.output.html.page import Html, element
from htagraph.output.report import Wording

__all__ = ["table_of"]

_LETTERS = 90
"""Letters of a name in a table; whole on hover. Chosen: most kernels without their template arguments. Doubled, tables
of kernels are twice as high."""
_LONG = 16
"""Letters from which a column of texts keeps room for long ones. Chosen: kinds and ranks are shorter, names are not.
Doubled, names of kernels are cut into lines of a few letters on narrow screens."""
_SENTENCES = ("detail",)
"""Columns of sentences, which are shown whole."""
_HOVER = 2000
"""Letters of a name on hover; chosen: a screen of them. Doubled, pages of very long names are larger."""


def table_of(
    frame: pd.DataFrame,
    *,
    caption: str = "",
    headings: Mapping[str, str] | None = None,
    link: Callable[[int], str] | None = None,
) -> Html:
    """Return a table; empty where it has no rows.

    Args:
        frame: a result, with units in the names of its columns.
        caption: what it shows.
        headings: by column, where its name does not say enough.
        link: the address of a row by its place, shown in a last column; empty for none.

    Example:
        >>> str(table_of(pd.DataFrame({"total_us": [1500.0]})))[-56:]
        '<td class="number">1,500</td></tr></tbody></table></div>'
    """
    if not len(frame):
        return Html("")
    columns = columns_of(frame, Wording(headings=headings or {}))
    kinds = ["number" if column.is_number else _kind_of_texts(column.cells) for column in columns]
    head = [
        element("th", column.heading, class_=kind, scope="col") for column, kind in zip(columns, kinds, strict=True)
    ]
    texts = [each.cells if each.name in _SENTENCES else cut_all(each.cells, _LETTERS) for each in columns]
    rows = []
    for place in range(len(frame)):
        cells = [_cell(texts[at][place], str(frame.iloc[place, at]), kind) for at, kind in enumerate(kinds)]
        if link is not None:
            address = link(place)
            cells.append(element("td", element("a", "show", href=address) if address else "", class_="show"))
        rows.append(element("tr", *cells))
    if link is not None:
        head.append(element("th", "timeline", class_="show", scope="col"))
    title = element("caption", caption) if caption else Html("")
    table = element("table", title, element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="wide")


def _kind_of_texts(cells: Sequence[str]) -> str:
    return "text long" if max(map(len, cells)) > _LONG else "text"


def _cell(shown: str, value: str, kind: str) -> Html:
    title = value[:_HOVER] if kind != "number" and shown != value else None
    return element("td", shown, class_=kind, title=title)
