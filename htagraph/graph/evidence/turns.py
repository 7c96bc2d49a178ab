"""`turns_of_cores` and `turns_of_interpreters`: work that may have taken turns with work of other threads.

No event records turns: a thread that shares a core, or its process's interpreter, with other threads works on, and is
slower. The recorded length of a stretch of work then holds turns of others, as long as others were active. A recording
cannot show whether this was so, but it can contradict it: if stretches of one place in the program last equally long
each time, or whatever runs beside, nobody took turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array, Mask, coded
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind, EdgeKind, GapKind, of_kinds
from htagraph.core.naming import is_asking, is_autograd_node, is_taking, names_that
from htagraph.core.statistics import middles
from htagraph.graph.evidence.cores import dag_of, hosts_of_threads, order_of_threads, recorded_cores
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.core.shared_turns import TurnUsers
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Turns", "turns_of_cores", "turns_of_interpreters"]

_IN_PYTHON = (ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.PYTHON)
"""Kinds of activities whose own time is Python."""
_NO_WORK = (ActivityKind.HOST_COMMUNICATION, ActivityKind.SYNC)
"""Kinds of activities on a host thread during which the thread mostly waits."""


@dataclass(frozen=True, eq=False)
class Turns:
    """Stretches of work that may have taken turns."""

    users: TurnUsers
    """The stretches, and the resources that these may share."""
    demand: Array
    """Of each edge, then of each vertex: how long its lag or gap would have taken alone, ns."""


@once
def turns_of_cores(graph: DependencyGraph) -> Turns | None:
    """Return the work that may have shared cores; None where no host had fewer cores than busy threads.

    Hosts whose files do not say how many cores there are show no more busy threads than cores.

    Args:
        graph: the graph of the recording.

    Returns:
        The work of host threads, with the cores of each host.

    Example:
        >>> import htagraph as hg
        >>> turns_of_cores(hg.load("data/demo")) is None
        True
    """
    if not any(trace.facts.cores for trace in graph.traces.values()):
        return None
    host = hosts_of_threads(graph)
    places = np.array([_cores(graph, host == number) for number in range(host.max(initial=-1) + 1)])
    lanes = np.repeat(graph.activities.lane, 2)
    threads = np.array([len(np.unique(lanes[host == number])) for number in range(len(places))])
    may_share = np.append(threads > places, [False])  # the last is of vertices on no host
    if not may_share.any():
        return None
    resource = np.where(may_share[host], host, -1)
    works = ~of_kinds(graph.activities.kind, _NO_WORK)
    return _turns(graph, _stretches(graph, resource, works), places)


@once
def turns_of_interpreters(graph: DependencyGraph) -> Turns | None:
    """Return the Python that may have shared a process's interpreter; None where threads were in Python one by one.

    Args:
        graph: the graph of the recording.

    Returns:
        The Python of host threads, with one place for each rank.

    Example:
        >>> import htagraph as hg
        >>> turns_of_interpreters(hg.load("data/demo")) is None
        True
    """
    on_host = hosts_of_threads(graph) >= 0
    rank = np.repeat(graph.activities.rank, 2)
    lanes = np.repeat(graph.activities.lane, 2)
    rank_and_lane = np.stack((rank[on_host], lanes[on_host]))
    pairs = np.unique(rank_and_lane, axis=1)
    threads = np.bincount(pairs[0].clip(0), minlength=int(rank.max(initial=0)) + 1)
    resource = np.where(on_host & (threads[rank] > 1), rank, -1)
    if (resource < 0).all():
        return None
    names = graph.activities.name
    waits = names_that(is_asking, graph.names) | names_that(is_taking, graph.names)
    in_python = of_kinds(graph.activities.kind, _IN_PYTHON) & ~waits[names]
    return _turns(graph, _stretches(graph, resource, in_python), np.ones(len(threads), np.int64))


def _cores(graph: DependencyGraph, on_host: Mask) -> int:
    """Return the number of cores of a host; as many as its vertices where its files do not say.

    Args:
        graph: the graph of the recording.
        on_host: the vertices of the threads of the host.
    """
    cores = recorded_cores(graph, on_host)
    return int(on_host.sum()) if cores is None else cores


def _stretches(graph: DependencyGraph, resource: Array, works: Mask) -> Array:
    """Return which resource each lag, then each gap uses; -1 for none.

    Args:
        graph: the graph of the recording.
        resource: of each vertex, the resource that its thread may use; -1 for none.
        works: the activities whose own time uses the resource.
    """
    edges = graph.edges
    order = order_of_threads(graph, np.where(resource >= 0, 0, -1))
    has_owner = edges.activity[order.edge] >= 0
    owner_works = np.append(works, [False])[edges.activity[order.edge]]
    is_work = (edges.kind[order.edge] == EdgeKind.BODY) & has_owner & owner_works
    is_work &= edges.lag[order.edge] > 0
    of_lag = np.full(len(edges), -1, np.int64)
    of_lag[order.edge[is_work]] = resource[order.behind[is_work]]

    of_engine = names_that(is_autograd_node, graph.names)[graph.activities.name]
    is_between = (graph.gap_kind[order.behind] == GapKind.HOST_UNTRACED) & (graph.gap[order.behind] > 0)
    is_between &= ~(of_engine[order.before >> 1] & of_engine[order.behind >> 1])
    of_gap = np.full(graph.vertex_count, -1, np.int64)
    of_gap[order.behind[is_between]] = resource[order.behind[is_between]]
    return np.concatenate((of_lag, of_gap))


def _turns(graph: DependencyGraph, resource: Array, places: Array) -> Turns | None:
    """Return work that takes turns; None if turns took no time that matters, or if the recording contradicts them.

    Args:
        graph: the graph of the recording.
        resource: of each lag, then of each gap, the number of its resource; -1 for none.
        places: of each resource, how many users are not slowed down.

    Returns:
        The work with its times alone; None also where a simulation differs from the recording.
    """
    from htagraph.core import shared_turns  # numba takes a moment to load

    users = shared_turns.TurnUsers(resource, places, len(graph.lanes) + 1)
    begin, length = _times(graph)
    if not _matters(graph, users, begin, length):
        return None
    dag = dag_of(graph)._replace(head=graph.time - graph.origin_ns)
    demand = shared_turns.demands(dag, users)
    if _contradicted(graph, resource, length, demand):
        return None
    if not np.array_equal(shared_turns.moments(dag, users, demand), dag.head):
        return None
    return Turns(users, demand)


def _times(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return when each lag, then each gap began, and how long it took, ns.

    Args:
        graph: the graph of the recording.

    Returns:
        The beginnings on the common clock, ns; the lengths, ns.
    """
    length = np.concatenate((graph.edges.lag, graph.gap))
    begin = np.concatenate((graph.time[graph.edges.source], graph.time - graph.gap))
    return begin, length


