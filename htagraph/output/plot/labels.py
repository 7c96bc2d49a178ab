"""Labels of figures: short names that stay different where their full names are, and texts that hold no markup."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from htagraph.core.errors import printable
from htagraph.core.naming import short_name
from htagraph.findings.phrases import shortened

__all__ = ["axis_labels", "escaped", "hover_name", "plain", "row_labels", "unique_labels"]

_MAX_LETTERS = 60
"""Letters of a name in a legend. Chosen: longer names push the figure aside. Doubled, two pies do not fit."""
_AXIS_LETTERS = 34
"""Letters of a name beside an axis. Chosen: a third of a figure 700 pixels wide. Doubled, they leave no room."""
_HOVER_LETTERS = 480
"""Letters of a name where one points. Chosen: six lines hold the name of nearly every kernel. Doubled, names of
templates cover what they are shown beside."""
_HOVER_LINE = 80
"""Letters of a line of it. Doubled, it is wider than a figure."""
_NO_LETTERS = {ord("<"): "&lt;", ord(">"): "&gt;", ord("&"): "&amp;", ord("$"): "&#36;"}


def unique_labels(names: Iterable[str], letters: int = _MAX_LETTERS) -> dict[str, str]:
    """Return a label for each name: without signature, cut to what a legend holds, and different for each name.

    plotly makes one item of those that have one label. Names whose labels would be equal are numbered, in the order in
    which they are given.

    Example:
        >>> unique_labels(["void gemm<float>(float*)", "void gemm<half>(half*)", "copy"])
        {'void gemm<float>(float*)': 'gemm [1]', 'void gemm<half>(half*)': 'gemm [2]', 'copy': 'copy'}
    """
    by_label: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        by_label[shortened(short_name(name), letters)].append(name)
    return {
        name: label if len(same) == 1 else f"{label} [{number}]"
        for label, same in by_label.items()
        for number, name in enumerate(same, 1)
    }


def axis_labels(names: Iterable[str]) -> dict[str, str]:
    """Return a label for each name of a kernel or operator as `unique_labels` does, shorter, and as plotly's markup.

    Example:
        >>> axis_labels(["void a<int>(int)", "x" * 40])
        {'void a<int>(int)': 'a', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx': 'xxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxx'}
    """
    names = list(dict.fromkeys(names))
    return dict(zip(names, row_labels([short_name(name) for name in names]), strict=True))


def row_labels(texts: Sequence[str], letters: int = _AXIS_LETTERS) -> list[str]:
    """Return a label for each row of a figure, as plotly's markup: cut in the middle, and numbered if rows look alike.

    Example:
        >>> row_labels(["a<b", "copy", "copy"])
        ['a&lt;b', 'copy [1]', 'copy [2]']
    """
    cut = [shortened(plain(text), letters) or "(no name)" for text in texts]
    alike, seen = Counter(cut), Counter[str]()
    labels = []
    for label in cut:
        seen[label] += 1
        labels.append(escaped(label if alike[label] == 1 else f"{label} [{seen[label]}]"))
    return labels


def hover_name(name: str) -> str:
    """Return a full name as plotly's markup, on several lines; beyond 480 letters it is cut.

    Example:
        >>> hover_name("void gemm<float>(float*)")
        'void gemm&lt;float&gt;(float*)'
    """
    return "<br>".join(map(escaped, textwrap.wrap(plain(name, _HOVER_LETTERS), _HOVER_LINE))) or "(no name)"


def plain(text: str, letters: int | None = None) -> str:
    """Return a text on one line that can be encoded and turns no direction of writing, cut to some letters."""
    if letters is not None and len(text) > letters:
        text = text[: letters - 1] + "…"
    return " ".join(printable(text.encode("utf-8", "replace").decode()).split())


def escaped(text: str) -> str:
    """Return a text as plotly's markup, in which it is itself: plotly reads tags, entities and formulas in texts.

    Example:
        >>> escaped("<a href='x'>$a$</a>")
        "&lt;a href='x'&gt;&#36;a&#36;&lt;/a&gt;"
    """
    return text.translate(_NO_LETTERS)
