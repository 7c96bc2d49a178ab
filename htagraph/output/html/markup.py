"""Elements of HTML and SVG, made so that no text of a trace can become markup."""

from __future__ import annotations

import html
from collections.abc import Iterable

from htagraph.core.errors import printable

__all__ = ["NOTHING", "Html", "element", "join", "text"]

_VOID = frozenset({"br", "hr", "input", "link", "meta"})
"""Elements of HTML that have no end tag."""


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

    Args:
        tag: its name.
        *children: what it holds.
        **attributes: by name, ``_`` for ``-`` and ``class_`` for ``class``. None and False leave one out; True gives
            one without a value.

    Example:
        >>> element("a", "x < y", href="#1", class_="link", hidden=True, title=None)
        '<a href="#1" class="link" hidden>x &lt; y</a>'
    """
    opening = "".join([tag, *(_attribute(name, value) for name, value in attributes.items())])
    return Html(f"<{opening}>" if tag in _VOID else f"<{opening}>{join(children)}</{tag}>")


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    word = name.rstrip("_").replace("_", "-")
    return f" {word}" if value is True else f' {word}="{text(value)}"'
