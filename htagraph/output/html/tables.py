"""Tables of results as HTML, with the cells of the command line, and what their numbers mean."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from htagraph.output.columns import columns_of, cut_all
from htagraph.output.html.page import NOTHING, Html, element, join
from htagraph.output.report import Wording

__all__ = ["definition", "table_of"]

_SENTENCES = ("detail",)
"""Columns of sentences, which are shown whole."""
_LEFT_OUT = ("Args:", "Raises:", "Example:", "Source:")
"""Sections of a docstring that do not say what a number means."""
_HEADING = re.compile(r"^[A-Z]\w+:")
_MARK = re.compile(r"``?([^`]+)``?")
_TYPE = re.compile(r"(?<=\()(?:int64|float64|str|bool)\b[:;,]? ?")
"""What pandas calls the values of a column, which says nothing about what they mean."""
_CALL = re.compile(r"^\w+\(\): ")
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
    """Return the definition of a result, to be unfolded: what its docstring says, without how to call it.

    Example:
        >>> from htagraph.analyses.overlap import overlap
        >>> definition(overlap).startswith("<details><summary>What these numbers mean</summary><p>The share ")
        True
    """
    text = inspect.getdoc(of)
    if not text:  # docstrings were stripped
        return NOTHING
    blocks: list[str] = []
    shown = True
    for block in text.split("\n\n"):
        if _HEADING.match(block):
            shown = not block.startswith(_LEFT_OUT)
        if shown:
            blocks += map(_plain, _ITEM.split(block))
    blocks[0] = blocks[0].removeprefix("Return ")
    title = element("summary", "What these numbers mean")
    return element("details", title, join(element("p", block[:1].upper() + block[1:]) for block in blocks))


def _plain(block: str) -> str:
    """Return a part of a docstring on one line, without marks of code, types of columns and how Python calls it."""
    words = _TYPE.sub("", _MARK.sub(r"\1", " ".join(block.split()))).replace(" ()", "")
    return _CALL.sub("", words.removeprefix("Returns: "))
