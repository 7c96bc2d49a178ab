"""One conclusion that was said or expected, whether it is right, and precision and recall over many of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

__all__ = ["Finding", "scores", "wrong_lines"]


class Finding(NamedTuple):
    """A conclusion about one case: said, expected, or both."""

    kind: str
    said: str
    """What htagraph says; empty where it says nothing, or where only recall is asked."""
    expected: str
    """What it must say; empty where nothing clear is expected, or where only precision is asked."""
    right: bool
    evidence: str = ""
    case: str = ""


def scores(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return precision and recall, percent, by kind of conclusion; NaN where nothing was said or expected.

    >>> scores([Finding("bound", "host", "host", True), Finding("bound", "", "host", False)]).values.tolist()
    [['bound', 1, 100.0, 2, 50.0]]
    """
    rows = []
    for kind in sorted({each.kind for each in findings}):
        said = [each.right for each in findings if each.kind == kind and each.said]
        expected = [each.right for each in findings if each.kind == kind and each.expected]
        rows.append((kind, len(said), _percent(said), len(expected), _percent(expected)))
    return pd.DataFrame(rows, columns=["kind", "said", "precision", "expected", "recall"])


def wrong_lines(findings: Sequence[Finding]) -> list[str]:
    """Return a line for each conclusion that is wrong or missing."""
    return [
        f"{'WRONG  ' if each.said else 'MISSING'} {each.kind}: {each.case}: said {each.said or 'nothing'!r}, expected "
        f"{each.expected or '-'!r} ({each.evidence})"
        for each in findings
        if not each.right
    ]


def _percent(right: Sequence[bool]) -> float:
    return 100 * sum(right) / len(right) if right else float("nan")
