"""The vendor of a job's devices, in HTA's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.hta.shapes.window import is_mtia

if TYPE_CHECKING:
    from htagraph.hta.shapes.job import HtaJob

__all__ = ["device_type"]

_BY_LAUNCH = {"cudaLaunchKernel": "NVIDIA GPU", "hipLaunchKernel": "AMD GPU", "runFunction": "MTIA"}


def device_type(job: HtaJob) -> str:
    """Return ``"NVIDIA GPU"``, ``"AMD GPU"``, ``"MTIA"`` or ``"UNKNOWN GPU"``."""
    if any(is_mtia(trace) for trace in job.traces.values()):
        return "MTIA"
    names = {name for trace in job.traces.values() for name in trace.names}
    types = (kind for prefix, kind in _BY_LAUNCH.items() if any(name.startswith(prefix) for name in names))
    return next(types, "UNKNOWN GPU")
