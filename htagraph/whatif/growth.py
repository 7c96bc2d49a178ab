"""Collectives among more ranks: how long their transfers take, and how much later the last rank arrives."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, coded, joined
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.core.statistics import DEVIATIONS_OF_90
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.recordings import hosts_of
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.replay import predict
from htagraph.queries.weights import OwnTime, State, Unsure, of_kind, own_time, with_factor
from htagraph.whatif.fixed_parts import fixed_parts
from htagraph.whatif.links import Transfers, link_share
from htagraph.whatif.unknown_layout import shorter_if_they_stay

__all__ = [
    "SLOWEST_LINK", "TRANSFER_ERROR", "Growth", "busier_host", "device_names", "expected_last", "later_joins",
    "longer_transfers", "on_one_host", "with_unknown_links", "within_host",
]  # fmt: skip

_SYMMETRIC = ("all_reduce", "all_gather", "reduce_scatter", "barrier")
"""Operations in which every member waits for the last to arrive."""
_RINGS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
"""Operations that gloo does in as many turns as there are further ranks, instead of a tree's depth."""
_OF_PARTS = ("gather", "scatter")
"""Operations whose message grows with the ranks: each rank's part stays."""
_OF_WHOLES = ("all_gather", "reduce_scatter", "all_to_all")
"""Operations whose message stays where parameters or activations are divided, and grows where parts are collected."""
TRANSFER_ERROR = 0.15
"""Relative error of what the formulas say of bytes. Source: NCCL 2.x on A100 (NVLink) moves 173, 192 and 209 GB/s per
link in all-reduces of 2, 4 and 8 ranks (vidur, 7d47513), where the formula says that it stays; gloo on one host is
within 12 % from 2 to 8 ranks. Doubled, an interval in which transfers decide is twice as wide."""
_HOSTS = (8, 48.0)
"""Devices of a host of which one rank was recorded, and how many times as slow links between hosts may be. Source: data
sheets of DGX; of 8 V100 with NVLinks of 150 10^9 bytes/s on hosts with 25 Gbit/s (p3.16xlarge; on p5, both are alike).
Doubled, 16 ranks need no network between hosts, and intervals on more hosts end twice as far out."""
SLOWEST_LINK = 8.0
"""How many times as slow links between devices of a host may be as usual ones. Source: four A100 that NVLink connects
in pairs move 24 10^9 bytes/s, a pair 184 (vidur). Doubled, from few devices most predictions say that the recording
cannot tell."""
_CONTENTION = 0.1
"""Share of the time of short host code that it waits for a core for each further rank on its host, over those recorded.
Measured: 0 to 0.2 where 4 and 8 ranks share two cores. Doubled, jobs with much Python are predicted too slow."""


class Growth(NamedTuple):
    """The sizes of groups."""

    transfers: Transfers
    before: Ints
    """Of each matched collective: the ranks of its group."""
    after: Ints
    """Of each matched collective: the ranks of its group then."""
    gb_s: float | None = None
    """What moves between two ranks of groups that grow, 10^9 bytes/s; None for as fast as recorded."""
    slower: float = 1.0
    """How many times as slow the links of groups that grow may be."""
    within: bool = False
    """Whether the ranks are devices of one host then."""
    may_stay: Mask = np.zeros(0, np.bool_)
    """Of each matched collective: whether its group grows only if it is not tensor parallel; empty for none."""


def on_one_host(state: State) -> bool:
    """Return whether all ranks are known to share one host, and none has a device with a link of its own."""
    hosts = hosts_of(state.graph.traces)
    known = len(set(hosts.values())) == 1 and all(rank in hosts for rank in state.graph.ranks)
    return known and not state.graph.activities.on_device.any()


def within_host(graph: DependencyGraph, ranks: float) -> bool:
    """Return whether so many ranks are devices of the one host that the recorded ranks share."""
    on_one = len(set(hosts_of(graph.traces).values())) <= 1
    return on_one and ranks <= _devices_of_host(graph) and bool(graph.activities.on_device.any())


def device_names(graph: DependencyGraph) -> set[str]:
    """Return the names of the devices that a recording lists, in capital letters."""
    devices = [device for trace in graph.traces.values() for device in trace.facts.devices]
    return {(device.name or "").upper() for device in devices}


def _devices_of_host(graph: DependencyGraph) -> int:
    """Return how many devices a host holds: as many as its recording lists, or as ranks were recorded on it."""
    listed = max((len(trace.facts.devices) for trace in graph.traces.values()), default=0)
    return max(listed, _HOSTS[0] if len(graph.ranks) == 1 else len(graph.ranks))


