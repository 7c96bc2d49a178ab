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
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import TRANSFERS
from htagraph.core.statistics import MOST, others_median
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import Waits
from htagraph.queries.blame import CAUSES, Blame, Chains, blame_of
from htagraph.queries.own_steps import own_steps, times_alone
from htagraph.queries.peers import roles_among
from htagraph.queries.rank_digests.kept import WorkSums
from htagraph.queries.rank_speed import ALL_NAMES, SlowRanks, slow_among
from htagraph.queries.straggler import SavedBy, charges_of, named_among, waits_by_rank

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RankStragglers", "alone_ns", "digest_stragglers", "excess_by_side", "work_among"]

_SIDES: Final = ("kernels", "host")
"""What may take a slow rank longer: a cause of `htagraph.stragglers` each."""


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
    """Return which rank of a joined job makes the others wait in collectives, and how much."""
    waits = graph.waits
    roles = roles_among(graph, lambda place: sums[place][:3])
    slow = slow_among(own_steps(graph), roles, None, partial(work_among, sums))
    blame = blame_of(graph, _chains(graph, waits, roles[0]))
    who = named_among(graph, slow, blame, saved_ns, lambda at: alone_ns(sums, at, slow.steps[slow.when[at]]))
    total = int(waits.wait.sum())
    return RankStragglers(_table(graph, blame, slow, sums), who.rank, total / 1000, who.serves, len(slow.steps))


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


def _table(graph: DependencyGraph, blame: Blame, slow: SlowRanks, sums: Sequence[WorkSums]) -> pd.DataFrame:
    import pandas as pd

    columns = waits_by_rank(graph, charges_of(graph, blame), slow)
    return pd.DataFrame({**columns, "cause": pd.array(_causes(slow, sums), dtype="str")})


def _causes(slow: SlowRanks, sums: Sequence[WorkSums]) -> list[str]:
    """Return the side whose time is most of what each slow rank exceeds the ranks of its role by."""
    out = ["none"] * len(sums)
    for at in np.flatnonzero(slow.slow).tolist():
        peers = np.flatnonzero((slow.roles == slow.roles[at]) & (np.arange(len(sums)) != at))
        excess = excess_by_side(sums, at, peers, slow.steps[slow.when[at]])
        largest = int(np.argmax(excess))
        if excess[largest] >= MOST * slow.in_slow[at]:
            out[at] = _SIDES[largest]
    return out


def work_among(sums: Sequence[WorkSums], places: Array, device: bool) -> npt.NDArray[np.int64]:  # noqa: FBT001 - a `WorkOf`
    """Return the work by name and step of the ranks at some positions, as `rank_speed.WorkOf` defines it."""
    parts = []
    for row, place in enumerate(places.tolist()):
        some = sums[place].device == int(device)
        parts.append(np.stack([np.full(int(some.sum()), row), *(column[some] for column in sums[place][4:8])]))
    return np.concatenate(parts, axis=1)


def alone_ns(sums: Sequence[WorkSums], at: int, steps: Array) -> float:
    """Return how long a rank works in a step on what no other rank does, ns: median over steps, of the larger side.

    Of each name, as many calls are its own as it has more than every other rank.
    """
    own = sums[at]
    most: dict[tuple[int, int, int], int] = {}
    for place, each in enumerate(sums):
        if place != at:
            some = np.isin(each.name, own.name) & np.isin(each.step, steps)
            for *key, calls in zip(*(column[some].tolist() for column in each[3:7]), strict=True):
                side, name, step = key
                most[side, name, step] = max(most.get((side, name, step), 0), calls)
    times = {(side, int(step)): 0.0 for side in (0, 1) for step in steps.tolist()}
    for side, name, step, calls, total in zip(*(column.tolist() for column in own[3:8]), strict=True):
        if name != ALL_NAMES and (side, step) in times:
            times[side, step] += total * max(calls - most.get((side, name, step), 0), 0) / calls
    by_side = [[time for (side, _), time in times.items() if side == each] for each in (0, 1)]
    return max((float(np.median(each)) for each in by_side if each), default=0.0)


def excess_by_side(sums: Sequence[WorkSums], at: int, peers: Array, steps: Array) -> tuple[float, float]:
    """Return by how much a rank's (kernels, operators) take longer in a step than its peers', ns: median over steps."""
    out = []
    for side in (1, 0):
        times = np.full((1 + len(peers), len(steps)), np.nan)
        for row, place in enumerate([at, *peers.tolist()]):
            each = sums[place]
            some = (each.device == side) & (each.name == ALL_NAMES) & np.isin(each.step, steps)
            times[row, np.searchsorted(steps, each.step[some])] = each.total[some]
        known = np.isfinite(times).all(axis=0)
        beyond = times[0, known] - np.median(times[1:, known], axis=0) if len(peers) else np.zeros(0)
        out.append(float(np.median(beyond)) if len(beyond) else 0.0)
    return out[0], out[1]
