"""The graph of one rank's window as HTA draws it: its nodes, and our edges between them in its five types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import RUNTIME_CATEGORIES
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.hta.critical_path.columns import Columns, View
from htagraph.hta.critical_path.edges import Drawn, device_edges, host_edges

if TYPE_CHECKING:
    from htagraph.hta.shapes.job import HtaJob

__all__ = ["view_of"]


_HOST_CATEGORIES = RUNTIME_CATEGORIES | {"cpu_op", "hpu_op"}
_BLOCKING = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery", "cudaEventSynchronize", "cudaMemcpy",
             "cudaMemcpyAsync")  # fmt: skip
_NAMES = frozenset({*_BLOCKING, "cudaHostAlloc", "cudaLaunchKernel"})
_SYNC_CATEGORY, _STREAM_WAIT = "cuda_sync", "Stream Wait Event"


def view_of(
    job: HtaJob,
    rank: int,
    window: tuple[int, int],
    data_load_events: Sequence[str] = (),
    *,
    zero_launches: bool = False,
) -> View:
    """Return the view of what a rank's host began in a window, and of the device work that this launched.

    Args:
        job: the job.
        rank: one of its ranks.
        window: first and last ns, on the rank's clock, at which host activities begin that count.
        data_load_events: parts of names of annotations that are nodes as well.
        zero_launches: give work that waited for other work an edge of weight 0 from its launch, too.
    """
    graph = job.graph
    begun = _begun(graph, rank, window)
    host = begun[_is_drawn(graph, data_load_events)[begun]]
    in_window = np.zeros(len(graph.activities), np.bool_)
    in_window[begun] = True
    cause = graph.activities.cause
    device = np.flatnonzero(graph.activities.on_device & (cause >= 0))
    device = device[in_window[cause[device]]]
    codes = {name: code for code, name in enumerate(graph.names) if name in _NAMES}
    nodes = _nodes(graph, np.concatenate((host, device)), _sync_rows(job, rank, begun), codes)
    node_of = np.full(graph.vertex_count, -1, np.int64)
    known = np.flatnonzero(nodes.vertex >= 0)
    node_of[nodes.vertex[known]] = known
    drawn = Drawn(graph, host, device, nodes, node_of, codes)
    edges = Columns.concatenate([*host_edges(drawn), device_edges(drawn, zero_launches=zero_launches)])
    _, first = np.unique(edges.source * np.int64(len(nodes.event)) + edges.target, return_index=True)
    return replace(nodes, edges=edges.take(np.sort(first)))


def _begun(graph: DependencyGraph, rank: int, window: tuple[int, int]) -> Array:
    """Return the activities that the host began in the window, without those too short to be seen."""
    acts = graph.activities
    of_rank = acts.of_rank(rank)
    start, some = acts.start[of_rank], (acts.duration[of_rank] > 0) & (acts.event[of_rank] >= 0)
    return of_rank.start + np.flatnonzero(~acts.on_device[of_rank] & some & (start >= window[0]) & (start <= window[1]))


def _is_drawn(graph: DependencyGraph, data_load_events: Sequence[str]) -> Array:
    acts = graph.activities
    categories = np.flatnonzero(np.bincount(acts.category, minlength=1)).tolist()
    out = np.isin(acts.category, [code for code in categories if graph.names[code] in _HOST_CATEGORIES])
    if data_load_events:
        loads = [code for code, name in enumerate(graph.names) if any(each in name for each in data_load_events)]
        out |= np.isin(acts.name, loads)
    return out


def _sync_rows(job: HtaJob, rank: int, begun: Array) -> tuple[Array, Array, Array]:
    """Return (position, start, end) of the cuda_sync events for which HTA has nodes, though never an edge."""
    trace, events = job.traces[rank], job.traces[rank].events
    code = trace.categories.index(_SYNC_CATEGORY) if _SYNC_CATEGORY in trace.categories else -1
    rows = np.flatnonzero(events.category == code)
    if len(rows):
        correlation = events.arg("correlation")[rows]
        within = np.isin(correlation, job.graph.activities.arg("correlation")[begun]) & (correlation > 0)
        within |= np.array([trace.names[name] == _STREAM_WAIT for name in events.name[rows]])
        rows = rows[within & (events.arg("stream")[rows] >= 0) & (correlation >= 0)]
    return events.index[rows], events.start[rows], events.start[rows] + events.duration[rows]


def _nodes(graph: DependencyGraph, chosen: Array, rows: tuple[Array, Array, Array], codes: Mapping[str, int]) -> View:
    acts, none = graph.activities, np.zeros(0, np.int64)
    position, start, end = rows
    event = np.concatenate((acts.event[chosen], position)).astype(np.int64)
    activity = np.concatenate((chosen, np.full(len(position), -1)))
    blocks = np.isin(acts.name[chosen], [codes[name] for name in _BLOCKING if name in codes])
    blocks = (blocks | (acts.kind[chosen] == ActivityKind.SYNC)) & ~acts.on_device[chosen]
    kind = np.concatenate((acts.kind[chosen], np.full(len(position), ActivityKind.DEVICE_OTHER)))
    time = np.concatenate((acts.start[chosen], start, acts.start[chosen] + acts.duration[chosen], end))
    order = np.lexsort((np.concatenate((event, event)), time))
    at, is_start = order % max(1, len(event)), order < len(event)
    return View(
        event=event[at], vertex=np.where(activity[at] >= 0, 2 * activity[at] + ~is_start, -1), time=time[order],
        is_start=is_start, is_blocking=np.concatenate((blocks, np.zeros(len(position), np.bool_)))[at],
        kind=kind[at], edges=Columns.of(none, none, 0, 0, 0),
    )  # fmt: skip
