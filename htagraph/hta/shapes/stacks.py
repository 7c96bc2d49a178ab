"""Call stacks in HTA's shape: what encloses each event, and the device work under it, as columns of a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.core.parents import nearest
from htagraph.graph.construction.nesting import nest, nesting_order
from htagraph.hta.shapes.frame import smallest_type

if TYPE_CHECKING:
    from htagraph.hta.shapes.job import HtaJob

__all__ = ["STACK_COLUMNS", "is_device_lane", "parents_in_frame", "parents_in_job", "root_of", "stack_columns"]


STACK_COLUMNS = [
    "parent", "depth", "height", "first_kernel_start", "last_kernel_end", "num_kernels", "kernel_dur_sum",
    "kernel_span",
]  # fmt: skip
_SYNC_NAMES = ("Event Sync", "Context Sync", "Stream Sync", "Stream Wait Event")


def parents_in_job(job: HtaJob, rank: int, frame: pd.DataFrame) -> tuple[Array, Array]:
    """Return the parent of each row of a rank's frame in the graph's tree, and which rows are device work.

    Records of a synchronization, which are no activities, lie in the call that synchronized.

    Args:
        job: the job.
        rank: one of its ranks.
        frame: its events, with ``index``, ``stream`` and ``index_correlation``.

    Returns:
        The row above each row, -1 for none; and whether the row is a kernel, a copy or a set.
    """
    acts, index = job.graph.activities, frame["index"].to_numpy(np.int64)
    recorded = acts.event >= 0
    rows = np.arange(len(acts))[acts.of_rank(rank)]
    rows = rows[recorded[rows]]
    order = np.argsort(index, kind="stable")
    at = np.minimum(np.searchsorted(index[order], acts.event[rows]), max(0, len(index) - 1))
    shown = index[order][at] == acts.event[rows] if len(index) else np.zeros(len(rows), np.bool_)
    rows, place = rows[shown], order[at[shown]]
    row_of = np.full(len(acts) + 1, -1, np.int64)  # the last is that of no activity
    row_of[rows] = place
    parent = _launch_rows(frame)
    parent[place] = row_of[nearest(job.tree_parents, row_of[:-1] >= 0, job.tree_parents[rows])]
    work = np.zeros(len(index), np.bool_)
    work[place] = acts.on_device[rows] & (acts.kind[rows] != ActivityKind.DEVICE_OTHER)
    return parent, work


def parents_in_frame(frame: pd.DataFrame, sync_names: Array | None = None) -> tuple[Array, Array]:
    """Return what `parents_in_job` returns, for a frame without a job: from times and correlations alone.

    Host events lie in what encloses them on their thread, device work in its launch.

    Args:
        frame: with ``index``, ``pid``, ``tid``, ``ts``, ``dur``, ``stream``, ``index_correlation`` and ``name``.
        sync_names: the values of ``name`` of rows that record a synchronization, which are no work.
    """
    parent = np.full(len(frame), -1, np.int64)
    stream = frame["stream"].to_numpy()
    host = np.flatnonzero(stream < 0)
    if len(host):
        lanes = frame.iloc[host].groupby(["pid", "tid"], sort=False).ngroup().to_numpy()
        start = np.rint(frame["ts"].to_numpy(np.float64)[host] * 1000).astype(np.int64)
        end = start + np.rint(np.maximum(frame["dur"].to_numpy(np.float64)[host], 0) * 1000).astype(np.int64)
        order = nesting_order(lanes, start, end)
        above, _, _ = nest(lanes[order], start[order], end[order], np.ones(len(order), np.bool_), 0)
        parent[host[order]] = np.where(above >= 0, host[order][above], -1)
    launch = _launch_rows(frame)
    device = launch >= 0
    parent[device] = launch[device]
    syncs = frame["name"].isin(sync_names if sync_names is not None else _SYNC_NAMES).to_numpy()
    return parent, device & ~syncs


def _launch_rows(frame: pd.DataFrame) -> Array:
    """Return the row of the call that each row on a stream is correlated to, -1 for none."""
    linked = frame["stream"].ge(0) & frame["index_correlation"].gt(0)
    rows = pd.Index(frame["index"]).get_indexer(pd.Index(frame["index_correlation"]))
    return np.where(linked, rows, -1).astype(np.int64)


def is_device_lane(pid: object, tid: object, streams: Array) -> bool:
    """Return whether a group of rows with one pid and tid is a stream or a device's track, and no thread."""
    return bool((streams > 0).all()) or pid == 0 or tid == 0


