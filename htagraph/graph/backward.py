"""What autograd runs for a part of the forward pass, as the AUTOGRAD edges say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import EdgeKind
from htagraph.core.naming import is_backward, names_that

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["backward_of"]


def backward_of(graph: DependencyGraph, forward: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which activities belong to the backward pass of some forward activities.

    Those are the backward operators that autograd recorded for them, the engine's operator around each, and all that is
    inside. The sums of parameters' gradients (``AccumulateGrad``) are not among them: nothing links them to operators.

    Args:
        graph: the job.
        forward: whether each activity is of the forward part.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo", ranks=[0])
        >>> forward = np.isin(graph.activities.name, graph.names.index("aten::addmm"))
        >>> rows = np.flatnonzero(backward_of(graph, forward))
        >>> "AddmmBackward0" in {graph.names[name] for name in graph.activities.name[rows]}
        True
    """
    edges, parent = graph.edges, graph.tree.parent
    rows = np.flatnonzero((edges.kind == EdgeKind.AUTOGRAD) & forward[edges.source >> 1])
    first = edges.target[rows] >> 1
    engine = np.append(names_that(is_backward, graph.names)[graph.activities.name], False)
    roots = np.zeros(len(parent), np.bool_)
    roots[first] = True
    around = parent[first]
    roots[around[engine[around]]] = True
    return roots | graph.tree.inside(roots)
