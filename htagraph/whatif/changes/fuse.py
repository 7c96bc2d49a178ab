"""Kernels that follow each other on one stream become one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from htagraph.core.arrays import Ints, marked
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance, edges_with, of_kinds
from htagraph.graph.activities import Activities, Edges
from htagraph.queries.weights import NEVER, State
from htagraph.whatif.rewire import rewired

__all__ = ["fuse"]


def fuse(state: State, /, **criteria: Any) -> State:  # noqa: ANN401 - those of `DependencyGraph.select`
    """Return the state where each run of selected kernels that follow each other on one stream is one kernel.

    The durations of the kernels add up, and the pauses between the kernels vanish. All launch calls but the first
    vanish; the host time of the operators around these calls stays. Work that waits for any kernel of a run waits for
    the last. A run ends where other work lies between, where a step ends, and before a kernel that also waits for
    another stream.

    Args:
        **criteria: which kernels; communication never fuses.

    Raises:
        SelectionError: no two of the selected kernels follow each other.
    """
    graph = state.graph
    before, after = _pairs(state, graph.select(**criteria).activities, criteria)
    acts, edges = graph.activities, graph.edges
    last = np.arange(len(acts))
    for one, other in zip(before[::-1].tolist(), after[::-1].tolist(), strict=True):
        last[one] = last[other]  # pairs come in the order of their streams
    joins = marked(2 * after, graph.vertex_count)
    calls = _vanishing_calls(acts, after)
    gone = marked(calls, len(acts))
    stays = ~joins[edges.target] & ~(of_kinds(edges.kind, edges_with("call")) & gone[edges.target // 2])
    lag = np.where((edges.kind == EdgeKind.BODY) & gone[edges.activity], 0, state.lag)[stays]
    kept = edges.take(stays)
    source = np.where(kept.source % 2 == 1, 2 * last[kept.source // 2] + 1, kept.source)
    kept = replace(kept, source=source.astype(np.int32))
    chain = Edges.of(2 * before + 1, 2 * after, 0, EdgeKind.STREAM, Provenance.ORDER)
    runs = len(np.setdiff1d(before, after))
    note = f"{runs + len(after)} kernels became {runs}; {len(calls)} launch calls vanished"
    state = replace(state, gap=np.where(joins, 0, state.gap)).with_note(note)
    return rewired(state, Edges.concatenate([kept, chain]), np.concatenate([lag, chain.lag]), "fuse")


def _pairs(state: State, selected: Ints, criteria: dict[str, Any]) -> tuple[Ints, Ints]:
    """Return the selected neighbours (the one before, the one after) by stream and time."""
    acts, edges = state.graph.activities, state.graph.edges
    chosen = marked(selected, len(acts)) & of_kinds(acts.kind, (ActivityKind.COMPUTATION, ActivityKind.MEMORY))
    work = np.flatnonzero(acts.on_device)
    work = work[np.lexsort((acts.start[work], acts.lane[work]))]
    before, after = work[:-1], work[1:]
    previous = np.full(len(acts), -1, np.int64)
    previous[after] = before
    other = ~of_kinds(edges.kind, edges_with("enqueued")) & (edges.target % 2 == 0) & (state.lag > NEVER)
    other &= edges.source // 2 != previous[edges.target // 2]
    waits = marked(edges.target[other] // 2, len(acts))
    fits = chosen[before] & chosen[after] & ~waits[after]
    fits &= (acts.lane[before] == acts.lane[after]) & (acts.step[before] == acts.step[after])
    if not fits.any():
        asked = ", ".join(f"{name}={value!r}" for name, value in criteria.items())
        msg = (
            f"fuse({asked}): no two of the {int(chosen.sum())} selected kernels follow each other on one stream "
            "without other work, a step's end or a wait for another stream between them"
        )
        raise SelectionError(msg)
    return before[fits], after[fits]


def _vanishing_calls(acts: Activities, after: Ints) -> Ints:
    """Return the launch calls whose kernels are all fused with kernels launched before."""
    calls = acts.cause[after]
    calls = np.unique(calls[(calls >= 0) & (acts.kind[calls] == ActivityKind.LAUNCH)])
    launches_more = acts.on_device.copy()
    launches_more[after] = False
    causes = acts.cause[launches_more]
    return calls[~marked(causes[causes >= 0], len(acts))[calls]].astype(np.int64)
