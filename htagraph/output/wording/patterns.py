"""Titles and headings of the tables of ``htagraph patterns``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["TITLES"]

TITLES = {"patterns": "Kernel sequences, the most frequent first"}
"""Titles by the name of the table."""
