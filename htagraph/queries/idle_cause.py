"""Which predecessor held up each moment: the query behind every "why did this wait"."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["CAUSES", "KERNEL_PAUSE_US", "binding_kind", "pause_cause"]

CAUSES = ("host_wait", "kernel_wait", "other")
KERNEL_PAUSE_US = 30.0
"""What a pause between two queued kernels lasts at most, µs; HTA's default."""


def binding_kind(graph: DependencyGraph) -> npt.NDArray[np.int8]:
    """Return the EdgeKind of the edge that allowed each vertex last; -1 where none enters."""
    return np.where(graph.binding >= 0, graph.edges.kind[graph.binding], -1).astype(np.int8)


def pause_cause(
    graph: DependencyGraph,
    binding: npt.NDArray[np.int8],
    work: npt.NDArray[np.int64],
    free: npt.NDArray[np.int64],
    kernel_pause_us: float = KERNEL_PAUSE_US,
) -> npt.NDArray[np.str_]:
    """Return why pauses lasted that began when a stream or rank fell idle and ended when work started.

    ``host_wait``: the LAUNCH edge was binding, or the launch call was still under way for most of the pause.
    ``kernel_wait``: neither, and the pause is one that the device itself makes between kernels. ``other``: nothing in
    the graph explains so long a pause.

    Args:
        graph: the job.
        binding: result of `binding_kind`.
        work: the device work that ended each pause.
        free: when each pause began, ns.
        kernel_pause_us: what a pause between two queued kernels lasts at most, µs.
    """
    acts = graph.activities
    pause = np.maximum(0, acts.start[work] - free)
    call = acts.cause[work]
    launched = (call >= 0) & (acts.kind[call] == ActivityKind.LAUNCH)
    under_way = launched & (np.minimum(acts.end[call], acts.start[work]) - free > pause / 2)
    short = np.where(pause < kernel_pause_us * 1000, "kernel_wait", "other")
    return np.where((binding[2 * work] == EdgeKind.LAUNCH) | under_way, "host_wait", short)
