"""Titles and headings of the tables of ``htagraph counters``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["TITLES"]

TITLES = {
    "queues": "Queue length of each stream (kernels and copies)",
    "bandwidth": "Memory copy bandwidth",
    "queue_length": "Queue length over time (kernels and copies)",
    "memory_bandwidth": "Memory copy bandwidth over time",
}
"""Titles by the name of the table."""
