"""What ``htagraph what-if --sweep`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.output.phrases import plural, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HEADINGS", "sentences", "titles"]

HEADINGS = {"mean_step_us": "step_us"}
"""Headings of columns whose names do not say enough."""
_TENTH = 0.1
"""The change of the factor to which a change of the time is related. It is a unit."""


def titles(what: str) -> dict[str, str]:
    """Return titles by the name of the table.

    Args:
        what: what takes a multiple of its time: ``network``, or criteria.
    """
    takes = "transfers between ranks take" if what == "network" else f"{what} takes"
    return {"sweep": f"If {takes} FACTOR times as long (low, high: 90 % interval of the speedup)"}


def sentences(table: pd.DataFrame, what: str, recorded_us: float) -> list[str]:
    """Return which factors were tried, the shortest time, and how much a factor changes at both ends.

    Args:
        table: result of `htagraph.sweep`.
        what: what takes a multiple of its time, in words.
        recorded_us: the recorded mean step, or the makespan where there are no steps.
    """
    rows = table.sort_values("factor", ignore_index=True)
    best = rows.iloc[int(rows["mean_step_us"].argmin())]
    tried = f"{plural(len(rows), 'factor')} from {rows['factor'].iloc[0]:g} to {rows['factor'].iloc[-1]:g} for {what}"
    lines = [
        f"Tried: {tried}, each replayed.",
        f"The shortest step takes {time_text(best['mean_step_us'])} at {best['factor']:g}; recorded: "
        f"{time_text(recorded_us)}.",
    ]
    if len(rows) > 2:
        lines.append(
            f"Per 0.1 of the factor, a step changes by {_slope(rows, 0)} and by {_slope(rows, len(rows) - 2)}."
        )
    return lines


def _slope(rows: pd.DataFrame, at: int) -> str:
    """Return how much longer a step gets per tenth of the factor between two neighbours."""
    low, high = rows["factor"].iloc[at : at + 2].tolist()
    first, last = rows["mean_step_us"].iloc[at : at + 2].tolist()
    return f"{time_text(_TENTH * (last - first) / (high - low))} between {low:g} and {high:g}"
