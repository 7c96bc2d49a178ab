"""How evenly each kernel's time is distributed over the ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.kinds import ActivityKind
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import timed_work, upper_bounds
from htagraph.queries.breakdowns import statistics
from htagraph.queries.on_workers import UPPER_BOUND, known_us

__all__ = ["kernel_distribution"]

TABLE = Table(
    "Kernels by rank",
    Col("kind name", "str"),
    Col("rank count", "int64"),
    Col("total_us mean_us min_us max_us"),
    Col("std_us", doc="sample standard deviation of the durations; 0 for a single kernel"),
    Col("share_percent", doc="share of the sum over the rank's rows"),
    Col("relative", doc="the rank's mean over the median of all ranks' means; NaN where that median is 0"),
    Col("spread", doc="the slowest rank's mean over the fastest rank's mean; NaN where the latter is 0"),
    Col("slowest_rank", "int64", "the rank with the greatest mean"),
    Col("excess_us", doc="time that the rank would save with the median of the means; negative on faster ranks"),
    UPPER_BOUND,
    rank_by="total_us",
)


@described(TABLE)
def kernel_distribution(graph: DependencyGraph) -> pd.DataFrame:
    """Return each kernel's durations on every rank that ran it, and how much these durations differ between ranks.

    A kernel that takes longer on one rank than on the others indicates a slow device or uneven work; communication
    kernels are uneven because the first rank to arrive waits for the last. On a rank without device work the rows are
    its operators by self time.

    A duration that was cut, as an impossible one is, is an upper bound: it is part of the sums, but neither of the
    order nor of shares.

    Args:
        graph: the job.

    Returns:
        One row per kind, name and rank, the kernels with most time over all ranks first, then by rank: {columns}.

    Example:
        >>> import htagraph as hg
        >>> table = hg.kernel_distribution(hg.load("data/demo"))
        >>> slow = table[(table["kind"] == "computation") & (table["rank"] == 2)]
        >>> bool(slow["relative"].median() > 1.2)
        True

    Source: HTA's kernel breakdown across ranks, whose figures show it by eye.
    """
    acts = graph.activities
    rows, took = timed_work(graph)
    frame = pd.DataFrame({"kind": acts.kind[rows], "name": acts.name[rows], "rank": acts.rank[rows], "ns": took})
    frame["bound_ns"] = np.where(upper_bounds(graph)[rows], took, 0)
    table = statistics(frame, ["kind", "name", "rank"])
    table["known_us"] = known_us(table)
    table["share_percent"] = 100 * table["known_us"] / table.groupby("rank")["known_us"].transform("sum")
    same = table.groupby(["kind", "name"])
    of_ranks = same["mean_us"]
    middle, fastest, slowest = (of_ranks.transform(each) for each in ("median", "min", "max"))
    table["relative"] = table["mean_us"] / middle.where(middle > 0)
    table["spread"] = slowest / fastest.where(fastest > 0)
    table["excess_us"] = table["count"] * (table["mean_us"] - middle)
    table["over_all"] = same["known_us"].transform("sum")
    table["slowest_rank"] = table["rank"].where(table["mean_us"] == slowest)
    table["slowest_rank"] = table.groupby(["kind", "name"])["slowest_rank"].transform("min")
    table = table.sort_values(["over_all", "kind", "name", "rank"], ascending=[False, True, True, True])
    table["kind"] = [ActivityKind(kind).label for kind in table["kind"]]
    table["name"] = [graph.names[name] for name in table["name"]]
    return TABLE.frame(table).reset_index(drop=True)
