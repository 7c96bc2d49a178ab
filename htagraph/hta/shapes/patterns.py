"""HTA's frequent kernel sequences."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import ADDED, ActivityKind
from htagraph.core.naming import names_that
from htagraph.core.parents import depths
from htagraph.hta.shapes.names import is_step
from htagraph.output.export.patterns import overlay_patterns
from htagraph.queries.kernel_sequences import sequences_below

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.hta.shapes.job import HtaJob

__all__ = ["frequent_cuda_kernel_sequences"]

_COLUMNS = {
    "pattern": "pattern", "count": "count", "kernel_us": "GPU kernel duration (us)",
    "operator_us": "CPU op duration (us)",
}  # fmt: skip


def frequent_cuda_kernel_sequences(  # noqa: PLR0913 - HTA's arguments
    job: HtaJob,
    operator_name: str,
    output_dir: str,
    min_pattern_len: int = 3,
    rank: int = 0,
    top_k: int = 5,
    *,
    compress_other_kernels: bool = True,
) -> pd.DataFrame:
    """Return HTA's table of kernel sequences beneath operators; write ``overlaid_…`` of the trace to a folder.

    Of the events with the text in their name only those count that lie at the least depth at which one does, with at
    least `min_pattern_len` kernels beneath.

    Args:
        job: the job.
        operator_name: text in the operators' names.
        output_dir: an existing folder.
        min_pattern_len: the fewest kernels.
        rank: whose events.
        top_k: patterns to mark in the file that is written, the most frequent ones.
        compress_other_kernels: take names and arguments from all other complete events of that file.

    Returns:
        ``pattern`` (str), ``count`` (int64), ``GPU kernel duration (us)``, ``CPU op duration (us)`` (float64), most
        frequent first; empty, and no file is written, where there are none.
    """
    job.of_rank(rank)
    if not operator_name:
        return _nothing("operator_name must be part of an operator's name")
    if not (Path(output_dir).is_dir() and os.access(output_dir, os.W_OK)):
        return _nothing(f"output_dir {output_dir!r} is no folder that can be written to")
    graph = job.graph
    above = _hta_parents(graph, rank)
    sequences = sequences_below(graph, _roots(graph, rank, above, operator_name), above, min_pattern_len)
    if not len(sequences.root):
        return _nothing(f"no operator with {operator_name!r} in its name has {min_pattern_len} kernels on rank {rank}")
    table = sequences.to_frame().sort_values(["count", "pattern"], ascending=[False, True])
    target = Path(output_dir) / f"overlaid_{Path(job.files[rank]).name}"
    overlay_patterns(sequences, table.index.to_numpy()[: max(0, top_k)], rank, target, compress=compress_other_kernels)
    return table.rename(columns=_COLUMNS)[list(_COLUMNS.values())].reset_index(drop=True)


def _nothing(why: str) -> pd.DataFrame:
    warnings.warn(f"no frequent kernel sequences: {why}", stacklevel=4)
    empty = {"pattern": "str", "count": "int64", "kernel_us": "float64", "operator_us": "float64"}
    return pd.DataFrame({_COLUMNS[name]: pd.Series(dtype=dtype) for name, dtype in empty.items()})


def _roots(graph: DependencyGraph, rank: int, above: Array, text: str) -> Array:
    """Return the host activities of a rank with a text in their name that have the least depth of all of them."""
    acts = graph.activities
    fits = names_that(lambda name: text in name, graph.names)
    out = acts.on_device | np.isin(acts.kind, ADDED)
    wanted = fits[acts.name] & ~out & (acts.rank == rank)
    depth = depths(above)
    return np.flatnonzero(wanted & (depth == depth[wanted].min(initial=len(acts))))


def _hta_parents(graph: DependencyGraph, rank: int) -> Array:
    """Return the parent of each activity as HTA links it: a backward thread lies in the main thread's annotations.

    It does so where a rank has exactly one thread with steps and one other with names of autograd.
    """
    acts = graph.activities
    above = np.where(acts.on_device, acts.cause, acts.parent).astype(np.int64)
    steps = names_that(is_step, graph.names)
    autograd = names_that(lambda name: "autograd::" in name, graph.names)
    host = (acts.rank == rank) & ~acts.on_device & (acts.kind != ActivityKind.BOUNDARY)
    main = np.unique(acts.lane[host & steps[acts.name]])
    engine = np.setdiff1d(acts.lane[host & autograd[acts.name]], main)
    if len(main) != 1 or len(engine) != 1:
        return above
    backward = names_that(lambda name: name.startswith("## backward ##"), graph.names)
    on_main = host & (acts.lane == main[0])
    regions = np.flatnonzero(on_main & backward[acts.name])
    if not len(regions):
        regions = np.flatnonzero(on_main & steps[acts.name])
    tops = np.flatnonzero(host & (acts.lane == engine[0]) & (above < 0))
    for region in regions.tolist():
        inside = (acts.start[tops] >= acts.start[region]) & (acts.end[tops] <= acts.end[region])
        above[tops[inside]] = region
        tops = tops[~inside]
    return above
