"""Where each rank's time went: computing, communicating or copying unhidden, idle."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.graph import DependencyGraph
from htagraph.intervals import difference, length, union
from htagraph.kinds import ActivityKind
from htagraph.work import work_of

__all__ = ["temporal_breakdown"]


def temporal_breakdown(graph: DependencyGraph) -> pd.DataFrame:
    """Split each rank's window, from its first to its last device work, into parts that sum to it exactly.

    Computation is the time in which a computation kernel runs on any stream. Communication counts only where no
    computation runs beside it, memory copies and sets only where neither does, other device events only where nothing
    else does; the rest is idle. On a rank without device work (CPU training) outermost operators compute, and
    collectives on host threads communicate.

    Args:
        graph: the job.

    Returns:
        One row per rank: ``rank`` (int64), ``executor`` (``"device"`` or ``"host"``), ``window_us``,
        ``computation_us``, ``exposed_communication_us``, ``exposed_memory_us``, ``other_us``, ``idle_us`` (float64),
        and each part's share of the window, ``computation_percent`` … ``idle_percent`` (float64, NaN for an empty
        window).

    Example:
        >>> import htagraph as hg
        >>> table = hg.temporal_breakdown(hg.load("data/demo"))
        >>> parts = ["computation_us", "exposed_communication_us", "exposed_memory_us", "other_us", "idle_us"]
        >>> bool((table[parts].sum(axis=1) - table["window_us"]).abs().max() < 1e-6)
        True

    Source: HTA's temporal breakdown, with its non-compute time split by what was exposed.
    """
    rows = [_row(graph, rank) for rank in graph.ranks]
    kinds = {"rank": "int64", "executor": "str", "window_us": "float64"} | {f"{part}_us": "float64" for part in _PARTS}
    table = pd.DataFrame(rows, columns=list(kinds)).astype(kinds)
    for part in _PARTS:
        table[f"{part}_percent"] = 100 * table[f"{part}_us"] / table["window_us"].where(table["window_us"] > 0)
    return table


_PARTS = ("computation", "exposed_communication", "exposed_memory", "other", "idle")
_ORDER = (ActivityKind.COMPUTATION, ActivityKind.COMMUNICATION, ActivityKind.MEMORY, ActivityKind.DEVICE_OTHER)


def _row(graph: DependencyGraph, rank: int) -> tuple[object, ...]:
    work = work_of(graph, rank)
    covered = work.by_kind[_ORDER[0]]
    parts = [length(covered)]
    for kind in _ORDER[1:]:
        own = work.by_kind[kind]
        parts.append(length(difference(own, covered)))
        covered = union(np.concatenate((covered[0], own[0])), np.concatenate((covered[1], own[1])))
    window = work.end - work.start
    parts.append(window - length(covered))
    return (rank, work.executor, window / 1000, *(part / 1000 for part in parts))
