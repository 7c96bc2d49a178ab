"""Titles and headings of the tables of ``htagraph phases``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["TITLES"]

TITLES = {"phases": "Phases, the most wall time of a rank first (wall time ends with the last work launched)"}
"""Titles by the name of the table."""
