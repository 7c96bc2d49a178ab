"""HTA's counters: queue lengths and memory bandwidths over time, their summaries, and traces with them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from enum import Flag, auto
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import TraceError
from htagraph.core.statistics import described
from htagraph.hta.shapes.frame import ids_of_lanes, smallest_type, whole
from htagraph.hta.shapes.job import HtaJob
from htagraph.hta.shapes.window import is_analysed
from htagraph.output.export.trace_writer import FOR_VIEWING, edit_trace, us
from htagraph.queries.counter_series import bandwidth_changes, queue_changes

__all__ = [
    "TimeSeriesTypes", "counter_events", "memory_bw_summary", "memory_bw_time_series", "queue_length_summary",
    "queue_length_summary_from_time_series", "queue_length_time_series", "time_spent_blocked_on_full_queue",
    "write_trace_with_counters",
]  # fmt: skip

Series: TypeAlias = dict[int, pd.DataFrame]
_BLOCKED = ["rank", "stream", "duration_at_max_queue_length", "relative_duration_at_max_queue_length"]
_UNKNOWN_COPY = "Memcpy Unknown"
_NO_LAUNCH = "no launch with its device work is in the trace"
_NO_COPY = "no copy or set of memory is in the trace"
_STREAMS = 1 << 40
"""Factor that joins device and stream into one number: larger than any stream's number."""
_FIGURES = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")


class TimeSeriesTypes(Flag):
    """Which counters to write into a trace."""

    QUEUE_LENGTH = auto()
    MEMCPY_BANDWIDTH = auto()


_ALL = TimeSeriesTypes.QUEUE_LENGTH | TimeSeriesTypes.MEMCPY_BANDWIDTH


def queue_length_time_series(job: HtaJob, ranks: Sequence[int] | None = None) -> Series:
    """Return the queue length of each stream (kernels and copies) at each change.

    Returns:
        By rank, ranks without launched work left out: indexed by the position of the event in the file, ``ts`` (µs
        since the job's first event), ``pid``, ``tid`` (of the device, as in the file), ``stream``, ``queue_length``.
    """
    return _complete(job, ranks, _queue_lengths(job, ranks), _NO_LAUNCH)


def _complete(job: HtaJob, ranks: Sequence[int] | None, series: Series, why: str) -> Series:
    """Return the series, and warn of the ranks that have none."""
    absent = [rank for rank in job.ranks(ranks) if rank not in series]
    if absent or not series:
        warnings.warn(f"{job.described(absent)}: {why}", stacklevel=4)
    return series


def _queue_lengths(job: HtaJob, ranks: Sequence[int] | None) -> Series:
    changes, acts = queue_changes(job.graph), job.graph.activities
    out = {}
    for rank in job.ranks(ranks):
        rank_changes = changes[(changes["rank"] == rank).to_numpy()]
        if not len(rank_changes):
            continue
        rank_changes = rank_changes.iloc[np.argsort(rank_changes["stream"].to_numpy(), kind="stable")]
        activity = rank_changes["activity"].to_numpy()
        event = acts.event[activity]
        pid, tid = _device_lanes(job, rank, rank_changes)
        stream = rank_changes["stream"].to_numpy()
        kept_as = np.result_type(smallest_type(stream), smallest_type(job.of_rank(rank).events.arg("stream")))
        # on the rank's own clock; work that was recorded before its launch is queued when it starts, not later
        common = np.rint(rank_changes["time_us"].to_numpy() * 1000).astype(np.int64) + job.graph.origin_ns
        since_ns = common + acts.start[activity] - job.graph.time[2 * activity] - job.first_ns
        out[rank] = pd.DataFrame({
            "ts": whole(since_ns / 1000),
            "pid": pid, "tid": tid,
            "stream": stream.astype(kept_as),
            "queue_length": rank_changes["queue_length"].to_numpy(),
        }, index=pd.Index(event.astype(smallest_type(event)), name="index"))  # fmt: skip
    return out


