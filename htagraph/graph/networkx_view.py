"""The networkx view: a DependencyGraph as a read-only `networkx.DiGraph` whose tables are the graph's own arrays.

The view is made as networkx makes its own views of a reversed graph or a subgraph: a frozen ``DiGraph`` whose tables of
nodes and neighbours are mappings that look each entry up. Every function and method of networkx therefore takes the
view, nothing is copied, and ``networkx.DiGraph(view)`` is a copy that can be changed.

A node is a vertex number. The attributes of a node say which activity the node belongs to and which end of the activity
the node is; the attribute is called ``moment``, because GEXF takes ``start`` and ``end`` for the life of a node.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, ItemsView, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NoReturn

import networkx as nx
import numpy as np

from htagraph.core.arrays import Array, Ints
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import frozen
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["edge_weights", "networkx_view"]

Columns = Mapping[str, Callable[[DependencyGraph, int], Any]]
"""Name of an attribute → its value for a node or an edge of a graph."""

_MOMENTS: Final = ("start", "end")


def networkx_view(graph: DependencyGraph) -> nx.DiGraph:
    """Return a graph as a read-only `networkx.DiGraph` over the same arrays; see `DependencyGraph.as_networkx`.

    Args:
        graph: the job.

    Returns:
        A frozen ``DiGraph``: networkx refuses to add and remove nodes and edges.

    Example:
        >>> import htagraph as hg
        >>> print(networkx_view(hg.load("data/demo")))
        DiGraph with 19052 nodes and 21990 edges
    """
    view = nx.freeze(nx.DiGraph())
    view._node = NodeTable(graph)
    view._adj = AdjacencyTable(graph, incoming=False)
    view._pred = AdjacencyTable(graph, incoming=True)
    return view


def is_vertex(graph: DependencyGraph, node: object) -> bool:
    """Return whether an object is the number of a vertex.

    Raises:
        TypeError: the object has no hash, like a list of nodes; networkx tells lists from nodes by this error.
    """
    hash(node)
    return isinstance(node, int | np.integer) and bool(0 <= node < graph.vertex_count)


class Attributes(Mapping[str, Any]):
    """The attributes of a node or an edge, each read from the graph's arrays when somebody asks for it."""

    __slots__ = ("columns", "graph", "number")

    def __init__(self, graph: DependencyGraph, columns: Columns, number: int) -> None:
        self.graph = graph
        self.columns = columns
        self.number = number

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - as the attribute has it
        return self.columns[name](self.graph, self.number)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return repr(self.copy())

    def __reduce__(self) -> tuple[Callable[..., dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (self.copy(),)  # copies and pickles of attributes are dicts

    def __setitem__(self, name: str, value: object) -> NoReturn:
        raise _unchangeable({name: value})

    def update(self, *given: object, **named: object) -> NoReturn:
        """Refuse new attributes, in the words of networkx."""
        raise _unchangeable(*given, named)

    def copy(self) -> dict[str, Any]:
        """Return the attributes as a dict, which may be changed."""
        return {name: value(self.graph, self.number) for name, value in self.columns.items()}


@dataclass(frozen=True, eq=False)
class NodeTable(Mapping[int, Attributes]):
    """The nodes of a graph: the number of each vertex, with its attributes."""

    graph: DependencyGraph

    def __getitem__(self, node: int) -> Attributes:
        if node not in self:
            raise KeyError(node)
        return Attributes(self.graph, NODE_ATTRIBUTES, int(node))

    def __contains__(self, node: object) -> bool:
        return is_vertex(self.graph, node)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.graph.vertex_count))

    def __len__(self) -> int:
        return self.graph.vertex_count


@dataclass(frozen=True, eq=False)
class AdjacencyTable(Mapping[int, "Neighbours"]):
    """The neighbours of each node: its successors, or, with `incoming`, its predecessors."""

    graph: DependencyGraph
    incoming: bool

    @cached_property
    def offsets(self) -> Array:
        """Where the neighbours of each node begin in `neighbours`."""
        return self.graph.in_offsets if self.incoming else self.graph.out_offsets

    @cached_property
    def neighbours(self) -> Array:
        """The neighbours of all nodes, node by node, ascending."""
        edges = self.graph.edges
        return edges.source[self.graph.in_edges] if self.incoming else edges.target

    def edge(self, place: int) -> int:
        """Return the number of the edge at a place in `neighbours`."""
        return int(self.graph.in_edges[place]) if self.incoming else place

    def __getitem__(self, node: int) -> Neighbours:
        if node not in self:
            raise KeyError(node)
        return Neighbours(self, int(self.offsets[node]), int(self.offsets[node + 1]))

    def __contains__(self, node: object) -> bool:
        return is_vertex(self.graph, node)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.graph.vertex_count))

    def __len__(self) -> int:
        return self.graph.vertex_count