def _matters(graph: DependencyGraph, users: TurnUsers, begin: Array, length: Array) -> bool:
    """Return whether more users than places were active at once for a share of the job that matters.

    Args:
        graph: the graph of the recording.
        users: the work and its resources.
        begin: when each lag, then each gap began, ns.
        length: how long each lag, then each gap took, ns.
    """
    makespan = graph.time.max() - graph.time.min()
    crowded = 0
    for number, places in enumerate(users.places.tolist()):
        rows = np.flatnonzero(users.resource == number)
        moment = np.concatenate((begin[rows], begin[rows] + length[rows]))
        by_time = np.argsort(moment, kind="stable")
        active = np.cumsum(np.where(by_time < len(rows), 1, -1))[:-1]
        crowded = max(crowded, int(np.diff(moment[by_time])[active > places].sum()))
    return crowded >= LIMITS.small * makespan


def _contradicted(graph: DependencyGraph, resource: Array, length: Array, demand: Array) -> bool:
    """Return whether work of a place in the program takes equally long each time, or whatever is active beside it.

    Args:
        graph: the graph of the recording.
        resource: of each lag, then of each gap, the number of its resource; -1 for none.
        length: how long each lag, then each gap took, ns.
        demand: how long each lag, then each gap takes alone, ns.
    """
    rows = np.flatnonzero(resource >= 0)
    site = _sites(graph, rows)
    recorded = length[rows]
    return _is_regular(recorded, site) or _ignores_company(recorded, demand[rows], site)


def _sites(graph: DependencyGraph, rows: Array) -> Array:
    """Return the number of the place in the program, and of the thread, of lags and gaps.

    One operator takes other times for other callers, so the caller's name belongs to the place.

    Args:
        graph: the graph of the recording.
        rows: the numbers of lags, and the numbers of gaps plus that of all lags.
    """
    edges = len(graph.edges)
    is_lag = rows < edges
    edge = np.where(is_lag, rows, 0)
    behind = np.where(is_lag, graph.edges.target[edge], rows - edges)
    before = np.where(is_lag, graph.edges.source[edge], behind)
    names = graph.activities.name
    lane = graph.activities.lane[behind >> 1]
    caller = graph.tree.parent[behind >> 1]
    caller_name = np.where(caller >= 0, names[caller], -1)
    return coded(lane, is_lag, caller_name, names[behind >> 1], names[before >> 1], behind & 1, before & 1)


def _is_regular(recorded: Array, site: Array) -> bool:
    """Return whether most work lasts several slices of a scheduler, and equally long to less than a slice.

    A thread that takes turns is done sooner or later by parts of a slice. Sleep in an operator is regular.

    Args:
        recorded: how long each stretch of work took, ns.
        site: the place in the program of each stretch.
    """
    usual = np.add(*middles(recorded, site)) // 2
    is_long = usual >= LIMITS.slice_ns
    if recorded[is_long].sum() < LIMITS.typical * recorded.sum():
        return False
    late = np.abs(recorded - usual)
    regular = usual[is_long & (late < LIMITS.turn_ns)].sum()  # the usual times, so that no odd one weighs much
    return bool(regular > LIMITS.most * usual[is_long].sum())


def _ignores_company(recorded: Array, demand: Array, site: Array) -> bool:
    """Return whether lengths do not follow the number of active users, where this varies.

    Args:
        recorded: how long each stretch of work took, ns.
        demand: how long each stretch takes alone, ns.
        site: the place in the program of each stretch.
    """
    longer = _from_mean(recorded / np.maximum(demand, 1.0), site)
    weight = _means(recorded, site)[site]
    expected = weight @ longer**2
    if expected <= LIMITS.small**2 * weight.sum():
        return False
    follows = (weight * longer) @ _from_mean(recorded, site)
    return bool(follows < LIMITS.slope * expected)


def _means(time: Array, site: Array) -> Array:
    """Return the mean of each site.

    Args:
        time: the time of each stretch.
        site: the place in the program of each stretch.
    """
    count = np.maximum(np.bincount(site), 1)
    return np.asarray(np.bincount(site, time) / count)


def _from_mean(time: Array, site: Array) -> Array:
    """Return by which share each time differs from the mean of its site.

    Args:
        time: the time of each stretch.
        site: the place in the program of each stretch.
    """
    mean = np.maximum(_means(time, site), 1.0)
    return np.asarray(time / mean[site] - 1)
