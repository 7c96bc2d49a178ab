"""Other ways to read a recording: waits that may not exist, and waits that may be missing.

Each gives a state in which the recording itself is reproduced as exactly as before, so that the same changes can be
replayed on it: how far the predictions differ is how much the doubt matters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, distinct
from htagraph.core.computing import once
from htagraph.core.kinds import COMMUNICATION, UNCERTAIN, ActivityKind, EdgeKind, GapKind, Provenance, of_kinds
from htagraph.graph.activities import Edges
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.waits import lacks_members
from htagraph.queries.weights import NEVER, State, edges_into, of_kind, released
from htagraph.whatif.rewire import with_waits

__all__ = [
    "after_communication", "hidden_in_pauses", "with_possible_waits", "with_waits_for_absent_ranks",
    "without_doubtful_waits",
]  # fmt: skip


_MIN_PAUSE_NS = 100_000
"""ns: a shorter pause of a thread is not taken for a possible wait. Chosen, as in `graph.gaps`: Python between two
operators takes 5 to 50 µs. Doubled, waits of 0.1 to 0.2 ms do not widen an interval."""
_MAX_WAKE_NS = 300_000
"""ns: a pause that ends within this time after other work of the rank ended may have been a wait for it. Chosen: a
thread that waits in Python wakes up within 0.1 to 0.2 ms. Doubled, more pauses are taken for possible waits by
chance."""


def without_doubtful_waits(state: State) -> State | None:
    """Return the state in which uncertain dependencies do not exist; None if there are none.

    What they explained in the recording stays as a pause of the same length.
    """
    graph, edges = state.graph, state.graph.edges
    rows = _uncertain(graph)
    rows = rows[state.lag[rows] > NEVER]
    if not len(rows):
        return None
    doubtful = np.zeros(len(edges), np.bool_)
    doubtful[rows] = True
    vertices = distinct(edges.target[rows], graph.vertex_count)
    into = edges_into(graph, vertices)
    into = into[state.lag[into] > NEVER]
    target, allowed = np.searchsorted(vertices, edges.target[into]), graph.time[edges.source[into]] + edges.lag[into]
    with_all, without = np.full((2, len(vertices)), NEVER)
    for latest, keep in ((with_all, slice(None)), (without, ~doubtful[into])):
        np.maximum.at(latest, target[keep], allowed[keep])
    left = without > NEVER
    gap = state.gap.copy()
    gap[vertices[left]] += np.maximum(with_all - without, 0)[left]
    doubtful[into] &= left[target]
    return replace(released(state, doubtful), gap=gap)


@once
def _uncertain(graph: DependencyGraph) -> Array:
    """Return the uncertain edges."""
    return np.flatnonzero(graph.edges.confidence < UNCERTAIN)


def with_waits_for_absent_ranks(state: State) -> State | None:
    """Return the state in which all that looks like transfer is waiting for ranks that were not recorded.

    Where members of a group were not recorded, nothing tells which of the two it is. None if there is no such group, or
    if no transfer of one was changed.
    """
    recorded, (rows, ends) = state.graph, _at_absent_members(state.graph)
    was = recorded.edges.lag[rows]
    changed = (state.lag[rows] > NEVER) & (state.lag[rows] != was)
    rows, was, ends = rows[changed], was[changed], ends[state.gap[ends] != recorded.gap[ends]]
    if not len(rows) and not len(ends):
        return None
    lag, gap = state.lag.copy(), state.gap.copy()
    lag[rows], gap[ends] = was, recorded.gap[ends]
    return replace(state, lag=lag, gap=gap)


@once
def _at_absent_members(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return the edges and the vertices of communication whose group is not in the graph on all its ranks."""
    lacks = np.append(lacks_members(graph), [False])
    rows = np.flatnonzero(lacks)
    return np.flatnonzero(lacks[graph.edges.activity]), np.concatenate((2 * rows, 2 * rows + 1))


