"""The nodes and edges of HTA's critical-path graph, and the names of their types."""

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
    """The types of edges, with HTA's names."""

    OPERATOR_KERNEL = "critical_path_operator"
    DEPENDENCY = "critical_path_dependency"
    KERNEL_LAUNCH_DELAY = "critical_path_kernel_launch_delay"
    KERNEL_KERNEL_DELAY = "critical_path_kernel_kernel_delay"
    SYNC_DEPENDENCY = "critical_path_sync_dependency"


TYPES = tuple(CPEdgeType)
"""The types by their code in `View.edges`."""


class BoundType(Enum):
    """What bounds the time of an edge, with HTA's names."""

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
    """A part of an event's time, or the reason why one moment came after another."""

    begin: int
    end: int
    type: CPEdgeType
    weight: Number = 0
