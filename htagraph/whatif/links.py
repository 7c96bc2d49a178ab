"""Transfers between ranks: their edges, bytes, latency and bandwidth; transfers that share a link slow each other down.

The work of a transfer, which is how long it takes alone, stays; how long it takes is derived anew from what overlaps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, coded, inverse_of, run_starts
from htagraph.core.computing import once
from htagraph.core.errors import NothingMeetsError, SelectionError
from htagraph.core.intervals import union
from htagraph.core.kinds import COMMUNICATION, TRANSFERS, ActivityKind, of_kinds
from htagraph.core.statistics import least_of, middles
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.cores import cores_of
from htagraph.graph.evidence.recordings import hosts_of
from htagraph.graph.matches import Matches
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.replay import predict
from htagraph.queries.weights import NOTED_SHARE, State, of_kind
from htagraph.whatif.cores import with_cores

__all__ = [
    "MIN_SIZE_RATIO", "Assumed", "Sharing", "Transfers", "assumed", "fitted", "link_share", "link_transfers",
    "may_overlap", "refuse_without_transfers", "time_from_sharing",
    "transfer_edges", "transfers", "with_shared_link", "without_core",
]  # fmt: skip

_MAX_TIMES_SMALLER = 4
"""Transfers of one operation are compared by their time per byte if they are at most this many times smaller than its
largest. Chosen: the time that does not depend on the size is then a small part. Doubled, smaller transfers count, whose
time per byte is longer for other reasons."""
_BETTER = 0.7
"""One way to share is taken to be the true one if work varies by at most this share of its variation under another.
Chosen: chance alone makes two medians of deviations of a few transfers differ by a third. It cannot be doubled; at 1,
chance decides."""

KINDS = (ActivityKind.HOST_COMMUNICATION, ActivityKind.COMMUNICATION)


@dataclass(frozen=True, eq=False)
class Assumed:
    """Assumptions of a prediction about links."""

    state: State
    """The weights before transfers share links."""
    sharing: Sharing
    others: tuple[Sharing, ...]
    """Ways to share that the recording does not rule out."""

    @property
    def may_share(self) -> bool:
        """Whether transfers slow each other down, or threads wait for cores, so that a replay alone has no times."""
        by_links = self.sharing is not Sharing.NONE and bool(link_transfers(self.state.graph))
        return by_links or cores_of(self.state.graph) is not None

    @property
    def shared(self) -> State:
        """The weights with predicted transfer times and waits for cores, and a note on changed transfers."""
        return with_cores(self._shared)

    @property
    def _shared(self) -> State:
        shared = with_shared_link(self.state, self.sharing)
        if shared is self.state:
            return shared
        longer = int((shared.lag - self.state.lag).sum())
        whole = int(self.state.lag[of_kind(self.state.graph, *TRANSFERS)].clip(0).sum())
        if abs(longer) < NOTED_SHARE * max(whole, 1):
            return shared
        why = "the recording does not tell; the interval covers both" if self.others else "as recorded"
        change = f"{abs(longer) / 1e6:,.3g} ms {'more' if longer > 0 else 'less'} transfer time"
        return shared.with_note(
            f"transfers that overlap share a link ({why}): {change}; "
            "shared_link(on=False) or --shared-link off lets them run independently"
        )


def assumed(state: State) -> Assumed:
    """Return what to assume about links: as the scenario says, else as the recording shows, else as is usual."""
    if state.shared_link is not None:
        return Assumed(state, Sharing.EQUAL if state.shared_link else Sharing.NONE, ())
    sharing, shown = likely_sharing(state.graph)
    other = Sharing.EQUAL if sharing is Sharing.NONE else Sharing.NONE
    return Assumed(state, sharing, () if shown else (other,))


def with_shared_link(state: State, sharing: Sharing) -> State:
    """Return the state with the transfer times that follow from what overlaps in the predicted schedule."""
    if sharing is Sharing.NONE:
        return state
    for transfers in link_transfers(state.graph).values():
        if _overlap(state, transfers):
            state = replace(state, lag=_lags(state, transfers, sharing))
    return state


def may_overlap(graph: DependencyGraph) -> bool:
    """Return whether transfers of a job overlap on a link, or could: they run on several lanes of one place.

    Where each place has one lane of transfers, its order keeps them apart in any prediction.
    """
    for kind, transfers in link_transfers(graph).items():
        owner = graph.edges.activity[transfers.edges]
        place = places_of_links(graph, kind)[graph.activities.rank[owner]]
        lanes = np.unique(np.stack([place, graph.activities.lane[owner]]), axis=1)
        if transfers.overlapped or len(np.unique(lanes[0])) < lanes.shape[1]:
            return True
    return False


def _overlap(state: State, transfers: LinkTransfers) -> bool:
    """Return whether transfers on one link overlap, in the recording or if they take as long as in `state`."""
    if transfers.overlapped:
        return True
    graph, edges = state.graph, transfers.edges
    time = predict(graph, state.lag, state.gap, state.head)
    return transfers.overlap(time[graph.edges.source[edges]] - graph.origin_ns, state.lag[edges])


def _lags(state: State, transfers: LinkTransfers, sharing: Sharing) -> Ints:
    from htagraph.core import shared_links

    graph = state.graph
    recorded, alone = transfers.lag, transfers.alone(sharing)
    works = (state.lag[transfers.edges] > 0) & (recorded > 0) & (alone > 0)
    transfer, work = np.full(len(graph.edges), -1, np.int64), np.zeros(len(graph.edges), np.float64)
    rows = transfers.edges[works]
    transfer[rows] = transfers.transfer[works]
    work[rows] = alone[works] * state.lag[rows] / recorded[works]
    origin = int(state.head.min())
    return shared_links.shared_lags(
        graph.in_offsets, graph.out_offsets, graph.edges.target, state.lag, state.gap, state.head - origin, transfer,
        work, transfers.link_offsets, transfers.link_ids, int(sharing is Sharing.IN_TURN),
    )  # fmt: skip


def time_from_sharing(graph: DependencyGraph, sharing: Sharing) -> Ints:
    """Return how much longer the lag of each edge is because its transfer shared links with others, ns."""
    longer = np.zeros(len(graph.edges), np.int64)
    for transfers in link_transfers(graph).values():
        longer[transfers.edges] = np.maximum(transfers.lag - transfers.alone(sharing), 0)
    return longer


def likely_sharing(graph: DependencyGraph) -> tuple[Sharing, bool]:
    """Return (how transfers of a job share links, whether the recording shows it).

    Under the true way, transfers of one class have the same work whatever overlapped them. Where nothing overlaps
    enough to tell, transfers of host threads are taken to share their host's network equally, because they do go
    through one interface; for devices, which have links of their own, nothing is assumed.
    """
    by_kind = link_transfers(graph)
    if not by_kind:
        return Sharing.NONE, True
    kind, transfers = next(iter(by_kind.items()))
    shown = _shown(graph, transfers)
    if shown is not None:
        return shown, True
    return (Sharing.EQUAL if kind == ActivityKind.HOST_COMMUNICATION else Sharing.NONE), False


def _shown(graph: DependencyGraph, transfers: LinkTransfers) -> Sharing | None:
    """Return how transfers share links as far as the recording shows it, None if it does not.

    Transfers that were over before their ends, because their threads did other work meanwhile, show nothing. Where each
    class always overlaps the same others, large transfers of one operation are compared by their time per byte.
    """
    if not transfers.overlapped:
        return None
    equal = transfers.alone(Sharing.EQUAL)
    lag = np.maximum(transfers.lag, 1)
    edges = graph.edges
    unbound = graph.time[edges.target] - graph.time[edges.source] - edges.lag
    shows = unbound[transfers.edges] <= LIMITS.small * lag
    overlapped = shows & (equal < (1 - LIMITS.small) * lag)
    if overlapped.sum() < LIMITS.proof:
        return None
    operation, size = transfers.operation[transfers.transfer], transfers.size[transfers.transfer]
    large = shows & (size > 0) & (size * _MAX_TIMES_SMALLER >= -least_of(-size, operation))
    # of sizes, times for a million bytes are compared: no result depends on how many
    by_class = _least_varied(transfers, transfers.key[transfers.transfer], np.ones(len(size)), shows, overlapped)
    return by_class or _least_varied(transfers, operation, np.maximum(size, 1) / 1e6, large, overlapped)


def _least_varied(transfers: LinkTransfers, key: Array, share: Array, shows: Mask, overlapped: Mask) -> Sharing | None:
    """Return how transfers share links if their work, over their share of it, varies clearly least then; else None."""
    varies = {
        sharing: _variation(key[shows], transfers.alone(sharing)[shows] / share[shows], overlapped[shows])
        for sharing in Sharing
    }
    usual, by_mean = (_clearest({sharing: each[n] for sharing, each in varies.items()}) for n in (0, 1))
    if usual[1] < _BETTER:
        return usual[0]
    # the median sees two of three classes, so means decide where it shows nothing, unless it says otherwise
    contradicted = LIMITS.nearly_all * varies[by_mean[0]][0] > varies[usual[0]][0]
    return by_mean[0] if by_mean[1] < _BETTER and not contradicted else None


def _clearest(varies: dict[Sharing, float]) -> tuple[Sharing, float]:
    """Return (how to share for the least variation, its share of the variation if it were shared or not instead)."""
    best = min(varies, key=lambda sharing: varies[sharing])
    others = min(value for sharing, value in varies.items() if (sharing is Sharing.NONE) != (best is Sharing.NONE))
    return best, varies[best] / others if 0 < others < np.inf else 1.0


def _variation(key: Array, work: Array, overlapped: Array) -> tuple[float, float]:
    """Return (median, mean) of how much the work of overlapped transfers deviates from the median of their class.

    Deviations are deviations of logarithms. Both are infinite if there are too few.
    """
    logs, group = np.log(np.maximum(work, 1.0)), coded(key)
    deviation = np.abs(logs - np.add(*middles(logs, group)) / 2)
    chosen = deviation[overlapped & (np.bincount(group)[group] > 2)]
    return (float(np.median(chosen)), float(np.mean(chosen))) if len(chosen) >= LIMITS.proof else (np.inf, np.inf)


class Sharing(Enum):
    """How transfers that overlap on a link share it."""

    NONE = "transfers do not slow each other down"
    EQUAL = "transfers get equal shares of the link"
    IN_TURN = "the link serves one transfer after the other"


@dataclass(frozen=True, eq=False)
class LinkTransfers:
    """The transfers of one kind of communication that have known partners."""

    edges: Ints
    """The edges whose lags they are."""
    start: Array
    """Of each edge: when it began, ns since the job did."""
    lag: Ints
    """Of each edge: how long it took, ns."""
    transfer: Ints
    """Of each edge: the transfer."""
    key: Array
    """Of each transfer: its class; transfers of one class move as much."""
    operation: Array
    """Of each transfer: the number of its group and operation."""
    size: Array
    """Of each transfer: how much it moves, bytes; -1 if unknown."""
    link_offsets: Ints
    link_ids: Ints

    def alone(self, sharing: Sharing) -> Array:
        """Return how long each edge would have taken alone in the recording, ns."""
        return self._alone_equal if sharing is Sharing.EQUAL else self._alone(sharing)

    @cached_property
    def _alone_equal(self) -> Array:
        return self._alone(Sharing.EQUAL)

    def _alone(self, sharing: Sharing) -> Array:
        lag = np.maximum(self.lag, 0).astype(np.float64)
        if sharing is Sharing.NONE:
            return lag
        from htagraph.core import shared_links  # numba takes a moment to load

        start = self.start.astype(np.float64)
        links = self.link_offsets, self.link_ids, int(sharing is Sharing.IN_TURN)
        return np.asarray(shared_links.work_alone(start, start + lag, self.transfer, *links))

    @cached_property
    def overlapped(self) -> bool:
        """Whether some transfers overlapped on one link in the recording."""
        return self.overlap(self.start, self.lag)

    def overlap(self, start: Array, lag: Array) -> bool:
        """Return whether some overlap on one link, given the start of each edge since the job's and its lag, ns."""
        count = len(self.link_offsets) - 1
        first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
        np.minimum.at(first, self.transfer, start)
        np.maximum.at(last, self.transfer, start + np.maximum(lag, 0))
        of_link = np.repeat(np.arange(count), np.diff(self.link_offsets))
        start, end = first[of_link], last[of_link]
        order = np.lexsort((start, self.link_ids))
        apart = self.link_ids[order] * (int(end.max(initial=0)) + 1)  # links lie one behind the other
        return bool((np.maximum.accumulate(end[order] + apart)[:-1] > (start[order] + apart)[1:]).any())


