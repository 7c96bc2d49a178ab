"""What ``htagraph validate`` says."""

from __future__ import annotations

__all__ = ["TITLES", "sentences"]

TITLES = {
    "issues": "Problems in the files: repaired, dropped or unmatched",
    "support": "What these traces can answer",
    "arguments": "Event arguments, and those whose values have an unexpected type",
}
"""Titles by the name of the table."""


def sentences(*, clean: bool) -> list[str]:
    """Return that nothing was wrong with the files, if so."""
    return ["Nothing had to be repaired or dropped."] if clean else []
