"""Titles and headings of the tables of ``htagraph collectives``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["HEADINGS", "TITLES"]

TITLES = {
    "collectives": "Collectives, times summed over all ranks",
    "last_arrivals": "Last arrivals by rank",
    "parts": "Each rank's part in each collective",
}
"""Titles by the name of the table."""
HEADINGS = {"collective": "number"}
"""Headings of columns whose names do not say enough, or take too much room."""