@once
def link_transfers(graph: DependencyGraph) -> dict[ActivityKind, LinkTransfers]:
    """Return the transfers of each kind of communication with two or more, transfers of host threads first."""
    every = {kind: _of_kind(graph, kind) for kind in KINDS}
    return {kind: transfers for kind, transfers in every.items() if transfers is not None}


def _of_kind(graph: DependencyGraph, kind: ActivityKind) -> LinkTransfers | None:
    """Return the transfers of one kind of communication; None if there are fewer than two."""
    matches, edges = graph.matches, graph.edges
    rows, member = transfer_edges(graph)
    own = graph.activities.kind[edges.activity[rows]] == kind
    if matches is None or not own.any():
        return None
    rows = rows[own]
    number, transfer = np.unique(matches.collective[member[own]], return_inverse=True)
    if len(number) < 2:
        return None
    place = places_of_links(graph, kind)[graph.activities.rank[matches.activity]]
    pairs = np.unique(np.stack([matches.collective, place]), axis=1)
    pairs = pairs[:, np.isin(pairs[0], number)]
    offsets = np.concatenate((np.searchsorted(pairs[0], number), [pairs.shape[1]]))
    start = graph.time[edges.source[rows]] - graph.origin_ns
    classes, operation, size = (column[number] for column in _classes(graph, matches))
    return LinkTransfers(rows, start, edges.lag[rows], transfer.ravel(), classes, operation, size, offsets, pairs[1])


