"""The networkx backend: networkx's functions on a DependencyGraph.

``nx.dag_longest_path(graph)`` lands here because `DependencyGraph` names this backend. All that networkx dispatches
runs on the view of the graph (`networkx_view`), by the code of networkx, without a list of functions and without a
copy. For the functions below, the arrays give the same result many times faster. Results are equal to the results for
``graph.to_networkx()``, ties included: nodes in ascending order, neighbours in ascending order.

An edge has two lengths, both in ns. ``weight``, the default of networkx's functions, includes the time that no
dependency explains: the longest path of the graph is a critical path, and its length is the makespan, from the first
recorded moment to the last. (`htagraph.critical_path` leaves out threads that only sleep: `DependencyGraph.awake`.)
``lag_ns`` is the lag alone: ``nx.dag_longest_path_length(graph, weight="lag_ns")`` is how long the job would take if
every vertex came as soon as its predecessors allow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
from networkx.utils.backends import _registered_algorithms as dispatched

from htagraph.core import traverse
from htagraph.core.errors import GraphError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.networkx_view import edge_weights, networkx_view

__all__ = ["convert_from_nx", "convert_to_nx"]


def __getattr__(name: str) -> Callable[..., Any]:
    """Return networkx's own function for a name that networkx dispatches; the function runs on views of the graphs."""
    if name not in dispatched:
        msg = f"networkx dispatches no function {name!r}"
        raise AttributeError(msg)
    original = dispatched[name].orig_func
    return partial(_on_views, original)


def _on_views(function: Callable[..., Any], *given: Any, **options: Any) -> Any:  # noqa: ANN401 - networkx's protocol
    """Return the result of a function of networkx for the views of the graphs among its arguments."""
    viewed = [_viewed(value) for value in given]
    keywords = {name: _viewed(value) for name, value in options.items()}
    return function(*viewed, **keywords)


def _viewed(value: Any) -> Any:  # noqa: ANN401 - any argument of a function of networkx
    """Return the view of a graph, the views of a list of graphs, or any other value as it is."""
    several = isinstance(value, list | tuple)
    if several and any(isinstance(graph, DependencyGraph) for graph in value):
        return [convert_to_nx(graph) for graph in value]
    return convert_to_nx(value)


def topological_sort(G: DependencyGraph) -> Generator[int, None, None]:
    """Yield the vertices, each after its predecessors."""
    yield from _order(G).tolist()


def topological_generations(G: DependencyGraph) -> Generator[list[int], None, None]:
    """Yield lists of vertices whose predecessors lie in earlier lists."""
    order = _order(G)
    level = traverse.levels(order, G.in_offsets, G.edges.source[G.in_edges])
    ordered = level[order]
    cuts = np.flatnonzero(np.diff(ordered)) + 1
    for generation in np.split(order, cuts):
        if len(generation):
            yield generation.tolist()


def is_directed_acyclic_graph(G: DependencyGraph) -> bool:
    """Return whether the graph has no cycle; every graph that `check` accepts has none."""
    try:
        _order(G)
    except nx.NetworkXUnfeasible:
        return False
    return True


def ancestors(G: DependencyGraph, source: int) -> set[int]:
    """Return the vertices from which `source` can be reached, without itself."""
    return _reached(G, source, G.in_offsets, G.edges.source[G.in_edges])


def descendants(G: DependencyGraph, source: int) -> set[int]:
    """Return the vertices that `source` reaches, without itself."""
    return _reached(G, source, G.out_offsets, G.edges.target)


def dag_longest_path(
    G: DependencyGraph, weight: str = "weight", default_weight: float = 1, topo_order: Iterable[int] | None = None
) -> list[int]:
    """Return the vertices of the longest path: by default a critical path of the recorded job, gaps included.

    Args:
        G: the graph.
        weight: ``"weight"`` (lag, gap of the target and head, ns), ``"lag_ns"`` (the lag alone, ns), or any other name:
            then every edge counts `default_weight`.
        default_weight: the length of an edge where `weight` is neither of the two.
        topo_order: a topological order of all vertices; decides between paths of equal length.
    """
    best, before, order = _longest(G, weight, default_weight, topo_order)
    if not len(order):
        return []
    path = [int(order[np.argmax(best[order])])]
    while (earlier := int(before[path[-1]])) != path[-1]:
        path.append(earlier)
    return path[::-1]


def dag_longest_path_length(G: DependencyGraph, weight: str = "weight", default_weight: float = 1) -> float:
    """Return the length of `dag_longest_path`: by default the recorded makespan, ns (see the top of this module)."""
    best, _, order = _longest(G, weight, default_weight, None)
    return best.max().item() if len(order) else 0


def transitive_reduction(G: DependencyGraph) -> nx.DiGraph:
    """Return the view of the graph without the edges beside which another path leads to the same vertex."""
    redundant = traverse.redundant_edges(_order(G), G.out_offsets, G.edges.target)
    edges = G.edges.take(~redundant)
    return networkx_view(G.replace(edges=edges))


def convert_from_nx(graph: nx.Graph, *_: object, **__: object) -> DependencyGraph:
    """Refuse: a networkx graph has no times; bring frames instead."""
    msg = "a networkx graph cannot become a DependencyGraph; use DependencyGraph.from_frames(activities, dependencies)"
    raise NotImplementedError(msg)


def convert_to_nx(result: Any, **_: Any) -> Any:  # noqa: ANN401 - networkx's protocol
    """Return the view of a DependencyGraph, anything else as it is."""
    return networkx_view(result) if isinstance(result, DependencyGraph) else result


def _order(graph: DependencyGraph) -> np.ndarray:
    try:
        return graph.topological_order
    except GraphError as error:
        msg = "Graph contains a cycle."  # networkx's words: its callers match on the type
        raise nx.NetworkXUnfeasible(msg) from error


def _checked_order(graph: DependencyGraph, topo_order: Iterable[int]) -> np.ndarray:
    order = np.fromiter(topo_order, np.int32)
    if not np.array_equal(np.sort(order), np.arange(graph.vertex_count)):
        msg = "topo_order does not hold every node of the graph once"
        raise nx.NetworkXError(msg)
    return order


def _reached(graph: DependencyGraph, source: int, offsets: np.ndarray, neighbours: np.ndarray) -> set[int]:
    if not isinstance(source, int | np.integer) or not 0 <= source < graph.vertex_count:
        msg = f"The node {source} is not in the digraph."
        raise nx.NetworkXError(msg)
    seen = traverse.reach(offsets, neighbours, np.array([source]))
    seen[source] = False
    return set(np.flatnonzero(seen).tolist())


def _longest(
    graph: DependencyGraph, weight: str, default_weight: float, topo_order: Iterable[int] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = _order(graph) if topo_order is None else _checked_order(graph, topo_order)
    if weight == "weight":
        lengths = edge_weights(graph)
    elif weight == "lag_ns":
        lengths = graph.edges.lag
    else:
        lengths = np.full(len(graph.edges), default_weight)
    incoming = graph.in_edges
    best, before = traverse.longest_path(order, graph.in_offsets, graph.edges.source[incoming], lengths[incoming])
    return best, before, order
