"""Titles and headings of the tables of ``htagraph compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["HEADINGS", "TITLES"]

TITLES = {"names": "Names that differ, per rank and step, the largest change first"}
"""Titles by the name of the table."""
HEADINGS = {
    "before_per_step_count": "before count", "after_per_step_count": "after count", "before_per_step_us": "before_us",
    "after_per_step_us": "after_us", "change_per_step_us": "change_us",
}  # fmt: skip
"""Headings of columns whose names do not say enough; the title says that they are per rank and step."""
