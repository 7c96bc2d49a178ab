"""Labels of figures: short names that stay different where their full names are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from htagraph.core.naming import short_name

__all__ = ["unique_labels"]

_MAX_LETTERS = 60
"""Letters of a name in a legend. Chosen: longer names push the figure aside. Doubled, two pies do not fit."""


def unique_labels(names: Iterable[str]) -> dict[str, str]:
    """Return a label for each name: without signature, cut to what a legend holds, and different for each name.

    plotly makes one item of those that have one label. Names whose labels would be equal are numbered, in the order in
    which they are given.

    Example:
        >>> unique_labels(["void gemm<float>(float*)", "void gemm<half>(half*)", "copy"])
        {'void gemm<float>(float*)': 'gemm [1]', 'void gemm<half>(half*)': 'gemm [2]', 'copy': 'copy'}
    """
    by_label: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        by_label[_shortened(name)].append(name)
    return {
        name: label if len(same) == 1 else f"{label} [{number}]"
        for label, same in by_label.items()
        for number, name in enumerate(same, 1)
    }


def _shortened(name: str) -> str:
    short = short_name(name)
    return short if len(short) <= _MAX_LETTERS else short[: _MAX_LETTERS - 1] + "…"
