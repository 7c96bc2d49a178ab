"""Texts in Graphviz's language: labels that show their characters as they are, and how wide they are."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["dot_text", "one_line", "text_width"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_LETTER_WIDTH, _WIDE = 0.56, 1.0
"""Widths of a letter, and of one that East Asian scripts draw wide, in sizes of the font; measured of Helvetica's and
Arial's lower case, rounded up. Doubled, labels take twice the room."""


def dot_text(text: str) -> str:
    r"""Return a label that shows its characters as they are: no escapes, HTML or entities; lines end as given.

    Example:
        >>> print(dot_text("a<b>\\n&"))
        a<b>\\n&amp;
    """
    import graphviz

    return graphviz.nohtml(str(graphviz.escape(text.replace("&", "&amp;"))).replace("\n", "\\n"))


def one_line(text: str) -> str:
    """Return a text with a blank in the place of line ends and other control characters."""
    return _CONTROL.sub(" ", text)


def text_width(text: str, size: float) -> float:
    """Return about how wide the longest line of a text is, in the unit of the font's size.

    Example:
        >>> text_width("ab", 10) < text_width("核核", 10)
        True
    """
    wide = {"W", "F"}
    lines = text.split("\n")
    return size * max(sum(_WIDE if unicodedata.east_asian_width(each) in wide else _LETTER_WIDTH for each in line)
                      for line in lines)  # fmt: skip