def queue_length_summary(job: HtaJob, ranks: Sequence[int] | None = None) -> pd.DataFrame | None:
    """Return statistics of each stream's queue length, None if there is no launched work."""
    return _described(_complete(job, ranks, _queue_lengths(job, ranks), _NO_LAUNCH), "stream", "queue_length")


def queue_length_summary_from_time_series(queue_length_dict: Mapping[int, pd.DataFrame]) -> pd.DataFrame | None:
    """Return statistics of the result of `queue_length_time_series`, by rank and stream; None if it is empty."""
    if not queue_length_dict:
        warnings.warn("no queue lengths to sum up: no launch with its device work is in the trace", stacklevel=3)
    return _described(queue_length_dict, "stream", "queue_length")


def time_spent_blocked_on_full_queue(
    job: HtaJob, queue_length_dict: Mapping[int, pd.DataFrame], max_queue_length: int = 1024
) -> pd.DataFrame:
    """Return how long each stream's queue held `max_queue_length` kernels and copies or more.

    Returns:
        One row per rank and stream that ever did: ``rank``, ``stream``, ``duration_at_max_queue_length`` (float64, µs)
        and ``relative_duration_at_max_queue_length`` (float64: of the time from the first to the last start of the
        rank's events).
    """
    parts = []
    for rank, series in queue_length_dict.items():
        stream, ts = series["stream"].to_numpy(), series["ts"].to_numpy()
        order = np.argsort(stream, kind="stable")
        again = np.append(stream[order[1:]] == stream[order[:-1]], np.zeros(min(1, len(order)), np.bool_))
        lasts = np.where(again, np.roll(ts[order], -1) - ts[order], 0)  # behind a stream's last row: none
        full = series["queue_length"].to_numpy()[order] >= max_queue_length
        streams, which = np.unique(stream[order][full], return_inverse=True)
        blocked = np.bincount(which, lasts[full], len(streams)).astype(np.float64)
        figures = (rank, streams, blocked, blocked / (_duration_us(job, rank) or np.nan))
        parts.append(pd.DataFrame(dict(zip(_BLOCKED, figures, strict=True))))
    if not any(len(part) for part in parts):
        kinds = dict(zip(_BLOCKED, ("int64", "int64", "float64", "float64"), strict=True))
        return pd.DataFrame(columns=_BLOCKED).astype(kinds)
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def memory_bw_time_series(job: HtaJob, ranks: Sequence[int] | None = None) -> Series:
    """Return the bandwidth of each kind of copy, at each change.

    Returns:
        By rank, ranks without copies left out: indexed by the place of the copy (its start or, behind those, its end)
        among them, ``ts`` (float64, µs since the job's first event), ``pid`` (of the device, as in the file), ``name``
        (str: ``Memcpy HtoD``, …) and ``memory_bw_gbps`` (float64, GB/s).
    """
    return _complete(job, ranks, _bandwidths(job, ranks), _NO_COPY)


