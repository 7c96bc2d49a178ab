"""What is left of an edge's lag once all edges are known: calls that waited shrink, short pauses go to their cause."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from htagraph.core.kinds import EdgeKind
from htagraph.graph.activities import Activities, Edges
from htagraph.graph.evidence.job import Job

__all__ = ["settle"]

_UNKNOWN_OWN_NS = 3_000  # what a blocking call takes where every instance of it waited
_PAUSE_NS = 30_000  # longer pauses than this are no property of the device
_RETURN_NS = 200_000  # a blocked host thread is back by then; 130 µs were seen
_MEETINGS = (EdgeKind.COLLECTIVE, EdgeKind.P2P)
_BLOCKING = (EdgeKind.HOST_SYNC, EdgeKind.MEMCPY_SYNC, EdgeKind.QUEUE_FULL)
_STARTS = (EdgeKind.LAUNCH, EdgeKind.GRAPH, EdgeKind.STREAM, EdgeKind.EVENT_WAIT)


def settle(job: Job, edges: Edges) -> Edges:
    """Return the edges with the lags that a what-if can trust.

    A call that waited takes as long as its class does when nothing is pending; the rest of its duration is the wait,
    which follows from its other edge. What is then left before a moment is put on the edge that held it up: the latency
    of this launch, the pause of this stream, the return of this call. Only that edge: under other circumstances another
    one holds it up, with a latency of its own. What is too long for that stays a gap, and is reported as unexplained.
    """
    lag = edges.lag.copy()
    source, target = job.moment(edges.source), job.moment(edges.target)
    at_wait = np.isin(edges.kind, _BLOCKING + _MEETINGS) & (edges.target % 2 == 1)
    bodies = np.zeros(0, np.int64)
    if at_wait.any():
        bodies = _shrink(job.activities, edges, lag, source, at_wait)
    _hand_overs(edges, lag)
    held = np.isin(edges.kind, _STARTS) & job.activities.on_device[edges.target // 2] & (edges.target % 2 == 0)
    waits = at_wait & np.isin(edges.target, edges.target[bodies])
    held |= waits
    held[bodies] = True
    rows = np.flatnonzero(held)
    best = np.full(2 * len(job.activities), np.iinfo(np.int64).min)
    allowed = source[rows] + lag[rows]
    np.maximum.at(best, edges.target[rows], allowed)
    rest = target[rows] - best[edges.target[rows]]
    mine = (allowed == best[edges.target[rows]]) & (rest > 0) & (rest <= _limits(job, edges)[rows])
    lag[rows[mine]] += rest[mine]
    _return(edges, lag, source, target, bodies)
    idle = np.flatnonzero(at_wait & ~waits)
    lag[idle] = np.minimum(target[idle] - source[idle], _usual_returns(edges, lag, waits)[edges.kind[idle]])
    return replace(edges, lag=lag)


def _hand_overs(edges: Edges, lag: np.ndarray) -> None:
    """Set, in `lag`, a caller's own stretch to 0 where it stood still until another thread was done."""
    joins = np.flatnonzero(edges.kind == EdgeKind.THREAD)
    awaiting = np.flatnonzero((edges.kind == EdgeKind.BODY) & np.isin(edges.target, edges.target[joins]))
    lag[awaiting] = 0


def _shrink(acts: Activities, edges: Edges, lag: np.ndarray, source: np.ndarray, at_wait: np.ndarray) -> np.ndarray:
    """Cut, in `lag`, the last slice of activities that waited to their own cost; return those BODY edges."""
    awaited = np.full(len(acts), np.iinfo(np.int64).min)
    waits = np.flatnonzero(at_wait)
    np.maximum.at(awaited, edges.target[waits] // 2, source[waits])
    meets = np.zeros(len(acts), np.bool_)
    meets[edges.target[waits[np.isin(edges.kind[waits], _MEETINGS)]] // 2] = True
    last = (edges.kind == EdgeKind.BODY) & (edges.target == 2 * edges.activity + 1)
    waited = last & ((awaited[edges.activity] > source) | meets[edges.activity])
    own = _own_cost(acts, edges, lag, last, waited)
    bodies = np.flatnonzero(waited)
    lag[bodies] = np.where(meets[edges.activity[bodies]], 0, np.minimum(lag[bodies], own))
    return bodies


def _own_cost(acts: Activities, edges: Edges, lag: np.ndarray, last: np.ndarray, waited: np.ndarray) -> np.ndarray:
    """Return for each call that waited the median duration of the rank's calls of that name that did not."""
    key = acts.rank.astype(np.int64) << 32 | acts.name
    wanted = key[edges.activity[waited]]
    classes = np.unique(wanted)
    free = np.flatnonzero(last & ~waited)
    free = free[np.isin(key[edges.activity[free]], classes)]
    of_class = np.full(len(classes), _UNKNOWN_OWN_NS)
    member = np.searchsorted(classes, key[edges.activity[free]])
    order = np.lexsort((lag[free], member))
    first = np.searchsorted(member[order], np.arange(len(classes) + 1))
    some = first[1:] > first[:-1]
    of_class[some] = lag[free][order][((first[1:] + first[:-1]) // 2)[some]]
    return of_class[np.searchsorted(classes, wanted)]


def _usual_returns(edges: Edges, lag: np.ndarray, waits: np.ndarray) -> np.ndarray:
    """Return by EdgeKind how long calls take to return that waited: those that found nothing pending would as well."""
    usual = np.zeros(len(EdgeKind), np.int64)
    for kind in _BLOCKING:
        seen = lag[waits & (edges.kind == kind)]
        usual[kind] = max(0, int(np.median(seen))) if len(seen) else 0
    return usual


def _limits(job: Job, edges: Edges) -> np.ndarray:
    """Return how much of a pause each edge may take upon itself, ns."""
    limit = np.zeros(len(EdgeKind), np.int64)
    limit[list(_STARTS)] = _PAUSE_NS
    limit[list(_BLOCKING)] = _RETURN_NS
    limit[list(_MEETINGS)] = np.iinfo(np.int64).max  # how long a transfer takes is what was to be known
    of_edge = limit[edges.kind]
    launched = np.isin(edges.kind, (EdgeKind.LAUNCH, EdgeKind.GRAPH))
    of_edge[launched] += job.activities.duration[edges.source[launched] // 2]  # loading a kernel's module, for example
    return of_edge


def _return(edges: Edges, lag: np.ndarray, source: np.ndarray, target: np.ndarray, bodies: np.ndarray) -> None:
    """Give calls that returned long after all they are thought to have waited for their time back: it was their own.

    Where an id proves what was waited for, the rest stays a gap.
    """
    if not len(bodies):
        return
    count = int(edges.target.max()) + 1
    best, sure = np.full(count, np.iinfo(np.int64).min), np.zeros(count, np.bool_)
    into = np.flatnonzero(np.isin(edges.target, edges.target[bodies]))
    np.maximum.at(best, edges.target[into], source[into] + lag[into])
    sure[edges.target[into[np.isin(edges.kind[into], _BLOCKING) & (edges.confidence[into] == 100)]]] = True
    own = bodies[(target[bodies] > best[edges.target[bodies]]) & ~sure[edges.target[bodies]]]
    lag[own] = target[own] - source[own]
