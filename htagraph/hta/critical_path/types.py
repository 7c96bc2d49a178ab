"""What a critical-path graph of HTA's shape is made of: nodes, edges, and their words."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

__all__ = ["STRICT", "TYPES", "BoundType", "CPEdge", "CPEdgeType", "CPNode", "Number", "flag"]

Number: TypeAlias = int | float

STRICT = "CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS"


def flag(name: str) -> bool:
    """Return whether an environment variable of HTA's is set to 1; asked at every call."""
    return os.environ.get(name, "0") == "1"


class CPEdgeType(Enum):
    """What an edge is, with HTA's words."""

    OPERATOR_KERNEL = "critical_path_operator"
    DEPENDENCY = "critical_path_dependency"
    KERNEL_LAUNCH_DELAY = "critical_path_kernel_launch_delay"
    KERNEL_KERNEL_DELAY = "critical_path_kernel_kernel_delay"
    SYNC_DEPENDENCY = "critical_path_sync_dependency"


TYPES = tuple(CPEdgeType)
"""By the code in `View.edges`."""


class BoundType(Enum):
    """What the time of an edge is bound by, with HTA's words."""

    GPU_KERNEL_KERNEL_OVERHEAD = "gpu_kernel_kernel_overhead"
    GPU_KERNEL_LAUNCH_OVERHEAD = "gpu_kernel_launch_overhead"
    DATA_LOADING = "data_loading"
    CPU_BOUND = "cpu_bound"
    GPU_COMPUTE_BOUND = "gpu_compute_bound"
    GPU_COMMUNICATION_BOUND = "gpu_communication_bound"


@dataclass
class CPNode:
    """The start or the end of an event."""

    idx: int = -1
    ev_idx: int = -1
    ts: Number = 0
    is_start: bool = False
    is_blocking: bool = False


@dataclass(frozen=True)
class CPEdge:
    """A stretch of an event's time, or why one moment came after another."""

    begin: int
    end: int
    type: CPEdgeType
    weight: Number = 0
