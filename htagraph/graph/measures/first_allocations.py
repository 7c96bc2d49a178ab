"""Calls of the allocator that take long as a process starts, in whichever operator they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from htagraph.graph.measures.allocator import allocator_calls

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["long_allocations"]

_LEAST_NS: Final = 5_000_000
"""ns; the shortest call that counts. Chosen: a steady call of the allocator takes 0.1 to 1 ms, and one that makes
room for a library takes some 100 ms. Doubled, small workspaces are missed."""
_TIMES: Final = 10
"""How many times the median of all calls of the name one takes. Chosen: steady calls differ by less. Doubled, small
workspaces are missed."""


def long_allocations(graph: DependencyGraph, calls: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Return the calls of the allocator before the last other start of their process that take far longer than usual.

    Args:
        graph: the job.
        calls: calls with ``activity``, ``process``, ``name`` and ``time``, ns.
        found: starts that are known, with ``activity`` and ``process``.

    Returns:
        ``activity``, ``time`` and ``usual``, ns: the median of all calls of the name in the process.
    """
    acts = graph.activities
    is_call = calls["activity"].isin(allocator_calls(graph))
    table = calls[is_call].copy()
    table["usual"] = table.groupby(["process", "name"])["time"].transform("median")
    starts = found.assign(start=acts.start[found["activity"]])
    last_start = starts.groupby("process")["start"].max()
    is_before = acts.start[table["activity"]] <= table["process"].map(last_start)
    is_long = table["time"] >= np.maximum(
        _LEAST_NS,
        _TIMES * table["usual"],
    )
    chosen = table[is_before & is_long]
    return chosen[["activity", "time", "usual"]]
