"""Titles and headings of the tables of ``htagraph cache``."""

from __future__ import annotations

__all__ = ["TITLES"]

TITLES = {"cache": "Graphs in the cache, the one used last first"}
"""Titles by the name of the table."""
