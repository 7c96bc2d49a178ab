"""Functions that workers of tests call; they import next to nothing, so that processes start soon."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from htagraph.cluster.engines import Failed

__all__ = ["doubled", "dying", "dying_once", "hanging_once", "hindered"]


def doubled(number: int) -> int | Failed:
    """Return twice a number; odd ones fail for good."""
    return Failed("odd") if number % 2 else 2 * number


def dying(number: int, guilty: int) -> int:
    """Return the number; the process dies of the guilty one."""
    if number == guilty:
        os._exit(1)
    return number


def dying_once(number: int, guilty: int, mark: str) -> int:
    """Return the number; the first process that meets the guilty one dies."""
    if number == guilty and _is_first(mark):
        os._exit(1)
    return number


def hanging_once(number: int, guilty: int, mark: str) -> int:
    """Return the number; the first process that meets the guilty one never answers."""
    if number == guilty and _is_first(mark):
        time.sleep(3600)
    return number


def hindered(mark: str, function: Callable[..., Any], item: Any, *given: Any) -> Any:
    """Return what a function says of a file; the first process that meets rank 1 dies, and that of rank 2 is slow."""
    rank = getattr(item, "rank", -1)
    if rank == 1 and _is_first(mark):
        os._exit(1)
    time.sleep(rank == 2)
    return function(item, *given)


def _is_first(mark: str) -> bool:
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
