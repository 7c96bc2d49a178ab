"""Titles and headings of the tables of ``htagraph idle``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["HEADINGS", "TITLES"]

TITLES = {"streams": "Idle time of streams by cause", "pauses": "Longest idle intervals"}
"""Titles by the name of the table."""
HEADINGS = {"pause_us": "idle_us"}
"""Headings of columns whose names do not say enough."""
