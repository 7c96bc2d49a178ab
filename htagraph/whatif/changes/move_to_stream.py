"""Device work runs on another stream of its rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Ints
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import EdgeKind, Provenance
from htagraph.graph.activities import Activities, Edges, Lane
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import State
from htagraph.whatif.rewire import launch_order, with_other_edges

__all__ = ["move_to_stream"]


def move_to_stream(state: State, /, *, stream: int, **criteria: Any) -> State:  # noqa: ANN401 - those of `select`
    """Return the state where the selected device work runs on another stream of its rank and device.

    On the old and the new stream, work runs in launch order; a new neighbour follows without a pause. All other
    dependencies stay and no dependency is added. So a kernel that waited only because of the order of the old stream,
    such as a kernel that reads what the kernel before it wrote, no longer waits.

    Args:
        stream: id of the stream, an existing or a new one.
        **criteria: which work; host activities among it stay on their threads.

    Raises:
        SelectionError: no device work is selected, or all of it runs on this stream already.
        GraphError: an activity would have to wait for itself; the error names the cycle.
    """
    graph = state.graph
    acts = graph.activities
    rows = graph.select(**criteria).activities
    rows = rows[acts.on_device[rows]]
    if stream < 0 or not len(rows):
        asked = ", ".join(f"{name}={value!r}" for name, value in criteria.items())
        what = "a stream's id is not negative" if stream < 0 else "no device work is selected"
        streams = ", ".join(map(str, sorted({lane.stream for lane in graph.lanes if lane.stream >= 0}))) or "none"
        msg = f"move_to_stream(stream={stream}, {asked}): {what}; the graph's streams: {streams}"
        raise SelectionError(msg)
    lane, lanes = _moved(graph, rows, stream)
    rows = np.flatnonzero(lane != acts.lane)
    if not len(rows):
        msg = f"all selected work is on stream {stream} already"
        raise SelectionError(msg)
    touched = np.union1d(acts.lane[rows], lane[rows])
    moved = replace(acts, lane=lane)
    before, after = _predecessors(graph, acts, touched), _predecessors(graph, moved, touched)
    changed = before != after
    edges = graph.edges
    on_stream = (edges.kind == EdgeKind.STREAM) & (edges.target % 2 == 0)
    apart = lane[edges.source // 2] != lane[edges.target // 2]
    stays = ~(on_stream & (changed[edges.target // 2] | apart))
    new = np.flatnonzero(changed & (after >= 0))
    chain = Edges.of(2 * after[new] + 1, 2 * new, 0, EdgeKind.STREAM, Provenance.ORDER)
    note = f"{len(rows)} pieces of work moved to stream {stream}; data they share is not checked"
    return with_other_edges(state.with_note(note), stays, chain, "move_to_stream", activities=moved, lanes=lanes)


def _moved(graph: DependencyGraph, rows: Ints, stream: int) -> tuple[npt.NDArray[np.int32], tuple[Lane, ...]]:
    """Return (the lane of every activity, all lanes) once `rows` are on the stream."""
    lanes = list(graph.lanes)
    number = {(lane.rank, lane.device, lane.stream): i for i, lane in enumerate(lanes) if lane.stream >= 0}
    lane = graph.activities.lane.copy()
    for old in np.unique(lane[rows]).tolist():
        home = lanes[old]
        key = (home.rank, home.device, stream)
        if key not in number:
            number[key] = len(lanes)
            lanes.append(replace(home, tid=stream, stream=stream, thread=""))
        lane[rows[graph.activities.lane[rows] == old]] = number[key]
    return lane, tuple(lanes)


def _predecessors(graph: DependencyGraph, acts: Activities, lanes: npt.NDArray[np.int32]) -> Ints:
    """Return the work before each on its stream in the order of launches, -1 for the first and on other lanes."""
    before = np.full(len(acts), -1, np.int64)
    work = launch_order(graph, np.flatnonzero(acts.on_device & np.isin(acts.lane, lanes)))
    work = work[np.argsort(acts.lane[work], kind="stable")]
    same = acts.lane[work[1:]] == acts.lane[work[:-1]]
    before[work[1:][same]] = work[:-1][same]
    return before
