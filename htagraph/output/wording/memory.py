"""Titles and headings of the tables of ``htagraph memory``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["TITLES"]

TITLES = {
    "memory_peaks": "Peak memory in use",
    "memory_at_peak": "What held memory at the peak",
    "memory_devices": "Allocator memory by device",
    "memory_now": "What held memory when the snapshot was taken",
    "memory_categories": "Memory by category",
}
"""Titles by the name of the table."""
