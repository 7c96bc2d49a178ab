"""Which kernels each operator launches, and how long the host takes to launch the first and the device to start it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import is_memory_call, names_that
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import named
from htagraph.queries.counter_series import launched
from htagraph.queries.kernel_sequences import numbered
from htagraph.queries.on_workers import rank_by_rank

__all__ = ["operator_kernels"]

TABLE = Table(
    "Operators by the device time of what they launch",
    Col("rank", "int64"),
    Col("operator", "str"),
    Col("kernel_sequence", "str", "names of kernels in the order of their launches, joined by `` -> ``"),
    Col("kernels", "int64", "number of kernels in the sequence"),
    Col("count", "int64", "number of the operator's calls that launched exactly this sequence"),
    Col("launch_delay_us", doc="mean, from the operator's start to the start of its first launch"),
    Col("kernel_delay_us", doc="mean, from the start of the first launch to the start of the first kernel"),
    Col("device_us", doc="durations of the kernels, summed over all calls"),
    rank_by="device_us",
)


@described(TABLE)
@rank_by_rank
def operator_kernels(graph: DependencyGraph, *, op: str = "*", memory: bool = True) -> pd.DataFrame:
    """Return the sequences of kernels that operators launch themselves, with the delay of the first kernel of each.

    A launch belongs to the innermost operator around it on its thread that `op` names.

    Args:
        graph: the job.
        op: glob of operators' names, such as ``"aten::*"``; launches inside other operators only do not count.
        memory: count copies and sets of memory too.

    Returns:
        One row per rank, operator and sequence, by rank, the most frequent first: {columns}.

    Example:
        >>> import htagraph as hg
        >>> table = hg.operator_kernels(hg.load("data/demo"), op="aten::*")
        >>> bool((table["launch_delay_us"] >= 0).all())
        True

    Source: HTA's ATen operators with their kernels and delays, for operators and launches of any name.
    """
    acts = graph.activities
    call, work = launched(graph)
    wanted = (acts.kind == ActivityKind.OP) & named(graph.names, op)[acts.name]
    owner = graph.tree.nearest(wanted, call)
    keep = (owner >= 0) & (memory | ~names_that(is_memory_call, graph.names)[acts.name[call]])
    order = np.flatnonzero(keep)[np.argsort(owner[keep], kind="stable")]
    call, work, owner = call[order], work[order], owner[order]
    root, first, occurrence, kernels = np.unique(owner, return_index=True, return_inverse=True, return_counts=True)
    number = numbered(graph, root, work, occurrence)
    example = np.unique(number, return_index=True)[1]
    sequences = [
        " -> ".join([graph.names[name] for name in acts.name[work[start : start + count]].tolist()])
        for start, count in zip(first[example].tolist(), kernels[example].tolist(), strict=True)
    ]
    count = np.bincount(number, minlength=len(example))
    begun, device_us = acts.start[call[first]], np.bincount(number[occurrence], acts.duration[work])
    table = TABLE.frame({
        "rank": acts.rank[root[example]], "operator": [graph.names[name] for name in acts.name[root[example]].tolist()],
        "kernel_sequence": sequences, "kernels": kernels[example], "count": count,
        "launch_delay_us": np.bincount(number, begun - acts.start[root]) / count / 1000,
        "kernel_delay_us": np.bincount(number, acts.start[work[first]] - begun) / count / 1000,
        "device_us": device_us / 1000,
    })  # fmt: skip
    by = ["rank", "count", "operator", "kernel_sequence"]
    return table.sort_values(by, ascending=[True, False, True, True], ignore_index=True)