def with_possible_waits(state: State) -> State | None:
    """Return the state with waits that the recording may not show; None if there are none.

    - Communication whose end no other work waits for: the caller's next moment may wait for it. In the recording it
      was over in time.
    - A pause of a host thread that ends right after other work of its rank ended: it may have been a wait for that.
    """
    graph = state.graph
    (source, target), (ends, nexts) = hidden_in_pauses(graph), after_communication(graph)
    still = state.gap[target] == graph.gap[target]  # where a change took the pause, nothing is left to explain
    if not still.any() and not len(ends):
        return None
    waits = graph.time[target] - graph.time[source]
    new = Edges.of(
        np.concatenate((source, ends)), np.concatenate((target, nexts)),
        np.concatenate((waits, np.zeros(len(ends), np.int64))), EdgeKind.THREAD, Provenance.INFERRED, confidence=1,
    )  # fmt: skip
    gap = state.gap.copy()
    gap[target[still]] = 0
    lag = new.lag.copy()
    lag[: len(still)][~still] = NEVER  # in the graph all the same, which is kept for the next change
    return with_waits(replace(state, gap=gap), new, lag, "possible waits")  # None: two exclude each other


@once
def hidden_in_pauses(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return (what may have been waited for, the vertices that then waited): ends and moments after a pause."""
    acts, time = graph.activities, graph.time
    kinds = (GapKind.HOST_UNTRACED, GapKind.THREAD_IDLE)
    paused = np.flatnonzero((graph.gap >= _MIN_PAUSE_NS) & of_kinds(graph.gap_kind, kinds))
    sources, targets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    work = of_kinds(acts.kind, (ActivityKind.OP, ActivityKind.HOST_COMMUNICATION)) | acts.on_device
    for rank in np.unique(acts.rank[paused >> 1]).tolist():
        of_rank = acts.of_rank(rank)
        rows = of_rank.start + np.flatnonzero(work[of_rank])
        rows = rows[np.argsort(time[2 * rows + 1], kind="stable")]
        wanted = paused[acts.rank[paused >> 1] == rank]
        if not len(rows):
            continue
        ends = time[2 * rows + 1]
        at = np.searchsorted(ends, time[wanted], side="right") - 1
        row, end = rows[np.maximum(at, 0)], ends[np.maximum(at, 0)]
        near = (at >= 0) & (time[wanted] - end <= _MAX_WAKE_NS) & (end > time[wanted] - graph.gap[wanted])
        near &= acts.lane[row] != acts.lane[wanted >> 1]
        sources.append(2 * row[near] + 1)
        targets.append(wanted[near])
    return np.concatenate(sources), np.concatenate(targets)


@once
def after_communication(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return (ends of communication that nothing waits for, the next moment on the thread that called for it)."""
    acts, edges, time = graph.activities, graph.edges, graph.time
    ends = 2 * np.flatnonzero(of_kinds(acts.kind, COMMUNICATION)) + 1
    leaves = ~of_kind(graph, EdgeKind.STEP, EdgeKind.HOST_ORDER, EdgeKind.STREAM)
    leaves |= acts.lane[edges.source >> 1] != acts.lane[edges.target >> 1]
    leaves &= edges.kind != EdgeKind.STEP
    awaited = np.zeros(graph.vertex_count, np.bool_)
    awaited[edges.source[leaves]] = True
    ends = ends[~awaited[ends]]
    sources, targets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for rank in np.unique(acts.rank[ends >> 1]).tolist():
        wanted = ends[acts.rank[ends >> 1] == rank]
        later = _moments_of_caller(graph, rank)
        at = np.searchsorted(time[later], time[wanted])
        known = at < len(later)
        sources.append(wanted[known])
        targets.append(later[at[known]])
    return np.concatenate(sources), np.concatenate(targets)


def _moments_of_caller(graph: DependencyGraph, rank: int) -> npt.NDArray[np.int64]:
    """Return the moments at which the computation of a rank may go on, by time.

    With computation on a device, the starts of kernels on its busiest stream; else the moments of the thread with
    steps.
    """
    acts = graph.activities
    of_rank = acts.of_rank(rank)
    kind, lane = acts.kind[of_rank], acts.lane[of_rank]
    busy = kind == ActivityKind.COMPUTATION
    on_host = not busy.any()
    if on_host:
        with_steps = np.unique(lane[kind == ActivityKind.STEP])
        busy = (kind == ActivityKind.OP) & (np.isin(lane, with_steps) | (not len(with_steps)))
    if not busy.any():
        return np.zeros(0, np.int64)
    on_lane = of_rank.start + np.flatnonzero(busy & (lane == np.argmax(np.bincount(lane[busy]))))
    vertices = np.concatenate((2 * on_lane, 2 * on_lane + 1)) if on_host else 2 * on_lane
    return vertices[np.argsort(graph.time[vertices], kind="stable")]
