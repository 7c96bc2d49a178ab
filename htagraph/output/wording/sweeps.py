"""Titles and headings of the tables of ``htagraph sweeps``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

__all__ = ["HEADINGS", "titles"]

HEADINGS = {"mean_step_us": "step_us"}
"""Headings of columns whose names do not say enough."""


def titles(what: str) -> dict[str, str]:
    """Return titles by the name of the table.

    Args:
        what: what takes a multiple of its time: ``network``, or criteria.
    """
    takes = "transfers between ranks take" if what == "network" else f"{what} takes"
    return {"sweep": f"If {takes} FACTOR times as long (low, high: 90 % interval of the speedup)"}
