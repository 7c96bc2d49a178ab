"""First calls of runtime functions that take far longer than later ones: contexts are made and code is loaded then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind, GapKind, of_kinds

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.paths import CriticalPath

__all__ = ["first_calls"]

_CALLS = (ActivityKind.LAUNCH, ActivityKind.RUNTIME)
_MIN_NS = 5_000_000
"""ns; chosen: making a context takes some 100 ms and a stream some ms, while a steady call takes µs. Doubled, streams
of small jobs count as steady work."""
_MIN_INSIDE_NS = 50_000_000
"""ns; the same for the first call inside an operator, of which there are many, so that a pause hits one by chance.
Chosen: loading a library takes some 100 ms, pauses of a host some 10 ms. Doubled, small libraries are missed."""
_TIMES = 100
"""How many times the median of the later calls the first one takes. Chosen: those that load code take a thousand times
as long, while calls that sometimes wait differ by ten. Doubled, functions that always take 50 µs need 10 ms."""
_MOST = 0.5
"""Share of the ranks that call a function on which its first call is as long; else it was a pause of one rank. It
cannot be doubled."""


def first_calls(path: CriticalPath) -> dict[int, int]:
    """Return the first calls on a critical path that are far longer than later ones, and how long they are on it, ns.

    A call counts if it is a rank's first of its name and lasts at least 5 ms, or the first of its name inside operators
    of one name and lasts at least 50 ms; if it takes 100 times the median of the later ones; and if the first one is as
    long on most ranks that call it. Of a function that is called once nothing tells, unless the call is the rank's
    first of all: a context is made then.

    Example:
        >>> import htagraph as hg
        >>> first_calls(hg.critical_path(hg.load("data/demo")))
        {}
    """
    graph, parts = path.graph, path.segments
    acts = graph.activities
    own = (parts.gap == GapKind.NONE) & of_kinds(acts.kind[parts.activity], _CALLS)
    spent = np.bincount(parts.activity[own], parts.length[own], len(acts)).astype(np.int64)
    long = np.flatnonzero(spent >= _MIN_NS)
    if not len(long):
        return {}
    calls = np.flatnonzero(of_kinds(acts.kind, _CALLS))
    around = np.append(acts.name, -1)[graph.tree.parent[calls]]  # -1, the last one, for none
    found = {}
    for each in long.tolist():
        alike = acts.name[calls] == acts.name[each]
        inside = alike & (around == around[np.searchsorted(calls, each)])
        of_all = alike.sum() == 1 and acts.start[each] == acts.start[calls[acts.rank[calls] == acts.rank[each]]].min()
        by_name = _is_first(graph, calls[alike], each, _MIN_NS)
        if of_all or by_name or _is_first(graph, calls[inside], each, _MIN_INSIDE_NS):
            found[each] = int(spent[each])
    return found


def _is_first(graph: DependencyGraph, alike: Array, call: int, least_ns: int) -> bool:
    """Return whether a call is its rank's first of some, and a long one, there and on most ranks."""
    acts = graph.activities
    alike = alike[np.lexsort((acts.start[alike], acts.rank[alike]))]
    ranks, begin = np.unique(acts.rank[alike], return_index=True)
    of_ranks = np.split(alike, begin[1:])
    own = of_ranks[int(np.searchsorted(ranks, acts.rank[call]))]
    if own[0] != call or not _is_long(acts.duration[own], least_ns):
        return False
    return float(np.mean([_is_long(acts.duration[each], least_ns) for each in of_ranks])) > _MOST


def _is_long(duration: Array, least_ns: int) -> bool:
    """Return whether the first of some durations is far longer than the later ones."""
    return len(duration) > 1 and int(duration[0]) >= max(least_ns, _TIMES * float(np.median(duration[1:])))