def root_of(tid: object) -> int:
    """Return the number of the node above a thread's first level: -tid as in HTA, or -1 if that is no number."""
    return -abs(int(tid)) if isinstance(tid, int | np.integer) and tid else -1


def stack_columns(frame: pd.DataFrame, parent: Array, work: Array) -> pd.DataFrame:
    """Return the columns that HTA's call graph adds to a frame.

    Args:
        frame: with ``index``, ``pid``, ``tid``, ``ts``, ``dur`` and ``stream``.
        parent: the row above each row, -1 for none.
        work: which rows are kernels, copies or sets.

    Returns:
        Indexed as the frame: ``parent`` (position in the file of the event above; -tid at the first level of a thread,
        -1 of rows on no thread), ``depth`` (0 at the first level, -1 on no thread), ``height`` (0 of device rows, else
        1 more than the highest below, at least 1), ``num_kernels`` (device work at or below), ``kernel_dur_sum`` (the
        sum of its durations, µs), ``first_kernel_start``, ``last_kernel_end`` (µs on the scale of ``ts``, -1 without
        any) and ``kernel_span`` (from the first start to the last end, µs). Times are float64, as in HTA.
    """
    start, duration = frame["ts"].to_numpy(), frame["dur"].to_numpy(np.float64)
    device = frame["stream"].to_numpy() >= 0
    depth = _depths(parent)
    height = np.where(device, 0, 1)
    count, total = work.astype(np.int64), np.where(work, duration, 0.0)
    first, last = np.where(work, start, np.inf), np.where(work, start + duration, -np.inf)
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero(depth == level)
        above = parent[rows]
        np.maximum.at(height, above, height[rows] + 1)
        np.add.at(count, above, count[rows])
        np.add.at(total, above, total[rows])
        np.minimum.at(first, above, first[rows])
        np.maximum.at(last, above, last[rows])
    placed = _on_threads(frame) | (parent >= 0)
    some = placed & (count > 0)
    top = np.array([root_of(tid) for tid in frame["tid"].tolist()], np.int64)
    index = frame["index"].to_numpy(np.int64)
    integers = {
        "parent": np.where(parent >= 0, index[parent], np.where(placed, top, -1)) if len(index) else index,
        "depth": np.where(placed, depth, -1), "height": np.where(placed, height, -1),
        "num_kernels": np.where(placed, count, 0),
    }  # fmt: skip
    times = {
        "first_kernel_start": np.where(some, first, -1.0), "last_kernel_end": np.where(some, last, -1.0),
        "kernel_dur_sum": np.where(some, total, 0.0),
        "kernel_span": np.subtract(last, first, out=np.zeros(len(index)), where=some),
    }  # fmt: skip
    columns = {name: values.astype(smallest_type(values)) for name, values in integers.items()}
    columns |= times
    return pd.DataFrame({name: columns[name] for name in STACK_COLUMNS}, index=frame.index)


def _on_threads(frame: pd.DataFrame) -> Array:
    """Return which rows lie on host threads."""
    out = np.zeros(len(frame), np.bool_)
    stream = frame["stream"].to_numpy()
    lanes: Any = frame.groupby(["pid", "tid"], sort=False).indices
    for (pid, tid), rows in lanes.items():
        out[rows] = (stream[rows] < 0) & (not is_device_lane(pid, tid, stream[rows]))
    return out


def _depths(parent: Array) -> Array:
    """Return how many rows lie above each one."""
    jump = np.append(parent, -1)  # the last, which -1 points to, leads nowhere
    depth = (jump >= 0).astype(np.int64)
    while (jump >= 0).any():  # each round twice as far up
        depth += depth[jump]
        jump = jump[jump]
    return depth[:-1]
