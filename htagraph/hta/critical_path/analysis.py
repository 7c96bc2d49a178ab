"""The critical path of one rank's window in HTA's shape: a view of the dependency graph.

HTA takes the path of most weight, and its weights leave out what threads do between operators. Over the dependencies
that we know that path spans the window, and mostly is the one that the window waited for; where long work on a stream
stands against a busy host it need not be. `CPGraph.waited_for` is exact and sums to the window.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from htagraph.hta.critical_path.files import restore_cpgraph
from htagraph.hta.critical_path.graph import CPGraph, Place
from htagraph.hta.critical_path.overlay import overlay_critical_path_analysis
from htagraph.hta.critical_path.types import BoundType, CPEdge, CPEdgeType, CPNode, flag
from htagraph.hta.critical_path.view import view_of
from htagraph.hta.shapes.job import HtaJob
from htagraph.hta.shapes.window import device_side, is_analysed

__all__ = [
    "BoundType",
    "CPEdge",
    "CPEdgeType",
    "CPGraph",
    "CPNode",
    "critical_path_analysis",
    "overlay_critical_path_analysis",
    "restore_cpgraph",
]

Instances: TypeAlias = int | tuple[int, int] | None
ZERO_LAUNCHES = "CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE"


def critical_path_analysis(
    job: HtaJob,
    rank: int,
    annotation: str,
    instance_id: Instances = None,
    data_load_events: Sequence[str] | None = None,
    *,
    stacklevel: int = 2,
) -> tuple[CPGraph, bool] | None:
    """Return the graph of one rank's window with its critical path, and whether there is one.

    The window goes from the first start to the last end of some annotations; it has what the host began in it, and the
    device work that this launched.

    Args:
        job: the job.
        rank: one of its ranks.
        annotation: part of the names of the annotations, any events; empty for the whole trace.
        instance_id: which of them, in the order of the frame: a number (the first by default) or the first and the last
            number of a range.
        data_load_events: regular expressions; annotations with such a name are nodes, their time is ``data_loading``.
        stacklevel: of warnings, whose line they name.

    Returns:
        The graph and True; False where nothing in the window could be on a path. None, with a warning, where no such
        annotation or no such instance is.

    Raises:
        RankError: the rank was not read.
        TypeError: `instance_id` is none of the above.
    """
    window = _window(job, rank, annotation, _range(instance_id))
    if isinstance(window, str):
        warnings.warn(window, stacklevel=stacklevel)
        return None
    loads = list(data_load_events or ())
    view = view_of(job, rank, window, loads, zero_launches=flag(ZERO_LAUNCHES))
    graph = CPGraph.of(view, Place(rank, window, job.first_ns, job), data_load_events)
    has_path = graph.critical_path()
    if not has_path:
        warnings.warn(f"rank {rank}: nothing with a dependency lies in {annotation!r}", stacklevel=stacklevel)
    return graph, has_path


def _range(instance_id: Instances) -> tuple[int, int]:
    if instance_id is None:
        return 0, 0
    if isinstance(instance_id, tuple) and len(instance_id) == 2:
        return int(instance_id[0]), int(instance_id[1])
    if isinstance(instance_id, int | np.integer):
        return int(instance_id), int(instance_id)
    msg = f"instance_id is a number, a pair (first, last) or None, not {instance_id!r}"
    raise TypeError(msg)


def _window(job: HtaJob, rank: int, annotation: str, instances: tuple[int, int]) -> tuple[int, int] | str:
    """Return the first and last moment of the window, ns; or why there is none."""
    trace = job.of_rank(rank)
    events = trace.events
    rows = np.flatnonzero(is_analysed(trace))
    if annotation:
        names = [code for code, name in enumerate(trace.names) if annotation in name]
        rows = rows[np.isin(events.name[rows], names)]
        if job.windowed:  # the device's come first in the frame then
            rows = rows[np.argsort(~device_side(trace)[rows], kind="stable")]
        count, (first, last) = len(rows), instances
        if not count:
            return f"rank {rank} has no event whose name contains {annotation!r}"
        rows = rows[first : last + 1] if first >= 0 else rows[:0]
        if not len(rows):
            which = f"{first}" if first == last else f"{first} to {last}"
            return f"rank {rank} has {count} events whose name contains {annotation!r}: no instance {which}, from 0"
    if not len(rows):
        return f"rank {rank} has no events"
    return int(events.start[rows].min()), int(events.end[rows].max())