def without_core(graph: DependencyGraph, works: Array) -> tuple[Array, Array]:
    """Return (transfers between hosts, for how long each may have waited for a core that work of its rank had, ns).

    That is no longer than what it took more than the least of its class.
    """
    found = link_transfers(graph).get(ActivityKind.HOST_COMMUNICATION)
    if found is None:
        return (np.zeros(0, np.int64),) * 2
    acts, time = graph.activities, graph.time - graph.origin_ns
    rank, beside = acts.rank[graph.edges.activity[found.edges]], np.zeros(len(found.lag))
    for each in np.unique(rank).tolist():
        rows, own = rank == each, np.flatnonzero(works & (acts.rank == each))
        moments = np.stack(union(time[2 * own], time[2 * own + 1]), axis=1).ravel()
        if len(moments):
            worked = np.cumsum(np.diff(moments, prepend=0) * (np.arange(len(moments)) % 2))
            ends = np.stack((found.start, found.start + found.lag))[:, rows]
            beside[rows] = np.diff(np.interp(ends, moments, worked), axis=0)[0]
    return found.edges, np.minimum(beside, found.lag - least_of(found.lag, found.key[found.transfer]))


def _classes(graph: DependencyGraph, matches: Matches) -> tuple[Array, Array, Array]:
    """Return (class, group and operation, size in bytes or -1) of each collective; members of a class move as much.

    Where sizes are unknown, collectives at one place in the sequence of a step count as one size.
    """
    size = np.full(matches.count, -1, np.int64)
    np.maximum.at(size, matches.collective, matches.bytes)
    start = np.full(matches.count, np.iinfo(np.int64).max)
    step = np.full(matches.count, -1, np.int64)
    np.minimum.at(start, matches.collective, graph.time[2 * matches.activity])
    np.maximum.at(step, matches.collective, graph.activities.step[matches.activity])
    name = matches.label
    order = np.lexsort((start, step, name))
    opens = run_starts(step[order], name[order])
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order)) - np.repeat(opens, np.diff(opens, append=len(order)))
    return coded(name, np.where(size >= 0, size, -1 - position)), name, size


