"""How many processors there are to use."""

from __future__ import annotations

import os

__all__ = ["processors"]


def processors() -> int:
    """Return how many processors this process may use: in a container or a batch job, fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
