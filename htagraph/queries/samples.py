"""Samples of counters of all ranks, on the common clock."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.computing import once
from htagraph.core.tables import Col, Table
from htagraph.graph.clocks import Clock
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.trace.readers import reader_of

__all__ = ["SERIES", "sampled"]

SERIES = Table(
    "Sampled counters over time",
    Col("rank", "int64"),
    Col("device", "int64", "-1 where the counter is not that of a device"),
    Col("counter", "str", "as recorded, as a rule with its unit, such as ``Power (W)``"),
    Col("time_us", doc="on the common clock, since the job's first activity"),
    Col("value", doc="in the counter's unit"),
)


@once
def sampled(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row per sample; documented at `htagraph.device_samples`."""
    of_ranks = [_of_rank(graph, rank) for rank in sorted(graph.traces)]
    tables = [table for table in of_ranks if len(table)]
    if not tables:
        return SERIES.frame()
    return pd.concat(tables, ignore_index=True)


def _of_rank(graph: DependencyGraph, rank: int) -> pd.DataFrame:
    """Return the samples of a rank by device, counter and time."""
    trace = graph.traces[rank]
    samples = reader_of(trace).samples(trace)
    table = SERIES.frame(
        {
            "rank": np.full(len(samples), rank),
            "device": _devices(graph, rank, samples),
            "counter": samples["counter"],
            "time_us": _times_us(graph, rank, samples),
            "value": samples["value"],
        }
    )
    return table.sort_values(
        ["device", "counter", "time_us"],
        kind="stable",
    )


def _devices(
    graph: DependencyGraph,
    rank: int,
    samples: pd.DataFrame,
) -> pd.Series[int]:
    """Return the device of each sample: as the file says, or the process if device work lies in that process."""
    of_rank = [lane.device for lane in graph.lanes if lane.rank == rank]
    devices = [device for device in of_rank if device >= 0]
    process = samples["process"]
    from_process = process.where(process.isin(devices), -1)
    device = samples["device"]
    return device.where(device >= 0, from_process)


def _times_us(
    graph: DependencyGraph,
    rank: int,
    samples: pd.DataFrame,
) -> pd.Series[float]:
    """Return the moment of each sample on the common clock, µs since the job's first activity."""
    of_rank = (clock for clock in graph.clocks if clock.rank == rank)
    clock = next(of_rank, Clock(rank))
    start = samples["start"].to_numpy(np.int64)
    since_origin = clock.common(start) - graph.origin_ns
    return pd.Series(since_origin / 1000)
