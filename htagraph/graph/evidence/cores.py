"""`cores_of`: the hosts whose threads waited for a core, and how long each of them did.

No event records that a thread waits for a core. What shows it is silence: a thread that could go on records nothing
while as many others as the host ever runs at once are at work, and goes on as soon as one of these blocks, pauses or
ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, coded, inverse_of, marked
from htagraph.core.computing import once
from htagraph.core.kinds import ADDED, TRANSFERS, ActivityKind, EdgeKind, edges_with, of_kinds
from htagraph.core.statistics import ordered_by
from htagraph.graph.evidence.recordings import hosts_of
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.core.shared_cores import CoreUsers, Dag, Shares
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Cores", "cores_of", "dag_of", "recorded_cores"]

_PLENTY = 1 << 30
"""Cores of a host on which no thread waits for one. It is a mark: no result depends on its size."""
_NEVER = -(1 << 59)
"""Lags below constrain nothing, ns; see `htagraph.queries.weights.NEVER`."""


@dataclass(frozen=True, eq=False)
class Cores:
    """Hosts whose threads waited for cores in the recording."""

    threads: CoreUsers
    shares: Shares


@once
def cores_of(graph: DependencyGraph) -> Cores | None:
    """Return who waited for cores in a recording; None where nobody did, as far as it shows.

    Jobs with devices are left out: their hosts have many cores, and one or two threads of each rank that are busy.
    """
    acts = graph.activities
    lanes = np.array([each.stream < 0 for each in graph.lanes])
    if acts.on_device.any() or lanes.sum() < 3:
        return None
    threads, pause = _threads(graph)
    for host in range(len(threads.cores)):
        cores = recorded_cores(graph, threads.host == host)
        threads.cores[host] = _most_at_once(*_at_work(graph, threads, host)) if cores is None else cores
    if (threads.cores == 0).all():
        return None
    from htagraph.core import shared_cores  # numba takes a moment to load

    shares = shared_cores.taken(dag_of(graph), threads, pause, graph.time)
    short = np.array([_were_short(graph, threads, shares, host) for host in range(len(threads.cores))])
    if not short.any():
        return None
    threads.cores[~short] = _PLENTY
    return Cores(threads, shares if short.all() else shared_cores.taken(dag_of(graph), threads, pause, graph.time))


def recorded_cores(graph: DependencyGraph, on_host: Mask) -> int | None:
    """Return how many cores the ranks on a host may use in all; None where the file of a rank does not say.

    Args:
        graph: the graph of the recording.
        on_host: the vertices whose threads run on the host.
    """
    ranks = np.unique(graph.activities.rank[np.flatnonzero(on_host) >> 1]).tolist()
    cores: frozenset[int] = frozenset()
    for rank in ranks:
        trace = graph.traces.get(rank)
        if trace is None or not trace.facts.cores:
            return None
        cores |= trace.facts.cores
    return len(cores)


def _were_short(graph: DependencyGraph, threads: CoreUsers, shares: Shares, host: int) -> bool:
    """Return whether threads of a host waited for cores: often, for long in all, and went on once one was free."""
    own = threads.host == host
    waited = own & (shares.wait >= LIMITS.turn_ns)
    woken = waited & (shares.rest <= LIMITS.turn_ns)
    known = woken.sum() >= max(LIMITS.often, LIMITS.most * waited.sum(), shares.without[own].sum())
    whole = graph.time[own].max() - graph.time[own].min()
    return bool(known and shares.wait[woken].sum() >= LIMITS.damaged * whole)


def dag_of(
    graph: DependencyGraph, lag: Array | None = None, gap: Array | None = None, head: Array | None = None
) -> Dag:
    """Return a graph as arrays, with its weights or others; edges that constrain nothing are not live."""
    from htagraph.core.shared_cores import Dag

    lag = graph.edges.lag if lag is None else lag
    live = lag > _NEVER
    if not live.all():
        alone = np.bincount(graph.edges.target[live], minlength=graph.vertex_count) == 0
        live |= alone[graph.edges.target]
    return Dag(
        graph.in_offsets, graph.out_offsets, graph.edges.target, lag, graph.gap if gap is None else gap,
        graph.time if head is None else head, live,
    )  # fmt: skip


def _threads(graph: DependencyGraph) -> tuple[CoreUsers, Ints]:
    """Return the threads of all hosts, and for how long each pauses by itself before each vertex, at most, ns."""
    from htagraph.core.shared_cores import BLOCKS, PAUSES, CoreUsers

    acts, edges, time = graph.activities, graph.edges, graph.time
    host = _hosts(graph)
    of_edge = np.flatnonzero((host[edges.target] >= 0) & (acts.lane[edges.source >> 1] == acts.lane[edges.target >> 1]))
    of_edge = of_edge[np.lexsort((time[edges.source[of_edge]], edges.target[of_edge]))]
    last = np.append(edges.target[of_edge][1:] != edges.target[of_edge][:-1], True)[: len(of_edge)]
    order = of_edge[last]
    before, behind = edges.source[order], edges.target[order]
    then = np.full(graph.vertex_count, -1, np.int32)
    then[before] = behind
    first = host >= 0
    first[behind] = False
    kind, pause = np.zeros(graph.vertex_count, np.int8), np.zeros(graph.vertex_count, np.int64)
    wakes = np.flatnonzero(of_kinds(edges.kind, (*edges_with("threads"), *TRANSFERS)) & (host[edges.target] >= 0))
    wakes = wakes[acts.lane[edges.source[wakes] >> 1] != acts.lane[edges.target[wakes] >> 1]]
    woken = marked(edges.target[wakes], graph.vertex_count)
    allowed = np.full(graph.vertex_count, np.iinfo(np.int64).min)
    np.maximum.at(allowed, edges.target[wakes], time[edges.source[wakes]] + edges.lag[wakes])
    usual, pauses = _usual_pauses(graph, order)
    bound = allowed[behind] > time[before] + edges.lag[order]
    kind[behind[woken[behind] & (bound | ~pauses)]] = BLOCKS
    own = pauses & ~(woken[behind] & bound)
    kind[behind[own]] = PAUSES
    pause[behind[own]] = usual[own]
    kind[first & woken] = BLOCKS
    by_time = np.argsort(time, kind="stable")
    cores = np.zeros(host.max(initial=-1) + 1, np.int64)
    return CoreUsers(
        host,
        kind,
        then,
        first & woken,
        cores,
        by_time,
        inverse_of(by_time, len(by_time)),
        LIMITS.turn_ns,
        len(graph.lanes) + 1,
    ), pause


def _hosts(graph: DependencyGraph) -> Array:
    """Return for each vertex the number of the host on whose cores its thread runs; -1 for none.

    Threads of a backend's communication mostly wait.
    """
    acts = graph.activities
    known = hosts_of(graph.traces)
    place = np.full(max(graph.ranks, default=0) + 2, -1)
    for rank in graph.ranks:
        place[rank] = known.get(rank, len(graph.ranks) + rank)
    busy = ~of_kinds(acts.kind, ADDED) & ~acts.on_device & (acts.lane >= 0)
    lanes = len(graph.lanes) + 1
    communicates = np.bincount(acts.lane[busy & (acts.kind == ActivityKind.HOST_COMMUNICATION)], minlength=lanes)
    works = np.bincount(acts.lane[busy], minlength=lanes) > 2 * communicates
    busy &= works[acts.lane]
    of_act = np.where(busy, place[acts.rank], -1)
    of_act[busy] = np.unique(of_act[busy], return_inverse=True)[1]
    return np.repeat(of_act, 2).astype(np.int32)


def _usual_pauses(graph: DependencyGraph, order: Array) -> tuple[Ints, Mask]:
    """Return (how long each stretch of a thread usually pauses, ns, whether it may have given its core away)."""
    acts, edges = graph.activities, graph.edges
    before, behind = edges.source[order], edges.target[order]
    name = np.where(acts.kind == ActivityKind.STEP, -1, acts.name)
    site = coded(acts.rank[behind >> 1], name[before >> 1], name[behind >> 1], before & 1, behind & 1)
    gap = np.where(edges.kind[order] == EdgeKind.HOST_ORDER, np.maximum(graph.gap[behind], 0), 0)
    _, usual = ordered_by(site, gap, lambda count: count // 4)
    usual = usual[site]
    usual = np.where(usual >= 2 * LIMITS.turn_ns, gap, usual)  # a wait for what was not recorded, or sleep
    late = gap >= np.maximum(LIMITS.times_usual * usual, 2 * LIMITS.python_ns)
    return usual, (usual >= LIMITS.python_ns) | late


def _at_work(graph: DependencyGraph, threads: CoreUsers, host: int) -> tuple[Ints, Ints]:
    """Return when stretches begin and end in which a thread of a host has a core, ns, each sorted."""
    from htagraph.core.shared_cores import BLOCKS, PAUSES

    acts, edges, time = graph.activities, graph.edges, graph.time
    own = np.flatnonzero(threads.host == host)
    same = acts.lane[edges.source >> 1] == acts.lane[edges.target >> 1]
    by_own = np.full(graph.vertex_count, np.iinfo(np.int64).min)
    np.maximum.at(by_own, edges.target[same], time[edges.source[same]] + edges.lag[same])
    gave = (threads.kind == PAUSES) | ((threads.kind == BLOCKS) & (time - graph.gap > by_own))
    then = threads.then[own]
    follows = marked(then[then >= 0], graph.vertex_count)
    begins = own[gave[own] | ~follows[own]]
    ends = own[(then < 0) | gave[then]]
    return np.sort(time[begins]), np.sort(time[ends])


def _most_at_once(begin: Ints, end: Ints) -> int:
    """Return how many stretches overlap at most, but for a small share of their time; 0 where none do."""
    moment = np.concatenate((begin, end))
    by_time = np.argsort(moment, kind="stable")
    running = np.cumsum(np.where(by_time < len(begin), 1, -1))[:-1]
    lasts = np.bincount(running.clip(0), np.diff(moment[by_time]), minlength=1)
    at_once = np.arange(len(lasts))
    beyond = np.array([lasts @ np.maximum(at_once - count, 0) for count in at_once])
    cores = int(np.flatnonzero(beyond <= LIMITS.small * beyond[0])[0])
    return cores if cores > 1 else 0
