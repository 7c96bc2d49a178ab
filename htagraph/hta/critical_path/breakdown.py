"""What bounds each edge of a critical path, and the frame of the events that the edges belong to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.hta.critical_path.types import BoundType, CPEdgeType
from htagraph.hta.shapes.frame import frame_of
from htagraph.hta.shapes.names import shorten

if TYPE_CHECKING:
    from htagraph.hta.critical_path.graph import CPGraph

__all__ = ["breakdown", "clipped", "name_of", "named_events"]


_SHOWN = ["s_name", "cat", "pid", "tid", "stream", "index"]
_BY_TYPE = {
    CPEdgeType.KERNEL_KERNEL_DELAY.value: BoundType.GPU_KERNEL_KERNEL_OVERHEAD.value,
    CPEdgeType.KERNEL_LAUNCH_DELAY.value: BoundType.GPU_KERNEL_LAUNCH_OVERHEAD.value,
    CPEdgeType.DEPENDENCY.value: "", CPEdgeType.SYNC_DEPENDENCY.value: "",
}  # fmt: skip


def breakdown(graph: CPGraph) -> pd.DataFrame:
    """Return one row per edge of a path; the columns are documented at `CPGraph.get_critical_path_breakdown`."""
    edges = graph.critical_path_edges
    events = [graph.get_event_attribution_for_edge(edge) for edge in edges]
    known = all(event is not None for event in events)
    table = pd.DataFrame({
        "event_idx": np.array(events, np.int64 if known else np.float64),
        "duration": np.array([edge.weight for edge in edges], np.float64),
        "type": [edge.type.value for edge in edges],
    })  # fmt: skip
    table = table.merge(named_events(graph)[_SHOWN], left_on="event_idx", right_on="index", how="left")
    table["bound_by"] = _bound_by(graph, table)
    return table


def _bound_by(graph: CPGraph, table: pd.DataFrame) -> Array:
    kinds = np.array(["", BoundType.GPU_COMPUTE_BOUND.value, BoundType.GPU_COMMUNICATION_BOUND.value], object)
    view = graph.parts
    device = view.kind >= ActivityKind.COMPUTATION
    code = device.astype(np.int64) + (view.kind == ActivityKind.COMMUNICATION)
    of_event = dict(zip(view.event.tolist(), code.tolist(), strict=True))
    bound = kinds[[of_event.get(event, 0) for event in table["event_idx"].fillna(-1).astype(np.int64).tolist()]]
    names = table["s_name"].fillna("").astype(str)
    loads = [re.compile(pattern) for pattern in graph.data_load_events or ()]
    data = np.array([any(each.search(name) for each in loads) for name in names], np.bool_)
    on_host = np.where(data, BoundType.DATA_LOADING.value, BoundType.CPU_BOUND.value)
    bound = np.where(bound == "", on_host, bound)
    by_type = table["type"].map(_BY_TYPE)
    return np.where(by_type.notna(), by_type, bound)


def named_events(graph: CPGraph) -> pd.DataFrame:
    """Return the frame of the window's events, in the order of the file, with their names as texts."""
    if graph.saved_frame is not None:
        return graph.saved_frame
    if graph.named is None:
        frame = clipped(graph, frame_of(graph.job, graph.rank, from_file=False))
        words = np.array(graph.job.symbols.sym_table, object)
        short = {code: shorten(words[code]) for code in frame["name"].unique().tolist()}
        frame["s_name"] = frame["name"].map(short)
        frame["s_cat"] = words[frame["cat"]]
        graph.named = frame
    return graph.named


def name_of(graph: CPGraph, event: int) -> str:
    """Return an event's whole name."""
    frame = named_events(graph)
    if "full_name" in frame:
        return str(frame["full_name"].loc[event])
    return graph.job.symbols.sym_table[frame["name"].loc[event]]


def clipped(graph: CPGraph, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of the events of a rank's frame that lie in the window, in the order of the file."""
    first_us, last_us = ((moment - graph.first_ns) / 1000 for moment in graph.window)
    keep = frame["stream"].eq(-1) & frame["ts"].between(first_us, last_us) & frame["dur"].gt(0)
    keep |= frame["index"].isin(graph.parts.event)
    return frame[keep].sort_index()
