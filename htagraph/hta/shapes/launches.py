"""HTA's statistics of launches: calls beside their kernels, and ATen operators beside what they launch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from htagraph.analyses.operator_kernels import operator_kernels
from htagraph.core.naming import is_memory_call, names_that
from htagraph.hta.shapes.frame import in_whole, smallest_type
from htagraph.hta.shapes.job import HtaJob
from htagraph.queries.counter_series import launched

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["aten_op_figure", "aten_op_kernels_and_delay", "cuda_kernel_launch_stats", "launch_figures"]

_ATEN = {
    "operator": "aten_op_name", "kernel_sequence": "kernel_sequence", "count": "occurrence_count",
    "launch_delay_us": "avg_aten_op_launch_delay", "kernel_delay_us": "avg_runtime_delay",
}  # fmt: skip
_LAUNCH = {"launch_us": "cpu_duration", "work_us": "gpu_duration", "delay_us": "launch_delay"}


def cuda_kernel_launch_stats(
    job: HtaJob, ranks: Sequence[int] | None = None, *, include_memory_events: bool = True
) -> dict[int, pd.DataFrame]:
    """Return each launch with the kernel or copy that it started, in the order of the file.

    Args:
        job: what HTA keeps of a job.
        ranks: of these; rank 0 or the lowest if not given.
        include_memory_events: with copies and sets of memory.

    Returns:
        By rank: ``correlation``, ``cpu_duration``, ``gpu_duration`` and ``launch_delay`` (float64, µs).
    """
    acts = job.graph.activities
    call, work = launched(job.graph)
    kept = include_memory_events | ~names_that(is_memory_call, job.graph.names)[acts.name[call]]
    call, work = call[kept], work[kept]
    correlation, out = acts.arg("correlation"), {}
    for rank in job.ranks(ranks):
        rank_rows = np.flatnonzero(acts.rank[work] == rank)
        rank_rows = rank_rows[np.lexsort((acts.event[work[rank_rows]], acts.event[call[rank_rows]]))]
        first, then = call[rank_rows], work[rank_rows]
        times = {
            "cpu_duration": acts.duration[first] / 1000, "gpu_duration": acts.duration[then] / 1000,
            "launch_delay": np.maximum(0, acts.start[then] - acts.end[first]) / 1000,
        }  # fmt: skip
        smallest = smallest_type(job.of_rank(rank).events.arg("correlation"))
        out[rank] = pd.DataFrame({"correlation": correlation[then].astype(smallest), **in_whole(job, times)})
        if not len(rank_rows):
            warnings.warn(f"{job.described([rank])}: no launch with its device work is in the trace", stacklevel=3)
    return out


def aten_op_kernels_and_delay(
    job: HtaJob, ranks: Sequence[int] | None = None, sort_by: Sequence[str] | None = None
) -> dict[int, pd.DataFrame]:
    """Return the kernels that ATen operators launch, with the mean delays of the first kernel of each call.

    Args:
        job: what HTA keeps of a job.
        ranks: of these; rank 0 or the lowest if not given.
        sort_by: columns to sort by, descending; ``["occurrence_count"]`` if not given.

    Returns:
        By rank: ``aten_op_name``, ``kernel_sequence`` (str), ``occurrence_count`` (int64),
        ``avg_aten_op_launch_delay`` and ``avg_runtime_delay`` (float64, µs to 3 places).
    """
    table = operator_kernels(job.graph, op="aten::*", memory=False)
    out = {}
    for rank in job.ranks(ranks):
        rank_table = table.loc[table["rank"] == rank, list(_ATEN)].rename(columns=_ATEN)
        rank_table = rank_table.sort_values(["aten_op_name", "kernel_sequence"], ignore_index=True)
        rank_table = rank_table.sort_values(list(sort_by or ["occurrence_count"]), ascending=False)
        out[rank] = rank_table.round({"avg_aten_op_launch_delay": 3, "avg_runtime_delay": 3})
        if not len(rank_table):
            warnings.warn(f"{job.described([rank])}: no ATen operator launches a kernel", stacklevel=3)
    return out


def launch_figures(table: pd.DataFrame, rank: int, runtime_cutoff: float, launch_delay_cutoff: float) -> list[Figure]:
    """Return HTA's three histograms of one rank's launch statistics."""
    from htagraph.output.plot.hta_shapes.launches import launch_stats_figures

    native = table.rename(columns={theirs: ours for ours, theirs in _LAUNCH.items()})
    return launch_stats_figures(native, f"rank {rank}", runtime_cutoff, launch_delay_cutoff)


def aten_op_figure(table: pd.DataFrame, rank: int) -> Figure:
    """Return one rank's ATen operators as a figure of a table."""
    from htagraph.output.plot.hta_shapes.launches import operator_kernels_figure

    native = table.rename(columns={theirs: ours for ours, theirs in _ATEN.items()})
    return operator_kernels_figure(native, f"rank {rank}")
