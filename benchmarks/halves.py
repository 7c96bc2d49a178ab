"""Two halves of what predictions and conclusions are judged on: one to find causes in, one to judge once at the end."""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterable

HALVES = ("development", "unseen")


def half_of(name: str) -> str:
    """Return the half in which a case lies: decided by its name, so that no result can move it.

    Example:
        >>> half_of("op_half"), half_of("op_removed")
        ('development', 'unseen')
    """
    return HALVES[zlib.crc32(name.encode()) & 1]


def add_half(command: argparse.ArgumentParser) -> None:
    """Add the option that chooses a half."""
    command.add_argument("--half", choices=HALVES, help="only this half; the unseen one is for the last run")


def of_half(names: Iterable[str], half: str | None) -> list[str]:
    """Return the names that lie in a half; all where none is asked for."""
    return [name for name in names if half is None or half_of(name) == half]
