"""Which rank of a joined job makes the others wait, and how much, by what digests show.

The waits, the own time of each rank in each step, and the test whether a rank is slow, are as in `htagraph.stragglers`.
What a digest does not have are single operators and kernels. Instead of comparing them, the time that a rank needs by
itself from one collective to the next is compared with that of its peers; and sums by name take their place where
stages of a pipeline are compared, or where a rank works on what no other does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.group_stats import others_median
from htagraph.core.kinds import TRANSFERS
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import Waits
from htagraph.queries.blame import CAUSES, Blame, Chains, blame_of
from htagraph.queries.compare import SlowRanks, slow_among
from htagraph.queries.own_steps import own_steps, times_alone
from htagraph.queries.peers import roles_among
from htagraph.queries.rank_digests.compared_sums import alone_ns, counts_of, excess_by_side, speed_among
from htagraph.queries.rank_digests.work_sums import WorkSums
from htagraph.queries.straggler import SavedBy, charges_of, named_among

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RankStragglers", "digest_stragglers"]


_SIDES: Final = ("kernels", "host")
"""What may take a slow rank longer: a cause of `htagraph.stragglers` each."""
_MOST: Final = 0.5
"""Share of what a rank exceeds its peers by from which one side is the cause. It cannot be doubled."""


@dataclass(frozen=True, eq=False)
class RankStragglers:
    """Which rank of a joined job makes the others wait. Made by `JobSkeleton.stragglers`."""

    ranks: pd.DataFrame
    """A row per rank: ``rank`` (int64), ``blamed_us`` (float64: waiting of others charged to it), ``share_percent``
    (float64: that as a share of all waiting), ``waits_us`` (float64: its own waiting), ``late_count`` (int64:
    collectives in which it arrived last and others waited), ``own_step_us`` (float64: what it does by itself in a step,
    median over steps), ``step_excess_us`` (float64: by how much that exceeds its peers', median over steps; NaN if
    nothing compares), ``step_error_us`` (float64: the standard error of it), ``slow`` (bool: whether it is slower by
    more than chance), ``slow_steps`` (int64: in how many steps), ``slow_excess_us`` (float64: by how much in those;
    NaN if not ``slow``), ``cause`` (str: ``kernels``, ``host`` or ``none``: whose time is most of what a slow rank
    exceeds its peers by)."""
    straggler: int | None
    """The rank whose steps take longer than its peers' and that most waiting beyond theirs is charged to, or None."""
    total_wait_us: float
    """Time that ranks waited in collectives, summed over all ranks, µs."""
    serves: int | None
    """The rank that takes longer as it does work that no other rank does, for whose result all others wait, or None."""
    steps: int
    """Steps whose times were compared."""

    def to_frame(self) -> pd.DataFrame:
        """Return a row per rank."""
        return self.ranks.copy()

    def __repr__(self) -> str:
        who = "none" if self.straggler is None else f"rank {self.straggler}"
        return f"RankStragglers({who}, {self.total_wait_us / 1000:.3f} ms of waiting over {len(self.ranks)} ranks)"


def digest_stragglers(graph: DependencyGraph, sums: Sequence[WorkSums], saved_ns: SavedBy) -> RankStragglers:
    """Return which rank of a joined job makes the others wait in collectives, and how much.

    Args:
        graph: the graph of the joined job.
        sums: by rank, its work by name.
        saved_ns: by how much the job is shorter if kinds of work of a rank take a multiple of their time.
    """
    waits = graph.waits
    roles = roles_among(graph, partial(counts_of, sums))
    slow = slow_among(own_steps(graph), roles, lambda _: [], partial(speed_among, sums))
    blame = blame_of(graph, _chains(graph, waits, roles[0]))
    who = named_among(graph, slow, blame, saved_ns, lambda at: alone_ns(sums, at, slow.steps[slow.when[at]]))
    total = int(waits.wait.sum())
    return RankStragglers(_table(graph, waits, blame, slow, sums), who.rank, total / 1000, who.serves, len(slow.steps))


def _chains(graph: DependencyGraph, waits: Waits, roles: Array) -> Chains:
    """Return the binding edges of the moments, and how much longer each rank took to arrive than its peers did.

    An arrival is compared by the time that the rank, on its own, needs since its arrival before: with the median of the
    ranks of its role that go from the same collective to the same one.
    """
    edges, binding = graph.edges, graph.binding
    kind = np.where(binding >= 0, edges.kind[binding], -1) if len(edges) else np.full(len(binding), -1)
    cut = np.isin(kind, TRANSFERS) | (binding < 0)
    before = np.where(cut, -1, edges.source[binding] if len(edges) else -1).astype(np.int64)
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


def _table(
    graph: DependencyGraph, waits: Waits, blame: Blame, slow: SlowRanks, sums: Sequence[WorkSums]
) -> pd.DataFrame:
    import pandas as pd

    ranks, total = np.array(graph.ranks, np.int64), int(waits.wait.sum())
    blamed = charges_of(graph, blame).sum(axis=1)
    own = np.zeros(len(ranks), np.int64)
    np.add.at(own, np.searchsorted(ranks, waits.rank), waits.wait)
    late = np.unique(waits.late[(waits.wait > 0) & (waits.late >= 0)])
    count = np.bincount(np.searchsorted(ranks, graph.activities.rank[late]), minlength=len(ranks))
    return pd.DataFrame({
        "rank": ranks, "blamed_us": blamed / 1000,
        "share_percent": 100 * blamed / total if total else np.zeros(len(ranks)), "waits_us": own / 1000,
        "late_count": count.astype(np.int64), "own_step_us": slow.own / 1000, "step_excess_us": slow.excess / 1000,
        "step_error_us": slow.error / 1000, "slow": slow.slow, "slow_steps": slow.when.sum(axis=1).astype(np.int64),
        "slow_excess_us": slow.in_slow / 1000, "cause": pd.array(_causes(slow, sums), dtype="str"),
    })  # fmt: skip


def _causes(slow: SlowRanks, sums: Sequence[WorkSums]) -> list[str]:
    """Return the side whose time is most of what each slow rank exceeds the ranks of its role by."""
    out = ["none"] * len(sums)
    for at in np.flatnonzero(slow.slow).tolist():
        peers = np.flatnonzero((slow.roles == slow.roles[at]) & (np.arange(len(sums)) != at))
        excess = excess_by_side(sums, at, peers, slow.steps[slow.when[at]])
        largest = int(np.argmax(excess))
        if excess[largest] >= _MOST * slow.in_slow[at]:
            out[at] = _SIDES[largest]
    return out
