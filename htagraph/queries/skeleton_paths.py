"""The moments of the whole graph along edges of its skeleton."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.class_parts import Classes
from htagraph.queries.skeleton import Skeleton
from htagraph.queries.time_classes import Factors
from htagraph.queries.weighted_paths import amounts_of, paths_of
from htagraph.queries.weights import State

__all__ = ["expand"]


def expand(
    job: DependencyGraph | State,
    skeleton: Skeleton,
    edges: Array,
    *,
    classes: Classes | None = None,
    factors: Factors | None = None,
) -> npt.NDArray[np.int64]:
    """Return the moments of a job along edges of its skeleton: those of a longest path, in the order of time.

    Args:
        job: what the skeleton was made of.
        skeleton: its skeleton.
        edges: numbers of its edges, each of which begins where the one before ends, such as all of `critical_edges`.
        classes: those that the skeleton was made with, where `factors` are given.
        factors: by class, what its time is multiplied by.

    Returns:
        Vertices of the graph: 2 i is the start of activity i, 2 i + 1 its end. The beginning of the job is left out.

    Raises:
        SelectionError: the skeleton is of another job.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> skeleton = hg.contract(graph)
        >>> moments = expand(graph, skeleton, skeleton.critical_edges())
        >>> len(moments) > 10 * len(skeleton.critical_edges())
        True
    """
    from htagraph.core.contraction.segments import segment
    from htagraph.core.traverse import counting_order

    paths = paths_of(job, classes)
    count = len(paths.vertex)
    weight = amounts_of(paths.weights) @ paths.classes.numerators(factors)[0]
    offsets, entering = counting_order(paths.target, count)
    place = np.empty(count, np.int64)
    place[paths.order] = np.arange(count)
    numbers = np.where(skeleton.vertex < 0, count - 3 - (skeleton.vertex + 1), skeleton.vertex)
    if numbers.max(initial=0) >= count:
        msg = "the skeleton is of another job: give the graph or state that it was made of"
        raise SelectionError(msg)
    kept = np.zeros(count, np.bool_)
    kept[numbers] = True
    moments = [numbers[skeleton.source[edges[:1]]]]
    for first, last in zip(skeleton.source[edges].tolist(), skeleton.target[edges].tolist(), strict=True):
        path = segment(int(numbers[first]), int(numbers[last]), place, offsets, entering, paths.source, weight, kept)
        if not len(path):
            msg = "the skeleton is of another job: give the graph or state that it was made of"
            raise SelectionError(msg)
        moments.append(paths.target[path].astype(np.int64))
    found = paths.vertex[np.concatenate(moments)]
    return found[found >= 0]
