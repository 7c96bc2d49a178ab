"""How mkdocstrings reads this project's docstrings: their results are described in sentences, not as `type: text`."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["Sentences"]

_RESULT = re.compile(r"(?m)^(Returns|Yields):\n(\s+)")
_EXAMPLE = re.compile(r"(?m)^Example:$")


class Sentences(griffe.Extension):
    """Gives each result the type that the signature names, and makes an example a block of code."""

    def on_object(self, *, obj: griffe.Object, **others: Any) -> None:  # noqa: ANN401 - griffe's
        """Change the docstring of an object before it is parsed."""
        del others
        if obj.docstring is None:
            return
        given = getattr(obj, "returns", None)
        returned = str(given) if given is not None else "None"
        text = _RESULT.sub(lambda found: f"{found[1]}:\n{found[2]}{returned}: ", obj.docstring.value)
        obj.docstring.value = _EXAMPLE.sub("Examples:", text)
