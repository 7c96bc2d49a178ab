"""Device time by the module and the operator that it was launched for."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.arrays import texts_of
from htagraph.core.errors import check_choice
from htagraph.core.kinds import DEVICE_WORK, ActivityKind, of_kinds
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.attribution import module_of, operator_of

__all__ = ["kernel_owners"]

TABLE = Table(
    "Device time by module and operator",
    Col("rank", "int64", 'only with ``by="rank"``'),
    Col("module operator kind name", "str", "empty where the module or operator is not known"),
    Col("count", "int64"),
    Col("device_us", doc="summed durations; the rows of a rank sum to the durations of all device work of the rank"),
    Col("share_percent", doc="share of the sum over the rank's rows, or over all rows"),
)


@described(TABLE)
def kernel_owners(graph: DependencyGraph, *, by: Literal["rank", "job"] = "rank") -> pd.DataFrame:
    """Return the durations of kernels, copies and memsets by the module and the operator that launched them.

    The module is the innermost ``nn.Module`` frame around the launch or, for backward work, around its forward
    operator; where the trace has no such frames, the innermost annotation. The operator is the innermost operator
    around the launch or, where there is none, the innermost annotation or step.

    Args:
        graph: the job.
        by: ``"rank"``: one row per rank, module, operator and kernel. ``"job"``: over all ranks.

    Returns:
        One row per rank, module, operator, kind and name, most time first within a rank: {columns}.

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> table = hg.kernel_owners(hg.load("data/demo"), by="job")
        >>> table[["module", "operator"]].iloc[0].tolist()
        ['nccl:all_reduce', 'record_param_comms']
    """
    check_choice("by", by, ("rank", "job"))
    acts = graph.activities
    rows = np.flatnonzero(of_kinds(acts.kind, DEVICE_WORK))
    named = {"module": module_of(graph, rows), "operator": operator_of(graph, rows)}
    codes = {what: np.where(owner >= 0, acts.name[owner], -1) for what, owner in named.items()}
    table = pd.DataFrame({
        "rank": acts.rank[rows].astype(np.int64), **codes, "kind": acts.kind[rows].astype(np.int64),
        "name": acts.name[rows], "ns": acts.duration[rows],
    })  # fmt: skip
    keys = [*(["rank"] if by == "rank" else []), "module", "operator", "kind", "name"]
    sums = table.groupby(keys, as_index=False).agg(count=("ns", "size"), ns=("ns", "sum"))
    whole = sums.groupby("rank")["ns"].transform("sum") if by == "rank" else sums["ns"].sum()
    share = 100 * sums["ns"] / whole if len(sums) else sums["ns"].astype("float64")
    sums["device_us"], sums["share_percent"] = sums.pop("ns") / 1000, share.astype("float64")
    for what in ("module", "operator", "name"):
        sums[what] = texts_of(graph.names, sums[what])
    sums["kind"] = texts_of([kind.label for kind in ActivityKind], sums["kind"])
    first = ["rank"] if by == "rank" else []
    order = sums.sort_values([*first, "device_us"], ascending=[True, False][-len(first) - 1 :], kind="stable")
    return order.astype({"count": "int64"}).reset_index(drop=True)
