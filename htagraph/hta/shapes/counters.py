"""HTA's counters: queue lengths and memory bandwidths over time, their summaries, and traces with them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from enum import Flag, auto
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import TraceError
from htagraph.core.naming import COUNTER_RANGE
from htagraph.core.statistics import described
from htagraph.hta.shapes.frame import ids_of_lanes, smallest_type, whole
from htagraph.hta.shapes.job import HasJob, HtaJob, Ranks, analyzer
from htagraph.hta.shapes.names import is_analysed, stream_of_events
from htagraph.queries.counter_series import bandwidth_changes, queue_changes
from htagraph.queries.recorded_events import counter_ranges, operators_around

__all__ = [
    "CUDA_SASS_INSTRUCTION_COUNTER_FLOPS", "CuptiCounterAnalysis", "TimeSeriesTypes", "counter_events",
    "generate_trace_with_counters", "get_cupti_counter_data_with_operators", "get_memory_bw_summary",
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
        lasts = ts.groupby(by_stream).shift(-1).fillna(ts).to_numpy() - ts.to_numpy()  # none behind the last row
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
        For each rank that has any, indexed by the position of the copy among the copies of the file, plus the number of
        copies in the row of the copy's end: ``ts`` (µs since the job's first event), ``pid`` (of the device, as in the
        file), ``name``, ``memory_bw_gbps`` (GB/s).
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
        time_series: which counters to write; both if not given.
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
    from htagraph.output.export.trace_writer import us  # brings numba

    out: list[dict[str, Any]] = []
    wanted = ~TimeSeriesTypes(0) if time_series is None else time_series
    queues = _queue_lengths(job, [rank]) if TimeSeriesTypes.QUEUE_LENGTH in wanted else {}
    copies = _bandwidths(job, [rank]) if TimeSeriesTypes.MEMCPY_BANDWIDTH in wanted else {}
    for series, counter, value in ((queues, "Queue Length", "queue_length"), (copies, "Memcpy BW", "memory_bw_gbps")):
        for each in series.values():
            moments = np.rint(each["ts"].to_numpy() * 1000).astype(np.int64) + job.first_ns - job.base_ns(rank)
            names = each["name"] if "name" in each else [counter] * len(each)
            ids = [{"id": str(stream)} for stream in each["stream"]] if "stream" in each else [{}] * len(each)
            rows = zip(each["pid"], map(us, moments.tolist()), each[value].tolist(), names, ids, strict=True)
            out += [
                {"pid": pid, "ts": ts, "args": {counter: number}, "ph": "C", "name": name} | stream
                for pid, ts, number, name, stream in rows
            ]
    return out


def _complete(job: HtaJob, ranks: Ranks, series: Series, why: str) -> Series:
    """Return the series, and warn of the ranks that have none."""
    absent = [rank for rank in job.ranks(ranks) if rank not in series]
    if absent or not series:
        job.warn(why, absent, stacklevel=4)
    return series


def _queue_lengths(job: HtaJob, ranks: Ranks) -> Series:
    out, acts = {}, job.graph.activities
    for rank, changes in _changes(job, queue_changes(job.graph), ranks):
        changes = changes.sort_values("stream", kind="stable")
        activity, stream = changes["activity"].to_numpy(), changes["stream"].to_numpy()
        event = acts.event[activity]
        work = changes.assign(event=np.where(acts.on_device[activity], event, np.nan)).groupby(["device", "stream"])
        pid, tid = _lanes(job, rank, work["event"].transform("first").to_numpy(np.int64))  # each stream has device work
        kept_as = np.result_type(smallest_type(stream), smallest_type(stream_of_events(job.of_rank(rank))))
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


TraceCounters = analyzer(
    "TraceCounters", get_memory_bw_summary, get_memory_bw_time_series, get_queue_length_summary,
    get_queue_length_time_series, get_time_spent_blocked_on_full_queue,
    get_queue_length_summary_from_time_series=partial(get_queue_length_summary_from_time_series, None),
)  # fmt: skip

CUDA_SASS_INSTRUCTION_COUNTER_FLOPS: dict[str, int] = {
    f"smsp__sass_thread_inst_executed_op_{width}{op}_pred_on.sum": 2 if op == "fma" else 1
    for width in "fhd"
    for op in ("fma", "mul", "add")
}
"""Floating-point operations per count of each counter."""

_BEHIND_COUNTERS = ["index_correlation", "iteration", "end"]
_NOWHERE: dict[str, float] = {
    "depth": -1, "height": -1, "parent": -1, "num_kernels": 0, "kernel_dur_sum": 0.0, "kernel_span": 0.0,
    "first_kernel_start": -1.0, "last_kernel_end": -1.0,
}  # fmt: skip
"""Values of HTA's call-graph columns for an event that is on none of its threads, such as a counter range."""


def get_cupti_counter_data_with_operators(t: HasJob, ranks: Ranks = None) -> list[pd.DataFrame]:
    """Return the hardware counters of each kernel with the operators that launched it.

    Args:
        t: a job that was read.
        ranks: rank 0 if not given.

    Returns:
        For each rank with as many kernel launches as counter ranges: the columns of its frame with ``cat`` and ``name``
        as texts and a column per counter, in the order of the file; the columns of HTA's call graph, in which no range
        lies; and ``index_runtime`` (the launch, as position in the file), ``op_stack`` (list of the operators around
        it, the outermost first), ``top_level_op``, ``bottom_level_op``.
    """
    chosen, tables = t.job.ranks(ranks), []
    if COUNTER_RANGE not in t.job.symbols.sym_index:
        t.job.warn(f"has no {COUNTER_RANGE} events", chosen)
        return []
    for rank in chosen:
        table = _of_rank(t.job, rank)
        if table is not None:
            tables.append(table)
    return tables


CuptiCounterAnalysis = analyzer(
    "CuptiCounterAnalysis", get_counter_data_with_operators=get_cupti_counter_data_with_operators
)


def _of_rank(job: HtaJob, rank: int) -> pd.DataFrame | None:
    ranges = counter_ranges(job.graph, rank)
    launch = ranges["launch"].to_numpy()
    if not len(ranges) or (launch < 0).any():
        why = "has no cuda_profiler_range events" if not len(ranges) else "has not as many launches as counter ranges"
        job.warn(why, [rank], stacklevel=4)
        return None
    acts, names = job.graph.activities, job.graph.names
    stacks = [[names[name] for name in acts.name[stack]] for stack in operators_around(job.graph, launch)]
    frame = job.frame(rank).loc[ranges["range"]].reset_index(drop=True)
    words = np.array(job.symbols.get_sym_table(), object)
    for column in ("cat", "name"):
        frame[column] = pd.Series(words[frame[column].to_numpy()], dtype="str")
    counters = ranges[ranges.columns[3:]].apply(_narrow)
    front = frame.drop(columns=_BEHIND_COUNTERS)
    table = pd.concat([front.drop(columns=front.columns.intersection(counters.columns)), counters], axis=1)
    return pd.concat([table, frame[_BEHIND_COUNTERS]], axis=1).assign(
        **_NOWHERE,
        index_runtime=_narrow(pd.Series(acts.event[launch])),
        op_stack=pd.Series(stacks, dtype=object),
        top_level_op=pd.Series([stack[0] if stack else "" for stack in stacks], dtype="str"),
        bottom_level_op=pd.Series([stack[-1] if stack else "" for stack in stacks], dtype="str"),
    )


def _narrow(values: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(values, errors="coerce")
    return pd.to_numeric(numbers, downcast="integer") if numbers.dtype.kind == "i" else numbers
