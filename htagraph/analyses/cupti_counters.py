"""Counters of CUPTI's range profiler for each kernel, with the operators that launched it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.flops import flop_per_count
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.recorded_events import counter_ranges, operators_around

__all__ = ["cupti_counters"]

TABLE = Table(
    "Device counters",
    Col("rank", "int64"),
    Col("range", "int64", "position in the file's events"),
    Col("kernel", "str"),
    Col("launch", "int64", "activity number of the launch; -1 if unknown"),
    Col("step", "int64", "step of the launch; -1 outside steps"),
    Col("operator_stack", "str", "the operators around the launch, the outermost first, with ``|`` between"),
    Col("top_operator bottom_operator", "str", "the outermost and the innermost operator of the stack"),
    Col("counter", "str"),
    Col("value", doc="in the counter's unit"),
    Col(
        "flop",
        doc="the floating-point operations that the value stands for, counts: two per fused multiply-add, 0 for "
        "other counters",
    ),
)


@described(TABLE)
def cupti_counters(graph: DependencyGraph) -> pd.DataFrame:
    """Return the device counters of every kernel that was recorded under CUPTI's range profiler.

    One row per kernel and counter: ``table.pivot(index=["rank", "range"], columns="counter", values="value")`` gives
    one column per counter, ``table.groupby("bottom_operator")["flop"].sum()`` the floating-point operations of each
    operator. Kernels run one by one under that profiler, so the n-th range belongs to the n-th launch; if the number of
    launches of a rank is not its number of ranges, its kernels have no operator.

    Args:
        graph: the job.

    Returns:
        By rank, time, and counter as in the file: {columns}.

    Raises:
        TraceError: a file with ranges is gone or was changed since it was loaded.

    Example:
        >>> import htagraph as hg
        >>> hg.cupti_counters(hg.load("data/demo")).empty  # recorded without counters
        True

    Source: HTA's CUPTI counter analysis, with a row per counter instead of a column.
    """
    parts = [_of_rank(graph, rank) for rank in graph.ranks]
    parts = [part for part in parts if len(part)]
    return TABLE.frame(pd.concat(parts, ignore_index=True) if parts else ())


def _of_rank(graph: DependencyGraph, rank: int) -> pd.DataFrame:
    ranges = counter_ranges(graph, rank)
    launch = ranges["launch"].to_numpy()
    stacks = operators_around(graph, launch)
    names = [[graph.names[name] for name in graph.activities.name[stack].tolist()] for stack in stacks]
    step = np.where(launch >= 0, graph.activities.step[launch], -1) if len(launch) else launch
    described = ranges[["range", "kernel", "launch"]].assign(
        rank=rank, step=step, operator_stack=["|".join(stack) for stack in names],
        top_operator=[stack[0] if stack else "" for stack in names],
        bottom_operator=[stack[-1] if stack else "" for stack in names],
    )  # fmt: skip
    counters = ranges.columns[3:]
    table = described.loc[described.index.repeat(len(counters))].reset_index(drop=True)
    values = pd.to_numeric(pd.Series(ranges[counters].to_numpy().ravel()), errors="coerce").astype("float64")
    table["counter"] = np.tile(counters.to_numpy(), len(ranges))
    table["value"] = values
    table["flop"] = values * table["counter"].map(flop_per_count).astype("float64")
    return table[values.notna()]
