"""CUDA graph: all kernels launched in a range are launched at once, by the first launch."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from htagraph.core.arrays import marked
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import DEVICE_WAITS, ActivityKind, EdgeKind, GapKind, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import IntSelector
from htagraph.queries.weights import NEVER, ChangeError, State, checked, of_kind, released

__all__ = ["cuda_graph"]

Window: TypeAlias = tuple[int, int, int]  # rank, first and last moment


def cuda_graph(
    state: State, /, *, step: IntSelector = None, start_us: float | None = None, end_us: float | None = None,
    rank: IntSelector = None,
) -> State:  # fmt: skip
    """Return the state in which the device work of a range is one CUDA graph.

    Inside the range, the launching threads take no time except for the first launch; all kernels start from this
    launch, with its latency. The order and the pauses of the streams, waits between streams and waits for data stay.

    Args:
        step: the range is the annotations of these steps on each rank.
        start_us: the start of the range, in place of `step`, µs on the common clock since the job's first moment.
        end_us: end of the range, µs likewise.
        rank: only these ranks.

    Raises:
        SelectionError: no range or no launch in it, or the host waits for the device inside it: names the call.
    """
    graph = state.graph
    windows = _windows(graph, step, start_us, end_us, rank)
    inside, calls = _inside(graph, windows)
    _refuse_syncs(state, inside)
    edges = graph.edges
    latency = of_kind(graph, EdgeKind.LAUNCH, EdgeKind.GRAPH)
    lag = state.lag.copy()
    own = of_kind(graph, EdgeKind.BODY, EdgeKind.THREAD) & inside[edges.source] & inside[edges.target]
    lag[own] = np.minimum(lag[own], 0)
    for number, low, high in windows:
        launches = calls[graph.activities.rank[calls] == number]
        launches = launches[(graph.time[2 * launches] >= low) & (graph.time[2 * launches] < high)]
        if not len(launches):
            continue
        launches = launches[np.argsort(graph.time[2 * launches], kind="stable")]
        first = launches[0]
        launched = marked(launches, len(graph.activities))
        rows = np.flatnonzero(latency & launched[edges.source >> 1] & (state.lag > NEVER))
        its = rows[edges.source[rows] >> 1 == first]
        lag[rows] = state.lag[its].min() if len(its) else state.lag[rows]
        # the first call's own cost comes last on its thread, so that it holds up no other work of the graph
        last = launches[graph.activities.lane[launches] == graph.activities.lane[first]][-1]
        lag[np.flatnonzero(own & (edges.activity == last))[-1:]] = state.lag[own & (edges.activity == first)].sum()
    gap = np.where(_hurried(graph, inside), 0, state.gap)
    state = replace(state, lag=lag, gap=gap)
    return released(state, of_kind(graph, EdgeKind.QUEUE_FULL) & inside[edges.target])


def _hurried(graph: DependencyGraph, inside: np.ndarray) -> np.ndarray:
    """Return True for vertices whose gaps vanish: of the host in the range, and of unusually slow launches."""
    idle = of_kinds(graph.gap_kind, (GapKind.HOST_UNTRACED, GapKind.THREAD_IDLE, GapKind.SYNC_RETURN))
    launched = graph.edges.target[of_kind(graph, EdgeKind.LAUNCH) & inside[graph.edges.source]]
    late = marked(launched, graph.vertex_count)
    return (idle & inside) | (late & (graph.gap_kind == GapKind.LAUNCH_EXCESS))


def _windows(
    graph: DependencyGraph, step: IntSelector, start_us: float | None, end_us: float | None, rank: IntSelector
) -> list[Window]:
    by_time = start_us is not None and end_us is not None
    if (step is None) != by_time or (step is not None and (start_us is not None or end_us is not None)):
        msg = "give step=, or start_us= and end_us="
        raise ChangeError(msg)
    acts, origin = graph.activities, graph.origin_ns
    if start_us is not None and end_us is not None:
        low, high = (origin + round(checked(us, "µs", least=-np.inf, most=1e12) * 1000) for us in (start_us, end_us))
        if high <= low:
            msg = f"the range from {start_us} to {end_us} µs is empty"
            raise ChangeError(msg)
        ranks = np.unique(acts.rank[graph.select(rank=rank).activities])
        return [(int(number), low, high) for number in ranks if number >= 0]
    marks = graph.select(kind=ActivityKind.STEP.label, step=step, rank=rank).activities
    return [(int(acts.rank[mark]), int(graph.time[2 * mark]), int(graph.time[2 * mark + 1])) for mark in marks]


def _inside(graph: DependencyGraph, windows: list[Window]) -> tuple[np.ndarray, np.ndarray]:
    """Return (which vertices lie on launching threads inside the range, the launches in it).

    Raises:
        SelectionError: nothing is launched in the range.
    """
    acts, time = graph.activities, graph.time
    within, launching = np.zeros((2, graph.vertex_count), np.bool_)
    on_host = ~acts.on_device & (acts.lane >= 0) & (acts.kind != ActivityKind.BOUNDARY)
    for number, low, high in windows:
        some = acts.of_rank(number)
        rows = slice(2 * some.start, 2 * some.stop)
        within[rows] |= (time[rows] >= low) & (time[rows] <= high) & np.repeat(on_host[some], 2)
        launching[rows] |= (time[rows] >= low) & (time[rows] < high)
    calls = np.flatnonzero((acts.kind == ActivityKind.LAUNCH) & launching[0::2])
    if not len(calls):
        msg = "nothing is launched in this range; see graph.select(kind='launch').to_frame()"
        raise SelectionError(msg)
    lanes = marked(acts.lane[calls], len(graph.lanes) + 1)
    return within & np.repeat(lanes[acts.lane], 2), calls


def _refuse_syncs(state: State, inside: np.ndarray) -> None:
    graph = state.graph
    blocking = of_kind(graph, *DEVICE_WAITS) & (state.lag > NEVER) & inside[graph.edges.target]
    blocked = graph.edges.target[blocking] >> 1
    syncs = np.flatnonzero((graph.activities.kind == ActivityKind.SYNC) & inside[0::2])
    blocking_calls = np.setdiff1d(np.concatenate((blocked, syncs)), np.concatenate((*state.unblocked, blocked[:0])))
    if len(blocking_calls):
        more = len(blocking_calls) - 3  # of the others an error gives the number
        listed = "; ".join(graph.describe(int(each)) for each in blocking_calls[:3])
        msg = (
            f"the host waits for the device inside the range, which a graph cannot hold: {listed}"
            f"{f'; {more} more' if more > 0 else ''}. Choose a range between them, or "
            "remove_sync() (--remove-sync) first"
        )
        raise SelectionError(msg)
