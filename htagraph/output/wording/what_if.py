"""Titles and headings of the tables of ``htagraph what-if``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["TITLES"]

TITLES = {
    "prediction": "Prediction",
    "changes": "Effect of each change, added to those above it",
    "step_times": "Step times, from the first rank's start to the last rank's end",
    "bounds_category": "Critical path before and after, by category",
    "bounds_rank": "Critical path before and after, by rank",
    "bounds_kernel": "Critical path before and after, by kernel",
}
"""Titles by the name of the table."""
