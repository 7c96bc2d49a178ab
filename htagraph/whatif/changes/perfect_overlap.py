"""Perfect overlap: no other work waits for collectives. The gain is a ceiling for overlapping them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import State
from htagraph.whatif.rewire import collective_kernels, rewired

__all__ = ["perfect_overlap"]

_WAIT_EDGES = (EdgeKind.STREAM, EdgeKind.EVENT_WAIT, EdgeKind.HOST_SYNC, EdgeKind.USER)
_COMMUNICATION = (ActivityKind.COMMUNICATION, ActivityKind.HOST_COMMUNICATION, ActivityKind.JOIN)


def perfect_overlap(state: State, *, group: str | None = None) -> State:
    """Return the state where no other work waits for the collectives of some process groups.

    Streams, waiting kernels and blocking calls no longer wait for them. The collectives themselves wait as before, and
    other communication and the end of their step still wait for them. Computation after a collective on one stream
    follows the computation before it. The result is a ceiling: work may use data that has not arrived yet.

    Args:
        state: the weights so far.
        group: glob on the labels of process groups, or on the names of communication kernels of no known group; None
            means all.

    Raises:
        SelectionError: no communication kernel matches; the error names the process groups of the graph.
    """
    graph = state.graph
    rows = collective_kernels(graph, group, "perfect_overlap")
    acts, edges = graph.activities, graph.edges
    collective = np.zeros(len(acts), np.bool_)
    collective[rows] = True
    waits = np.isin(edges.kind, _WAIT_EDGES) & collective[edges.source // 2]
    target = edges.target // 2
    other = ~np.isin(acts.kind[target], (*_COMMUNICATION, ActivityKind.BOUNDARY, ActivityKind.STEP))
    vanish = waits & other
    freed = np.unique(target[vanish & (edges.kind == EdgeKind.STREAM) & (edges.target % 2 == 0)])
    chains = _chains(graph, collective, freed)
    vanished = int(vanish.sum())
    note = f"perfect_overlap: {len(rows)} collective kernels no longer delay other work ({vanished} waits vanished)"
    state = replace(state, notes=(*state.notes, note))
    edges, lag = Edges.concatenate([edges.take(~vanish), chains]), np.concatenate([state.lag[~vanish], chains.lag])
    return rewired(state, edges, lag, "perfect_overlap")


def _chains(graph: DependencyGraph, collective: npt.NDArray[np.bool_], freed: npt.NDArray[np.int64]) -> Edges:
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
