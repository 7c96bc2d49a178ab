"""Why a rank came late to a collective: the path back from its arrival, compared with the same work on other ranks.

Every moment was delayed by one edge, the binding one (`DependencyGraph.binding`). These edges form a forest, which is
cut at the collectives: a stretch between two of them is work of one rank. Along each stretch the excess over the peers
is summed by cause. A wait is charged to the ranks and causes of the stretches that led to the late arrival, back to
the last collective after which both ranks, the late one and the one that waits, could continue independently.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, inverse_of, joined
from htagraph.core.computing import once
from htagraph.core.kinds import (
    COMMUNICATION,
    EDGES,
    FETCHES,
    LAUNCHES,
    TRANSFERS,
    ActivityKind,
    EdgeKind,
    GapKind,
    of_kinds,
)
from htagraph.core.statistics import others_median
from htagraph.graph.clocks import agreement_ns
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.recordings import recordings_of
from htagraph.graph.gaps import binding_edges
from htagraph.graph.measures.waits import Waits
from htagraph.queries.attribution import in_data_loader
from htagraph.queries.peers import peers, rank_roles

__all__ = ["CAUSES", "MAX_HOPS_BACK", "Blame", "Cause", "Chains", "blame_of", "chains_of", "stretches_of"]

Cause: TypeAlias = Literal[
    "none",
    "kernels",
    "host",
    "data_loading",
    "launch",
    "sync",
    "collective",
    "network",
    "recording",
    "clocks",
    "other_work",
    "outside",
]
"""Why a rank was late; ``none``: its work before the collective took no longer than its peers'; ``recording``: its
recording begins later, so that what made it late is not known, and no rank is charged; ``clocks``: it is not known how
its clock agrees with that of the rank that waits, so that who waited is not known either, and no rank is charged;
``other_work``: launched work waited, probably for work that was not recorded; ``outside``: it waited for something that
was not recorded."""
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
"""All causes; elsewhere a cause is its place here."""
_NONE, _KERNELS, _HOST, _DATA, _LAUNCH, _SYNC, _COLLECTIVE, _NETWORK, _RECORDING, _CLOCKS, _OTHER_WORK, _OUTSIDE = (
    range(len(CAUSES))
)
_POOLED = {kind: CAUSES.index(each.cause) for kind, each in EDGES.items() if each.cause}
"""Cause by kind of edges; where their time belongs to no activity, it is compared by its mean on each rank."""
_OF_NOBODY = (GapKind.OTHER_WORK, GapKind.FIRST_RUN)
"""Waits of launched work that neither the launch nor the work before it on the stream is charged for."""
_MAX_LAUNCH_LATENCY_NS = 20_000
"""The longest time from a launch to its kernel that counts as launch latency, ns.

Longer ones are capped before the binding edge is chosen: the kernel then waited for something else. Measured: 94 % of
the 77,000 launch latencies in the traces of the tests are shorter. Doubled, kernels whose launch was slow on an idle
stream count as launch-bound more often, and the cause `launch` takes over part of `kernels` and `sync`."""
MAX_HOPS_BACK = 512
"""How many collectives the path back from a late arrival crosses at most, and how many vertices of a stretch count.

Chosen: far more than needed. In the recorded traces of the tests no blame lies behind another collective; where groups
of ranks overlap, lateness passes through a few. Doubled, only jobs whose ranks are further apart change."""


@dataclass(frozen=True, eq=False)
class Chains:
    """The binding edge of each vertex, how much longer it took than on the peers, and the cause."""

    before: npt.NDArray[np.int64]
    """The vertex at the start of the binding edge of each vertex; -1 at the root of a stretch."""
    item: npt.NDArray[np.int64]
    """The activity whose time passed; -1 for none."""
    cause: npt.NDArray[np.int8]
    """Index into `CAUSES`."""
    excess: npt.NDArray[np.int64]
    """By how much that took longer than on the median of the other ranks, ns; negative where it was faster."""
    own: npt.NDArray[np.int64]
    """Own time of each activity, ns."""
    others: npt.NDArray[np.float64]
    """Median of the own times of its peers on other ranks, ns; 0 for extra work, NaN where nothing can be compared."""
    about: npt.NDArray[np.int8]
    """The cause, an index into `CAUSES`, that the own time of each activity counts for."""

    @property
    def forest(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The vertex before each vertex as (offsets, neighbours), for `htagraph.core.traverse`."""
        has = self.before >= 0
        return np.concatenate(([0], np.cumsum(has))).astype(np.int64), self.before[has].astype(np.int32)


