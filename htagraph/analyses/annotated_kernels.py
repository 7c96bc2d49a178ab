"""Every kernel, copy and memset with the user annotation that it belongs to."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.errors import check_choice
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import bound_times
from htagraph.graph.selection import columns_of
from htagraph.queries.attribution import annotation_of, names_of
from htagraph.queries.on_workers import UPPER_BOUND
from htagraph.queries.recorded_events import device_annotations, narrowest

__all__ = ["annotated_kernels"]

TABLE = Table(
    "Device work and its annotation",
    Col("rank device stream step", "int64"),
    Col("work", "int64", "activity number of the kernel, copy or memset"),
    Col("kind name", "str"),
    Col("start_us", doc="since the job's first activity"),
    Col("duration_us"),
    Col("annotation", "str", "the innermost user annotation or step around the launch; empty for none"),
    Col("device_annotation", "str", "the shortest annotation on this stream that overlaps the work; empty for none"),
)
ANNOTATIONS = Table(
    "Device time by annotation",
    Col("rank", "int64"),
    Col("annotation", "str"),
    Col("count", "int64", "kernels, copies and memsets"),
    Col("total_us min_us max_us", doc="sum, least and greatest of the durations of the annotation's device work"),
    UPPER_BOUND,
)


@described(TABLE, ANNOTATIONS)
def annotated_kernels(graph: DependencyGraph, *, by: Literal["kernel", "annotation"] = "kernel") -> pd.DataFrame:
    """Return all device work with the innermost annotation around its launch and the shortest that overlaps the work.

    Args:
        graph: the job.
        by: ``"kernel"``: one row per kernel, copy or memset. ``"annotation"``: their durations by innermost annotation.

    Returns:
        One row per piece of device work, by rank and start: {columns}.

        By annotation: one row per rank and annotation: {columns}.

    Raises:
        ValueError: `by` is something else.

    Example:
        >>> import htagraph as hg
        >>> table = hg.annotated_kernels(hg.load("data/demo"))
        >>> "DistributedDataParallel.forward" in set(table["annotation"])
        True

    Source: HTA's GPU kernels with user annotations, which takes the annotations that overlap the work in time.
    """
    check_choice("by", by, ("kernel", "annotation"))
    acts = graph.activities
    rows = np.flatnonzero(acts.on_device)
    rows = rows[np.lexsort((acts.start[rows], acts.rank[rows]))]
    table = TABLE.frame({
        **columns_of(graph, rows, "rank", "device", "stream", "step", "kind", "name", "start_us", "duration_us"),
        "work": rows,
        "annotation": names_of(graph, annotation_of(graph, rows)),
        "device_annotation": _over(graph)[rows],
    })  # fmt: skip
    if by == "kernel":
        return table
    table["at_most_us"] = bound_times(graph)[rows] / 1000
    by_annotation = table.groupby(["rank", "annotation"], as_index=False, sort=False)
    sums = by_annotation.agg(
        count=("duration_us", "size"),
        total_us=("duration_us", "sum"),
        min_us=("duration_us", "min"),
        max_us=("duration_us", "max"),
        at_most_us=("at_most_us", "sum"),
    )
    if not sums["at_most_us"].any():
        sums = sums.drop(columns="at_most_us")
    return ANNOTATIONS.frame(sums)


def _over(graph: DependencyGraph) -> np.ndarray:
    """Return for each activity the name of the shortest device annotation that overlaps it, empty for none."""
    acts = graph.activities
    over = np.full(len(acts), "", object)
    marks = {rank: device_annotations(graph, rank) for rank in graph.ranks}
    for rows in acts.by_stream():
        lane = acts.lane[rows[0]]
        lane_marks = marks[graph.lanes[lane].rank].query("lane == @lane")
        shortest = narrowest(
            acts.start[rows], acts.end[rows], lane_marks["start"].to_numpy(), lane_marks["end"].to_numpy()
        )
        over[rows] = np.append(lane_marks["name"].to_numpy(object), "")[shortest]
    return over
