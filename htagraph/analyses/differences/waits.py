"""Own time of host code in which it waited for communication or for a device, known from when that ended."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.naming import is_poll, names_that
from htagraph.core.statistics import MOST, SEVERAL
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["awaited", "polled"]

_MAX_LEFT_SHARE = 0.1
"""How much of own time may come after the end of the communication that it waited for, as a share of it.

Chosen: a thread goes on at once when what it waits for ends. An end falls in there by chance one time in ten. Doubled,
one in five."""


def awaited(graph: DependencyGraph, whose: Array, begin: Array, end: Array, path: Array) -> npt.NDArray[np.int64]:
    """Return the communication on host threads that each piece of own time waits for; -1 where it does not wait.

    ``work.wait()`` leaves no event of its own: it is own time of whatever calls it, an operator, a step or a Python
    function, that ends when communication on another thread of the rank does. A thread that works all the time ends at
    other moments. So a call path waits if most of its own time ends just after communication that ran meanwhile.

    Args:
        graph: the job.
        whose: the activity of each piece.
        begin: when each begins, ns on the common clock.
        end: when it ends.
        path: the call path of each.
    """
    acts = graph.activities
    waits = np.full(len(whose), -1, np.int64)
    talks = np.flatnonzero(acts.kind == ActivityKind.HOST_COMMUNICATION)
    if not len(talks) or not len(whose):
        return waits
    ends = graph.time[2 * talks + 1]
    host = ~acts.on_device[whose] & ~of_kinds(acts.kind[whose], COMMUNICATION)
    for rank in np.unique(acts.rank[talks]).tolist():
        here = acts.rank[talks] == rank
        order = np.argsort(ends[here], kind="stable")
        those, until = talks[here][order], ends[here][order]
        rows = np.flatnonzero(host & (acts.rank[whose] == rank))
        at = np.searchsorted(until, end[rows], side="right") - 1
        last = those[np.maximum(at, 0)]
        late = end[rows] - until[np.maximum(at, 0)]
        meets = (at >= 0) & (late < _MAX_LEFT_SHARE * (end[rows] - begin[rows]))
        waits[rows[meets]] = last[meets]
    count = int(path.max(initial=-1)) + 1
    length = (end - begin).astype(np.float64)
    whole = np.bincount(path[host], length[host], count)
    waiting = np.bincount(path[waits >= 0], length[waits >= 0], count)
    waits[(waiting < MOST * whole)[path]] = -1
    return waits


def polled(graph: DependencyGraph, whose: Array, begin: Array, end: Array) -> npt.NDArray[np.int64]:
    """Return the device work that each piece of own time waits for in a loop of queries; -1 where there is none.

    A loop that asks a device again and again whether it is done, by ``cudaEventQuery`` or ``cudaStreamQuery``, waits
    for it: the number of its rounds is how long the device takes. It ends when device work of the rank does, between
    the last two queries.
    """
    acts, time = graph.activities, graph.time
    waits = np.full(len(whose), -1, np.int64)
    device = np.flatnonzero(acts.on_device)
    for first, before_last, last in _loops(graph):
        work = device[acts.rank[device] == acts.rank[first]]
        done = time[2 * work + 1]
        work = work[(done > time[2 * before_last]) & (done <= time[2 * last + 1])]
        if len(work):
            inside = (begin >= time[2 * first]) & (end <= time[2 * last + 1]) & ~acts.on_device[whose]
            inside &= acts.lane[whose] == acts.lane[first]
            waits[inside] = work[np.argmax(time[2 * work + 1])]
    return waits


def _loops(graph: DependencyGraph) -> list[tuple[int, int, int]]:
    """Return the (first, second last, last) query of each loop of queries with nothing else called in between."""
    acts = graph.activities
    asks = names_that(is_poll, graph.names)[acts.name]
    if not asks.any():
        return []
    rows = np.flatnonzero((acts.lane >= 0) & ~acts.on_device & ~_encloses(acts.kind))
    rows = rows[np.lexsort((graph.time[2 * rows], acts.lane[rows]))]
    bounds = np.flatnonzero(np.diff(asks[rows].astype(np.int8)) | np.diff(acts.lane[rows])) + 1
    runs = [run for run in np.split(rows, bounds) if len(run) >= SEVERAL and asks[run[0]]]
    return [(int(run[0]), int(run[-2]), int(run[-1])) for run in runs]


def _encloses(kind: Array) -> npt.NDArray[np.bool_]:
    """Return which kinds only name what runs inside them."""
    return of_kinds(kind, (ActivityKind.STEP, ActivityKind.ANNOTATION, ActivityKind.PYTHON, ActivityKind.BOUNDARY))
