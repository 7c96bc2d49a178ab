"""The graph of a joined job as a skeleton: paths and transfers with a weight for each class of time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.errors import NothingMeetsError
from htagraph.core.kinds import EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.class_parts import Parts
from htagraph.queries.contract import members_of
from htagraph.queries.rank_digests.digest import Criteria
from htagraph.queries.rank_digests.joined import JoinedGraph
from htagraph.queries.skeleton import Skeleton
from htagraph.queries.time_classes import TimeClasses
from htagraph.queries.weighted_paths import END, LAST, START
from htagraph.queries.weights import initial, own_time

__all__ = ["skeleton_of"]


def skeleton_of(joined: JoinedGraph, criteria: Criteria, limits: Sequence[int]) -> Skeleton:
    """Return the skeleton of a joined job. The numbers of its vertices are those of the graph of the job.

    Args:
        joined: the job.
        criteria: by class, the criteria of its selection.
        limits: of each class, the largest factor or `UNBOUNDED`.
    """
    graph = joined.graph
    source, target, weight, parts = _edges(joined, criteria)
    count = graph.vertex_count
    vertex = np.concatenate([[START], graph.topological_order, [END, LAST]]).astype(np.int64)
    place = np.zeros(count + 3, np.int64)  # the last three are those of START, END and LAST
    place[[*graph.topological_order.tolist(), -3, -2, -1]] = [*range(1, count + 1), 0, count + 1, count + 2]
    source, target = place[source], place[target]
    order = np.lexsort((source, target))
    classes = TimeClasses(tuple(criteria), tuple(limits), (False,) * len(criteria), parts)
    return Skeleton(
        graph.origin_ns, vertex, np.ones(len(vertex), np.bool_), source[order].astype(np.int32),
        target[order].astype(np.int32), weight[order], classes, graph.step_spans, members_of(graph),
    )  # fmt: skip


def _edges(joined: JoinedGraph, criteria: Criteria) -> tuple[Array, Array, Array, tuple[tuple[int, ...], ...]]:
    """Return (sources, targets, weights of all edges of the skeleton, the components of the weights).

    What leads to a vertex is longer by the gap there, so that no time is left unexplained.
    """
    graph, spans, count = joined.graph, joined.spans, joined.graph.vertex_count
    edges = graph.edges
    own = np.flatnonzero(edges.kind != EdgeKind.USER)
    masks, amounts, rest = _of_communication(graph, criteria, own)
    bits = np.array([sum(1 << number for number in part) for part in joined.parts], np.int64)
    every = np.union1d(bits, masks[masks > 0])
    there = np.flatnonzero(
        np.isin(_keys(joined.source, joined.target, count), _keys(edges.source, edges.target, count))
    )
    of_paths = np.zeros((len(there), 1 + len(every)), np.int64)
    of_paths[:, np.append(0, 1 + np.searchsorted(every, bits))] = joined.weight[there]
    of_paths[:, 0] += graph.gap[joined.target[there]]
    of_own = np.zeros((len(own), 1 + len(every)), np.int64)
    of_own[:, 0] = rest + graph.gap[edges.target[own]]
    some = np.flatnonzero(masks)
    of_own[some, 1 + np.searchsorted(every, masks[some])] = amounts[some]
    heads = np.flatnonzero(np.diff(graph.in_offsets) == 0)
    ends = np.concatenate([2 * spans + 1, 2 * spans + 3])
    plain = np.zeros((len(heads) + len(ends), 1 + len(every)), np.int64)
    plain[: len(heads), 0] = graph.time[heads] - graph.origin_ns
    source = np.concatenate([joined.source[there], edges.source[own], np.full(len(heads), count), ends])
    last = np.repeat([count + 1, count + 2], len(spans))
    target = np.concatenate([joined.target[there], edges.target[own], heads, last])
    parts = tuple(tuple(number for number in range(len(criteria)) if mask >> number & 1) for mask in every.tolist())
    return source, target, np.concatenate([of_paths, of_own, plain]), parts


def _keys(source: Array, target: Array, count: int) -> npt.NDArray[np.int64]:
    return np.asarray(source.astype(np.int64) * count + target)


def _of_communication(graph: DependencyGraph, criteria: Criteria, own: Array) -> tuple[Array, Array, Array]:
    """Return (the classes that multiply a part of the lag of each edge, a bit for each; that part; the rest, ns)."""
    state = initial(graph)
    lag = Parts.of(graph.edges.lag)
    for number, of_class in enumerate(criteria.values()):
        try:
            time = own_time(state, dict(of_class))
        except NothingMeetsError:
            continue  # no communication is of this class
        lag.multiply(time.edges, np.maximum(graph.edges.lag[time.edges] - time.fixed, 0), number)
    lag.mask[lag.amount == 0] = 0
    return lag.mask[own], lag.amount[own], lag.rest[own]
