"""Each rank's time by part: computation, exposed communication, exposed memory copies, other, idle."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.intervals import clip, difference, length, union
from htagraph.core.kinds import ActivityKind
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.earlier_work import begins_of_devices
from htagraph.graph.measures.own_time import Work, bound_times, works_of
from htagraph.queries.on_workers import UPPER_BOUND, rank_by_rank

__all__ = ["temporal_breakdown"]

TABLE = Table(
    "Time by rank",
    Col("rank", "int64"),
    Col("executor", "str", '``"device"``, ``"device 1"`` for one of several, or ``"host"``'),
    Col("window_us computation_us exposed_communication_us exposed_memory_us other_us idle_us"),
    Col(
        "computation_percent exposed_communication_percent exposed_memory_percent other_percent idle_percent",
        doc="each part's share of the window, NaN for an empty one",
    ),
    UPPER_BOUND,
)


@described(TABLE)
@rank_by_rank
def temporal_breakdown(
    graph: DependencyGraph,
    *,
    by: Literal["device", "rank"] = "device",
    begin: Literal["free", "first"] = "free",
) -> pd.DataFrame:
    """Return the parts of each rank's window, from its first to its last device work, which sum to it exactly.

    Computation is the time in which a computation kernel runs on any stream. Communication counts only while no
    computation runs, memory copies and memsets only while neither runs, other device events only while nothing else
    runs; the rest is idle. On a rank without device work (CPU training) outermost operators compute, and
    collectives on host threads communicate.

    Args:
        graph: the job.
        by: ``"device"``: one row per device of a rank, as a process may use several; their windows are the rank's.
            ``"rank"``: one row per rank, which is idle while none of its devices runs anything.
        begin: where a window begins. ``"free"``: behind work that a device was busy with since before the recording.
            ``"first"``: with the first recorded work in any case, as HTA's.

    Returns:
        One row per rank and device, and one per rank without device work: {columns}.

    Raises:
        ValueError: `by` or `begin` is something else.

    Example:
        >>> import htagraph as hg
        >>> table = hg.temporal_breakdown(hg.load("data/demo"))
        >>> parts = ["computation_us", "exposed_communication_us", "exposed_memory_us", "other_us", "idle_us"]
        >>> bool((table[parts].sum(axis=1) - table["window_us"]).abs().max() < 1e-6)
        True

    Source: HTA's temporal breakdown, with its non-compute time split by what was exposed.
    """
    check_choice("by", by, ("device", "rank"))
    check_choice("begin", begin, ("free", "first"))
    ranks = list[int]()
    executors = list[str]()
    rows = list[list[int]]()
    for rank in graph.ranks:
        window_begin = _begin(graph, rank) if begin == "free" else _NEVER
        works = works_of(graph, rank, apart=by == "device")
        for work in _in_window_of_rank(works, window_begin):
            ranks.append(rank)
            executors.append(work.executor)
            rows.append(_times(work))
    times = np.array(rows, np.int64).reshape(-1, 1 + len(_PARTS))
    window, *times_of_parts = times.T / 1000
    columns = {"rank": ranks, "executor": executors, "window_us": window}
    for name, us in zip(_PARTS, times_of_parts, strict=True):
        columns[f"{name}_us"] = us
        columns[f"{name}_percent"] = 100 * us / np.where(window > 0, window, np.nan)
    bound = bound_times(graph)
    if bound.any():
        at_most_us = {rank: float(bound[graph.activities.of_rank(rank)].sum()) / 1000 for rank in graph.ranks}
        columns[UPPER_BOUND.names] = [at_most_us[rank] for rank in ranks]
    return TABLE.frame(columns)


_NEVER = np.iinfo(np.int64).min
"""Before any recorded moment, ns."""
_PARTS = ("computation", "exposed_communication", "exposed_memory", "other", "idle")
_PRECEDENCE = (ActivityKind.COMPUTATION, ActivityKind.COMMUNICATION, ActivityKind.MEMORY, ActivityKind.DEVICE_OTHER)


def _in_window_of_rank(works: list[Work], begin: int) -> list[Work]:
    """Return the work of each device of a rank, each in the window from the rank's first to its last work."""
    start = min(work.start for work in works)
    start = max(start, begin)
    end = max(work.end for work in works)
    return [_within(work, start, end) for work in works]


def _begin(graph: DependencyGraph, rank: int) -> int:
    """Return when the window of a rank's devices begins, ns on its own clock; the smallest integer without devices.

    That is the start of the first work, or on a device that ran work begun before the recording, the end of that.
    """
    acts = graph.activities
    of_rank = acts.of_rank(rank)
    is_work = acts.on_device[of_rank]
    if not is_work.any():
        return _NEVER
    work = of_rank.start + np.flatnonzero(is_work)
    window = begins_of_devices(graph, work)
    begins = np.maximum(acts.start[work], window)
    return int(begins.min())


def _within(work: Work, start: int, end: int) -> Work:
    """Return the part of some work that lies in a window."""
    by_kind = {}
    for kind, busy in work.by_kind.items():
        by_kind[kind] = clip(busy, start, end)
    return replace(work, by_kind=by_kind, start=start, end=end)


def _times(work: Work) -> list[int]:
    """Return the length of the window of some work, and the times of its parts, ns."""
    covered = work.by_kind[_PRECEDENCE[0]]
    times = [length(covered)]
    for kind in _PRECEDENCE[1:]:
        busy = work.by_kind[kind]
        exposed = difference(busy, covered)
        times.append(length(exposed))
        starts = np.concatenate((covered[0], busy[0]))
        ends = np.concatenate((covered[1], busy[1]))
        covered = union(starts, ends)
    window = work.end - work.start
    idle = window - length(covered)
    return [window, *times, idle]
