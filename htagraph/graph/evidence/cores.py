"""`cores_of`: the hosts whose threads waited for a core, and how long each of them did.

No event records that a thread waits for a core. Silence shows it: a thread that could go on records nothing while as
many threads as the host has cores are at work, and goes on as soon as one of these threads blocks, pauses or ends. How
many cores a host has is in the files, if the recorder wrote it; else a host has as many cores as threads that ever work
at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, coded, inverse_of, marked
from htagraph.core.computing import once
from htagraph.core.kinds import ADDED, BLOCKING, TRANSFERS, ActivityKind, EdgeKind, edges_with, of_kinds
from htagraph.core.statistics import ordered_by
from htagraph.graph.evidence.recordings import cores_of_ranks, hosts_of
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.core.shared_cores import CoreUsers, Dag, Shares
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Cores", "ThreadOrder", "cores_of", "dag_of", "hosts_of_threads", "order_of_threads", "recorded_cores"]

_PLENTY = 1 << 30
"""Cores of a host on which no thread waits for one. It is a mark: no result depends on its size."""
_NEVER = -(1 << 59)
"""Lags below constrain nothing, ns; see `htagraph.queries.weights.NEVER`."""
_NO_TIME = np.iinfo(np.int64).min
"""The time of a moment that no edge allows, ns. It is a mark: every time is larger."""


@dataclass(frozen=True, eq=False)
class Cores:
    """Hosts whose threads waited for cores in the recording."""

    threads: CoreUsers
    """The threads, and the cores of each host; hosts without a shortage have plenty."""
    shares: Shares
    """How long each thread paused, waited for a core and woke up, ns."""


class ThreadOrder(NamedTuple):
    """The edges from each vertex of a host thread to the next vertex of the thread."""

    edge: Ints
    """Numbers of the edges."""
    before: Array
    """Their sources."""
    behind: Array
    """Their targets."""


@once
def cores_of(graph: DependencyGraph) -> Cores | None:
    """Return the threads that waited for cores in a recording; None where no thread did, as far as it shows.

    Hosts with devices are left out unless files say how many cores there are: most have many cores, and one or two
    busy threads of each rank.

    Args:
        graph: the graph of the recording.

    Returns:
        The hosts that were short of cores, with their threads.

    Example:
        >>> import htagraph as hg
        >>> cores_of(hg.load("data/demo")) is None
        True
    """
    host_lanes = sum(lane.stream < 0 for lane in graph.lanes)
    if host_lanes < 3:
        return None
    if graph.activities.on_device.any() and not _is_any_known(graph):
        return None
    threads, pause = _threads(graph)
    for host in range(len(threads.cores)):
        threads.cores[host] = _cores_of_host(graph, threads, host)
    shares = _shares(graph, threads, pause)
    if shares is None:
        return None
    is_short = np.array([_were_short(graph, threads, shares, host) for host in range(len(threads.cores))])
    if not is_short.any():
        return None
    if not is_short.all():
        threads.cores[~is_short] = _PLENTY
        shares = _shares(graph, threads, pause)
    return None if shares is None else Cores(threads, shares)


def _shares(graph: DependencyGraph, threads: CoreUsers, pause: Ints) -> Shares | None:
    """Return how long threads paused, waited and woke up; None if a simulation then differs from the recording.

    Threads that are recorded just before a core is free waited for this core, unless times then differ.
    """
    from htagraph.core import shared_cores  # numba takes a moment to load

    dag = dag_of(graph)
    for jitter in (LIMITS.jitter_ns, 0):
        shares = shared_cores.taken(dag, threads._replace(jitter=jitter), pause, graph.time)
        if np.array_equal(shared_cores.shared(dag, threads, shares), graph.gap):
            return shares
    return None


def _cores_of_host(graph: DependencyGraph, threads: CoreUsers, host: int) -> int:
    """Return how many cores a host has: as its files say, else as many as ever worked at once."""
    cores = recorded_cores(graph, threads.host == host)
    if cores is not None:
        return cores
    if graph.activities.on_device.any():
        return _PLENTY
    begin, end = _stretches(graph, threads, host)
    return _most_at_once(begin, end)


def _is_any_known(graph: DependencyGraph) -> bool:
    """Return whether the file of any rank names cores."""
    return any(trace.facts.cores for trace in graph.traces.values())


def recorded_cores(graph: DependencyGraph, on_host: Mask) -> int | None:
    """Return how many cores the ranks on a host may use in all; None where the file of a rank does not say.

    Args:
        graph: the graph of the recording.
        on_host: the vertices whose threads run on the host.

    Returns:
        The number of cores, each counted once also if several ranks may use it.
    """
    ranks = np.unique(graph.activities.rank[np.flatnonzero(on_host) >> 1]).tolist()
    return cores_of_ranks(graph.traces, ranks)


def _were_short(graph: DependencyGraph, threads: CoreUsers, shares: Shares, host: int) -> bool:
    """Return whether threads of a host waited for cores: often, for long in all, and went on once one was free."""
    on_host = threads.host == host
    waited = on_host & (shares.wait >= LIMITS.turn_ns)
    woken = waited & (shares.wake <= LIMITS.turn_ns)
    most_waits = LIMITS.most * waited.sum()
    contradictions = shares.without[on_host].sum()
    if woken.sum() < max(LIMITS.often, most_waits, contradictions):
        return False
    times = graph.time[on_host]
    span = times.max() - times.min()
    return bool(shares.wait[woken].sum() >= LIMITS.damaged * span)


def dag_of(
    graph: DependencyGraph,
    lag: Array | None = None,
    gap: Array | None = None,
    head: Array | None = None,
) -> Dag:
    """Return a graph as arrays; edges that constrain nothing are not live.

    Args:
        graph: the graph.
        lag: the lag of each edge, ns; as recorded if not given.
        gap: the gap of each vertex, ns; as recorded if not given.
        head: the first moment of each vertex without edges into it, ns; as recorded if not given.

    Returns:
        The arrays that `htagraph.core.shared_cores` reads.
    """
    from htagraph.core.shared_cores import Dag

    target = graph.edges.target
    lag = graph.edges.lag if lag is None else lag
    live = lag > _NEVER
    if not live.all():
        has_no_live_edge = np.bincount(target[live], minlength=graph.vertex_count) == 0
        live |= has_no_live_edge[target]
    return Dag(
        in_offsets=graph.in_offsets,
        out_offsets=graph.out_offsets,
        target=target,
        lag=lag,
        gap=graph.gap if gap is None else gap,
        head=graph.time if head is None else head,
        live=live,
    )


def _threads(graph: DependencyGraph) -> tuple[CoreUsers, Ints]:
    """Return the threads of all hosts, and for how long each pauses by itself before each vertex, at most, ns."""
    from htagraph.core.shared_cores import BLOCKS, PAUSES, CoreUsers

    time = graph.time
    host = hosts_of_threads(graph)
    order = order_of_threads(graph, host)
    woken_at = _allowed_by(graph, _wakes(graph, host))
    usual, may_pause = _usual_pauses(graph, order)

    is_woken = woken_at > _NO_TIME
    reached = time[order.before] + graph.edges.lag[order.edge]
    is_held = woken_at[order.behind] > reached
    blocks = is_held | (is_woken[order.behind] & ~may_pause)
    pauses = may_pause & ~is_held

    first = host >= 0
    first[order.behind] = False
    kind = np.zeros(graph.vertex_count, np.int8)
    kind[order.behind[blocks]] = BLOCKS
    kind[order.behind[pauses]] = PAUSES
    kind[first & is_woken] = BLOCKS
    pause = np.zeros(graph.vertex_count, np.int64)
    pause[order.behind[pauses]] = usual[pauses]
    then = np.full(graph.vertex_count, -1, np.int32)
    then[order.before] = order.behind

    by_time = np.argsort(time, kind="stable")
    threads = CoreUsers(
        host=host,
        kind=kind,
        lane=np.repeat(graph.activities.lane, 2),
        then=then,
        first=first & is_woken,
        cores=np.zeros(host.max(initial=-1) + 1, np.int64),
        by_time=by_time,
        place=inverse_of(by_time, len(by_time)),
        soon=LIMITS.turn_ns,
        jitter=LIMITS.jitter_ns,
        most=len(graph.lanes) + 1,
    )
    return threads, pause


def order_of_threads(graph: DependencyGraph, host: Array) -> ThreadOrder:
    """Return the edges along host threads: into each vertex, the one from the latest vertex of the same thread."""
    edges = graph.edges
    is_on_host = host[edges.target] >= 0
    along = np.flatnonzero(_is_along_lane(graph) & is_on_host)
    source_time = graph.time[edges.source[along]]
    along = along[np.lexsort((source_time, edges.target[along]))]
    target = edges.target[along]
    is_last = np.ones(len(target), np.bool_)
    is_last[:-1] = target[1:] != target[:-1]
    edge = along[is_last]
    return ThreadOrder(edge, edges.source[edge], edges.target[edge])


def _wakes(graph: DependencyGraph, host: Array) -> Ints:
    """Return the edges by which other threads and ranks let host threads go on."""
    edges = graph.edges
    may_wake = of_kinds(edges.kind, (*edges_with("threads"), *TRANSFERS, *BLOCKING))
    may_wake &= ~_is_along_lane(graph)
    may_wake &= host[edges.target] >= 0
    return np.flatnonzero(may_wake)


def _allowed_by(graph: DependencyGraph, edge: Ints) -> Ints:
    """Return for each vertex when the last of some edges into it allows it, ns; `_NO_TIME` without an edge."""
    edges = graph.edges
    arrival = graph.time[edges.source[edge]] + edges.lag[edge]
    allowed = np.full(graph.vertex_count, _NO_TIME)
    np.maximum.at(allowed, edges.target[edge], arrival)
    return allowed


def _is_along_lane(graph: DependencyGraph) -> Mask:
    """Return whether each edge begins and ends on one thread or stream."""
    lane = graph.activities.lane
    source_lane = lane[graph.edges.source >> 1]
    target_lane = lane[graph.edges.target >> 1]
    return np.asarray(source_lane == target_lane)


def hosts_of_threads(graph: DependencyGraph) -> Array:
    """Return for each vertex the number of the host on whose cores its thread runs; -1 for none.

    Threads of a backend's communication mostly wait.
    """
    activities = graph.activities
    host_of_rank = hosts_of(graph.traces)
    place = np.full(max(graph.ranks, default=0) + 2, -1)
    for rank in graph.ranks:
        place[rank] = host_of_rank.get(rank, len(graph.ranks) + rank)
    is_busy = activities.lane >= 0
    is_busy &= ~activities.on_device
    is_busy &= ~of_kinds(activities.kind, ADDED)
    is_busy &= _works(graph, is_busy)[activities.lane]
    host = np.where(is_busy, place[activities.rank], -1)
    host[is_busy] = np.unique(host[is_busy], return_inverse=True)[1]
    return np.repeat(host, 2).astype(np.int32)


def _works(graph: DependencyGraph, is_busy: Mask) -> Mask:
    """Return for each lane, and none, whether more of its activities are work than communication."""
    activities = graph.activities
    lanes = len(graph.lanes) + 1
    communicates = is_busy & (activities.kind == ActivityKind.HOST_COMMUNICATION)
    communications = np.bincount(activities.lane[communicates], minlength=lanes)
    return np.asarray(np.bincount(activities.lane[is_busy], minlength=lanes) > 2 * communications)


def _usual_pauses(graph: DependencyGraph, order: ThreadOrder) -> tuple[Ints, Mask]:
    """Return how long threads usually pause, by the place in the program, and where they may give cores away.

    Args:
        graph: the graph of the recording.
        order: the edges along host threads.

    Returns:
        Of each of these edges: the usual pause, ns; whether the thread may have given its core away.
    """
    activities = graph.activities
    is_host_order = graph.edges.kind[order.edge] == EdgeKind.HOST_ORDER
    gap = np.where(is_host_order, np.maximum(graph.gap[order.behind], 0), 0)
    is_step = activities.kind == ActivityKind.STEP
    name = np.where(is_step, -1, activities.name)
    site = coded(
        activities.rank[order.behind >> 1],
        name[order.before >> 1],
        name[order.behind >> 1],
        order.before & 1,
        order.behind & 1,
    )
    _, usual_of_site = ordered_by(site, gap, lambda count: count // 4)
    usual = usual_of_site[site]
    is_long = usual >= 2 * LIMITS.turn_ns  # a wait for an event that was not recorded, or sleep
    usual = np.where(is_long, gap, usual)
    is_late = gap >= np.maximum(LIMITS.times_usual * usual, 2 * LIMITS.python_ns)
    return usual, (usual >= LIMITS.python_ns) | is_late


def _stretches(graph: DependencyGraph, threads: CoreUsers, host: int) -> tuple[Ints, Ints]:
    """Return when stretches begin and end in which a thread of a host has a core.

    Args:
        graph: the graph of the recording.
        threads: the threads of all hosts.
        host: the number of the host.

    Returns:
        The beginnings in order, ns; the ends in order, ns.
    """
    from htagraph.core.shared_cores import BLOCKS, PAUSES

    time = graph.time
    along = np.flatnonzero(_is_along_lane(graph))
    waits = time - graph.gap > _allowed_by(graph, along)
    pauses = threads.kind == PAUSES
    blocks = (threads.kind == BLOCKS) & waits
    gave = pauses | blocks

    on_host = np.flatnonzero(threads.host == host)
    then = threads.then[on_host]
    follows = marked(then[then >= 0], graph.vertex_count)
    is_begin = gave[on_host] | ~follows[on_host]
    is_end = gave[then] | (then < 0)
    begins = on_host[is_begin]
    ends = on_host[is_end]
    return np.sort(time[begins]), np.sort(time[ends])


def _most_at_once(begin: Ints, end: Ints) -> int:
    """Return how many stretches overlap at most, but for a small share of their time.

    Args:
        begin: when stretches begin, ns.
        end: when stretches end, ns.
    """
    moment = np.concatenate((begin, end))
    by_time = np.argsort(moment, kind="stable")
    change = np.where(by_time < len(begin), 1, -1)
    running = np.cumsum(change)[:-1]
    time_ns = np.bincount(running.clip(0), np.diff(moment[by_time]), minlength=1)
    at_once = np.arange(len(time_ns))
    beyond = np.array([time_ns @ np.maximum(at_once - count, 0) for count in at_once])
    is_enough = beyond <= LIMITS.small * beyond[0]
    cores = int(np.flatnonzero(is_enough)[0])
    return cores