def _bandwidths(job: HtaJob, ranks: Sequence[int] | None) -> Series:
    changes, out = bandwidth_changes(job.graph), {}
    acts, shift = job.graph.activities, job.graph.origin_ns
    for rank in job.ranks(ranks):
        rank_changes = changes[(changes["rank"] == rank).to_numpy()]
        if not len(rank_changes):
            continue
        activity = rank_changes["activity"].to_numpy()
        ends = rank_changes["activity"].duplicated().to_numpy()
        event = acts.event[activity]
        place = np.searchsorted(np.sort(event[~ends]), event) + ends * (len(rank_changes) // 2)
        moved = acts.start[activity] - job.graph.time[2 * activity] + shift - job.first_ns
        out[rank] = pd.DataFrame({
            "ts": np.rint(rank_changes["time_us"].to_numpy() * 1000 + moved) / 1000, "pid": _lanes(job, rank, event)[0],
            "name": rank_changes["copy"].where(rank_changes["copy"] != "other", _UNKNOWN_COPY).array,
            "memory_bw_gbps": rank_changes["bandwidth_gb_s"].to_numpy(),
        }, index=place)  # fmt: skip
    return out


def memory_bw_summary(job: HtaJob, ranks: Sequence[int] | None = None) -> pd.DataFrame | None:
    """Return statistics of the bandwidth of each kind of copy while above 0, by rank and name; None without copies."""
    series = _complete(job, ranks, _bandwidths(job, ranks), _NO_COPY)
    copying = {rank: each[(each["memory_bw_gbps"] > 0).to_numpy()] for rank, each in series.items()}
    return _described(copying, "name", "memory_bw_gbps")


def counter_events(job: HtaJob, rank: int, time_series: TimeSeriesTypes | None = None) -> list[dict[str, Any]]:
    """Return the counters of a rank as events of a trace file (``"ph": "C"``), times as in its file.

    A stream's number is the ``id`` of its queue's counter, as text: Perfetto makes one counter of all numeric ids.
    """
    wanted = _ALL if time_series is None else time_series
    shift = job.first_ns - job.base_ns(rank)
    out: list[dict[str, Any]] = []
    if TimeSeriesTypes.QUEUE_LENGTH in wanted:
        for each in _queue_lengths(job, [rank]).values():
            name = "Queue Length"
            ids = each["stream"].astype("str").tolist()
            events = _events(each["pid"], _file_times(each["ts"], shift), name, each["queue_length"], [name] * len(ids))
            out += [event | {"id": stream} for event, stream in zip(events, ids, strict=True)]
    if TimeSeriesTypes.MEMCPY_BANDWIDTH in wanted:
        for each in _bandwidths(job, [rank]).values():
            times = _file_times(each["ts"], shift)
            out += _events(each["pid"], times, "Memcpy BW", each["memory_bw_gbps"], each["name"])
    return out


def _events(
    pids: Iterable[Any], times: list[Any], counter: str, values: pd.Series[Any], names: Iterable[str]
) -> list[dict[str, Any]]:
    rows = zip(pids, times, values.tolist(), names, strict=True)
    return [{"pid": pid, "ts": ts, "args": {counter: value}, "ph": "C", "name": name} for pid, ts, value, name in rows]


def write_trace_with_counters(
    job: HtaJob,
    ranks: Sequence[int] | None = None,
    time_series: TimeSeriesTypes | None = None,
    output_suffix: str = "_with_counters",
) -> list[Path]:
    """Write each rank's trace with its counters beside the file; ranks without counters get none.

    Returns:
        The files written: of ``rank-0.json.gz`` it is ``rank-0_with_counters.json.gz``, compressed if the source is.
    """
    written = []
    for rank in job.ranks(ranks):
        extra = counter_events(job, rank, time_series)
        if not extra:
            why = "neither launched work nor copies, so there are no counters to write"
            warnings.warn(f"{job.described([rank])}: {why}", stacklevel=3)
            continue
        source = job.of_rank(rank).unchanged_path()
        stem, dot, ending = source.name.rpartition(".json")
        if not isinstance(source, Path):
            msg = f"{source}: the file with counters is written beside the trace; copy the trace to a disk first"
            raise TraceError(msg)
        target = source.with_name(
            f"{stem or source.name}{output_suffix or '_with_counters'}{dot}{ending if dot else ''}"
        )
        edit_trace(source, target, extra=extra, header=FOR_VIEWING)
        written.append(target)
    return written


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


def _file_times(since_us: pd.Series[Any], first_ns: int) -> list[Any]:
    return [us(moment) for moment in (np.rint(since_us.to_numpy() * 1000).astype(np.int64) + first_ns).tolist()]


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
    place = changes["device"].to_numpy() * _STREAMS + changes["stream"].to_numpy()
    stream = np.unique(place, return_inverse=True)[1]
    activity = changes["activity"].to_numpy()
    device_rows = np.flatnonzero(acts.on_device[activity])
    first = np.unique(stream[device_rows], return_index=True)[1]  # each stream has device work
    pids, tids = _lanes(job, rank, acts.event[activity[device_rows[first]]])
    return pids[stream], tids[stream]


def _duration_us(job: HtaJob, rank: int) -> float:
    trace = job.of_rank(rank)
    start = trace.events.start[is_analysed(trace)]
    return float(start.max() - start.min()) / 1000 if len(start) else 0.0
