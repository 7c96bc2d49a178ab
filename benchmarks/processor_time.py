"""Processor time on a busy machine, where a process that shares its caches with others seems slower than it is.

Other processes only make times longer, so the least of several is the truest. Who has a limit measures again what seems
to exceed it, everything that the limit compares, and calls only what still exceeds it too slow.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

__all__ = ["least", "seconds_by_name", "seconds_of"]

Name = TypeVar("Name")


def seconds_of(call: Callable[[], object]) -> float:
    """Return the processor seconds of a call in this process.

    Python does not look for cycles meanwhile: this takes as long as what else the process keeps is large.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        began = time.process_time()
        call()
        return time.process_time() - began
    finally:
        if enabled:
            gc.enable()


def seconds_by_name(calls: Mapping[Name, Callable[[], object]]) -> dict[Name, float]:
    """Return the processor seconds of some calls, each made once."""
    return {name: seconds_of(call) for name, call in calls.items()}


def least(
    measured: Callable[[], Mapping[Name, float]], too_slow: Callable[[Mapping[Name, float]], bool], rounds: int,
    first: Mapping[Name, float] | None = None,
) -> dict[Name, float]:  # fmt: skip
    """Return the least seconds by name over some rounds of measuring; as many as it takes until nothing seems too slow.

    Args:
        measured: measures everything that is compared, once.
        too_slow: whether these seconds exceed their limit.
        rounds: the most rounds.
        first: the seconds of the first round, where they are known.

    Example:
        >>> rounds = iter([{"small": 1.0, "large": 9.0}, {"small": 2.0, "large": 3.0}])
        >>> least(lambda: next(rounds), lambda seconds: seconds["large"] > 4 * seconds["small"], 2)
        {'small': 1.0, 'large': 3.0}
    """
    seconds = dict(first or measured())
    for _ in range(1, rounds):
        if not too_slow(seconds):
            break
        again = measured()
        seconds = {name: min(took, again[name]) for name, took in seconds.items()}
    return seconds
