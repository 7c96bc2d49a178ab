"""The time in which a thread waits for gradients, and how much of it shows the thread that computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from htagraph.core.intervals import difference, length, union
from htagraph.core.kinds import ANNOTATIONS, ActivityKind, of_kinds
from htagraph.core.naming import is_autograd_node, is_backward, is_backward_region, is_gradient_ready, names_that
from htagraph.core.statistics import MOST
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Backward", "backward_of"]

_CODE = (*ANNOTATIONS, ActivityKind.PYTHON)
"""Kinds that name code, and do not say that anything is computed."""


class Backward(NamedTuple):
    """The time of a rank in which a thread waits for gradients."""

    asked_ns: int
    """Time in annotations and Python frames of the backward pass; 0 where operators of the backward pass are there."""
    empty_ns: int
    """The part of this time in which no thread of the rank has an operator or a call."""

    @property
    def is_computed_elsewhere(self) -> bool:
        """Whether a thread that was not recorded computes the gradients."""
        return self.empty_ns >= LIMITS.long_call_ns and self.empty_ns > MOST * self.asked_ns


def backward_of(graph: DependencyGraph) -> dict[int, Backward]:
    """Return the time in which a thread of a rank waits for gradients, by rank.

    Example:
        >>> import htagraph as hg
        >>> backward_of(hg.load("data/demo", ranks=[0]))
        {0: Backward(asked_ns=0, empty_ns=0)}
    """
    acts = graph.activities
    regions = names_that(is_backward_region, graph.names)[acts.name] & of_kinds(acts.kind, _CODE)
    computes = names_that(_is_of_engine, graph.names)[acts.name] & (acts.kind == ActivityKind.OP)
    by_rank = {rank: Backward(0, 0) for rank in graph.ranks}
    for rank in np.unique(acts.rank[regions]).tolist():
        rows = np.flatnonzero(acts.rank == rank)
        if computes[rows].any():
            continue
        asked_rows = rows[regions[rows]]
        asked = union(graph.time[2 * asked_rows], graph.time[2 * asked_rows + 1])
        shown_rows = rows[~of_kinds(acts.kind[rows], _CODE)]
        shown = union(graph.time[2 * shown_rows], graph.time[2 * shown_rows + 1])
        by_rank[rank] = Backward(length(asked), length(difference(asked, shown)))
    return by_rank


def _is_of_engine(name: str) -> bool:
    """Return whether an operator is one that computes a gradient; to add a gradient up computes none."""
    return is_autograd_node(name) or (is_backward(name) and not is_gradient_ready(name))
