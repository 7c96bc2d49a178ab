"""Titles and headings of the tables of ``htagraph critical-path``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["HEADINGS", "TITLES"]

TITLES = {
    "path_category": "Critical path by category",
    "path_rank": "Critical path by rank",
    "path_operator": "Critical path by operator",
    "path_kernel": "Critical path by kernel",
    "path_host": "The host's part of the critical path, by what ran and where (own time)",
    "hops": "Where the critical path moves to another rank (the second rank waits for the first)",
    "near": "Next-critical work (slack: how much longer it may take before it is critical)",
    "segments": "Critical path, segment by segment",
}
"""Titles by the name of the table."""
HEADINGS = {"main": "main work"}
"""Headings of columns whose names do not say enough."""
