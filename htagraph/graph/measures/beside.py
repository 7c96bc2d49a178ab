"""Work beside other work: how long a device runs something on another stream while device work runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, coded
from htagraph.core.intervals import union
from htagraph.core.statistics import MOST

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["begins_of_work", "covered_ns", "runs_beside"]


def runs_beside(graph: DependencyGraph, companions: Mask) -> Mask:
    """Return which device work runs, for at least half of its time, beside companions on other streams of its device.

    The time of a member of a collective begins with the last arrival, and a collective runs on the devices of all its
    ranks: where one member runs beside companions, all members do.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> int(runs_beside(graph, graph.activities.kind == hg.ActivityKind.COMMUNICATION).sum()) > 0
        True
    """
    acts = graph.activities
    rows = np.flatnonzero(acts.on_device & (acts.duration > 0))
    begin = begins_of_work(graph)[rows]
    end = graph.time[2 * rows + 1]
    covered = covered_ns(graph, rows, begin, end, companions)
    beside = np.zeros(len(acts), np.bool_)
    beside[rows[(covered > 0) & (covered >= MOST * (end - begin))]] = True
    matches = graph.matches
    if matches is not None and matches.count:
        together = np.zeros(matches.count, np.bool_)
        together[matches.collective[beside[matches.activity]]] = True
        beside[matches.activity] |= together[matches.collective]
    return beside


def begins_of_work(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return when the work of each activity begins, ns on the common clock: of a collective, with the last arrival.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> bool((begins_of_work(graph) >= graph.time[0::2]).all())
        True
    """
    begin = graph.time[0::2].copy()
    waits = graph.waits
    begin[waits.activity] = graph.time[2 * waits.activity + 1] - waits.transfer
    return begin


def covered_ns(graph: DependencyGraph, rows: Ints, begin: Ints, end: Ints, companions: Mask) -> npt.NDArray[np.int64]:
    """Return how long companions run on other streams of the same device between a begin and an end, per row, ns.

    Args:
        graph: the job.
        rows: device work.
        begin: the begin of a stretch of each row, ns on the common clock.
        end: the end of the stretch.
        companions: which activities are companions; activities on hosts do not count.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> rows = graph.select(kind="communication", rank=0).activities
        >>> begin, end = graph.time[2 * rows], graph.time[2 * rows + 1]
        >>> bool((covered_ns(graph, rows, begin, end, graph.activities.on_device) <= end - begin).all())
        True
    """
    acts = graph.activities
    devices = coded(
        np.array([lane.rank for lane in graph.lanes], np.int64),
        np.array([lane.device for lane in graph.lanes], np.int64),
    )
    work = np.flatnonzero(companions & acts.on_device)
    device_of_work = devices[acts.lane[work]]
    covered = np.zeros(len(rows), np.int64)
    for lane in np.unique(acts.lane[rows]).tolist():
        of_lane = np.flatnonzero(acts.lane[rows] == lane)
        chosen = work[(device_of_work == devices[lane]) & (acts.lane[work] != lane)]
        covered[of_lane] = _covered(graph, chosen, begin[of_lane], end[of_lane])
    return covered


def _covered(graph: DependencyGraph, chosen: Array, begin: Array, end: Array) -> Array:
    """Return how much of each stretch the chosen activities cover, ns."""
    start, stop = union(graph.time[2 * chosen], graph.time[2 * chosen + 1])
    if not len(start):
        return np.zeros(len(begin), np.int64)
    until = np.concatenate(([0], np.cumsum(stop - start)))

    def covered_until(moment: Array) -> Array:
        last = np.searchsorted(start, moment, side="right") - 1
        inside = np.minimum(moment, stop[last]) - start[last]
        return np.where(last >= 0, until[np.maximum(last, 0)] + inside, 0)

    return covered_until(end) - covered_until(begin)
