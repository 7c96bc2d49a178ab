"""What numbers mean, from the docstrings of the functions that compute them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from htagraph.output.html.page import Html, element, join

__all__ = ["definition"]

_LEFT_OUT = ("Args:", "Raises:", "Example:", "Source:")
"""Sections of a docstring that do not say what a number means."""
_HEADING = re.compile(r"^[A-Z]\w+:")
_MARK = re.compile(r"``?([^`]+)``?")
_TYPE = re.compile(r"(?<=\()(?:int64|float64|str|bool)\b[:;,]? ?")
"""What pandas calls the values of a column, which says nothing about what they mean."""
_CALL = re.compile(r"^\w+\(\): ")
_ITEM = re.compile(r"\n(?=- )")


def definition(of: Callable[..., Any] | type | property, title: str = "What these numbers mean") -> Html:
    """Return the definition of a result, to be unfolded: what its docstring says, without how to call it.

    Args:
        of: the function that computes it, its class, or the property that it is.
        title: what is to be read when it is folded.

    Example:
        >>> from htagraph.analyses.overlap import overlap
        >>> definition(overlap).startswith("<details><summary>What these numbers mean</summary><p>The share ")
        True
    """
    text = inspect.getdoc(of)
    if not text:  # docstrings were stripped
        return Html("")
    blocks: list[str] = []
    shown = True
    for block in text.split("\n\n"):
        if _HEADING.match(block):
            shown = not block.startswith(_LEFT_OUT)
        if shown:
            blocks += map(_plain, _ITEM.split(block))
    blocks[0] = _capitalized(blocks[0].removeprefix("Return "))
    return element("details", element("summary", title), join(element("p", block) for block in blocks))


def _plain(block: str) -> str:
    """Return a part of a docstring on one line, without marks of code, types of columns and how Python calls it."""
    words = _TYPE.sub("", _MARK.sub(r"\1", " ".join(block.split()))).replace(" ()", "")
    return _capitalized(_CALL.sub("", words.removeprefix("Returns: ")))


def _capitalized(words: str) -> str:
    return words[:1].upper() + words[1:]
