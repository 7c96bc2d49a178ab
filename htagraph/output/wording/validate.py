"""Titles and headings of the tables of ``htagraph validate``."""

from __future__ import annotations

__all__ = ["TITLES"]

TITLES = {
    "issues": "Problems in the files: repaired, dropped or unmatched",
    "support": "What these traces can answer",
    "arguments": "Event arguments, and those whose values have an unexpected type",
}
"""Titles by the name of the table."""
