"""Device time by kernel, on each rank or over the whole job."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.kernels import kernel_family
from htagraph.core.kinds import COMMUNICATION, ActivityKind
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import timed_work, upper_bounds
from htagraph.queries.breakdowns import statistics
from htagraph.queries.on_workers import UPPER_BOUND, known_us, or_summed, over_ranks

__all__ = ["kernel_breakdown"]

TABLE = Table(
    "Top kernels",
    Col("rank", "int64"),
    Col("kind name", "str"),
    Col("count", "int64"),
    Col("total_us mean_us min_us max_us"),
    Col("std_us", doc="sample standard deviation of the durations; 0 for a single kernel"),
    Col("share_percent", doc="share of the sum over the rank's rows; kernels that overlap count in full"),
    UPPER_BOUND,
    rank_by="total_us",
)
JOB = Table(
    "Top kernels, all ranks",
    Col("kind name", "str"),
    Col("ranks", "int64", "number of ranks that ran the kernel"),
    Col("count", "int64"),
    Col("total_us mean_us min_us max_us", doc="over all ranks"),
    Col("share_percent", doc="share of the time of all rows"),
    UPPER_BOUND,
    rank_by="total_us",
)


@described(TABLE, JOB)
@or_summed(job=over_ranks)
def kernel_breakdown(graph: DependencyGraph, *, by: Literal["rank", "job", "family"] = "rank") -> pd.DataFrame:
    """Return the durations of kernels, copies and memsets by full name or family, on each rank or over the whole job.

    A duration that was cut, as an impossible one is, is an upper bound: it is part of the sums, but neither of the
    order nor of shares.

    On a rank without device work, the rows are its operators by self time (kind ``"op"``) and the collectives on its
    threads (``"host_communication"``).

    Args:
        graph: the job.
        by: ``"rank"``: one row per rank and kernel. ``"job"``: one row per kernel, over all ranks. ``"family"``: one
            row per rank and family: GEMM, attention, convolution, norm, reduction, elementwise, index, optimizer, copy,
            memset, collective, MoE routing, other.

    Returns:
        By rank or family: one row per rank, kind and name (of the kernel or family), most time first within a rank:
        {columns}.

        By job: one row per kind and name, most time first: {columns}.

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> table = hg.kernel_breakdown(hg.load("data/demo"))
        >>> bool((table["min_us"] <= table["mean_us"]).all())
        True

        >>> table = hg.kernel_breakdown(hg.load("data/demo"), by="family")
        >>> table.loc[table["rank"] == 0, "name"].head(3).tolist()
        ['collective', 'GEMM', 'attention']

    Source: HTA's kernel breakdown, with statistics over kernels instead of over sums.
    """
    check_choice("by", by, ("rank", "job", "family"))
    acts = graph.activities
    rows, took = timed_work(graph)
    frame = pd.DataFrame({"rank": acts.rank[rows], "kind": acts.kind[rows], "name": acts.name[rows], "ns": took})
    frame["bound_ns"] = np.where(upper_bounds(graph)[rows], took, 0)
    if by == "family":
        frame["name"] = _families(graph, frame)
    table = statistics(frame, ["rank", "kind", "name"])
    table["kind"] = [ActivityKind(kind).label for kind in table["kind"]]
    if by != "family":
        table["name"] = [graph.names[name] for name in table["name"]]
    table["known_us"] = known_us(table)
    table["share_percent"] = 100 * table["known_us"] / table.groupby("rank")["known_us"].transform("sum")
    table = table.sort_values(["rank", "known_us", "name"], ascending=[True, False, True], ignore_index=True)
    return TABLE.frame(table)


def _families(graph: DependencyGraph, durations: pd.DataFrame) -> pd.Series[str]:
    """Return the family of each kernel; a kernel that is communication is a collective, whatever its name is."""
    used = durations["name"].unique()
    family_of_name = {name: kernel_family(graph.names[name]) for name in used}
    families = durations["name"].map(family_of_name).astype(object)
    return families.mask(durations["kind"].isin(COMMUNICATION), "collective")
