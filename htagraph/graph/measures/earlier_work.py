"""Until when devices ran work that was begun before the recording: the window of a device begins there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.computing import once
from htagraph.core.kinds import EdgeKind
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.activities import Activities, Edges
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["begins_of_devices", "first_behind_earlier_work", "waits_for_earlier_work"]

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
def first_behind_earlier_work(graph: DependencyGraph) -> dict[tuple[int, int], int]:
    """Return the first work of each device that waited for work begun before the recording, on any stream.

    The window of the device begins with this work. Short work of another stream may have run before.

    Returns:
        The activity by rank and device. Devices that ran earlier work only for a small part of the rank's recorded
        time, or recorded work for more than a small part of that time, are left out.

    Example:
        >>> import htagraph as hg
        >>> first_behind_earlier_work(hg.load("data/demo"))
        {}
    """
    edges = graph.edges
    acts = graph.activities
    work = edges.target[waits_for_earlier_work(acts, edges)] >> 1
    first: dict[tuple[int, int], int] = {}
    order = np.argsort(acts.start[work], kind="stable")
    for row in work[order].tolist():
        lane = graph.lanes[acts.lane[row]]
        first.setdefault((lane.rank, lane.device), row)
    return {place: row for place, row in first.items() if _begins_a_window(graph, row)}


def _begins_a_window(graph: DependencyGraph, work: int) -> bool:
    """Return whether a device ran next to nothing recorded before some work, for a large part of the rank's time."""
    acts = graph.activities
    rows = acts.of_rank(int(acts.rank[work]))
    begin = acts.start[rows].min()
    before = acts.start[work] - begin
    whole = acts.end[rows].max() - begin
    device = graph.lanes[acts.lane[work]].device
    of_device = np.array([lane.device == device for lane in graph.lanes], np.bool_)
    is_earlier = acts.on_device[rows] & (acts.start[rows] < acts.start[work])
    is_earlier &= of_device[acts.lane[rows]]
    busy = acts.duration[rows][is_earlier].sum()
    return bool(before > LIMITS.small * whole and busy <= LIMITS.small * before)


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
    first = first_behind_earlier_work(graph)
    for number, lane in enumerate(graph.lanes):
        if (lane.rank, lane.device) in first and lane.stream >= 0:
            begins[number] = acts.start[first[lane.rank, lane.device]]
    return begins[acts.lane[work]]
