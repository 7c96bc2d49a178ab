"""One HTML file of sections and tables: all it needs is inside, no text of a trace can become markup or run in it."""

from __future__ import annotations

import base64
import hashlib
import html
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Any

import pandas as pd

from htagraph.core.errors import printable
from htagraph.core.names import readable_name
from htagraph.output.report import Wording, columns_of, cut_all

__all__ = [
    "NOTHING", "Html", "Section", "definition", "element", "join", "json_bytes", "page", "script_of", "table_of",
    "text",
]  # fmt: skip

_VOID = frozenset({"br", "hr", "input", "link", "meta"})
"""Elements of HTML that have no end tag."""
_IMPORT = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""What the page may do: run one script and use one style sheet, both known by their digest, and nothing else."""


class Html(str):
    """Markup. Only functions of this module make it; any other text is escaped where it becomes a part of some."""

    __slots__ = ()


NOTHING = Html("")
"""Markup that shows nothing."""


def text(value: object) -> Html:
    r"""Return a text as markup that shows it, without characters that command a terminal or turn the writing.

    Example:
        >>> text("<b>\u202e&\0")
        '&lt;b&gt; &amp; '
    """
    return Html(html.escape(printable(str(value)), quote=True))


def join(parts: Iterable[object]) -> Html:
    """Return parts one after the other; what is no markup is escaped."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """Return an element; children and values that are no markup are escaped.

    Attributes have ``_`` for ``-``, and ``class_`` for ``class``; None and False leave one out, True gives no value.

    Example:
        >>> element("a", "x < y", href="#1", class_="link", hidden=True, title=None)
        '<a href="#1" class="link" hidden>x &lt; y</a>'
    """
    given = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    shown = [f" {name}" if value is True else f' {name}="{text(value)}"' for name, value in given.items()
             if value is not None and value is not False]  # fmt: skip
    opening = "".join([tag, *shown])
    return Html(f"<{opening}>" if tag in _VOID else f"<{opening}>{join(children)}</{tag}>")


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading."""

    key: str
    """Its id, of letters, digits and hyphens; links lead to it."""
    title: str
    body: Html
    """Static content, which must say what matters without scripts."""
    scripts: tuple[str, ...] = ()
    """Its modules, files of ``assets``, each behind those that it imports."""
    styles: tuple[str, ...] = ()
    """Its style sheets, likewise."""
    payload: Mapping[str, bytes] = field(default_factory=dict)
    """Bytes by id, for its scripts: `dataOf(id)` in ``payload.js`` gives them."""


def page(title: str, sections: Sequence[Section], *, lead: Html = NOTHING) -> bytes:
    """Return an HTML file of some sections, from top to bottom, below a title and a lead.

    Example:
        >>> whole = page("A job", [Section("one", "One", element("p", "<script>"))])
        >>> b"&lt;script&gt;" in whole, whole.startswith(b"<!doctype html>")
        (True, True)
    """
    scripts = dict.fromkeys(["page.js", *(name for each in sections for name in each.scripts)])
    styles = dict.fromkeys(["page.css", *(name for each in sections for name in each.styles)])
    script = script_of([*scripts, "start.js"])  # which runs when all functions are there
    style = "".join(map(_asset, styles))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY.format(
            script=_digest(script), style=_digest(style)
        )),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        Html(f"<style>{style}</style>"),
    )  # fmt: skip
    links = (element("a", each.title, href=f"#{each.key}") for each in sections)
    body = element(
        "body",
        element("header", element("h1", title), lead, element("nav", *links, aria_label="Sections")),
        element("main", *(element("section", element("h2", each.title), each.body, id=each.key) for each in sections)),
        *(  # bytes, which no browser shows or runs
            element("script", Html(base64.b64encode(data).decode()), type="application/octet-stream", id=name)
            for each in sections for name, data in each.payload.items()
        ),
        Html(f"<script>{script}</script>"),
    )  # fmt: skip
    return f'<!doctype html>\n<html lang="en">{join((head, body))}</html>\n'.encode()


def script_of(names: Iterable[str]) -> str:
    """Return modules of ``assets`` as one script: their functions share one scope, so imports are not needed."""
    whole = "".join(_EXPORT.sub("", _IMPORT.sub("", _asset(name))) for name in names)
    return f'"use strict";(() => {{\n{whole}}})();\n'


def json_bytes(value: object) -> bytes:
    """Return plain values as JSON in ASCII."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


@cache
def _asset(name: str) -> str:
    return (files("htagraph.output.html") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


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
    links_heading: str = "timeline",
) -> Html:
    """Return a table; nothing where it has no rows.

    Headings are by column, where its name does not say enough; `links`, the addresses of the rows, are a last column
    under `links_heading`.

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
            element("td", text, class_=kind, title=_hover(value) if kind != "number" and text != value else None)
            for text, value in zip(texts, map(str, frame.iloc[:, at]), strict=True)
        ])  # fmt: skip
    if links:
        head.append(element("th", links_heading, class_="show", scope="col"))
        shown = [element("a", "show", href=link) if link else "" for link in links]
        cells.append([element("td", each, class_="show") for each in shown])
    rows = [element("tr", *row) for row in zip(*cells, strict=True)]
    title = element("caption", caption) if caption else NOTHING
    table = element("table", title, element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="wide")


def _hover(text: str) -> str:
    """Return the whole text of a cell as a reader sees it on hover."""
    return readable_name(text)[:2000]


def definition(of: Callable[..., Any] | type | property) -> Html:
    """Return the definition of a result, to be unfolded: its docstring in sentences, without how to call it.

    Example:
        >>> from htagraph.analyses.overlap import overlap
        >>> "What these numbers mean</summary><p>This shows the share of" in definition(overlap)
        True
    """
    text = inspect.getdoc(of)
    if not text:  # docstrings were stripped
        return NOTHING
    text = re.sub("^Return ", "This shows ", text)
    prose = takewhile(lambda block: not _HEADING.match(block), text.split("\n\n"))
    sentences = [_MARK.sub(r"\1", " ".join(item.split())) for block in prose for item in _ITEM.split(block)]
    title = element("summary", "What these numbers mean")
    return element("details", title, join(element("p", each[:1].upper() + each[1:]) for each in sentences))
