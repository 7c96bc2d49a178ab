"""Which edge into each vertex of a DAG decides when it happens. Compiled by numba, kept on the disk; arrays only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.compiled import for_reading, njit

__all__ = ["deciding"]


def deciding(
    in_offsets: Array, in_edges: Array, source: Array, lag: Array, preferred: Array, time: Array
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return, for each vertex, the edge that allows it last (-1 if none enters), and how much later it happens, ns.

    On ties a preferred edge decides; among several, and where there is none, the one that stands first.

    Args:
        in_offsets: where the entries of each vertex begin in `in_edges`.
        in_edges: the numbers of the edges that end in each vertex.
        source: the vertex where each edge begins, by edge number.
        lag: how long after its source each edge allows its target, by edge number.
        preferred: which edges decide on ties, by edge number.
        time: when each vertex happens.

    Example:
        >>> import numpy as np
        >>> edges = np.array([0, 0]), np.array([5, 7]), np.array([False, False])
        >>> at, later = deciding(np.array([0, 0, 2]), np.array([0, 1]), *edges, np.array([0, 10]))
        >>> at.tolist(), later.tolist()
        ([-1, 1], [0, 3])
    """
    edge, later = np.empty(len(time), np.int32), np.empty(len(time), np.int64)
    edges, begins = for_reading(in_edges, np.int32), for_reading(source, np.int32)
    first, lags, moments = (for_reading(each, np.int64) for each in (in_offsets, lag, time))
    _decide(edge, later, first, edges, begins, lags, for_reading(preferred, np.bool_), moments)
    return edge, later


@njit(cache=True, nogil=True)
def _decide(  # noqa: PLR0913, PLR0917 - as `deciding`
    decides: Array, later: Array, in_offsets: Array, in_edges: Array, source: Array, lag: Array, preferred: Array,
    time: Array,
) -> None:  # fmt: skip
    for vertex in range(len(time)):
        first, last = in_offsets[vertex], in_offsets[vertex + 1]
        if first == last:
            decides[vertex], later[vertex] = -1, 0
            continue
        best = in_edges[first]
        latest = time[source[best]] + lag[best]
        for i in range(first + 1, last):
            edge = in_edges[i]
            allowed = time[source[edge]] + lag[edge]
            if allowed > latest or (allowed == latest and preferred[edge] and not preferred[best]):
                best, latest = edge, allowed
        decides[vertex], later[vertex] = best, time[vertex] - latest
