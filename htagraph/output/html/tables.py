"""Tables of results as HTML, with the cells of the command line, and what their numbers mean."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import pandas as pd

from htagraph.output.html.page import NOTHING, Html, element, join
from htagraph.output.report import Wording, columns_of, cut_all

__all__ = ["definition", "table_of"]

_SENTENCES = ("detail",)
"""Columns of sentences, which are shown whole."""
_HEADING = re.compile(r"^[A-Z]\w+:")
_MARK = re.compile(r"``?([^`]+)``?")
_ITEM = re.compile(r"\n(?=- )")


def table_of(
    frame: pd.DataFrame,
    *,
    caption: str = "",
    headings: Mapping[str, str] | None = None,
    links: Sequence[str] = (),
) -> Html:
    """Return a table; nothing where it has no rows.

    Headings are by column, where its name does not say enough; `links`, the addresses of the rows, are a last column.

    Example:
        >>> str(table_of(pd.DataFrame({"total_us": [1500.0]})))[-56:]
        '<td class="number">1,500</td></tr></tbody></table></div>'
    """
    if not len(frame):
        return NOTHING
    head, cells = [], []
    for at, column in enumerate(columns_of(frame, Wording(headings=headings or {}))):
        # long texts keep room, so that they are not cut into lines of a few letters on narrow screens
        kind = "number" if column.is_number else "text long" if max(map(len, column.cells)) > 16 else "text"
        texts = column.cells if column.name in _SENTENCES else cut_all(column.cells, 90)  # most kernels are whole
        head.append(element("th", column.heading, class_=kind, scope="col"))
        cells.append([
            # its whole text on hover, of which a screen is enough
            element("td", text, class_=kind, title=value[:2000] if kind != "number" and text != value else None)
            for text, value in zip(texts, map(str, frame.iloc[:, at]), strict=True)
        ])  # fmt: skip
    if links:
        head.append(element("th", "timeline", class_="show", scope="col"))
        shown = [element("a", "show", href=link) if link else "" for link in links]
        cells.append([element("td", each, class_="show") for each in shown])
    rows = [element("tr", *row) for row in zip(*cells, strict=True)]
    title = element("caption", caption) if caption else NOTHING
    table = element("table", title, element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="wide")


def definition(of: Callable[..., Any] | type | property) -> Html:
    """Return the definition of a result, to be unfolded: the sentences of its docstring, without how to call it.

    Example:
        >>> from htagraph.analyses.overlap import overlap
        >>> definition(overlap).startswith("<details><summary>What these numbers mean</summary><p>The share ")
        True
    """
    text = inspect.getdoc(of)
    if not text:  # docstrings were stripped
        return NOTHING
    prose = takewhile(lambda block: not _HEADING.match(block), text.removeprefix("Return ").split("\n\n"))
    sentences = [_MARK.sub(r"\1", " ".join(item.split())) for block in prose for item in _ITEM.split(block)]
    title = element("summary", "What these numbers mean")
    return element("details", title, join(element("p", each[:1].upper() + each[1:]) for each in sentences))
