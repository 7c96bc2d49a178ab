"""What a thread or stream runs on, and groups of names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array

__all__ = [
    "MEMCPY_TYPE_TO_STR", "DeviceType", "GroupingPattern", "MemcpyType", "infer_device_type", "is_device_lane",
    "to_grouping_pattern",
]  # fmt: skip

MemcpyType = Enum("MemcpyType", ["DTOD", "DTOH", "HTOD", "UNKNOWN"], start=0)
"""Which way a copy goes."""
MEMCPY_TYPE_TO_STR = dict(
    zip(MemcpyType, ("memcpy_dtod", "memcpy_dtoh", "memcpy_htod", "memcpy_type_unknown"), strict=True)
)


class DeviceType(Enum):
    """Host, device, both, or neither for certain."""

    UNKNOWN = 0
    CPU = 1
    GPU = 2
    ALL = 3


@dataclass(unsafe_hash=True)
class GroupingPattern:
    """A group of names: those whose beginning a regular expression matches, or all others."""

    pattern: re.Pattern[str]
    inverse_match: bool = False
    group_name: str = field(default="", hash=False)

    def match(self, name: str) -> bool:
        """Return whether a name belongs to the group."""
        return (self.pattern.match(name) is not None) != self.inverse_match


def to_grouping_pattern(
    pattern: object, group_name: str | None = None, inverse_match: bool | None = None
) -> GroupingPattern:
    """Return a group of names from a regular expression, a text or a list of texts; a group stays as it is.

    Raises:
        ValueError: the pattern is none of these.
    """
    if isinstance(pattern, GroupingPattern):
        return pattern
    if isinstance(pattern, list):
        pattern = "|".join(f"({each})" for each in pattern)
    if isinstance(pattern, str | re.Pattern):
        return GroupingPattern(re.compile(pattern), bool(inverse_match), group_name or "")
    msg = f"Unsupported pattern type: {type(pattern).__name__}; give a text, a list of texts or a regular expression"
    raise ValueError(msg)


def infer_device_type(df: pd.DataFrame) -> DeviceType:
    """Return what the events of one thread or stream run on.

    Args:
        df: its rows, with ``stream``, and ``pid`` and ``tid`` where known.
    """
    streams = df["stream"].to_numpy() if "stream" in df else np.zeros(0)
    pid, tid = (df[column].iloc[0] if column in df and df[column].nunique() == 1 else None for column in ("pid", "tid"))
    if len(streams) and is_device_lane(pid, tid, streams):
        return DeviceType.GPU
    return DeviceType.CPU if len(streams) and (streams == -1).all() else DeviceType.UNKNOWN


def is_device_lane(pid: object, tid: object, streams: Array) -> bool:
    """Return whether a group of rows with one pid and tid is a stream or a device's track, and no thread."""
    return bool((streams > 0).all()) or pid == 0 or tid == 0
