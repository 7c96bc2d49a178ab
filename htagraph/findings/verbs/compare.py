"""What ``htagraph compare`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.core.naming import short_name
from htagraph.findings.phrases import and_list, command_line, plural, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["sentences"]


def sentences(table: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return how many names differ, which changed most, and what says why."""
    if not len(table):
        return ["Neither job has an activity."]
    counts = table["change"].value_counts()
    kinds = [f"{int(counts[kind]):,} {words}" for kind, words in _KINDS.items() if counts.get(kind)]
    occur = "occurs" if len(table) == 1 else "occur"
    lines = [f"{plural(len(table), 'name')} {occur} per rank and step: {and_list(kinds)}."]
    row = table.iloc[int(table["change_per_step_us"].abs().argmax())]
    change = float(row["change_per_step_us"])
    if change:
        word = "more" if change > 0 else "less"
        lines.append(
            f"{short_name(row['name'])} takes {time_text(abs(change))} {word} per rank and step, with what lies in it."
        )
    lines.append(f"To see why steps take another time: {command_line('diff', inputs)}")
    return lines


_KINDS = {
    "added": "only in the job after", "removed": "only in the job before", "more": "more often", "fewer": "less often",
    "same": "as often as before",
}  # fmt: skip
"""Kinds of change in words."""
