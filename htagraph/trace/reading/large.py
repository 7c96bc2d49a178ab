"""Which files are worth loading compiled code for, when they are read again."""

from __future__ import annotations

from htagraph.trace.remote import TracePath

__all__ = ["is_large"]

_LARGE_BYTES = 1 << 20
"""Bytes of a file, packed or not, from which a compiled scan reads its events again. Chosen: it takes 0.1 s to load,
and saves as much on a packed file of that size. Doubled, files of 1 to 2 MB take up to 0.1 s more."""


def is_large(path: TracePath) -> bool:
    """Return whether a compiled scan reads a file sooner than the general decoder, with the time to load it."""
    return path.stat().st_size >= _LARGE_BYTES
