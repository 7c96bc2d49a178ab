"""What a thread or stream runs on."""

from __future__ import annotations

from enum import Enum

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array

__all__ = ["DeviceType", "infer_device_type", "is_device_lane"]


class DeviceType(Enum):
    """Host, device, both, or neither for certain."""

    UNKNOWN = 0
    CPU = 1
    GPU = 2
    ALL = 3


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
