"""Perfect overlap: communication runs beside other work. The gain is what overlapping it can give at most."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance, edges_with, of_kinds
from htagraph.graph.activities import Edges
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.change_scope import asked_at
from htagraph.queries.weights import State
from htagraph.whatif.rewire import STILL_WAITING, collective_members, first_gradient, waits_for, with_other_edges

__all__ = ["perfect_overlap"]


def perfect_overlap(state: State, /, *, group: str | None = None) -> State:
    """Return the state where communication of some process groups runs beside other work as far as it can.

    On devices, streams, waiting kernels and blocking calls no longer wait for the collectives. The collectives
    themselves wait as before, and other communication and the end of their step still wait for them. Computation after
    a collective on one stream follows the computation before it. The result is a ceiling: work may use data that has
    not arrived yet.

    On host threads (gloo), communication that carries gradients begins as soon as the first of them is ready, and the
    work that waited for its end still does: DistributedDataParallel does the same with small buckets. In the interval,
    work before the optimizer's next step need not wait. For other communication on host threads nothing waits any more.

    Args:
        group: glob on the labels of process groups, or on the names of communication of no known group; None means all.

    Raises:
        SelectionError: no communication matches; the error names the process groups of the graph.
    """
    graph = state.graph
    rows = collective_members(graph, group, "perfect_overlap")
    on_device = graph.activities.on_device[rows]
    state = _on_devices(state, rows[on_device]) if on_device.any() else state
    return _on_hosts(state, rows[~on_device]) if not on_device.all() else state


def _on_devices(state: State, rows: Ints) -> State:
    graph = state.graph
    acts, edges = graph.activities, graph.edges
    collective = marked(rows, len(acts))
    target = edges.target // 2
    vanish = of_kinds(edges.kind, edges_with("work")) & collective[edges.source // 2]
    vanish &= ~of_kinds(acts.kind[target], STILL_WAITING)
    freed = np.unique(target[vanish & (edges.kind == EdgeKind.STREAM) & (edges.target % 2 == 0)])
    chains, count = _chains(graph, collective, freed), int(vanish.sum())
    note = f"{len(rows)} collective kernels no longer delay other work ({count} waits vanished)"
    ideal = state.with_note(note).as_ceiling("perfect_overlap")
    return with_other_edges(ideal, ~vanish, chains, "perfect_overlap")


def _on_hosts(state: State, rows: Ints) -> State:
    graph = state.graph
    edge = asked_at(graph, rows)
    known = edge >= 0
    call = graph.edges.source[edge[known]]
    gradient = first_gradient(graph, rows[known], graph.time[call])
    early = gradient >= 0
    vanish = waits_for(graph, np.setdiff1d(rows, rows[known][early]))
    note = (
        f"{int(early.sum())} collectives on host threads begin with their first gradient; for "
        f"{len(rows) - int(early.sum())} nothing waits any more ({int(vanish.sum())} waits vanished)"
    )
    vanish[edge[known][early]] = True
    state = replace(state, sooner=(*state.sooner, rows[known][early]))
    begin = Edges.of(
        2 * gradient[early] + 1, 2 * rows[known][early], 0, EdgeKind.THREAD, Provenance.INFERRED,
        confidence=graph.edges.confidence[edge[known][early]],
    )  # fmt: skip
    return with_other_edges(state.with_note(note), ~vanish, begin, "perfect_overlap")


def _chains(graph: DependencyGraph, collective: Mask, freed: Ints) -> Edges:
    """Return STREAM edges that keep the order on streams: among other work up to `freed`, and in communication."""
    acts = graph.activities
    lanes = np.unique(acts.lane[freed])
    work = np.flatnonzero(acts.on_device & np.isin(acts.lane, lanes))
    work = work[np.lexsort((acts.start[work], acts.lane[work]))]
    sources, targets = [], []
    talks = collective[work] | (acts.kind[work] == ActivityKind.COMMUNICATION)
    for part, wanted in ((work[~collective[work]], freed), (work[talks], None)):
        source, target = part[:-1], part[1:]
        fits = acts.lane[source] == acts.lane[target]
        if wanted is not None:
            fits &= np.isin(target, wanted)
        over = acts.end[source] <= acts.start[target]  # branches of one CUDA graph may overlap
        sources.append((2 * source + over)[fits])
        targets.append(2 * target[fits])
    return Edges.of(np.concatenate(sources), np.concatenate(targets), 0, EdgeKind.STREAM, Provenance.ORDER)
