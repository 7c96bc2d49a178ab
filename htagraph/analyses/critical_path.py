"""The critical path of the job, or of some steps: the chain of activities that determined when it ended."""

from __future__ import annotations

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import IntSelector
from htagraph.queries.paths import CriticalPath, path_in_window

__all__ = ["critical_path"]


def critical_path(graph: DependencyGraph, steps: IntSelector = None, ranks: IntSelector = None) -> CriticalPath:
    """Return the critical path of a job or of some steps: the activities that must be faster for it to end earlier.

    The path is followed back from the last moment: each moment on the path is preceded by the moment at the other end
    of its binding edge, the dependency that was satisfied last. Where a collective waited for another rank, the path
    continues on that rank.

    Args:
        graph: the job.
        steps: numbers of steps, whose window goes from the earliest begin of any of their annotations to the moment
            when all their work, device work included, has ended on every rank; in a graph of your own frames, from the
            first start to the last end of their activities. None for the whole job.
        ranks: the ranks whose begin and end are the window's, None for all. The path may still lead over other ranks,
            where those made the chosen ranks wait.

    Returns:
        The path: `CriticalPath.makespan_ns`, `.to_frame()` (its segments, whose durations sum to the makespan
        exactly), `.summary()` (shares by rank, category, cause, operator, kernel, module), `.hops()` (from rank to
        rank), `.near()` (next-critical work), `.activities`.

    Raises:
        SelectionError: a step or rank that the graph does not have, or steps that these ranks did not record.

    Example:
        >>> import htagraph as hg
        >>> path = hg.critical_path(hg.load("data/demo"), steps=5)
        >>> bool(path.to_frame()["duration_us"].sum() * 1000 == path.makespan_ns)
        True
    """
    return path_in_window(graph, steps, ranks)
