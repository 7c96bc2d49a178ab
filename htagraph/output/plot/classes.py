"""Classes of time for histograms: half a decade each, since delays and slack spread over many decades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CLASS_LABELS", "class_axis", "counts_of", "used_classes"]

_BOUNDS_US = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6)
"""Lower ends, µs. Chosen: half a decade, so that all of them have a label of their own at a width of 700 pixels."""
CLASS_LABELS = [
    "0", "< 1 µs", "1 µs", "3 µs", "10 µs", "30 µs", "100 µs", "300 µs", "1 ms", "3 ms", "10 ms", "30 ms", "100 ms",
    "300 ms", "1 s",
]  # fmt: skip
"""Of the classes: what belongs to them is at least that long."""


def counts_of(times: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return how many times fall into each class.

    Args:
        times: µs; what is below 0 counts as 0.

    Example:
        >>> counts_of(np.array([0.0, 0.5, 1.0, 2.9, 5e6])).tolist()
        [1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    """
    place = np.where(times <= 0, 0, 1 + np.searchsorted(_BOUNDS_US, times, side="right"))
    return np.bincount(place.astype(np.int64), minlength=len(CLASS_LABELS)).astype(np.int64)


def used_classes(counts: Sequence[npt.NDArray[np.int64]]) -> slice:
    """Return the classes from the first to the last one that something falls into; empty ones outside leave no room.

    Args:
        counts: of several histograms, which share the classes.

    Example:
        >>> used_classes([counts_of(np.array([2.0])), counts_of(np.array([40.0]))])
        slice(2, 6, None)
    """
    used = np.flatnonzero(np.sum(counts, axis=0)) if len(counts) else np.zeros(0, np.int64)
    return slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 0)


def class_axis(title: str, shown: slice) -> dict[str, Any]:
    """Return an axis of classes, in their order."""
    labels = CLASS_LABELS[shown]
    return {"type": "category", "categoryorder": "array", "categoryarray": labels, "title": {"text": title}}
