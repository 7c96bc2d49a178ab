"""What differs between two jobs besides times, in words: devices, sizes, call paths, kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import short_name
from htagraph.output.phrases import plural, time_text
from htagraph.output.report import inputs_of

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.analyses.differences.diff import Diff

__all__ = ["cut", "structure", "unlike"]

_MAX_LETTERS = 100
"""Letters of a call path in a sentence; chosen: about one line. Doubled, two lines."""


def unlike(diff: Diff) -> list[str]:
    """Say where the jobs ran on other devices or are of different size, which changes times by itself."""
    lines = []
    inputs = [inputs_of(part.graph) for part in diff.parts]
    devices = [", ".join(sorted(set(each["device"]))) for each in inputs]
    if devices[0] != devices[1]:
        lines.append(f"The jobs ran on different devices: {devices[0]} before, {devices[1]} after.")
    worlds = [int(each["world_size"].max()) if len(each) else 0 for each in inputs]
    if all(worlds) and worlds[0] != worlds[1]:
        lines.append(f"The jobs have different sizes: {worlds[0]} ranks before and {worlds[1]} after.")
    before, after = (len(part.chosen_ranks) for part in diff.parts)
    if before != after:
        lines.append(
            f"Different numbers of ranks were read, {before} before and {after} after: how long ranks wait for "
            "each other and transfer differs for that reason alone."
        )
    stacks = [bool((part.graph.activities.kind == ActivityKind.PYTHON).any()) for part in diff.parts]
    if stacks[0] != stacks[1]:
        lines.append(
            f"Python functions were recorded in the job {'before' if stacks[0] else 'after'} only, which makes its "
            "host slower: record both with the same settings to compare their hosts."
        )
    without = [word for word, part in zip(("before", "after"), diff.parts, strict=True) if not part.graph.steps]
    if diff.unit == "job" and len(without) == 1:
        counts = next(part for part in diff.parts if part.graph.steps).graph.steps
        other = "after" if without == ["before"] else "before"
        lines.append(
            f"The job {without[0]} has no steps, so whole jobs are compared; the job {other} has {len(counts)} "
            f"step{'' if len(counts) == 1 else 's'}. Record both with profiler.step() to compare steps."
        )
    return lines


def structure(diff: Diff) -> list[str]:
    """Say which call paths and kernels only one of the jobs has."""
    lines = []
    for table, who in ((diff.added, "after"), (diff.removed, "before")):
        if len(table):
            first = table.iloc[0]
            paths = f"{len(table):,} call path{'' if len(table) == 1 else 's'}"
            lines.append(
                f"Only the job {who} has {paths}{', such as' if len(table) > 1 else ':'} {cut(str(first['path']))} "
                f"({time_text(float(first['total_us']))} per rank and {diff.unit})."
            )
    return [*lines, *_replaced(diff.renamed)]


def _replaced(renamed: pd.DataFrame) -> list[str]:
    """Say which kernels are others than before, and which have only other signatures."""
    pairs = [(short_name(old), short_name(new)) for old, new in zip(renamed["before"], renamed["after"], strict=True)]
    others, alike = ([pair for pair in pairs if (pair[0] == pair[1]) is same] for same in (False, True))
    lines = []
    if others:
        old, new = others[0]
        such = ":" if len(others) == 1 else ", such as"
        lines.append(f"{plural(len(others), 'kernel')} replaced{such} {cut(new)} instead of {cut(old)}.")
    if alike:
        has = "has" if len(alike) == 1 else "have"
        such = ":" if len(alike) == 1 else ", such as"
        kernels = plural(len(alike), "kernel")
        lines.append(f"{kernels} {has} other template arguments or parameters{such} {cut(alike[0][0])}.")
    return lines


def cut(text: str) -> str:
    """Return a text that fits into a sentence: its end says most."""
    return text if len(text) <= _MAX_LETTERS else f"…{text[1 - _MAX_LETTERS :]}"
