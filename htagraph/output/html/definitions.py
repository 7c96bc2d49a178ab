"""What numbers mean, from the docstrings of the functions that compute them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from htagraph.output.html.markup import Html, element, join

__all__ = ["definition"]

_LEFT_OUT = ("Args:", "Raises:", "Example:", "Source:")
"""Sections of a docstring that do not say what a number means."""
_HEADING = re.compile(r"^[A-Z]\w+:")
_MARK = re.compile(r"``?([^`]+)``?")


def definition(of: Callable[..., Any] | type, title: str = "What these numbers mean") -> Html:
    """Return the definition of a result, to be unfolded: what its docstring says, without how to call it.

    Args:
        of: the function that computes it, or its class.
        title: what is to be read when it is folded.

    Example:
        >>> from htagraph.analyses.overlap import overlap
        >>> definition(overlap).startswith("<details><summary>What these numbers mean</summary><p>Return ")
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
            blocks.append(_MARK.sub(r"\1", " ".join(block.split())))
    return element("details", element("summary", title), join(element("p", block) for block in blocks))
