"""What ``htagraph patterns`` says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from htagraph.core.naming import short_name
from htagraph.core.statistics import MOST
from htagraph.core.words import nearest_words
from htagraph.findings.phrases import and_list, command_line, plural, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["other_occurrences", "pattern_text", "sentences", "unknown_operator"]

_MAX_KERNELS = 12
"""Kernels of a pattern that are listed, the same in a row as one; chosen: about three lines. Doubled, about six."""


def pattern_text(pattern: str) -> str:
    """Return a pattern as ``operator: kernel → kernel``.

    Example:
        >>> pattern_text("aten::linear|gemm<1>|splitk|splitk")
        'aten::linear: gemm → 2 × splitk'
    """
    operator, *kernels = pattern.split("|")
    runs = [(name, len(list(same))) for name, same in groupby(map(short_name, kernels))]
    parts = [name if count == 1 else f"{count} × {name}" for name, count in runs[:_MAX_KERNELS]]
    left = sum(count for _, count in runs[_MAX_KERNELS:])
    return f"{operator}: {' → '.join(parts)}{f' → … {left} more' if left else ''}"


def other_occurrences(fewer: int, inputs: Sequence[str], operator: str) -> list[str]:
    """Return how many occurrences launched fewer kernels than ``--min-length``, and how to see them."""
    if not fewer:
        return []
    again = command_line("patterns", inputs, "--operator", operator, "--min-length", "1")
    return [f"{plural(fewer, 'other occurrence')} launched fewer kernels or none. To include those with any: {again}"]


def unknown_operator(operator: str, known: Iterable[str]) -> str:
    """Return that no name matches, and the names most like it.

    Example:
        >>> unknown_operator("aten::lineer", ["aten::linear", "Optimizer.step"])
        "No operator or annotation matches 'aten::lineer'; did you mean 'aten::linear'?"
    """
    return f"No operator or annotation matches {operator!r}{nearest_words(operator, known) or '.'}"


def sentences(
    table: pd.DataFrame, inputs: Sequence[str], operator: str, min_length: int, others: Sequence[str] = ()
) -> list[str]:
    """Return how many patterns there are and the most frequent one."""
    if not len(table) and others:
        again = command_line("patterns", inputs, "--operator", others[0], "--min-length", str(min_length))
        return [
            f"Nothing that matches {operator!r} launched {min_length} kernels or more, but {and_list(others)} did: "
            f"{again}"
        ]
    if not len(table):
        again = command_line("patterns", inputs, "--operator", operator, "--min-length", "1")
        return [
            f"Nothing that matches {operator!r} launched {min_length} kernels or more. To include shorter "
            f"sequences: {again}"
        ]
    count, most = int(table["count"].sum()), table.iloc[int(table["count"].argmax())]
    summary = (
        f"{plural(count, 'occurrence')} of {operator!r} launched {plural(len(table), 'pattern')} of kernels, which ran "
        f"{time_text(table['kernel_us'].sum())}; the most frequent, of {plural(int(most['kernels']), 'kernel')}, "
        f"occurred {plural(int(most['count']), 'time')} on rank {int(most['rank'])}."
    )
    if most["kernel_us"] < MOST * most["operator_us"]:
        line = command_line("opportunities", inputs)
        return [summary, f"Its kernels take less time than launching them; fusing them into one kernel helps: {line}"]
    return [summary]
