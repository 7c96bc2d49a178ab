"""Device time by kernel, on each rank or over the whole job."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from htagraph.core.kinds import ActivityKind
from htagraph.core.words import check_choice
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import timed_work
from htagraph.queries.breakdowns import STATISTICS, statistics
from htagraph.queries.on_workers import or_summed, over_ranks

__all__ = ["kernel_breakdown"]

_COLUMNS = {"rank": "int64", "kind": "str", "name": "str", **STATISTICS, "share_percent": "float64"}


@or_summed(job=over_ranks)
def kernel_breakdown(graph: DependencyGraph, *, by: Literal["rank", "job"] = "rank") -> pd.DataFrame:
    """Return the durations of kernels, copies and memsets by full name, on each rank or over the whole job.

    On a rank without device work, the rows are its operators by self time (kind ``"op"``) and the collectives on its
    threads (``"host_communication"``).

    Args:
        graph: the job.
        by: ``"rank"``: one row per rank and kernel. ``"job"``: one row per kernel, over all ranks.

    Returns:
        By rank: one row per rank, kind and name, most time first within a rank: ``rank`` (int64), ``kind``, ``name``
        (str), ``count`` (int64), ``total_us``, ``mean_us``, ``min_us``, ``max_us``, ``std_us`` (float64; sample
        standard deviation, 0 for a single one), ``share_percent`` (float64: of the sum over the rank's rows; kernels
        that overlap count in full).

        By job: one row per kind and name, most time first: ``kind``, ``name``, ``ranks`` (int64: how many ran it),
        ``count``, ``total_us``, ``mean_us``, ``min_us``, ``max_us`` over all ranks, ``share_percent`` (of all rows).

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> table = hg.kernel_breakdown(hg.load("data/demo"))
        >>> bool((table["min_us"] <= table["mean_us"]).all())
        True

    Source: HTA's kernel breakdown, with statistics over kernels instead of over sums.
    """
    check_choice("by", by, ("rank", "job"))
    acts = graph.activities
    rows, took = timed_work(graph)
    frame = pd.DataFrame({"rank": acts.rank[rows], "kind": acts.kind[rows], "name": acts.name[rows], "ns": took})
    table = statistics(frame, ["rank", "kind", "name"])
    table["kind"] = [ActivityKind(kind).label for kind in table["kind"]]
    table["name"] = [graph.names[name] for name in table["name"]]
    table["share_percent"] = 100 * table["total_us"] / table.groupby("rank")["total_us"].transform("sum")
    table = table.sort_values(["rank", "total_us", "name"], ascending=[True, False, True], ignore_index=True)
    table = table.astype(_COLUMNS)
    return table if by == "rank" else over_ranks(table)
