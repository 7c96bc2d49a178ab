"""Titles and headings of the tables of ``htagraph execution-trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["TITLES"]

TITLES = {"names": "Nodes by name, the most frequent first", "links": "Activities and their nodes"}
"""Titles by the name of the table."""
