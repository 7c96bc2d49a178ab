"""Communication whose group was not recorded on all its ranks: it may have waited for one of those."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.computing import once
from htagraph.core.kinds import COMMUNICATION, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["lacks_members", "ranks_not_read"]


def ranks_not_read(graph: DependencyGraph) -> tuple[int, ...]:
    """Return the ranks of the job that are not in the graph, as far as the traces say how many it has.

    Example:
        >>> import htagraph as hg
        >>> ranks_not_read(hg.load("data/demo"))
        ()
    """
    infos = [trace.header.distributed_info for trace in graph.traces.values()]
    size = max((info.world_size or 0 for info in infos if info is not None), default=0)
    return tuple(sorted(set(range(size)) - set(graph.ranks))) if len(graph.ranks) < size else ()


@once
def lacks_members(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which activities are communication whose group is not in the graph on all its ranks.

    What such a one takes after the last recorded arrival is its transfer, or waiting for a rank that was not recorded.
    Where ranks of the job were not read, communication that was not matched counts, too.

    Args:
        graph: the job.

    Example:
        >>> import htagraph as hg
        >>> bool(lacks_members(hg.load("data/demo")).any())
        False
    """
    acts, matches = graph.activities, graph.matches
    out = np.zeros(len(acts), np.bool_)
    if ranks_not_read(graph):
        out |= of_kinds(acts.kind, COMMUNICATION)
    if matches is not None and len(matches.size):
        present = np.bincount(matches.collective, minlength=matches.count)
        out[matches.activity] = (np.asarray(matches.size) > present)[matches.collective]
    return out
