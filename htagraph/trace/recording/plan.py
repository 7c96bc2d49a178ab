"""Which steps are recorded, and which run before them with the profiler warming up or off."""

from __future__ import annotations

import re
from dataclasses import dataclass

from htagraph.core.errors import SelectionError, shown

__all__ = ["Plan", "plan_of"]

_WAIT = 1
"""Steps that run before warm-up if only a number of steps is given. Chosen: the first step of a job allocates, tunes
and compiles, and says nothing of the others. Doubled, a recording begins one step later."""
_RANGE = re.compile(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?")


@dataclass(frozen=True)
class Plan:
    """The steps of one recording, counted from 0 as ``ProfilerStep#0`` is."""

    wait: int
    """Steps with the profiler off."""
    warmup: int
    """Steps with the profiler on whose events are dropped: the first ones it sees are slowed by its own start."""
    active: int
    """Steps that are recorded."""

    @property
    def first(self) -> int:
        """The first recorded step."""
        return self.wait + self.warmup

    @property
    def end(self) -> int:
        """The step after the last recorded one."""
        return self.first + self.active


def plan_of(steps: int | str, warmup: int) -> Plan:
    """Return which steps are recorded.

    Args:
        steps: how many, or which: ``"5-7"`` or ``"5"``, counted from 0.
        warmup: steps of warm-up; a range that begins sooner has as many as there are before it.

    Raises:
        SelectionError: these are no steps.

    Example:
        >>> plan_of(3, 2)
        Plan(wait=1, warmup=2, active=3)
        >>> plan_of("5-7", 2)
        Plan(wait=3, warmup=2, active=3)
    """
    if not isinstance(warmup, int) or warmup < 0:
        msg = f"warmup={shown(warmup)}: a number of steps, 0 or more"
        raise SelectionError(msg)
    if isinstance(steps, str):
        return _range(steps, warmup)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        msg = f"steps={shown(steps)}: give how many steps to record, such as 3, or which, such as '5-7'"
        raise SelectionError(msg)
    return Plan(_WAIT, warmup, steps)


def _range(steps: str, warmup: int) -> Plan:
    ends = _RANGE.fullmatch(steps.strip())
    first = int(ends[1]) if ends else 0
    last = int(ends[2] or ends[1]) if ends else -1
    if last < first:
        msg = f"steps={shown(steps)}: give a range of steps such as '5-7', or one such as '5'; the first step is 0"
        raise SelectionError(msg)
    warmup = min(warmup, first)
    return Plan(first - warmup, warmup, last - first + 1)
