"""Regions of torch.compile: their host time, and the kernels they launched."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.core.naming import is_compiled_region, is_triton_kernel, names_that
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.attribution import names_of
from htagraph.queries.counter_series import launched
from htagraph.queries.on_workers import rank_by_rank

__all__ = ["compiled_regions"]

TABLE = Table(
    "torch.compile regions",
    Col("rank", "int64"),
    Col("region", "str", "name of the region; empty for generated Triton kernels that no region launched"),
    Col("inside", "str", "name of the innermost region around this region; empty for none"),
    Col("count", "int64", "how often the region ran"),
    Col("host_us", doc="time of the region on the host"),
    Col("kernels", "int64", "number of kernels and copies launched in the region"),
    Col("triton_kernels", "int64", "number of these kernels that inductor generated"),
    Col("device_us triton_us", doc="summed durations of ``kernels``, and of ``triton_kernels``"),
    Col("triton_percent", doc="share of the device time; NaN without device time"),
    rank_by="device_us",
)

_KEYS = ["rank", "region", "inside"]
_FIGURES = ["count", "host_us", "kernels", "triton_kernels", "device_us", "triton_us"]


@described(TABLE)
@rank_by_rank
def compiled_regions(graph: DependencyGraph) -> pd.DataFrame:
    """Return the time of compiled regions: operators and annotations that run code made by torch.compile.

    Regions are nested (a ``Torch-Compiled Region`` encloses a ``CompiledFunction``, which encloses a
    ``CompiledFxGraph``); the figures of a region include the regions inside it, so the rows with an empty ``inside``
    sum to the total.

    Args:
        graph: the job.

    Returns:
        One row per rank, region and the region around it, by rank, the most device time first: {columns}.

    Example:
        >>> import htagraph as hg
        >>> hg.compiled_regions(hg.load("data/demo")).shape[0]
        0
    """
    acts = graph.activities
    compiled = names_that(is_compiled_region, graph.names)
    triton = names_that(is_triton_kernel, graph.names)
    wanted = compiled[acts.name] & of_kinds(acts.kind, (ActivityKind.OP, ActivityKind.ANNOTATION))
    around = np.full(len(acts), -1, np.int64)
    region = np.flatnonzero(wanted)
    around[region] = graph.tree.nearest(wanted, graph.tree.parent[region])
    rows = [_rows(graph, region, around[region], {"count": 1, "host_us": acts.duration[region] / 1000})]
    call, work = launched(graph)
    is_triton = triton[acts.name[work]] & (acts.kind[work] == ActivityKind.COMPUTATION)
    device_us = acts.duration[work] / 1000
    owner = graph.tree.nearest(wanted, call)
    outside = (owner < 0) & is_triton
    while True:  # each round one region outwards
        some = (owner >= 0) | outside
        if not some.any():
            break
        works = {"kernels": 1, "triton_kernels": is_triton[some], "device_us": device_us[some]}
        rows.append(_rows(graph, owner[some], _at(around, owner[some]), works, acts.rank[work[some]]))
        owner, outside = _at(around, owner), np.zeros(len(work), np.bool_)
    table = pd.concat([each.assign(triton_us=each["device_us"] * each["triton_kernels"]) for each in rows])
    table = table.groupby(_KEYS, as_index=False, sort=False)[_FIGURES].sum()
    order = ["rank", "device_us", "host_us", "region", "inside"]
    table = table.sort_values(order, ascending=[True, False, False, True, True], ignore_index=True)
    percent = 100 * table["triton_us"] / table["device_us"].where(table["device_us"] > 0)
    return TABLE.frame(table.assign(triton_percent=percent))


def _at(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a value per row, -1 for row -1."""
    return np.where(rows >= 0, np.append(values, -1)[rows], -1)


def _rows(
    graph: DependencyGraph, region: np.ndarray, around: np.ndarray, figures: dict[str, object],
    rank: np.ndarray | None = None,
) -> pd.DataFrame:  # fmt: skip
    keys = {
        "rank": graph.activities.rank[region] if rank is None else rank,
        "region": names_of(graph, region), "inside": names_of(graph, around),
    }  # fmt: skip
    return pd.DataFrame(keys | dict.fromkeys(_FIGURES, 0) | figures)
