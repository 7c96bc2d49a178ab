"""Remove: leave some activities out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.kinds import ADDED, COMMUNICATION, TRANSFERS, ActivityKind, EdgeKind, GapKind, of_kinds
from htagraph.core.naming import is_collective_call, names_that
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import backward_of
from htagraph.queries.change_scope import activities_of, asked_by
from htagraph.queries.host_time import device_waits
from htagraph.queries.weights import State, of_kind, own_time, released, time_of, weighed, with_factor, without_waits
from htagraph.whatif.rewire import with_scope_note

__all__ = ["remove"]


def remove(state: State, /, **criteria: Any) -> State:  # noqa: ANN401 - those of graph.select
    """Return the state without the selected activities.

    The selected activities take no time. For kernels and copies, neither do the call that launched only them, the pause
    before them and the wait for their launch; later work on the stream still waits for whatever the removed work waited
    for. A removed call that blocks, such as the synchronization in ``aten::item`` or a ``cudaFree``, no longer waits
    for the device. No rank waits for a removed collective, and the collective that a removed operator asked for goes
    with the operator. An operator that encloses only removed operators, such as an autograd node, is left out too. Of
    the Python code before and after a removed operator on its thread, the longer stretch stays: one of the two
    stretches prepared the call.

    Args:
        **criteria: which activities; see `DependencyGraph.select`.

    Raises:
        SelectionError: nothing meets the criteria; the error names activities that would.
    """
    graph, edges = state.graph, state.graph.edges
    chosen = activities_of(state, criteria)
    time, before_change = own_time(state, criteria, loader=True), state
    state = with_factor(state, replace(time, fixed=np.zeros(len(time.edges), np.int64)), 0.0)
    state = _without_communication(state, chosen)
    state = _without_calls(state, chosen)
    state = with_scope_note(state, before_change, time, criteria, "removed")
    state = _with_backward_note(state, chosen, criteria)
    work = np.flatnonzero(chosen[:-1] & graph.activities.on_device)
    calls = marked(_launching_only(graph, work), len(chosen))
    before = marked(np.concatenate((2 * work, 2 * np.flatnonzero(calls) + 1)), graph.vertex_count)
    into = before[edges.target]
    own = of_kind(graph, EdgeKind.BODY) & calls[edges.activity]
    pauses = into & of_kind(graph, EdgeKind.STREAM, EdgeKind.EVENT_WAIT) & graph.activities.on_device[edges.source >> 1]
    state = weighed(state, own | pauses, np.minimum(state.lag[own | pauses], 0), before)
    waits = of_kind(graph, EdgeKind.LAUNCH, EdgeKind.GRAPH, EdgeKind.QUEUE_FULL, EdgeKind.MEMCPY_SYNC)
    blocking = device_waits(graph, chosen)
    meets = of_kind(graph, *TRANSFERS)
    meets &= chosen[edges.target >> 1] | chosen[edges.source >> 1] | (chosen[edges.activity] & (edges.activity >= 0))
    state = replace(state, unblocked=(*state.unblocked, np.flatnonzero(chosen)))
    return released(without_waits(state, blocking), (into & waits) | meets)


def _with_backward_note(state: State, chosen: Mask, criteria: dict[str, Any]) -> State:
    """Return the state with a note on the backward pass of what was removed, where that stays."""
    graph = state.graph
    forward = criteria.get("op") or criteria.get("name")
    left = backward_of(graph, chosen[:-1]) & ~chosen[:-1]
    if not left.any() or forward is None:
        return state
    outermost = graph.tree.outermost(left)
    outermost = outermost[~graph.activities.on_device[outermost]]
    ms = int(graph.activities.duration[outermost].sum()) / 1e6
    operators = "1 operator" if len(outermost) == 1 else f"{len(outermost):,} operators"
    return state.with_note(
        f"its backward pass stays ({operators}, {ms:,.3g} ms on the host); "
        f"remove(backward_of={forward!r}) leaves it out too"
    )


def _without_communication(state: State, chosen: Mask) -> State:
    """Return the state without the communication that removed operators asked for; it is marked in `chosen`."""
    graph = state.graph
    kind = graph.activities.kind
    asking = names_that(is_collective_call, graph.names)[graph.activities.name] & (kind == ActivityKind.OP)
    removed = asking & chosen[:-1]
    asked = asked_by(graph, removed) | (graph.tree.inside(removed) & of_kinds(kind, COMMUNICATION))
    if not (asked & ~chosen[:-1]).any():
        return state
    nowhere = np.zeros(len(kind), np.bool_)
    time = time_of(state, np.append(asked & ~chosen[:-1], False), loader=False, outside=nowhere)
    chosen[:-1] |= asked
    return with_factor(state, replace(time, fixed=np.zeros(len(time.edges), np.int64)), 0.0)


def _without_calls(state: State, chosen: Mask) -> State:
    """Return the state without operators around nothing but removed ones, and without the pauses for their calls."""
    graph = state.graph
    kind, tree = graph.activities.kind, graph.tree
    removed = chosen[:-1] & (kind == ActivityKind.OP)
    if not removed.any():
        return state
    work = ~of_kinds(kind, (ActivityKind.PYTHON, *ADDED))
    left = np.concatenate(([0], np.cumsum((work & ~chosen[:-1])[tree.order])))
    nothing_left = left[tree.stop] == left[tree.first + 1]
    around = (kind == ActivityKind.OP) & ~removed & nothing_left & tree.around(removed)
    around |= (kind == ActivityKind.PYTHON) & tree.inside(around)
    nowhere = np.zeros(len(kind), np.bool_)
    state = with_factor(state, time_of(state, np.append(around, False), loader=False, outside=nowhere), 0.0)
    gone = tree.outermost((removed & nothing_left) | around)
    return _with_merged_pauses(state, gone)


def _with_merged_pauses(state: State, gone: Ints) -> State:
    """Return the state where of the pauses around a removed activity, or a row of them, only the longest stays."""
    graph = state.graph
    behind = np.full(graph.vertex_count, -1, np.int64)
    order = np.flatnonzero(of_kind(graph, EdgeKind.HOST_ORDER))
    behind[graph.edges.source[order]] = graph.edges.target[order]
    gone = gone[(behind[2 * gone + 1] >= 0) & ~graph.activities.on_device[gone]]
    gone = gone[np.lexsort((graph.time[2 * gone], graph.activities.lane[gone]))]
    if not len(gone):
        return state
    opens = np.append(True, behind[2 * gone[:-1] + 1] != 2 * gone[1:])
    row = np.cumsum(opens) - 1
    last = np.append(opens[1:], True)
    vertices = np.concatenate((2 * gone, behind[2 * gone[last] + 1]))
    row = np.concatenate((row, row[last]))
    pause = graph.gap_kind[vertices] == GapKind.HOST_UNTRACED
    vertices, row = vertices[pause], row[pause]
    ends = np.lexsort((state.gap[vertices], row))
    keep = np.append(np.diff(row[ends]) != 0, True)[: len(ends)]
    return weighed(state, np.zeros(0, np.int64), 0, vertices[ends[~keep]])


def _launching_only(graph: DependencyGraph, work: Ints) -> Ints:
    """Return the calls that launched some of this device work and no other."""
    acts = graph.activities
    launched = np.bincount(acts.cause[acts.on_device & (acts.cause >= 0)], minlength=len(acts))
    cause = acts.cause[work]
    removed = np.bincount(cause[cause >= 0], minlength=len(acts))
    return np.flatnonzero((removed > 0) & (removed == launched) & (acts.kind == ActivityKind.LAUNCH))
