"""Regions of a job by the name of their annotation: phases of inference like prefill and decode."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.intervals import group_lengths
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.on_workers import rank_by_rank
from htagraph.queries.phase_regions import phase_regions

__all__ = ["phases"]

TABLE = Table(
    "Phases",
    Col("rank", "int64"),
    Col("phase", "str"),
    Col("example", "str", "the first region's whole name"),
    Col("count", "int64"),
    Col("tokens", "int64", "number of processed tokens in the regions' names; -1 if the names do not say"),
    Col("host_us", doc="summed durations of the regions on the host"),
    Col("wall_us", doc="time in which at least one region, or work launched in it, is not over"),
    Col("mean_wall_us max_wall_us", doc="mean and longest wall time of one region"),
    Col(
        "busy_us",
        doc="the part of ``wall_us`` in which kernels or copies of the phase run; of several devices the mean",
        heading="own work_us",
    ),
    Col("idle_us", doc="the rest of ``wall_us``: the device is idle, or runs work of other phases"),
    Col("idle_percent", doc="share of ``wall_us``", heading="without own work_percent"),
    Col("kernels", "int64", "number of kernels and copies launched in the phase"),
    Col("launches", "int64", "number of launch calls in the phase; fewer than kernels with CUDA graphs"),
    Col("tokens_per_s", doc="tokens over ``wall_us``; NaN without tokens"),
    rank_by="wall_us",
)

_KEYS = ["rank", "phase"]


@described(TABLE)
@rank_by_rank
def phases(graph: DependencyGraph, *, annotation: str | None = None) -> pd.DataFrame:
    """Return the time on host and device of regions by the name of their annotation.

    A region lasts on the host from its start to its end; its wall time ends with the last work launched in the region
    if this work ends later, and begins when the device has ended all work begun before the recording, if the region's
    work was queued behind it. Annotations of inference engines that name a batch are grouped by phase: ``prefill``,
    ``decode``, ``mixed``; numbers behind ``=`` or ``:`` in names do not tell phases apart.

    Args:
        graph: the job.
        annotation: glob of the names of annotations, steps, operators or Python frames, or of the phases of
            annotations, such as ``decode``; where a region holds another, the outermost counts. If not given, the
            outermost user annotations without collectives, and operators that compile; on a rank without any, its
            steps, as one phase.

    Returns:
        One row per rank and phase, by rank, the most wall time first: {columns}.

    Example:
        >>> import htagraph as hg
        >>> table = hg.phases(hg.load("data/demo"), annotation="ProfilerStep#*")
        >>> bool((table["wall_us"] >= table["host_us"]).all())
        True
    """
    acts = graph.activities
    regions = phase_regions(graph, annotation)
    table = regions.table
    group = regions.group
    phase = np.asarray(table.groupby(_KEYS, sort=False).ngroup(), np.int64)
    different = int(phase.max(initial=-1)) + 1
    begin = np.maximum(acts.start[regions.work], regions.since[group])
    wall = group_lengths(regions.since, regions.end, phase, different)
    busy = _mean_of_devices(graph, regions.work, begin, phase[group], different)
    return _grouped(table, wall / 1000, busy / 1000)


def _mean_of_devices(graph: DependencyGraph, work: Array, begin: Array, phase: Array, phases: int) -> Array:
    """Return how long a device runs work of each phase, ns: the mean over the devices that run any.

    `work` begins to count at `begin`, and belongs to one of so many `phases`.
    """
    acts = graph.activities
    device_of_lane = np.array([lane.device for lane in graph.lanes], np.int64)
    device = device_of_lane[acts.lane[work]]
    pairs, pair = np.unique(np.stack((phase, device)), axis=1, return_inverse=True)
    end = np.maximum(begin, acts.end[work])
    busy = group_lengths(begin, end, pair.ravel(), pairs.shape[1])
    of_pair = pairs[0]
    total = np.bincount(of_pair, busy, phases)
    return total / np.maximum(np.bincount(of_pair, minlength=phases), 1)


def _grouped(table: pd.DataFrame, wall_us: Array, busy_us: Array) -> pd.DataFrame:
    """Return a row for each phase of each rank."""
    summed = ("host_us", "kernels", "launches")
    names = table["name"].to_numpy()
    table = table.assign(known_tokens=table["tokens"].clip(lower=0), unknown=table["tokens"] < 0).groupby(
        _KEYS, as_index=False, sort=False
    ).agg(
        first=("start", "idxmin"), count=("name", "size"), known_tokens=("known_tokens", "sum"),
        unknown=("unknown", "all"), mean_wall_us=("wall_us", "mean"), max_wall_us=("wall_us", "max"),
        **{name: (name, "sum") for name in summed},
    )  # fmt: skip
    table["example"] = names[table["first"].to_numpy(np.int64)]
    table["tokens"] = np.where(table["unknown"].astype(bool), -1, table["known_tokens"])
    table["wall_us"], table["busy_us"] = wall_us, busy_us
    table["idle_us"] = (table["wall_us"] - table["busy_us"]).clip(lower=0)
    wall = table["wall_us"].where(table["wall_us"] > 0)
    table["idle_percent"] = 100 * table["idle_us"] / wall
    table["tokens_per_s"] = 1e6 * table["tokens"].where(table["tokens"] >= 0) / wall
    table = table.sort_values(["rank", "wall_us", "phase"], ascending=[True, False, True], ignore_index=True)
    return TABLE.frame(table)
