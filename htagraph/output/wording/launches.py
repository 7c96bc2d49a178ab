"""Titles and headings of the tables of ``htagraph launches``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["HEADINGS", "TITLES"]

TITLES = {
    "calls": "Launch calls",
    "operators": "Operators by the device time of what they launch",
    "graph_launches": "CUDA graph launches",
    "compiled_regions": "torch.compile regions",
    "phases": "Phases (by annotation)",
}
"""Titles by the name of the table."""
HEADINGS = {"works": "kernels and copies"}
"""Headings of columns whose names do not say enough."""
