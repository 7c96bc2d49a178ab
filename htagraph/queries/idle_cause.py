"""Why a stream or rank was idle: the binding edge before each kernel, and the length of the pause."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["CAUSES", "KERNEL_PAUSE_US", "binding_kind", "pause_cause"]

CAUSES = ("host_wait", "kernel_wait", "other")
KERNEL_PAUSE_US = 30.0
"""The longest pause between two queued kernels that counts as `kernel_wait`, µs.

Source: the default of `consecutive_kernel_delay` in HTA's idle time breakdown.
Doubled, pauses of 30 to 60 µs without a known reason count as `kernel_wait` in place of `other`; `host_wait` stays."""


def binding_kind(graph: DependencyGraph) -> npt.NDArray[np.int8]:
    """Return the EdgeKind of the binding edge of each vertex, the one that allowed it last; -1 without any."""
    return np.where(graph.binding >= 0, graph.edges.kind[graph.binding], -1).astype(np.int8)


def pause_cause(
    graph: DependencyGraph,
    binding: npt.NDArray[np.int8],
    work: npt.NDArray[np.int64],
    free: npt.NDArray[np.int64],
    kernel_pause_us: float = KERNEL_PAUSE_US,
) -> npt.NDArray[np.str_]:
    """Return the cause of each pause, which begins when a stream or rank becomes idle and ends when a kernel starts.

    ``host_wait``: for most of the pause, the launch call had not returned, or the LAUNCH edge, which is binding, did
    not allow the kernel to start yet. A kernel that starts long after that waited for something else.
    ``kernel_wait``: neither, and the pause is short enough to be the device's own between two kernels. ``other``:
    nothing in the graph explains a pause this long.

    Args:
        graph: the job.
        binding: result of `binding_kind`.
        work: the kernel or copy that ends each pause.
        free: start of each pause, ns.
        kernel_pause_us: the longest pause between two queued kernels that is the device's own, µs.
    """
    acts = graph.activities
    pause = np.maximum(0, acts.start[work] - free)
    call = acts.cause[work]
    launched = (call >= 0) & (acts.kind[call] == ActivityKind.LAUNCH)
    under_way = launched & (np.minimum(acts.end[call], acts.start[work]) - free > pause / 2)
    allowed = acts.start[work] - graph.gap[2 * work]
    too_late = (binding[2 * work] == EdgeKind.LAUNCH) & (allowed - free > pause / 2)
    short = np.where(pause < kernel_pause_us * 1000, "kernel_wait", "other")
    return np.where(too_late | under_way, "host_wait", short)
