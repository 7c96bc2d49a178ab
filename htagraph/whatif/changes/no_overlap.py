"""No overlap: collectives run in line with the computation. The loss is what overlap gains today."""

from __future__ import annotations

import numpy as np

from htagraph.core.arrays import Ints, joined
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.change_scope import asked_at
from htagraph.queries.weights import State
from htagraph.whatif.rewire import collective_members, launch_order, next_moment, with_other_edges

__all__ = ["no_overlap"]


def no_overlap(state: State, /, *, group: str | None = None) -> State:
    """Return the state where the collectives of some process groups run in line with their rank's computation.

    A collective starts when all computation launched before it, on any stream of its rank, has ended, and computation
    launched after it starts when it has ended. This applies to all ranks. A thread that asks for a collective on host
    threads (gloo) goes on when the collective has ended.

    Args:
        group: glob on the labels of process groups, or on the names of communication of no known group; None means
            all.

    Raises:
        SelectionError: no communication matches; the error names the process groups of the graph.
        GraphError: ranks launch collectives in conflicting orders; the error names the cycle.
    """
    graph = state.graph
    rows = collective_members(graph, group, "no_overlap")
    acts = graph.activities
    if not acts.on_device[rows].all():
        state = _on_hosts(state, rows[~acts.on_device[rows]])
    graph, rows = state.graph, rows[acts.on_device[rows]]
    if not len(rows):
        return state
    ranks = np.unique(acts.rank[rows]).tolist()
    source, target = joined((_in_line(graph, rank, rows[acts.rank[rows] == rank]) for rank in ranks), 2)
    new = Edges.of(2 * source + 1, 2 * target, 0, EdgeKind.STREAM, Provenance.ORDER)
    note = f"{len(rows)} collective kernels run in line with the computation"
    state = state.with_note(note)
    return with_other_edges(state, None, new, "no_overlap")


def _on_hosts(state: State, rows: Ints) -> State:
    """Return the state where the thread that asks for communication on host threads waits for its end."""
    graph = state.graph
    edge = asked_at(graph, rows)
    rows, edge = rows[edge >= 0], edge[edge >= 0]
    after = next_moment(graph, graph.edges.source[edge] >> 1)
    rows, after = rows[after >= 0], after[after >= 0]
    if not len(rows):
        reason = "which thread asked for collectives on host threads is not known: they stay"
        return state.with_reason(reason)
    new = Edges.of(2 * rows + 1, after, 0, EdgeKind.THREAD, Provenance.INFERRED)
    state = state.with_note(f"{len(rows)} collectives on host threads run while their thread waits")
    return with_other_edges(state, None, new, "no_overlap")


def _in_line(graph: DependencyGraph, rank: int, rows: Ints) -> tuple[Ints, Ints]:
    """Return (work, work that waits for its end): each collective between its neighbours on every computing stream."""
    acts = graph.activities
    of_rank = acts.of_rank(rank)
    compute = of_rank.start + np.flatnonzero(acts.kind[of_rank] == ActivityKind.COMPUTATION)
    sources, targets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for lane in np.unique(acts.lane[compute]).tolist():
        order = launch_order(graph, np.concatenate([compute[acts.lane[compute] == lane], rows]))
        collective = np.isin(order, rows)
        place = np.arange(len(order))
        before = np.maximum.accumulate(np.where(collective, -1, place))  # the last computation up to each place
        after = np.minimum.accumulate(np.where(collective, len(order), place)[::-1])[::-1]
        has_before, has_after = collective & (before >= 0), collective & (after < len(order))
        sources += [order[before[has_before]], order[has_after]]
        targets += [order[has_before], order[after[has_after]]]
    return np.concatenate(sources), np.concatenate(targets)
