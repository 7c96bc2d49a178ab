"""Titles and headings of the tables of ``htagraph opportunities``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.findings.phrases import group_words

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["TITLES", "brief", "titles"]

TITLES = {"opportunities": "Opportunities, by the largest possible gain"}
"""Titles by the name of the table."""


def titles(steps: int) -> dict[str, str]:
    """Return titles by the name of the table.

    Args:
        steps: how many steps the times are divided by; 0 for none.
    """
    per_step = f" (times per step of {steps:,})" if steps > 1 else ""
    return {name: f"{title}{per_step}" for name, title in TITLES.items()}


def brief(table: pd.DataFrame, steps: int) -> pd.DataFrame:
    """Return what a reader wants to see of opportunities, per step where there are several, and the gain in all.

    Args:
        table: result of `htagraph.opportunities`.
        steps: how many steps the times are divided by; 0 for none.
    """
    pairs = zip(table["what"], table["name"], strict=True)
    names = [group_words(name).replace(" (", ", ").rstrip(")") if what == "group" else name for what, name in pairs]
    times = ["time_us", "critical_us", "gain_us", "gain_at_50_us"]
    shown = table[["what", "name", *times, "gain_percent"]].copy()
    if len(set(names)) == len(set(table["name"])):
        shown["name"] = names
    if steps > 1:
        shown[times] /= steps
        shown["gain_in_all_us"] = table["gain_us"]
    return shown.rename(columns={"gain_at_50_us": "gain_if_halved_us"})
