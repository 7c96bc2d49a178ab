"""Which ranks a job has whose files were not read."""

from __future__ import annotations

import numpy as np

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.trace.kineto.events.base import parse_ranks

__all__ = ["missing_ranks"]

_MOST_RANKS = 1 << 20
"""The most ranks that a file is believed to be one of. Chosen: ten times the largest jobs; a damaged number must not
take all memory. Doubled, nothing changes in healthy files."""


def missing_ranks(graph: DependencyGraph) -> tuple[int, ...]:
    """Return the ranks of a job that its graph lacks, as the files of the others tell, ascending.

    They say how many ranks the job has, which are in its process groups, or which take part in a collective.

    Args:
        graph: the job.

    Example:
        >>> import htagraph as hg
        >>> missing_ranks(hg.load("data/demo", ranks=[0, 3]))
        (1, 2)
    """
    known: set[int] = set()
    for trace in graph.traces.values():
        info = trace.header.distributed_info
        if info is not None:
            known.update(range(min(info.world_size or 0, _MOST_RANKS)))
            for group in info.pg_config:
                known.update(group.members or ())
    column = graph.activities.args.get("pg_ranks")
    for code in np.unique(column.values).tolist() if column is not None else []:
        known.update(parse_ranks(graph.names[code]) or () if code >= 0 else ())
    return tuple(sorted(known - set(graph.ranks)))
