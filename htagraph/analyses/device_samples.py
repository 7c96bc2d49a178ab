"""Sampled counters, for instance a device's power, clocks and activity: over time, or in statistics."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from htagraph.core.arrays import Mask
from htagraph.core.errors import check_choice
from htagraph.core.intervals import union
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.counter_series import distribution
from htagraph.queries.samples import SERIES, sampled

__all__ = ["device_samples"]

TABLE = SERIES
COUNTERS = Table(
    "Sampled counters",
    Col("rank device", "int64"),
    Col("counter", "str"),
    Col("count", "int64", "samples that are numbers"),
    Col("mean std min p25 median p75 max", doc="over these samples, in the counter's unit"),
    Col("mean_busy", doc="mean of the samples taken while the device ran a kernel or copy; NaN where none was"),
)

_KEYS = ["rank", "device", "counter"]


@described(TABLE, COUNTERS)
def device_samples(
    graph: DependencyGraph,
    *,
    by: Literal["time", "counter"] = "time",
) -> pd.DataFrame:
    """Return the samples of counters that were recorded beside the events.

    PyTorch's CUPTI backend (2.14) samples power, temperature and clocks of each device, and if asked to the activity of
    its multiprocessors, tensor cores, memory, NVLink and PCIe. Other counters of a recording are returned as well. All
    samples of a file are returned, even if only some steps were loaded.

    Args:
        graph: the job.
        by: ``"time"``: one row per sample. ``"counter"``: statistics, one row per rank, device and counter.

    Returns:
        By time: one row per sample, ordered by rank, device, counter and time: {columns}.

        By counter: one row per rank, device and counter, in that order: {columns}.

    Raises:
        ValueError: `by` is something else.
        TraceError: a file with samples is gone or was changed since it was loaded.

    Example:
        >>> import htagraph as hg
        >>> hg.device_samples(hg.load("data/demo")).empty  # recorded without samples
        True
    """
    check_choice("by", by, ("time", "counter"))
    samples = sampled(graph)
    return samples.copy() if by == "time" else _by_counter(graph, samples)


def _by_counter(graph: DependencyGraph, samples: pd.DataFrame) -> pd.DataFrame:
    """Return statistics of each counter."""
    numbers = samples[np.isfinite(samples["value"])]
    table = distribution(numbers["value"], [numbers[key] for key in _KEYS])
    while_busy = numbers[_is_busy(graph, numbers)]
    table["mean_busy"] = while_busy.groupby(_KEYS)["value"].mean()
    return COUNTERS.frame(table.reset_index())


def _is_busy(graph: DependencyGraph, samples: pd.DataFrame) -> Mask:
    """Return whether the device of each sample ran a kernel or copy at that moment."""
    acts = graph.activities
    device_of_lane = [lane.device for lane in graph.lanes]
    work = np.flatnonzero(acts.on_device)
    device = np.array(device_of_lane, np.int64)[acts.lane[work]]
    rank = acts.rank[work]
    time_ns = np.rint(1000 * samples["time_us"].to_numpy())
    moment = time_ns.astype(np.int64) + graph.origin_ns
    busy = np.zeros(len(samples), np.bool_)
    for (of_rank, of_device), rows in samples.reset_index(drop=True).groupby(["rank", "device"]):
        ran = work[(rank == of_rank) & (device == of_device)]
        start, end = union(graph.time[2 * ran], graph.time[2 * ran + 1])
        begun = np.searchsorted(start, moment[rows.index], side="right")
        ended = np.searchsorted(end, moment[rows.index], side="right")
        busy[rows.index] = begun > ended
    return busy
