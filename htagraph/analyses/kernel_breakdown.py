"""Which kernels each rank's device time goes to."""

from __future__ import annotations

import pandas as pd

from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.durations import STATISTICS, statistics, timed_work

__all__ = ["kernel_breakdown"]

_COLUMNS = {"rank": "int64", "kind": "str", "name": "str", **STATISTICS, "share_percent": "float64"}


def kernel_breakdown(graph: DependencyGraph) -> pd.DataFrame:
    """Return the durations of the kernels, copies and sets of each rank by full name.

    On a rank without device work, the rows are its operators by self time (kind ``"op"``) and the collectives on its
    threads (``"host_communication"``).

    Args:
        graph: the job.

    Returns:
        One row per rank, kind and name, most time first within a rank: ``rank`` (int64), ``kind``, ``name`` (str),
        ``count`` (int64), ``total_us``, ``mean_us``, ``min_us``, ``max_us``, ``std_us`` (float64; sample standard
        deviation, 0 for a single one), ``share_percent`` (float64: of the sum over the rank's rows; kernels that run
        at once count both).

    Example:
        >>> import htagraph as hg
        >>> table = hg.kernel_breakdown(hg.load("data/demo"))
        >>> bool((table["min_us"] <= table["mean_us"]).all())
        True

    Source: HTA's kernel breakdown, with statistics over kernels instead of over sums.
    """
    acts = graph.activities
    rows, took = timed_work(graph)
    frame = pd.DataFrame({"rank": acts.rank[rows], "kind": acts.kind[rows], "name": acts.name[rows], "ns": took})
    table = statistics(frame, ["rank", "kind", "name"])
    table["kind"] = [ActivityKind(kind).label for kind in table["kind"]]
    table["name"] = [graph.names[name] for name in table["name"]]
    table["share_percent"] = 100 * table["total_us"] / table.groupby("rank")["total_us"].transform("sum")
    table = table.sort_values(["rank", "total_us", "name"], ascending=[True, False, True], ignore_index=True)
    return table.astype(_COLUMNS)
