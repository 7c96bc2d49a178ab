"""HTA's counters: queue lengths and memory bandwidths over time, their summaries, and traces with them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from enum import Flag, auto
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import TraceError
from htagraph.core.statistics import described
from htagraph.hta.shapes.frame import ids_of_lanes, smallest_type, whole
from htagraph.hta.shapes.job import HasJob, HtaJob, Ranks
from htagraph.hta.shapes.names import is_analysed
from htagraph.queries.counter_series import bandwidth_changes, queue_changes

__all__ = [
    "TimeSeriesTypes", "counter_events", "generate_trace_with_counters", "get_memory_bw_summary",
    "get_memory_bw_time_series", "get_queue_length_summary", "get_queue_length_summary_from_time_series",
    "get_queue_length_time_series", "get_time_spent_blocked_on_full_queue",
]  # fmt: skip

Series: TypeAlias = dict[int, pd.DataFrame]
_BLOCKED = {
    "rank": "int64", "stream": "int64", "duration_at_max_queue_length": "float64",
    "relative_duration_at_max_queue_length": "float64",
}  # fmt: skip
_NO_LAUNCH = "no launch with its device work is in the trace"
_NO_COPY = "no copy or set of memory is in the trace"
_FIGURES = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")


class TimeSeriesTypes(Flag):
    """Which counters to write into a trace."""

    QUEUE_LENGTH = auto()
    MEMCPY_BANDWIDTH = auto()


def get_queue_length_time_series(self: HasJob, ranks: Ranks = None) -> Series:
    """Return each stream's queue length (kernels and copies launched, not started) at every change.

    Args:
        ranks: rank 0 if not given.

    Returns:
        For each rank that has any, indexed by the event's position in the file: ``ts`` (µs since the job's first
        event), ``pid``, ``tid`` (of the device, as in the file), ``stream``, ``queue_length``.
    """
    return _complete(self.job, ranks, _queue_lengths(self.job, ranks), _NO_LAUNCH)


def get_queue_length_summary(self: HasJob, ranks: Ranks = None) -> pd.DataFrame | None:
    """Return statistics of the queue length of each stream.

    Args:
        ranks: rank 0 if not given.

    Returns:
        Indexed by ``rank`` and ``stream``, the columns of `DataFrame.describe` under ``queue_length``; None if
        nothing was launched.
    """
    series = _complete(self.job, ranks, _queue_lengths(self.job, ranks), _NO_LAUNCH)
    return _described(series, "stream", "queue_length")


def get_queue_length_summary_from_time_series(
    self: object, queue_length_dict: Mapping[int, pd.DataFrame]
) -> pd.DataFrame | None:
    """Return what `get_queue_length_summary` does, from time series that were computed before.

    Args:
        queue_length_dict: what `get_queue_length_time_series` returned.

    Returns:
        As `get_queue_length_summary`.
    """
    if not queue_length_dict:
        warnings.warn(f"no queue lengths to sum up: {_NO_LAUNCH}", stacklevel=2)
    return _described(queue_length_dict, "stream", "queue_length")


def get_time_spent_blocked_on_full_queue(
    self: HasJob, queue_length_dict: Mapping[int, pd.DataFrame], max_queue_length: int = 1024
) -> pd.DataFrame:
    """Return how long each stream's queue was full.

    Args:
        queue_length_dict: what `get_queue_length_time_series` returned.
        max_queue_length: the queue length at which a queue is full.

    Returns:
        ``rank``, ``stream``, ``duration_at_max_queue_length`` (µs) and its share of the rank's trace (from the first
        to the last start of its events), ``relative_duration_at_max_queue_length``; a row per stream that was full.
    """
    parts = []
    for rank, series in queue_length_dict.items():
        series = series.sort_values("stream", kind="stable")
        ts, by_stream = series["ts"], series["stream"].to_numpy()
        lasts = (
            ts.groupby(by_stream).shift(-1).fillna(ts).to_numpy() - ts.to_numpy()
        )  # behind a stream's last row: none
        full = (series["queue_length"] >= max_queue_length).to_numpy()
        streams, which = np.unique(by_stream[full], return_inverse=True)
        blocked = np.bincount(which, lasts[full], len(streams)).astype(np.float64)
        start = self.job.of_rank(rank).events.start[is_analysed(self.job.of_rank(rank))]
        window = float(start.max() - start.min()) / 1000 if len(start) else 0.0
        columns = (rank, streams, blocked, blocked / (window or np.nan))
        parts.append(pd.DataFrame(dict(zip(_BLOCKED, columns, strict=True))))
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(_BLOCKED)).astype(_BLOCKED)


def get_memory_bw_time_series(self: HasJob, ranks: Ranks = None) -> Series:
    """Return the bandwidth of copies and sets by kind, at every change.

    Args:
        ranks: rank 0 if not given.

    Returns:
        For each rank that has any, indexed by the place of the copy (its start or, behind the starts, its end) among
        the copies: ``ts`` (µs since the job's first event), ``pid`` (of the device, as in the file), ``name``,
        ``memory_bw_gbps`` (GB/s).
    """
    return _complete(self.job, ranks, _bandwidths(self.job, ranks), _NO_COPY)


def get_memory_bw_summary(self: HasJob, ranks: Ranks = None) -> pd.DataFrame | None:
    """Return statistics of the bandwidth while there is any.

    Args:
        ranks: rank 0 if not given.

    Returns:
        Indexed by ``rank`` and ``name``, the columns of `DataFrame.describe` under ``memory_bw_gbps``; None if
        nothing was copied.
    """
    series = _complete(self.job, ranks, _bandwidths(self.job, ranks), _NO_COPY)
    copying = {rank: each[(each["memory_bw_gbps"] > 0).to_numpy()] for rank, each in series.items()}
    return _described(copying, "name", "memory_bw_gbps")


def generate_trace_with_counters(
    self: HasJob, time_series: TimeSeriesTypes | None = None, ranks: Ranks = None, output_suffix: str = "_with_counters"
) -> None:
    """Write copies of the traces with queue lengths and bandwidths as counters.

    Args:
        time_series: which; both if not given.
        ranks: rank 0 if not given; a rank without counters gets no file.
        output_suffix: put before ``.json`` in the name of the file, which lies beside the trace.
    """
    from htagraph.output.export.trace_writer import FOR_VIEWING, edit_trace  # brings numba

    for rank in self.job.ranks(ranks):
        extra = counter_events(self.job, rank, time_series)
        if not extra:
            self.job.warn("neither launched work nor copies, so there are no counters to write", [rank])
            continue
        source = self.job.of_rank(rank).unchanged_path()
        if not isinstance(source, Path):
            msg = f"{source}: the file with counters is written beside the trace; copy the trace to a disk first"
            raise TraceError(msg)
        stem, dot, ending = source.name.rpartition(".json")
        name = f"{stem or source.name}{output_suffix or '_with_counters'}{dot}{ending if dot else ''}"
        edit_trace(source, source.with_name(name), extra=extra, header=FOR_VIEWING)


def counter_events(job: HtaJob, rank: int, time_series: TimeSeriesTypes | None = None) -> list[dict[str, Any]]:
    """Return the counters of a rank as events of a trace file (``"ph": "C"``), times as in its file.

    A stream's number is the ``id`` of its queue's counter, as text: Perfetto makes one counter of all numeric ids.
    """
    shift = job.first_ns - job.base_ns(rank)
    out: list[dict[str, Any]] = []
    if time_series is None or TimeSeriesTypes.QUEUE_LENGTH in time_series:
        for each in _queue_lengths(job, [rank]).values():
            events = _events(each, shift, "Queue Length", "queue_length", ["Queue Length"] * len(each))
            ids = each["stream"].astype("str").tolist()
            out += [event | {"id": stream} for event, stream in zip(events, ids, strict=True)]
    if time_series is None or TimeSeriesTypes.MEMCPY_BANDWIDTH in time_series:
        for each in _bandwidths(job, [rank]).values():
            out += _events(each, shift, "Memcpy BW", "memory_bw_gbps", each["name"])
    return out


def _events(
    series: pd.DataFrame, first_ns: int, counter: str, value: str, names: Iterable[str]
) -> list[dict[str, Any]]:
    from htagraph.output.export.trace_writer import us  # brings numba

    moments = np.rint(series["ts"].to_numpy() * 1000).astype(np.int64) + first_ns
    rows = zip(series["pid"], map(us, moments.tolist()), series[value].tolist(), names, strict=True)
    return [{"pid": pid, "ts": ts, "args": {counter: value}, "ph": "C", "name": name} for pid, ts, value, name in rows]


def _complete(job: HtaJob, ranks: Ranks, series: Series, why: str) -> Series:
    """Return the series, and warn of the ranks that have none."""
    absent = [rank for rank in job.ranks(ranks) if rank not in series]
    if absent or not series:
        job.warn(why, absent, stacklevel=4)
    return series


def _queue_lengths(job: HtaJob, ranks: Ranks) -> Series:
    out, acts = {}, job.graph.activities
    for rank, changes in _changes(job, queue_changes(job.graph), ranks):
        changes = changes.iloc[np.argsort(changes["stream"].to_numpy(), kind="stable")]
        activity, stream = changes["activity"].to_numpy(), changes["stream"].to_numpy()
        event = acts.event[activity]
        pid, tid = _device_lanes(job, rank, changes)
        kept_as = np.result_type(smallest_type(stream), smallest_type(job.of_rank(rank).events.arg("stream")))
        # on the rank's own clock; work that was recorded before its launch is queued when it starts, not later
        since_ns = np.rint(changes["time_us"].to_numpy() * 1000).astype(np.int64) + _moved(job, activity)
        out[rank] = pd.DataFrame({
            "ts": whole(since_ns / 1000), "pid": pid, "tid": tid, "stream": stream.astype(kept_as),
            "queue_length": changes["queue_length"].to_numpy(),
        }, index=pd.Index(event.astype(smallest_type(event)), name="index"))  # fmt: skip
    return out


def _bandwidths(job: HtaJob, ranks: Ranks) -> Series:
    out, acts = {}, job.graph.activities
    for rank, changes in _changes(job, bandwidth_changes(job.graph), ranks):
        activity, ends = changes["activity"].to_numpy(), changes["activity"].duplicated().to_numpy()
        event = acts.event[activity]
        place = np.searchsorted(np.sort(event[~ends]), event) + ends * (len(changes) // 2)
        out[rank] = pd.DataFrame({
            "ts": np.rint(changes["time_us"].to_numpy() * 1000 + _moved(job, activity)) / 1000,
            "pid": _lanes(job, rank, event)[0],
            "name": changes["copy"].where(changes["copy"] != "other", "Memcpy Unknown").array,
            "memory_bw_gbps": changes["bandwidth_gb_s"].to_numpy(),
        }, index=place)  # fmt: skip
    return out


def _changes(job: HtaJob, changes: pd.DataFrame, ranks: Ranks) -> list[tuple[int, pd.DataFrame]]:
    """Return the rows of each rank that has any."""
    parts = [(rank, changes[(changes["rank"] == rank).to_numpy()]) for rank in job.ranks(ranks)]
    return [(rank, part) for rank, part in parts if len(part)]


def _moved(job: HtaJob, activity: Array) -> Array:
    """Return what to add to a time of the graph for HTA's time of the same moment of some activities, ns."""
    graph = job.graph
    return graph.activities.start[activity] - graph.time[2 * activity] + graph.origin_ns - job.first_ns


def _described(series: Mapping[int, pd.DataFrame], by: str, value: str) -> pd.DataFrame | None:
    if not series:
        return None
    parts = []
    for rank, table in series.items():
        keys, group = np.unique(table[by].to_numpy(), return_inverse=True)
        figures = described(table[value].to_numpy(), group, len(keys))
        parts.append((np.full(len(keys), rank), keys, np.column_stack(list(figures.values()))))
    ranks, names, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
    index = pd.MultiIndex.from_arrays([ranks, names], names=["rank", by])
    return pd.DataFrame(rows, index, pd.MultiIndex.from_product([[value], _FIGURES]), dtype="float64")


def _lanes(job: HtaJob, rank: int, event: Array) -> tuple[Array, Array]:
    """Return (pid, tid) of the events at some positions in the file."""
    trace = job.of_rank(rank)
    order = np.argsort(trace.events.index, kind="stable")
    at = trace.events.lane[order[np.searchsorted(trace.events.index[order], event)]]
    pids, tids = ids_of_lanes(trace)
    return pids[at], tids[at]


def _device_lanes(job: HtaJob, rank: int, changes: pd.DataFrame) -> tuple[Array, Array]:
    """Return (pid, tid) in the file of the stream of each change."""
    acts = job.graph.activities
    stream = changes.groupby(["device", "stream"]).ngroup().to_numpy()
    activity = changes["activity"].to_numpy()
    device_rows = np.flatnonzero(acts.on_device[activity])
    first = np.unique(stream[device_rows], return_index=True)[1]  # each stream has device work
    pids, tids = _lanes(job, rank, acts.event[activity[device_rows[first]]])
    return pids[stream], tids[stream]