def places_of_links(graph: DependencyGraph, kind: ActivityKind) -> Ints:
    """Return for each rank, by its number, the number of its link.

    Devices have a link each; threads share that of their host, or of their rank where hosts are not known.
    """
    ranks = graph.ranks
    hosts = hosts_of(graph.traces) if kind == ActivityKind.HOST_COMMUNICATION else {}
    place = np.arange(max(ranks, default=0) + 2)
    if all(rank in hosts for rank in ranks):
        place[list(ranks)] = [hosts[rank] for rank in ranks]
    return place


MIN_SIZE_RATIO = 1.5
"""The least ratio of the largest to the smallest message for which latency and bandwidth are fitted.

Chosen: with sizes closer together, a few percent of noise in the times decide how they divide into latency and
bandwidth. Doubled, process groups with sizes within a factor of 3 take the line fitted to all groups, or
`network` asks for both numbers."""


@dataclass(frozen=True, eq=False)
class Transfers:
    """The transfers of matched collectives. Arrays have an entry per transfer: per member of a collective."""

    edges: Ints
    """The edge whose lag is the transfer."""
    collective: Ints
    """Index into the columns of `matches`."""
    moved: npt.NDArray[np.float64]
    """Bytes that a rank's link carries with ring algorithms; -1 where the size is unknown."""
    label: Ints
    """Number of its (group, op)."""
    matches: Matches
    """The matched collectives."""


