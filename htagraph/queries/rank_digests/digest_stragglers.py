"""Which rank of a joined job makes the others wait, and how much, by what digests show.

The waits, the own time of each rank in each step, and the test whether a rank is slow, are as in `htagraph.stragglers`.
What a digest does not have are single operators and kernels. Instead of comparing them, the time that a rank needs by
itself from one collective to the next is compared with that of its peers; and sums by name take their place where
stages of a pipeline are compared, or where a rank works on what no other does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.statistics import MOST, others_median
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import Waits
from htagraph.queries.blame import CAUSES, Chains, blame_of, stretches_of
from htagraph.queries.own_steps import own_steps, times_alone
from htagraph.queries.peers import rank_roles
from htagraph.queries.rank_digests.digest import WorkSums
from htagraph.queries.rank_speed import SlowRanks, slow_among
from htagraph.queries.straggler import (
    RankStragglers,
    SavedBy,
    charged_to_nobody,
    charges_of,
    straggler_among,
    waits_by_rank,
)

__all__ = ["digest_stragglers", "work_among"]

_SIDES: Final = ("kernels", "host")
"""What may take a slow rank longer: a cause of `htagraph.stragglers` each."""


def digest_stragglers(graph: DependencyGraph, sums: Sequence[WorkSums], saved_ns: SavedBy) -> RankStragglers:
    """Return which rank of a joined job makes the others wait in collectives, and how much."""
    import pandas as pd

    waits = graph.waits
    roles = rank_roles(graph, lambda place: sums[place][:3])
    slow = slow_among(own_steps(graph), roles, partial(work_among, sums))
    blame = blame_of(graph, _chains(graph, waits, roles[0]))
    rank, serves, _ = straggler_among(graph, slow, blame, saved_ns)
    columns = waits_by_rank(graph, charges_of(graph, blame), slow)
    table = pd.DataFrame({**columns, "cause": pd.array(_causes(slow), dtype="str")})
    total = int(waits.wait.sum()) / 1000
    return RankStragglers(table, rank, total, serves, len(slow.steps), charged_to_nobody(blame))


def _chains(graph: DependencyGraph, waits: Waits, roles: Array) -> Chains:
    """Return the binding edges of the moments, and how much longer each rank took to arrive than its peers did.

    An arrival is compared by the time that the rank, on its own, needs since its arrival before: with the median of the
    ranks of its role that go from the same collective to the same one.
    """
    _, before = stretches_of(graph, graph.binding)
    excess = np.zeros(graph.vertex_count, np.int64)
    matched = np.flatnonzero(waits.collective >= 0)
    if len(matched):
        alone = times_alone(graph)[0][2 * waits.activity[matched]]
        rank, number = waits.rank[matched], waits.collective[matched]
        order = np.lexsort((number, waits.arrival[matched], rank))
        follows = np.concatenate([[False], rank[order][1:] == rank[order][:-1]])
        later = np.flatnonzero(follows)
        now, ago = order[later], order[later - 1]
        took = (alone[now] - alone[ago]).astype(np.float64)
        role = roles[np.searchsorted(graph.ranks, rank[now])]
        alike = np.unique(np.stack([number[ago], number[now], role]), axis=1, return_inverse=True)[1].ravel()
        beyond = np.nan_to_num(took - others_median(took, alike))
        excess[2 * waits.activity[matched[now]]] = np.rint(beyond).astype(np.int64)
    nothing = np.zeros(0, np.int64)
    cause = np.where(excess != 0, CAUSES.index("kernels"), 0).astype(np.int8)  # of some kind: nobody asks which
    return Chains(before, nothing, cause, excess, nothing, nothing.astype(np.float64), nothing.astype(np.int8))


def _causes(slow: SlowRanks) -> list[str]:
    """Return the side whose time is most of what each slow rank exceeds the ranks of its role by."""
    out = ["none"] * len(slow.slow)
    for at in np.flatnonzero(slow.slow).tolist():
        peers = np.flatnonzero((slow.roles == slow.roles[at]) & (np.arange(len(out)) != at))
        kernels, operators, untraced = slow.by_side()[:, :, slow.when[at]]
        excess = [
            float(np.median(each[at] - np.median(each[peers], axis=0))) if len(peers) else 0.0
            for each in (kernels, operators + untraced)
        ]
        if max(excess) >= MOST * slow.in_slow[at]:
            out[at] = _SIDES[int(np.argmax(excess))]
    return out


def work_among(sums: Sequence[WorkSums], places: Array, side: int) -> npt.NDArray[np.int64]:
    """Return the work by name and step of the ranks at some positions, as `rank_speed.WorkOf` defines it."""
    parts = []
    for row, place in enumerate(places.tolist()):
        some = sums[place].device == side
        parts.append(np.stack([np.full(int(some.sum()), row), *(column[some] for column in sums[place][4:8])]))
    return np.concatenate(parts, axis=1)