class Neighbours(Mapping[int, Attributes]):
    """The neighbours of one node, each with the attributes of the edge between."""

    __slots__ = ("begin", "stop", "table")

    def __init__(self, table: AdjacencyTable, begin: int, stop: int) -> None:
        self.table = table
        self.begin = begin
        self.stop = stop

    def __getitem__(self, node: int) -> Attributes:
        place = self.place(node)
        if place < 0:
            raise KeyError(node)
        return Attributes(self.table.graph, EDGE_ATTRIBUTES, self.table.edge(place))

    def __contains__(self, node: object) -> bool:
        return self.place(node) >= 0

    def __iter__(self) -> Iterator[int]:
        return iter(self.table.neighbours[self.begin : self.stop].tolist())

    def __len__(self) -> int:
        return self.stop - self.begin

    def __repr__(self) -> str:
        return repr(dict(self))

    def items(self) -> NeighbourItems:
        """Return the neighbours and attributes, in one pass over the places and without a search for each."""
        return NeighbourItems(self)

    def place(self, node: object) -> int:
        """Return the place of a neighbour in the table; -1 if the node is none."""
        if not isinstance(node, int | np.integer):
            hash(node)
            return -1
        neighbours = self.table.neighbours
        place = bisect_left(neighbours, node, self.begin, self.stop)
        return place if place < self.stop and neighbours[place] == node else -1


class NeighbourItems(ItemsView[int, Attributes]):
    """Pairs of a neighbour and the attributes of the edge between."""

    _mapping: Neighbours

    def __iter__(self) -> Iterator[tuple[int, Attributes]]:
        near = self._mapping
        graph = near.table.graph
        for place, node in enumerate(near, near.begin):
            yield node, Attributes(graph, EDGE_ATTRIBUTES, near.table.edge(place))


def _unchangeable(*new: object) -> nx.NetworkXError:
    attributes = ", ".join(repr(attribute) for attribute in new if attribute)
    msg = f"Frozen graph can't be modified by {attributes}: change a copy, graph.to_networkx()"
    return nx.NetworkXError(msg)


@once
def edge_weights(graph: DependencyGraph) -> Ints:
    """Return the ``weight`` of each edge, ns: its lag, its target's gap, and its source's head.

    The head of a vertex without predecessors is its time since the start of the job; that of any other vertex is 0,
    because its time already follows from the edges into it.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> bool((edge_weights(graph) >= graph.edges.lag).all())
        True
    """
    source = graph.edges.source
    head = np.where(np.diff(graph.in_offsets) == 0, graph.time - graph.origin_ns, 0)
    return frozen(graph.edges.lag + graph.gap[graph.edges.target] + head[source])


NODE_ATTRIBUTES: Final[Columns] = {
    "activity": lambda _, node: node // 2,
    "moment": lambda _, node: _MOMENTS[node % 2],
    "name": lambda graph, node: graph.names[graph.activities.name[node // 2]],
    "kind": lambda graph, node: ActivityKind(graph.activities.kind[node // 2]).label,
    "rank": lambda graph, node: int(graph.activities.rank[node // 2]),
    "lane": lambda graph, node: graph.lane_of(node // 2).label,
    "step": lambda graph, node: int(graph.activities.step[node // 2]),
    "time_ns": lambda graph, node: int(graph.time[node]),
    "gap_ns": lambda graph, node: int(graph.gap[node]),
}
"""Attribute of a node → its value; `DependencyGraph.as_networkx` describes each."""

EDGE_ATTRIBUTES: Final[Columns] = {
    "weight": lambda graph, edge: int(edge_weights(graph)[edge]),
    "lag_ns": lambda graph, edge: int(graph.edges.lag[edge]),
    "kind": lambda graph, edge: EdgeKind(graph.edges.kind[edge]).label,
    "provenance": lambda graph, edge: Provenance(graph.edges.provenance[edge]).label,
    "confidence_percent": lambda graph, edge: int(graph.edges.confidence[edge]),
    "binds": lambda graph, edge: bool(graph.binding[graph.edges.target[edge]] == edge),
}
"""Attribute of an edge → its value; `DependencyGraph.as_networkx` describes each."""
