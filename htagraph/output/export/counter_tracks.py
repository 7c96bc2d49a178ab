"""Counters beside the recorded events, for Perfetto: queue lengths, bandwidths of copies, and memory in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.output.export.perfetto_job import Job
from htagraph.output.scene import BYTES, COUNT, GB_S, Values

__all__ = ["bandwidths", "memory", "queues"]


_DECIMALS = 6
"""Of bandwidths; chosen: kB/s. Doubled, files grow by digits that no clock can tell; Perfetto misreads more than 18."""


def queues(table: pd.DataFrame, job: Job) -> Iterator[Values]:
    """Yield the queue length of each stream; the table is that of `htagraph.queue_length`, or rows of it."""
    pids = job.device_pids()
    for (rank, device, stream), rows in _each(table, "rank", "device", "stream"):
        pid = pids[rank, device]
        value = rows["queue_length"].to_numpy()
        yield Values(pid, "queue length", f"stream {stream}", COUNT, _moments(rows, job), value)


def bandwidths(table: pd.DataFrame, job: Job) -> Iterator[Values]:
    """Yield the bandwidth of each kind of copy; the table is that of `htagraph.memory_bandwidth`, or rows of it."""
    table = table[np.isfinite(table["bandwidth_gb_s"])]  # JSON has no infinity
    devices = sorted(job.device_pids().items(), reverse=True)
    pid_of_rank = {rank: pid for (rank, device), pid in devices if device >= 0}
    for (rank, copy), rows in _each(table, "rank", "copy"):
        value = rows["bandwidth_gb_s"].to_numpy(np.float64).round(_DECIMALS)
        yield Values(pid_of_rank[rank], GB_S, copy, GB_S, _moments(rows, job), value)


def memory(table: pd.DataFrame, job: Job) -> Iterator[Values]:
    """Yield the bytes allocated and reserved on each device; the table is that of `htagraph.memory.timeline`."""
    pids = job.device_pids()
    host = {rank: pid for (rank, device), pid in sorted(pids.items(), reverse=True)}  # of the lowest device: the host
    for (rank, device), rows in _each(table, "rank", "device"):
        number = device.partition(":")[2]
        pid = pids.get((rank, int(number) if number.isdigit() else -1), host.get(rank))
        if pid is None:  # a rank of which nothing but its memory was recorded
            continue
        moment = _moments(rows, job)
        for what in ("allocated", "reserved"):
            value = rows[f"{what}_bytes"].to_numpy()
            if value.any():
                yield Values(pid, f"memory {what}", device, BYTES, moment[moment >= 0], value[moment >= 0])


def _each(table: pd.DataFrame, *keys: str) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yield the values of some columns and the rows that have them, in the order of the table."""
    yield from table.groupby(list(keys), sort=False)


def _moments(rows: pd.DataFrame, job: Job) -> Array:
    """Return when a counter changes, ns since the base of what is written."""
    since = np.rint(rows["time_us"].to_numpy(np.float64) * 1000).astype(np.int64)
    return np.asarray(since + job.graph.origin_ns - job.base_ns)
