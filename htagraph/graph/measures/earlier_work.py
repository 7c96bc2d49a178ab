"""Until when devices ran work that was begun before the recording: the window of a device begins there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.computing import once
from htagraph.core.intervals import clip, length, union
from htagraph.core.kinds import EdgeKind
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.activities import Activities, Edges
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["begins_of_devices", "ends_of_earlier_work", "waits_for_earlier_work"]

_NEVER = np.iinfo(np.int64).min
"""Before any recorded moment, ns; no threshold."""


def waits_for_earlier_work(acts: Activities, edges: Edges) -> Mask:
    """Return which edges are waits for work that was begun before the recording.

    No device recorded the source of a wait like this: it is the moment at which the recording of a rank begins.

    Args:
        acts: the activities of a job.
        edges: edges of the job.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> int(waits_for_earlier_work(graph.activities, graph.edges).sum())
        0
    """
    is_wait = edges.kind == EdgeKind.EVENT_WAIT
    is_wait[is_wait] = ~acts.on_device[edges.source[is_wait] >> 1]
    return is_wait


@once
def ends_of_earlier_work(graph: DependencyGraph) -> dict[tuple[int, int], int]:
    """Return when each device had ended all work begun before the recording: the window of the device begins then.

    That is the start of the last first work of a stream that waited for earlier work, or the end of the last call that
    waited for earlier work. It is an earlier one of these moments if the device ran recorded work nearly all the time
    after that moment: nothing is missing there.

    Returns:
        The vertex by rank and device. Devices that ran earlier work only for a small part of the rank's recorded time,
        or recorded work for most of that part, are left out.

    Example:
        >>> import htagraph as hg
        >>> ends_of_earlier_work(hg.load("data/demo"))
        {}
    """
    edges = graph.edges
    acts = graph.activities
    vertex = edges.target[waits_for_earlier_work(acts, edges)]
    order = np.argsort(acts.moment(vertex), kind="stable")
    ends: dict[tuple[int, int], list[int]] = {}
    for end in vertex[order].tolist():
        for place in _devices(graph, end >> 1):
            ends.setdefault(place, []).append(end)
    windows: dict[tuple[int, int], int] = {}
    for place, vertices in ends.items():
        begin = _begin_of_window(graph, place, vertices)
        if begin >= 0:
            windows[place] = begin
    return windows


def _devices(graph: DependencyGraph, row: int) -> set[tuple[int, int]]:
    """Return the device that an activity ran on; of a call all devices of the rank.

    Args:
        graph: the job.
        row: work of a device, or a call of the host.

    Returns:
        The rank and the number of each device.
    """
    lane = graph.lanes[graph.activities.lane[row]]
    if graph.activities.on_device[row]:
        return {(lane.rank, lane.device)}
    return {
        (stream.rank, stream.device) for stream in graph.lanes if stream.rank == lane.rank and stream.stream >= 0
    }  # lanes without a stream are threads


def _begin_of_window(
    graph: DependencyGraph,
    place: tuple[int, int],
    vertices: list[int],
) -> int:
    """Return the vertex at which the window of a device begins; -1 for none.

    Args:
        graph: the job.
        place: the rank and the number of the device.
        vertices: starts of work of the device, and ends of calls, that waited for earlier work, in the order of time.

    Returns:
        The last of these vertices that comes after more than a small part of the rank's time, most of which has no
        recorded work; or the first one from which on the device ran recorded work nearly all the time until the last.
    """
    acts = graph.activities
    rows = acts.of_rank(place[0])
    begin = acts.start[rows].min()
    whole = acts.end[rows].max() - begin
    of_device = np.array([lane.device == place[1] for lane in graph.lanes], np.bool_)
    is_work = acts.on_device[rows] & of_device[acts.lane[rows]]
    work = rows.start + np.flatnonzero(is_work)
    busy = union(acts.start[work], acts.end[work])
    moments = acts.moment(np.array(vertices))
    before = moments - begin
    ran = np.array([length(clip(busy, begin, moment)) for moment in moments])
    is_begin = before > LIMITS.small * whole
    is_begin &= ran < LIMITS.most * before
    if not is_begin.any():
        return -1
    last = np.flatnonzero(is_begin)[-1]
    until_last = moments[last] - moments
    is_whole = ran[last] - ran >= LIMITS.nearly_all * until_last
    chosen = np.flatnonzero(is_begin & is_whole)[0]
    return vertices[int(chosen)]


def begins_of_devices(graph: DependencyGraph, work: Array) -> Ints:
    """Return from when on the window of the device of each piece of device work counts.

    Args:
        graph: the job.
        work: activities on devices.

    Returns:
        When the device had ended all work begun before the recording, ns on the rank's own clock; the smallest integer
        for a device without earlier work.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> work = graph.select(kind="computation").activities
        >>> bool((begins_of_devices(graph, work) < graph.activities.start[work]).all())
        True
    """
    acts = graph.activities
    begins = np.full(len(graph.lanes), _NEVER)
    ends = ends_of_earlier_work(graph)
    for number, lane in enumerate(graph.lanes):
        if (lane.rank, lane.device) in ends and lane.stream >= 0:
            vertex = np.array([ends[lane.rank, lane.device]])
            begins[number] = acts.moment(vertex)[0]
    return begins[acts.lane[work]]
