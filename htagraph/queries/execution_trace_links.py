"""The node of an execution trace that each operator belongs to."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.errors import SelectionError, TraceError
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.trace.profiler_files.execution_trace import LISTS

__all__ = ["link_execution_trace"]

_LINKABLE = (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.HOST_COMMUNICATION)
_LEAST_SAME_NAMES = 0.5
"""The least share of pairs with the same id that must have the same name, or the two files are of different runs.

Chosen: ids of one run agree except for a few operators that are renamed, ids of two runs only by accident. Doubled (1),
a single renamed operator would refuse the whole execution trace."""


def link_execution_trace(graph: DependencyGraph, nodes: pd.DataFrame, rank: int | None = None) -> pd.DataFrame:
    """Return the node of an execution trace that each operator of a rank belongs to.

    Both files number the operators of a process: a node's record-function id is the External id of its activity. Pairs
    with different names are left out.

    Args:
        graph: the job, recorded in the same run.
        nodes: the nodes, as `read_execution_trace` returns them.
        rank: the rank of the execution trace; may be left out if the graph has only one rank.

    Returns:
        One row per operator or annotation that has a node, indexed by ``activity`` (int64): ``name`` (str),
        ``et_node`` (int64), ``op_schema`` (str), ``input_shapes``, ``input_types``, ``output_shapes``,
        ``output_types`` (object).

    Raises:
        SelectionError: the rank is not in the graph, or there are several ranks and none is given.
        TraceError: ids are shared but most names differ, so the two were not recorded in one run.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load({0: "data/demo/rank-0.json.gz"})
        >>> columns = ["name", "parent", "rf_id", "op_schema", "input_shapes", "input_types", "output_shapes",
        ...            "output_types"]
        >>> len(link_execution_trace(graph, pd.DataFrame(columns=columns)))
        0

    Source: HTA's correlate_execution_trace.
    """
    acts = graph.activities
    of_rank = acts.of_rank(_rank(graph, rank))
    external = acts.arg("external_id")[of_rank]
    known = of_kinds(acts.kind[of_rank], _LINKABLE) & (external > 0)
    rows = of_rank.start + np.flatnonzero(known)
    real = nodes[nodes["rf_id"] > 0].drop_duplicates("rf_id")
    at = pd.Index(real["rf_id"]).get_indexer(pd.Index(external[known]))
    rows, at = rows[at >= 0], at[at >= 0]
    names = np.array([graph.names[name] for name in acts.name[rows]], object)
    same = names == real["name"].to_numpy(object)[at]
    if len(rows) and same.mean() < _LEAST_SAME_NAMES:
        first = int(np.argmin(same))
        msg = (
            f"the execution trace is not of this run: {int((~same).sum())} of {len(rows)} shared ids have other names, "
            f"such as {real['name'].iloc[at[first]]!r} for {graph.describe(int(rows[first]))}"
        )
        raise TraceError(msg)
    linked = real.iloc[at[same]].rename_axis("et_node").reset_index().set_index(pd.Index(rows[same], name="activity"))
    return linked[["name", "et_node", "op_schema", *LISTS]].astype(
        {"name": "str", "et_node": "int64", "op_schema": "str"}
    )


def _rank(graph: DependencyGraph, rank: int | None) -> int:
    if rank in graph.ranks:
        return int(rank)
    if rank is None and len(graph.ranks) <= 1:
        return graph.ranks[0] if graph.ranks else 0
    msg = f"rank={rank}: give the rank of the execution trace; this graph has ranks {', '.join(map(str, graph.ranks))}"
    raise SelectionError(msg)