@dataclass(frozen=True, eq=False)
class Blame:
    """Waiting time charged to ranks: one row per (member that waited, rank charged, cause)."""

    row: npt.NDArray[np.int64]
    """Index into the columns of `Waits`."""
    rank: npt.NDArray[np.int64]
    """The rank that is charged; -1 for none, where the cause is ``recording`` or ``clocks``."""
    cause: npt.NDArray[np.int64]
    """Index into `CAUSES`."""
    charged: npt.NDArray[np.int64]
    """ns; the charges of one row of `Waits` sum to its wait."""
    depth: npt.NDArray[np.int64]
    """How many collectives lie between the late arrival and the stretch charged; of several stretches, the one with the
    largest excess."""
    arrival: npt.NDArray[np.int64]
    """The activity whose arrival ends that stretch."""


@once
def chains_of(graph: DependencyGraph) -> Chains:
    """Return the binding edge of each vertex and how its time compares with the peers'."""
    edges, time = graph.edges, graph.time
    binding = _binding(graph)
    kind, before = stretches_of(graph, binding)
    cut = before < 0
    cost = np.where(cut, 0, time - time[np.maximum(before, 0)])
    is_unowned = cut | of_kinds(graph.gap_kind, _OF_NOBODY)
    owner = np.where(is_unowned, -1, edges.activity[binding] if len(edges) else -1).astype(np.int64)
    own = _own_time(graph, binding, kind, owner)
    cause, about = _causes(graph, kind, owner)
    others = _others(graph, own)
    share = _share(own, others)
    excess = np.where(owner >= 0, cost * share[owner] if len(share) else 0.0, 0.0)
    pool = _pools(graph, kind, owner)
    pooled = np.flatnonzero(pool >= 0)
    excess[pooled] = cost[pooled] * _pool_share(graph, pool[pooled], cost[pooled], pooled)
    waited = np.flatnonzero((cause == _OTHER_WORK) & ~cut)
    excess[waited] = cost[waited] * _share_beyond_other_ranks(graph, waited, cost[waited])
    cause[(owner < 0) & (pool < 0) & (cause != _OTHER_WORK)] = _NONE
    excess[cause == _NONE] = 0
    return Chains(before, owner, cause, np.rint(excess).astype(np.int64), own, others, about)


