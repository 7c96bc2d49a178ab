"""Titles and headings of the tables of ``htagraph roofline``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["HEADINGS", "TITLES"]

TITLES = {"roofline": "Operators by time, with what they compute and move"}
"""Titles by the name of the table."""
HEADINGS = {"tflop_s": "TFLOP/s", "intensity": "intensity FLOP/B"}
"""Headings of columns whose names do not say enough."""