def with_unknown_links(state: State, ranks: float) -> tuple[State, float]:
    """Return (the state, how many times as slow links of so many ranks may be), with a note on why.

    Further hosts need a network between hosts. On one host, cards for PCIe may have NVLink in pairs, or not at all.
    """
    graph, hosts = state.graph, hosts_of(state.graph.traces)
    held, slower = _devices_of_host(graph), _HOSTS[1]
    if len(set(hosts.values())) > 1 or not graph.activities.on_device.any():
        return state, 1.0
    if ranks <= held and not any("PCI" in name for name in device_names(graph)):
        return state, 1.0
    if ranks <= held:
        note = f"NVLink may connect these cards in pairs only: the interval allows for {SLOWEST_LINK:g} times as slow"
        return state.with_note(f"{note} links between others; bandwidth_gb_s= says what they move"), SLOWEST_LINK
    note = f"links between hosts of {held} devices were not recorded: the interval allows for {slower:g} times as slow"
    return state.with_note(f"{note} ones; bandwidth_gb_s= says what they move"), slower


def longer_transfers(state: State, growth: Growth) -> State:
    """Return the state in which each transfer takes as long as in its group's new size, with what that leaves open.

    The part that bytes explain grows as the share of bytes on a rank's link in a ring, as `link_share` says; ranks of
    one host share its network, whose bytes grow as the number of further ranks. Latency stays among the devices of one
    host; the interval holds the depth of a tree, log2 p. Among hosts latency grows as this depth; the interval holds
    none and the number of further ranks. On hosts, where gloo's rings take turns, latency grows as the number of turns.
    """
    transfers = growth.transfers
    lag = state.lag[transfers.edges].astype(np.float64)
    times = np.stack([lag, lag, lag])
    ops = np.array(transfers.matches.op)[transfers.collective]
    was = growth.before[transfers.collective]
    now = growth.after[transfers.collective]
    for op in set(ops.tolist()) - {"send_recv"}:
        rows = np.flatnonzero((ops == op) & (was != now) & (was > 1))
        times[:, rows] = _grown_times(state, growth, op, rows)
    least, usual, most = times
    timed = np.flatnonzero((lag > 0) & (usual > 0))
    lags = state.lag.copy()
    lags[transfers.edges] = np.where(lag > 0, np.rint(usual), lag)
    owner = state.graph.edges.activity[transfers.edges[timed]].astype(np.int64)
    unsure = Unsure(owner, least[timed] / usual[timed], most[timed] / usual[timed])
    changed = replace(state, lag=lags, unsure=(*state.unsure, unsure))
    if not growth.may_stay.any():
        return changed
    collective = transfers.collective[timed]
    may_stay = growth.may_stay[collective]
    stays = timed[may_stay]
    edges = transfers.edges[stays]
    owner = state.graph.edges.activity[edges].astype(np.int64)
    shorter = shorter_if_they_stay(lag[stays], least[stays], owner, owner[:0])
    return replace(changed, unsure=(*changed.unsure, shorter))


def _grown_times(state: State, growth: Growth, op: str, rows: Ints) -> Array:
    """Return how long some transfers of an operation take in their group's new size at least, usually and most, ns."""
    transfers = growth.transfers
    edges = transfers.edges[rows]
    collective = transfers.collective[rows]
    was = growth.before[collective]
    now = growth.after[collective]
    lag = np.maximum(state.lag[edges], 0).astype(np.float64)
    host = state.graph.activities.kind[state.graph.edges.activity[edges]] == ActivityKind.HOST_COMMUNICATION
    shares = host & on_one_host(state)
    fixed = np.stack(
        [lag if op == "barrier" else np.minimum(values[edges], lag) for values in fixed_parts(state.graph)]
    )
    bytes_grow = _bytes_growth(op, was, now, shares)
    moves = (lag - fixed) * bytes_grow
    if growth.gb_s is not None:
        alone_grow = _bytes_growth(op, was, now, np.zeros_like(shares))
        moves[:] = transfers.moved[rows] * alone_grow * np.where(shares, now, 1) / growth.gb_s
    turns = _turns(was, now)
    depth = np.log2(np.maximum(now, 2)) / np.log2(was)
    stays = growth.within & ~host
    latency = np.where(host & (op in _RINGS), turns, np.where(stays, 1.0, depth)) * (now > 1)
    ends = np.stack([np.ones(len(rows)), depth, np.where(stays, depth, turns)]) * (now > 1)
    error = TRANSFER_ERROR * (bytes_grow != 1)
    whole = np.where(op in _OF_WHOLES, now / was, 1.0)
    slower = np.where(now > was, growth.slower, 1.0)
    latencies = fixed[1] * latency
    usual = latencies + moves[1]
    least = fixed[::2] * ends.min(axis=0) + moves[::2] * (1 - error) * np.minimum(whole, 1)
    most = slower * (fixed[::2] * ends.max(axis=0) + moves[::2] * (1 + error) * np.maximum(whole, 1))
    return np.stack([least.min(axis=0), usual, most.max(axis=0)])


def _turns(was: Array, now: Array) -> Array:
    others = np.maximum(now - 1, 0)
    before = np.maximum(was - 1, 1)
    return others / before