def link_share(op: str, ranks: Array | float) -> Array:
    """Return the share of a collective's bytes on a rank's link with ring algorithms, as in NCCL's bus bandwidth."""
    ranks = np.maximum(np.asarray(ranks, np.float64), 1.0)
    ring = (ranks - 1) / ranks
    if op == "all_reduce":
        return 2 * ring
    if op in {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}:
        return ring
    return np.zeros_like(ring) if op == "barrier" else np.ones_like(ring)


def refuse_without_transfers(graph: DependencyGraph) -> None:
    """Refuse a change of the network on a job that does not use one.

    Raises:
        NothingMeetsError: no communication was recorded.
    """
    if not of_kinds(graph.activities.kind, COMMUNICATION).any():
        msg = "this job has no transfers between ranks, so that another network changes nothing"
        raise NothingMeetsError(msg)


def transfer_edges(graph: DependencyGraph) -> tuple[Ints, Ints]:
    """Return (the edges that are transfers of members of matched collectives, the place of each member in matches)."""
    nothing = np.zeros(0, np.int64)
    if graph.matches is None or not graph.matches.count:
        return nothing, nothing
    member = inverse_of(graph.matches.activity, len(graph.activities) + 1)  # the last is of edges without an activity
    member_of = member[graph.edges.activity]
    edges = np.flatnonzero(of_kind(graph, *TRANSFERS) & (member_of >= 0))
    return edges, member_of[edges]


def transfers(state: State) -> Transfers:
    """Return the transfers of a state."""
    matches = state.graph.matches
    edges, member_of = transfer_edges(state.graph)
    if matches is None or not len(edges):
        refuse_without_transfers(state.graph)
        msg = "no collective is matched between the ranks of this graph; use scale_network(factor=) instead"
        raise SelectionError(msg)
    collective = matches.collective[member_of].astype(np.int64)
    present = np.bincount(matches.collective, minlength=matches.count)
    ranks = np.where(matches.size > 0, matches.size, present)
    ops, share = np.array(matches.op), np.ones(matches.count)
    for op in np.unique(ops):
        share[ops == op] = link_share(str(op), ranks[ops == op])
    bytes_ = matches.bytes[member_of]
    moved = np.where(bytes_ >= 0, bytes_ * share[collective], -1.0)
    return Transfers(edges, collective, moved, matches.label[collective], matches)


def fitted(transfer: Transfers, lag: Array) -> list[tuple[float, float] | None]:
    """Return (latency in ns, ns per byte on the link) of each (group, op), fitted to its transfers.

    A (group, op) whose sizes hardly differ takes the line of all transfers; None if their sizes hardly differ either.
    """
    known = (transfer.moved >= 0) & (lag > 0)
    every = _line(transfer.moved[known], lag[known])
    rows = (known & (transfer.label == label) for label in range(int(transfer.label.max(initial=-1)) + 1))
    return [_line(transfer.moved[own], lag[own]) or every for own in rows]


def _line(moved: Array, lag: Array) -> tuple[float, float] | None:
    """Return the line with the least squared relative errors through (bytes, time); None if the sizes hardly differ."""
    if not len(moved) or moved.max() < MIN_SIZE_RATIO * max(moved.min(), 1.0):
        return None
    constant, slope = 1 / lag, moved / lag  # (latency * constant + per_byte * slope - 1)² is the squared relative error
    if moved.min() > 0:
        latency, per_byte = np.linalg.lstsq(np.stack([constant, slope], axis=1), np.ones(len(lag)), rcond=None)[0]
    else:
        latency = float(np.median(lag[moved == 0]))
        per_byte = float(np.median((lag - latency)[moved > 0] / moved[moved > 0]))
    if per_byte <= 0:
        return float(np.median(lag)), 0.0
    return (0.0, float(slope.sum() / (slope**2).sum())) if latency < 0 else (float(latency), float(per_byte))
