"""What ``htagraph cache`` says."""

from __future__ import annotations

__all__ = ["TITLES", "cleared", "contents", "no_folder"]

TITLES = {"cache": "Graphs in the cache, the one used last first"}
"""Titles by the name of the table."""


def contents(folder: str, count: int, size: int, limit: int) -> list[str]:
    """Return where the cache is and how full; sizes are bytes."""
    graphs = f"{count:,} graph{'' if count == 1 else 's'}"
    return [
        f"{folder} holds {graphs}, {size / 1e9:.2f} of at most {limit / 1e9:g} GB (HTAGRAPH_CACHE_GB).",
        "Commands on large jobs fill it: --no-cache or HTAGRAPH_NO_CACHE=1 keeps them from it.",
    ]


def cleared(folder: str, count: int, size: int) -> list[str]:
    """Return what was removed; the size is bytes."""
    return [f"{count:,} graph{'' if count == 1 else 's'} removed from {folder}, {size / 1e9:.2f} GB."]


def no_folder() -> list[str]:
    """Return why nothing is cached."""
    return ["There is no cache: HTAGRAPH_NO_CACHE is set, or this user has no folder of their own for it."]