def _bytes_growth(op: str, was: Array, now: Array, on_host: Array) -> Array:
    """Return by what factor the time that bytes take grows, where one message stays as large as it was."""
    old = link_share(op, was)
    alone = np.divide(link_share(op, now), old, out=np.ones(len(was)), where=old > 0)
    alone = np.where(np.isin(op, _OF_PARTS), alone * now / was, alone)
    turns = _turns(was, now)
    return np.where(on_host, turns, alone)


def later_joins(state: State, growth: Growth) -> State:
    """Return the state in which collectives start later, by how much later the last of more arrivals is.

    That is the growth of the expected maximum of as many normal draws, times the spread of arrivals, which is known to
    about one part in the square root of twice the number of arrivals.
    """
    matches, graph = growth.transfers.matches, state.graph
    time = predict(graph, state.lag, state.gap, state.head)
    arrival = time[2 * matches.activity]
    rank, of_member = graph.activities.rank[matches.activity], np.array(matches.group)[matches.collective]
    meets = np.isin(np.array(matches.op), _SYMMETRIC)[matches.collective] & (matches.join >= 0)
    parts = []
    for group in np.unique(of_member[meets]):
        rows = np.flatnonzero((of_member == group) & meets)
        spread, error = _spread(arrival[rows], matches.collective[rows], rank[rows])
        joins, which = np.unique(matches.join[rows], return_index=True)
        collective = matches.collective[rows][which]
        last = {int(each): expected_last(int(each)) for each in {*growth.before.tolist(), *growth.after.tolist()}}
        more = np.array([last[int(growth.after[c])] - last[int(growth.before[c])] for c in collective])
        parts.append((2 * joins.astype(np.int64), spread * more, np.abs(error * spread * more)))
    vertices, later, off = joined(parts, 3)
    gap = state.gap.copy()
    gap[vertices] = np.maximum(0, gap[vertices] + np.rint(later)).astype(np.int64)
    part = np.minimum(off / np.maximum(gap[vertices], 1), 1.0)
    low, high = (np.asarray(1 + each * part, np.float64) for each in (-1, 1))
    changed = replace(state, gap=gap, unsure=(*state.unsure, Unsure(vertices[:0], low, high, vertices)))
    if not growth.may_stay.any():
        return changed
    may_stay = growth.may_stay[matches.collective]
    has_join = matches.join >= 0
    joins = matches.join[may_stay & has_join]
    starts = 2 * joins.astype(np.int64)
    stays = np.intersect1d(starts, vertices)
    shorter = shorter_if_they_stay(state.gap[stays], gap[stays], stays[:0], stays)
    return replace(changed, unsure=(*changed.unsure, shorter))


def busier_host(state: State, wanted: float) -> State:
    """Return the state in which more ranks share the cores of the host that all recorded ones share, if they do.

    How many cores there are, no recording shows. Code of the host that is shorter than a scheduler's turn competes for
    them; what takes longer may have slept, waited for input or another device. The interval ends at a host with enough
    cores, and at one that has no more than ranks were recorded.
    """
    crowd = wanted / len(state.graph.ranks)
    if not on_one_host(state) or crowd <= 1:
        return state
    time, edges = own_time(state, {"kind": "host"}), state.graph.edges
    longest = np.zeros(len(state.graph.activities) + 1, np.int64)
    np.maximum.at(longest, edges.activity[time.edges], state.lag[time.edges])
    short = longest[edges.activity[time.edges]] < LIMITS.turn_ns
    rows = time.edges[short]
    gaps = time.gaps[state.gap[time.gaps] < LIMITS.turn_ns]
    usual = 1 + _CONTENTION * (crowd - 1)
    state = with_factor(state, OwnTime(rows, time.fixed[short], gaps), usual)
    owner = np.unique(edges.activity[rows][of_kind(state.graph, EdgeKind.BODY)[rows]]).astype(np.int64)
    count = len(owner) + len(gaps)
    unsure = Unsure(owner, np.full(count, 1 / usual), np.full(count, crowd / usual), gaps)
    note = "all ranks share one host, as recorded: its network, and its cores as far as the interval says"
    return replace(state, unsure=(*state.unsure, unsure)).with_note(note)


def _spread(arrival: Array, collective: Array, rank: Array) -> tuple[float, float]:
    """Return (the standard deviation of arrivals in ns, its relative error: half of the width of its 90 % interval).

    Arrivals count about their collective's mean and their rank's usual lateness.
    """
    late = arrival.astype(np.float64)
    late -= arrival.min()
    for group in (collective, rank):
        member = coded(group)
        late -= (np.bincount(member, late) / np.bincount(member))[member]
    freedom = len(late) - len(np.unique(collective)) - len(np.unique(rank)) + 1
    if freedom <= 0:
        return 0.0, 0.0
    return float(np.sqrt((late**2).sum() / freedom)), DEVIATIONS_OF_90 / float(np.sqrt(2 * freedom))


def expected_last(count: int) -> float:
    """Return the expected maximum of `count` standard normal draws.

    Source: G. Blom, Statistical Estimates and Transformed Beta-Variables, 1958: the quantile at
    (count - 3/8) / (count + 1/4), within 5 % of the exact value.
    """
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0
