"""What determined when the job, or some of its steps, ended: the chain to which every wait leads back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from htagraph.errors import SelectionError
from htagraph.graph import DependencyGraph
from htagraph.kinds import ActivityKind
from htagraph.paths import CriticalPath, path_to

__all__ = ["critical_path"]

Some: TypeAlias = int | Sequence[int] | None


def critical_path(graph: DependencyGraph, steps: Some = None, ranks: Some = None) -> CriticalPath:
    """Return the critical path of the job or of some steps: what would have had to be faster to end earlier.

    It is found backwards from the latest moment: of all that a moment had to wait for, what allowed it last comes
    before it on the path. Where a collective waited for another rank, the path goes on there.

    Args:
        graph: the job.
        steps: numbers of steps, whose window goes from the earliest begin of any of their annotations to the moment
            when all their work, device work included, is over on every rank; in a graph of your own frames, from the
            first start to the last end of their activities. None for the whole job.
        ranks: the ranks whose begin and end are the window's, None for all. The path may still lead over others, where
            these made them wait.

    Returns:
        The path: `CriticalPath.makespan_ns`, `.to_frame()` (its segments, whose durations sum to the makespan
        exactly), `.summary()` (shares by rank, category, cause, operator, kernel, module), `.hops()` (from rank to
        rank), `.near()` (what would be critical next), `.activities`.

    Raises:
        SelectionError: a step or rank that the graph does not have, or steps that these ranks did not record.

    Example:
        >>> import htagraph as hg
        >>> path = hg.critical_path(hg.load("data/demo"), steps=5)
        >>> bool(path.to_frame()["duration_us"].sum() * 1000 == path.makespan_ns)
        True
    """
    time = graph.time
    chosen = graph.select(step=steps, rank=ranks).activities
    if not len(chosen):
        if steps is not None:
            msg = f"critical_path: no step {steps} on rank {ranks}; steps by rank: graph.select(kind='step').to_frame()"
            raise SelectionError(msg)
        return path_to(graph, chosen, 0)
    kind = graph.activities.kind[chosen]
    if steps is not None and (kind == ActivityKind.BOUNDARY).any():
        begins, ends = chosen[kind == ActivityKind.STEP], chosen[kind == ActivityKind.BOUNDARY]
        return path_to(graph, 2 * ends, int(time[2 * begins].min()))
    vertices = np.concatenate((2 * chosen, 2 * chosen + 1))
    final = np.diff(graph.out_offsets)[vertices] == 0
    final[np.argmax(time[vertices])] = True
    return path_to(graph, vertices[final], int(time[vertices].min()))
