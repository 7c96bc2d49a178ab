"""What ``htagraph opportunities`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from htagraph.output.phrases import command_line, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TITLES", "sentences"]

TITLES = {"opportunities": "Opportunities, by the largest possible gain"}
"""Titles by the name of the table."""
_MIN_GAIN_PERCENT = 2.0
"""Percent of the makespan; chosen: less is hardly worth the work. Doubled, gains of 2 to 4 % are no longer named."""


def sentences(table: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return the largest possible gain and the command that tries half of it.

    Args:
        table: result of `htagraph.opportunities`.
        inputs: the words of the command line that choose what is read.
    """
    if not len(table) or table.iloc[0]["gain_percent"] < _MIN_GAIN_PERCENT:
        return [
            f"No single improvement would gain {_MIN_GAIN_PERCENT:.0f} %: the time is spread over many small parts, or "
            "over pauses."
        ]
    best = table.iloc[0]
    note = f" ({best['note']})" if best["note"] else ""
    lines = [
        f"Largest possible gain: {_what(best)}{note}, up to {time_text(best['gain_us'])} "
        f"({best['gain_percent']:.0f} %), or {time_text(best['gain_at_50_us'])} if it took half its time. Gains "
        "overlap and do not add up."
    ]
    if best["target"]:
        line = command_line("what-if", inputs, "--scale", f"{best['target']}:0.5")
        lines.append(f"To try it together with other changes: {line}")
    return lines


def _what(row: pd.Series[Any]) -> str:
    """Return what a candidate is: the names of phases and ranks say it already."""
    return str(row["name"]) if row["what"] in ("phase", "rank") else f"{row['what']} {row['name']}"
