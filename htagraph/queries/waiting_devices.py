"""How long devices do nothing but wait in collectives, for ranks that have not arrived: they look busy meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.intervals import difference, length, union
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.queries.collective_waits import waits_of

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["waiting_devices"]

_WORK = (ActivityKind.COMPUTATION, ActivityKind.MEMORY)


def waiting_devices(graph: DependencyGraph) -> dict[int, int]:
    """Return, for each rank, how long its device ran only collective kernels that waited for other ranks, ns.

    A collective kernel spins until the last rank arrives; time in which it does and no computation and no copy runs is
    idle time of the device that no device time shows.

    Args:
        graph: the job.

    Example:
        >>> import htagraph as hg
        >>> waiting_devices(hg.load("data/demo"))[0] > 0
        True
    """
    acts, waits = graph.activities, waits_of(graph)
    at = np.flatnonzero(acts.on_device[waits.activity] & (waits.wait > 0))
    waited = {}
    for rank in graph.ranks:
        mine = at[waits.rank[at] == rank]
        begin = acts.start[waits.activity[mine]] + waits.beside[mine]
        rows = acts.of_rank(rank)
        work = rows.start + np.flatnonzero(of_kinds(acts.kind[rows], _WORK))
        waiting = difference(union(begin, begin + waits.wait[mine]), union(acts.start[work], acts.end[work]))
        waited[rank] = length(waiting)
    return waited
