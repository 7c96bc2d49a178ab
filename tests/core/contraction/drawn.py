"""DAGs whose weights are vectors, drawn by Hypothesis, and the longest paths in them, computed in the obvious way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from htagraph.core.contraction.net import SOURCE, TARGET, UNBOUNDED, Net, Weights, net_of

LIMIT = 3
"""The largest factor of a component that is bounded."""


@dataclass(frozen=True)
class Dag:
    """Vertices 0, 1, …, in an order of their own, with edges along it."""

    order: Sequence[int]
    edges: Sequence[tuple[int, int, tuple[int, ...]]]
    terminal: Sequence[bool]
    bounds: Sequence[int]

    @property
    def source(self) -> npt.NDArray[np.int32]:
        return np.array([edge[0] for edge in self.edges], np.int32)

    @property
    def target(self) -> npt.NDArray[np.int32]:
        return np.array([edge[1] for edge in self.edges], np.int32)

    @property
    def weight(self) -> npt.NDArray[np.int64]:
        return np.array([edge[2] for edge in self.edges], np.int64).reshape(len(self.edges), len(self.bounds))


@st.composite
def dags(draw: st.DrawFn, *, most: int = 9, components: int | None = None) -> Dag:
    """Return a DAG with parallel edges, negative weights, and vertices that nothing leads to or from."""
    count = draw(st.integers(2, most))
    size = draw(st.integers(1, 3)) if components is None else components
    scale = draw(st.sampled_from([1, 100]))  # ns that rounding is not to be mistaken for
    order = draw(st.permutations(range(count)))
    pairs = [(i, j) for j in range(count) for i in range(j)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=3 * count))
    vector = st.tuples(st.integers(-3, 9), *[st.integers(-2, 6)] * (size - 1)).map(
        lambda each: tuple(part * scale for part in each)
    )
    edges = [(order[i], order[j], draw(vector)) for i, j in chosen]
    terminal = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    bounds = [1, *draw(st.lists(st.sampled_from([UNBOUNDED, 1, LIMIT]), min_size=size - 1, max_size=size - 1))]
    return Dag(list(order), edges, terminal, bounds)


@st.composite
def factors_of(draw: st.DrawFn, dag: Dag) -> list[int]:
    """Return a factor for each component of a DAG's weights, 1 for the first."""
    return [1, *(draw(st.integers(0, 50 if bound == UNBOUNDED else bound)) for bound in dag.bounds[1:])]


def distances(
    edges: Sequence[tuple[int, int, tuple[int, ...]]], order: Sequence[int], ends: Sequence[int], factors: Sequence[int]
) -> dict[tuple[int, int], int]:
    """Return the length of a longest path between each two of some vertices that a path joins."""
    found: dict[tuple[int, int], int] = {}
    for first in ends:
        length = {first: 0}
        for vertex in order:
            for source, target, weight in edges:
                if source == vertex and vertex in length:
                    via = length[vertex] + sum(part * factor for part, factor in zip(weight, factors, strict=True))
                    length[target] = max(length.get(target, via), via)
        found |= {(first, last): length[last] for last in ends if last in length}
    return found


def net(dag: Dag) -> Net:
    return net_of(len(dag.order), dag.source, dag.target, dag.weight)


def edges_of(made: Net) -> list[tuple[int, int, tuple[int, ...]]]:
    live = np.flatnonzero(made.edge[:, SOURCE] >= 0)
    source, target = made.edge[live, SOURCE].tolist(), made.edge[live, TARGET].tolist()
    return list(zip(source, target, map(tuple, made.weight[live].tolist()), strict=True))


def sparse(weight: np.ndarray) -> Weights:
    """Return vectors, one per row, as numbers and amounts."""
    edge, component = np.nonzero(weight[:, 1:])
    offsets = np.searchsorted(edge, np.arange(len(weight) + 1))
    return Weights(
        np.ascontiguousarray(weight[:, 0]), offsets.astype(np.int64), (component + 1).astype(np.int16),
        weight[edge, component + 1],
    )  # fmt: skip
