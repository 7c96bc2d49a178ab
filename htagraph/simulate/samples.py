"""Samples that PyTorch's CUPTI backend takes while a simulated job runs: power and activity of each device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

__all__ = ["samples_of"]

_INTERVAL_US: Final = 100.0
"""µs from sample to sample. Chosen: a step of a simulated job has some ten; the backend's default is 1,000 µs."""
_IDLE_W: Final = 90.0
"""Power of a device that runs nothing. Chosen, like the power of an A100."""
_BUSY_W: Final = 390.0
"""Power of a device that runs kernels all the time. Chosen, like the power of an A100."""
_KERNEL: Final = ("kernel", "Kernel")

Interval: TypeAlias = tuple[float, float]
Sample: TypeAlias = tuple[str, int, float, float]


def samples_of(
    events: Iterable[Mapping[str, Any]],
) -> list[Sample]:
    """Return (name, device, moment in µs as in the file, value) of samples of each device that ran kernels.

    The activity is the share of the time until the next sample in which a kernel ran; power grows in proportion.

    Example:
        >>> kernel = {"ph": "X", "cat": "kernel", "pid": 0, "ts": 1000, "dur": 25}
        >>> samples_of([kernel])
        [('SM Active (%)', 0, 1000.0, 25.0), ('Power (W)', 0, 1000.0, 165.0)]
    """
    kernels: defaultdict[int, list[Interval]] = defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in _KERNEL:
            start = float(event["ts"])
            end = start + float(event["dur"])
            kernels[event["pid"]].append((start, end))
    samples: list[Sample] = []
    for device, intervals in sorted(kernels.items()):
        for moment, share in _shares(intervals):
            percent = round(100 * share, 3)
            power = round(_IDLE_W + (_BUSY_W - _IDLE_W) * share, 3)
            samples.append(("SM Active (%)", device, moment, percent))
            samples.append(("Power (W)", device, moment, power))
    return samples


def _shares(intervals: list[Interval]) -> list[tuple[float, float]]:
    """Return (moment of a sample, share of the time until the next sample that the intervals cover)."""
    ordered = sorted(intervals)
    moments = [ordered[0][0]]
    busy_until = [0.0]
    for start, end in ordered:
        begin = max(start, moments[-1])
        if end > begin:
            busy = busy_until[-1]
            moments += [begin, end]
            busy_until += [busy, busy + end - begin]
    begins = np.arange(moments[0], moments[-1], _INTERVAL_US)
    before = np.interp(begins, moments, busy_until)
    after = np.interp(begins + _INTERVAL_US, moments, busy_until)
    shares = (after - before) / _INTERVAL_US
    return [
        (round(moment, 3), share)
        for moment, share in zip(
            begins.tolist(),
            shares.tolist(),
            strict=True,
        )
    ]
