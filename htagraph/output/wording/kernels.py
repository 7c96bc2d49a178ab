"""Titles and headings of the tables of ``htagraph kernels``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["TITLES"]

TITLES = {"device_time": "Device time", "module_classes": "Device time by module class"}
"""Titles by the name of the table."""
