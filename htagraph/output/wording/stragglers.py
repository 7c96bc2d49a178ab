"""Titles and headings of the tables of ``htagraph stragglers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["TITLES"]

TITLES = {"stragglers": "Ranks that others wait for", "causes": "Wait time by cause"}
"""Titles by the name of the table."""