def stretches_of(graph: DependencyGraph, binding: Array) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return (the kind of each vertex's binding edge or -1, the vertex at its start or -1 where a stretch begins)."""
    edges = graph.edges
    if not len(edges):
        return np.full(len(binding), -1), np.full(len(binding), -1, np.int64)
    kind = np.where(binding >= 0, edges.kind[binding], -1)
    cut = of_kinds(kind, TRANSFERS) | (binding < 0)
    return kind, np.where(cut, -1, edges.source[binding]).astype(np.int64)


def _binding(graph: DependencyGraph) -> npt.NDArray[np.int32]:
    """Return the binding edge of each vertex, -1 for none; launch latencies are capped at `_MAX_LAUNCH_LATENCY_NS`."""
    edges = graph.edges
    long = of_kinds(edges.kind, LAUNCHES) & (edges.lag > _MAX_LAUNCH_LATENCY_NS)
    if not long.any():
        return graph.binding
    capped = replace(edges, lag=np.where(long, _MAX_LAUNCH_LATENCY_NS, edges.lag))
    return binding_edges(capped, graph.time, graph.in_offsets, graph.in_edges)[0]


def _own_time(graph: DependencyGraph, binding: Array, kind: Array, owner: Array) -> npt.NDArray[np.int64]:
    """Return the own time of each activity, ns: its BODY lags, and for regions the untraced host time inside them."""
    edges = graph.edges
    body = (edges.kind == EdgeKind.BODY) & (edges.activity >= 0)
    own = np.zeros(len(graph.activities), np.int64)
    np.add.at(own, edges.activity[body], edges.lag[body])
    free = np.flatnonzero((owner >= 0) & (kind != EdgeKind.BODY))
    np.add.at(own, owner[free], edges.lag[binding[free]] + graph.gap[free])
    return own


def _others(graph: DependencyGraph, own: Array) -> npt.NDArray[np.float64]:
    """Return how long the peers of each activity took, ns: the median; 0 for extra work of one rank, NaN if unknown.

    Extra work has no peer, but work of its name has elsewhere on the rank; or it is the host's on a rank of a shared
    role. Stages of a pipeline differ by design, and kernels by what libraries choose.
    """
    acts = graph.activities
    group = peers(graph)
    others, role = others_median(own.astype(np.float64), group), rank_roles(graph)[0]
    alone = (group < 0) & (own > 0) & (acts.rank >= 0)
    for rank, shared in zip(graph.ranks, (np.bincount(role)[role] > 1).tolist(), strict=True):
        of_rank = acts.of_rank(rank)
        known = np.bincount(acts.name[of_rank][~alone[of_rank]], minlength=len(graph.names)) > 0
        extra = known[acts.name[of_rank]] | (shared & (acts.kind[of_rank] < ActivityKind.HOST_COMMUNICATION))
        others[of_rank.start + np.flatnonzero(alone[of_rank] & extra)] = 0
    return others


def _causes(graph: DependencyGraph, kind: Array, owner: Array) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Return (the cause that the time before each vertex counts for, the cause that each activity counts for)."""
    of_activity = np.full(len(ActivityKind), _HOST, np.int8)
    of_activity[[ActivityKind.COMPUTATION, ActivityKind.MEMORY, ActivityKind.DEVICE_OTHER]] = _KERNELS
    of_activity[list(COMMUNICATION)] = _COLLECTIVE
    of_activity[ActivityKind.SYNC] = _SYNC
    cause = np.full(graph.vertex_count, _NONE, np.int8)
    cause[kind == EdgeKind.HOST_ORDER] = _HOST
    owned = owner >= 0
    cause[owned] = of_activity[graph.activities.kind[owner[owned]]]
    for edge_kind, pooled_cause in _POOLED.items():
        cause[kind == edge_kind] = pooled_cause
    cause[graph.gap_kind == GapKind.OTHER_WORK] = _OTHER_WORK
    cause[graph.gap_kind == GapKind.FIRST_RUN] = _NONE
    fetches = of_kinds(kind, FETCHES)
    loads = (fetches & in_data_loader(graph, owner)) | (graph.gap_kind == GapKind.DATA_WAIT)
    cause[loads] = _DATA
    about = of_activity[graph.activities.kind]
    about[owner[fetches & owned]] = _OUTSIDE
    about[owner[loads & owned]] = _DATA
    return cause, about


def _share(own: Array, others: Array) -> npt.NDArray[np.float64]:
    """Return the share of each own time that exceeds the peers' time; negative if the peers take longer."""
    share = np.zeros(len(own))
    known = (own > 0) & ~np.isnan(others)
    share[known] = 1 - others[known] / own[known]
    return share


def _pools(graph: DependencyGraph, kind: Array, owner: Array) -> npt.NDArray[np.int64]:
    """Return, for each vertex, the pool of times that the time before it is compared with; -1 where it has an owner."""
    # untraced host time outside regions: with that of the same step; latencies: with those of the same kind
    free = (kind == EdgeKind.HOST_ORDER) & (owner < 0)
    pool = np.where(free, len(EdgeKind) + 1 + graph.activities.step[np.arange(graph.vertex_count) // 2], -1)
    for edge_kind in _POOLED:
        pool[(kind == edge_kind) & (owner < 0)] = edge_kind
    pool[of_kinds(graph.gap_kind, _OF_NOBODY)] = -1
    return pool.astype(np.int64)


def _pool_share(graph: DependencyGraph, pool: Array, cost: Array, vertex: Array) -> npt.NDArray[np.float64]:
    """Return the share of each time that exceeds the other ranks' median of totals, or for latencies of means."""
    if not len(pool):
        return np.zeros(0)
    rank = graph.activities.rank[vertex // 2].astype(np.int64)
    keys, member = np.unique(np.stack([pool, rank], axis=1), axis=0, return_inverse=True)
    member = member.ravel()
    total, count = np.bincount(member, cost), np.bincount(member)
    value = np.where(keys[:, 0] < len(EdgeKind), total / count, total)
    share: npt.NDArray[np.float64] = _share(value, others_median(value, keys[:, 0]))[member]
    return share


def _share_beyond_other_ranks(graph: DependencyGraph, vertices: Array, cost: Array) -> npt.NDArray[np.float64]:
    """Return by which share the total of the rank of each vertex exceeds the median total of the other ranks."""
    ranks = np.array(graph.ranks, np.int64)
    row = np.searchsorted(ranks, graph.activities.rank[vertices // 2])
    total = np.bincount(row, cost, len(ranks))
    others = others_median(total, np.zeros(len(ranks), np.int64))
    share: npt.NDArray[np.float64] = _share(total, others)[row]
    return share


def blame_of(graph: DependencyGraph, chains: Chains) -> Blame:
    """Return the ranks and causes that each wait is charged to.

    The part of a wait that no excess explains is charged to the rank that arrived last, cause ``none``.
    """
    waits = graph.waits
    sums, root = _stretches(graph, chains, np.unique(waits.late[waits.late >= 0]))
    (row, rank, cause, excess, depth, arrival), begun = _walk(graph, waits, sums, root)
    key = np.stack([row, rank, cause], axis=1)
    keys, member = np.unique(key, axis=0, return_inverse=True)
    member = member.ravel()
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, member, excess)
    nearest = np.full(len(keys), -1, np.int64)
    order = np.lexsort((excess, member))  # depth and arrival are those of the stretch with the largest excess
    nearest[member[order]] = order
    blame = _charged(graph, waits, keys, np.maximum(total, 0), (depth[nearest], arrival[nearest]))
    return _without_unknown_clocks(graph, waits, _without_what_was_not_recorded(graph, waits, blame, begun))


def _without_unknown_clocks(graph: DependencyGraph, waits: Waits, blame: Blame) -> Blame:
    """Return the charges, those of waits that rest on clocks whose agreement is unknown charged to nobody."""
    if all(clock.uncertainty_ns >= 0 for clock in graph.clocks):
        return blame
    pairs = np.stack([waits.rank[blame.row], graph.activities.rank[waits.late[blame.row]].astype(np.int64)], axis=1)
    known, which = np.unique(pairs, axis=0, return_inverse=True)
    unknown = np.array([agreement_ns(graph.clocks, pair) < 0 for pair in known.tolist()], np.bool_)[which.ravel()]
    if not unknown.any():
        return blame
    return replace(blame, rank=np.where(unknown, -1, blame.rank), cause=np.where(unknown, _CLOCKS, blame.cause))


def _stretches(graph: DependencyGraph, chains: Chains, late: Array) -> tuple[Array, Array]:
    """Return (excess by cause and activity in `late`, root vertex by activity) of the stretches before arrivals."""
    from htagraph.core import traverse

    root = np.full(len(graph.activities), -1, np.int64)
    sums = np.zeros((len(CAUSES), len(graph.activities)), np.int64)
    if not len(late):
        return sums, root
    offsets, sources = chains.forest
    into, nothing = np.arange(len(sources), dtype=np.int32), np.zeros(graph.vertex_count, np.int64)

    def summed(lags: Array, first: Array) -> Array:
        return traverse.schedule(graph.replay_order, offsets, into, sources, lags, nothing, first)[2 * late]

    root[late] = summed(np.zeros(len(sources), np.int64), np.arange(graph.vertex_count))
    for cause in range(1, len(CAUSES)):
        excess = np.where(chains.cause == cause, chains.excess, 0)
        if excess.any():
            sums[cause, late] = summed(excess[chains.before >= 0], nothing)
    return sums, root


def _without_what_was_not_recorded(graph: DependencyGraph, waits: Waits, blame: Blame, begun: Array) -> Blame:
    """Return the charges, less the time by which a late rank's recording begins after that of the one that waits."""
    # only from what no cause explains, where the path to the late arrival leads back to the begin of that recording
    spans = recordings_of(graph.activities, graph.time)
    if len(spans.rank) < 2 or not (begun >= 0).any():
        return blame
    begin = np.zeros(int(spans.rank.max()) + 1, np.int64)
    begin[spans.rank] = spans.begin
    later = np.where(begun >= 0, begin[begun] - begin[waits.rank], 0)
    later[later <= spans.usual_ns] = 0
    taken = np.where(blame.cause == _NONE, np.minimum(blame.charged, later[blame.row]), 0)
    left, some = np.flatnonzero(blame.charged > taken), np.flatnonzero(taken)
    nobody, recording, charged = np.full(len(some), -1), np.full(len(some), _RECORDING), blame.charged - taken
    parts = [
        (blame.row[left], blame.rank[left], blame.cause[left], charged[left], blame.depth[left], blame.arrival[left]),
        (blame.row[some], nobody, recording, taken[some], blame.depth[some], blame.arrival[some]),
    ]
    return Blame(*joined(parts, 6))


def _walk(graph: DependencyGraph, waits: Waits, sums: Array, root: Array) -> tuple[tuple[Array, ...], Array]:
    """Return (the stretches that led to each wait, the rank at whose recording's beginning the path ends or -1)."""
    # stretches: row of `waits`, rank, cause, excess, depth, arrival; of each wait there is one beginning at most
    acts = graph.activities
    part = inverse_of(waits.activity, len(acts))
    others = others_median(waits.transfer.astype(np.float64), waits.collective)
    slower = np.rint(np.where(np.isnan(others), 0, waits.transfer - np.nan_to_num(others))).astype(np.int64)
    row = np.flatnonzero((waits.wait > 0) & (waits.late >= 0))
    at = waits.late[row]
    stretches: list[tuple[Array, ...]] = []
    begun, ranks = np.full(len(waits), -1, np.int64), np.sort(np.array([*graph.ranks], np.int64))
    first = np.full(len(ranks), np.iinfo(np.int64).max)
    # a path that begins before that begins with the recording
    np.minimum.at(first, np.searchsorted(ranks, waits.rank), waits.arrival)
    for depth in range(MAX_HOPS_BACK):
        if not len(row):
            break
        for cause in range(1, len(CAUSES)):
            excess = sums[cause, at]
            some = np.flatnonzero(excess)
            stretches.append((row[some], acts.rank[at[some]], np.full(len(some), cause), excess[some],
                              np.full(len(some), depth), at[some]))  # fmt: skip
        released = root[at]
        met = np.where((released % 2 == 1) & (released >= 0), part[np.maximum(released, 0) // 2], -1)
        met = np.where((met >= 0) & (waits.late[met] >= 0), met, -1)
        heads = graph.time[np.maximum(released, 0)] < first[np.searchsorted(ranks, acts.rank[at])]
        begun[row[heads]] = acts.rank[at[heads]]
        row, at, met = row[met >= 0], at[met >= 0], met[met >= 0]
        stretches.append((row, acts.rank[at], np.full(len(row), _NETWORK), slower[met], np.full(len(row), depth), at))
        apart = ~_released_together(waits, met, row)
        row, at = row[apart], waits.late[met[apart]]
    return tuple(joined(stretches, 6)), begun


def _released_together(waits: Waits, part: Array, row: Array) -> npt.NDArray[np.bool_]:
    """Return True where the rank of `row` left the collective of `part` after the same arrival as `part` did."""
    # after that the two are independent; in a broadcast or all-to-all, a member can leave before others arrive
    stride = int(waits.rank.max()) + 1 if len(waits) else 1
    matched = np.flatnonzero(waits.collective >= 0)  # these come first, by collective and rank
    key = waits.collective[matched] * stride + waits.rank[matched]
    wanted = waits.collective[part] * stride + waits.rank[row]
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return (key[at] == wanted) & (waits.late[at] == waits.late[part])


def _charged(graph: DependencyGraph, waits: Waits, keys: Array, excess: Array, where: tuple[Array, Array]) -> Blame:
    """Return each wait split among its keys (row, rank, cause) by their excess, the rest to the rank that came last."""
    charged, given = _split(keys[:, 0], excess, waits.wait)
    rest = np.flatnonzero((waits.wait > given) & (waits.late >= 0))
    some, late = np.flatnonzero(charged), waits.late[rest]
    none, at_once = np.full(len(rest), _NONE), np.zeros(len(rest), np.int64)
    parts = [
        (*keys[some].T, charged[some], where[0][some], where[1][some]),
        (rest, graph.activities.rank[late], none, waits.wait[rest] - given[rest], at_once, late),
    ]
    return Blame(*joined(parts, 6))


def _split(row: Array, excess: Array, wait: Array) -> tuple[Array, Array]:
    """Return (the charge of each key, charges by row): excesses, scaled down where those of a row exceed its wait."""
    total = np.zeros(len(wait), np.int64)
    np.add.at(total, row, excess)
    sums = np.cumsum(excess)
    before = sums - excess
    first = np.searchsorted(row, row)  # keys are ordered by row
    reached = np.stack([before, sums]) - (before[first] if len(row) else 0)
    scaled = np.floor(reached * (wait[row] / np.maximum(total[row], 1))).astype(np.int64)
    scaled = np.where(reached == total[row], wait[row], scaled)
    reached = np.where(total[row] > wait[row], np.minimum(scaled, wait[row]), reached)
    return reached[1] - reached[0], np.minimum(total, wait)
