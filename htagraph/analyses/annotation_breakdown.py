"""Durations of user annotations, on the host and on devices."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.kinds import ANNOTATIONS, of_kinds
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.attribution import names_of
from htagraph.queries.breakdowns import statistics
from htagraph.queries.on_workers import or_summed, over_ranks
from htagraph.queries.recorded_events import device_annotations

__all__ = ["annotation_breakdown"]

TABLE = Table(
    "Annotations",
    Col("rank", "int64"),
    Col("on", "str", '``"host"`` or ``"device"``'),
    Col("name", "str"),
    Col("count", "int64"),
    Col("total_us mean_us min_us max_us"),
    Col("std_us", doc="sample standard deviation of the durations; 0 for a single range"),
)


def _over_job(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of all ranks, summed; the two sides are not parts of one whole."""
    merged = over_ranks(table).drop(columns="share_percent")
    return merged.sort_values("on", ascending=False, kind="stable", ignore_index=True)


@described(TABLE)
@or_summed(job=_over_job)
def annotation_breakdown(graph: DependencyGraph, *, by: Literal["rank", "job"] = "rank") -> pd.DataFrame:
    """Return the durations of user annotations (``record_function``, ``ProfilerStep#N``) by name.

    On the host an annotation lasts from its start to its end. On a device it lasts, on each stream, from the start of
    the first to the end of the last kernel launched inside it, whatever ran in between. `annotated_kernels` lists the
    kernels of each annotation.

    Args:
        graph: the job.
        by: ``"rank"``: one row per rank and annotation. ``"job"``: one row per annotation, over all ranks.

    Returns:
        One row per rank, side and name, host before device, most time first: {columns}.

        By job: one row per side and name, host before device, most time first: ``on``, ``name``, ``ranks`` (int64: how
        many have it), ``count``, ``total_us``, ``mean_us``, ``min_us``, ``max_us`` over all ranks.

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> table = hg.annotation_breakdown(hg.load("data/demo"))
        >>> table.loc[(table["name"] == "ProfilerStep#6") & (table["on"] == "host"), "count"].tolist()
        [1, 1, 1, 1]

    Source: HTA's user annotation breakdown.
    """
    check_choice("by", by, ("rank", "job"))
    acts = graph.activities
    rows = np.flatnonzero(of_kinds(acts.kind, ANNOTATIONS))
    regions = {"rank": acts.rank[rows].astype(np.int64), "name": names_of(graph, rows), "ns": acts.duration[rows]}
    parts = [pd.DataFrame(regions).assign(on="host")]
    for rank in graph.ranks:
        marks = device_annotations(graph, rank)
        parts.append(marks[["name"]].assign(rank=rank, on="device", ns=marks["end"] - marks["start"]))
    table = statistics(pd.concat(parts), ["rank", "on", "name"])
    order = ["rank", "on", "total_us", "name"]
    table = table.sort_values(order, ascending=[True, False, False, True], ignore_index=True)
    return TABLE.frame(table)
