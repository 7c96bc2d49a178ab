"""HTA's frame: one row per event of a rank, names and categories as numbers, times in µs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.hta.shapes.names import is_step, step_of
from htagraph.hta.shapes.window import device_side
from htagraph.queries.arguments import arguments
from htagraph.trace.columns import Trace

if TYPE_CHECKING:
    from htagraph.hta.shapes.job import HtaJob

__all__ = ["frame_of", "ids_of_lanes", "in_whole", "partners", "rows_of", "smallest_type", "step_of_events", "whole"]

Array = npt.NDArray[Any]

_TEXTS = frozenset({"collective_name", "msg_dtype"})
_FROM_FILE = {
    "input_dims": ("Input Dims", "-1"), "input_type": ("Input type", "-1"), "input_strides": ("Input Strides", "-1"),
    "python_id": ("Python id", -1), "python_parent_id": ("Python parent id", -1), "process_rank": ("Rank", -1),
    "in_split_size": ("In split size", "[]"), "out_split_size": ("Out split size", "[]"),
}  # fmt: skip


def whole(us: Array) -> Array:
    """Return times in µs: integers if all are whole, as HTA has them in traces of whole µs."""
    rounded = np.rint(us)
    return rounded.astype(np.int64) if np.array_equal(us, rounded) else us


def in_whole(job: HtaJob, times: Mapping[str, Array]) -> dict[str, Array]:
    """Return durations in µs, by column, as integers where HTA has them so: in files of nothing but complete events.

    Any other event lacks a duration, by which all become floats; of several ranks, all files must be so.
    """
    plain = all(set(trace.counts) == {"X"} for trace in job.traces.values())
    return {name: whole(us) if plain else us for name, us in times.items()}


def frame_of(job: HtaJob, rank: int, *, from_file: bool = True, only: Array | None = None) -> pd.DataFrame:
    """Return HTA's frame of a rank.

    Args:
        job: the job.
        rank: one of its ranks.
        from_file: read the file again for the arguments of operators, Python frames and split collectives; without
            it, which is faster, they have HTA's defaults. No device event has any.
        only: which events to return, a mask in the order of the file; all if not given.

    Returns:
        DataFrame indexed by each event's position in the file, the device's first where events were left out:
        ``index``, ``cat``, ``name`` (numbers of `HtaJob.symbols`), ``pid``, ``tid`` (object; integers where all are),
        ``ts`` (µs since the earliest kept event of any rank; int64 in traces of whole µs), ``dur`` (float64, µs), the
        arguments that HTA parses by default with its defaults for absent ones, ``index_correlation`` (the partner by
        correlation, 0 where it is missing, -1 without correlation), ``iteration`` (N of ``ProfilerStep#N``, -1 outside)
        and ``end`` (float64, µs, not relative).
    """
    trace = job.of_rank(rank)
    rows = rows_of(job, trace, only)
    columns = _columns(job, trace, rows, from_file=from_file)
    return pd.DataFrame({
        name: pd.array(columns[name], dtype="str") if name in _TEXTS else columns[name]
        for name in _order(trace.events.start)
    }, index=pd.Index(columns["index"]), copy=False)  # fmt: skip


def rows_of(job: HtaJob, trace: Trace, only: Array | None = None) -> Array:
    """Return the event of each row of `frame_of`, as its position in the rank's table of events."""
    order = np.argsort(~device_side(trace), kind="stable") if job.windowed else np.arange(len(trace.events))
    return order if only is None else order[only[order]]


def _columns(job: HtaJob, trace: Trace, rows: Array, *, from_file: bool) -> dict[str, Array]:
    """Return some rows of a frame's columns; integers in the smallest type for all rows, as HTA keeps them."""
    events = trace.events
    symbols = job.symbols.sym_index
    names = np.array([symbols[name] for name in trace.names], np.int64)
    categories = np.array([symbols[category] for category in trace.categories], np.int64)
    pids, tids = ids_of_lanes(trace)
    partner = partners(trace, device_side(trace))
    columns = {
        "index": events.index, **_numbers(trace), "index_correlation": partner,
        "iteration": step_of_events(trace, partner),
    }  # fmt: skip
    columns = {name: each.astype(smallest_type(each))[rows] for name, each in columns.items()}
    bandwidth, lane = events.arg("bandwidth_gb_s")[rows].astype(np.float64), events.lane[rows]
    return columns | _texts(trace, rows) | _file_arguments(job, trace, rows, from_file=from_file) | {
        "memory_bw_gbps": np.where(bandwidth < 0, 0.0, bandwidth), "cat": categories[events.category[rows]],
        "name": names[events.name[rows]], "pid": pids[lane], "tid": tids[lane],
        "ts": _in_us(events.start - job.zero_ns(trace.rank))[rows], "dur": events.duration[rows] / 1000,
        "end": _in_us(events.end - job.base_ns(trace.rank))[rows].astype(np.float64),
    }  # fmt: skip


def ids_of_lanes(trace: Trace) -> tuple[Array, Array]:
    """Return (pid, tid) of each lane as in the file; as integers where all are, as in HTA's frames."""
    pids, tids = (_ids(ids) for ids in (zip(*trace.lanes, strict=True) if trace.lanes else ((), ())))
    return pids, tids


def _ids(values: Sequence[int | str]) -> Array:
    if values and all(isinstance(value, int) for value in values):
        return _smallest(np.array(values, np.int64))
    out: Array = np.empty(len(values), object)
    out[:] = values
    return out


_COLUMNS = (
    "index", "cat", "name", "pid", "tid", "ts", "dur", "stream", "correlation", "bytes", "memory_bw_gbps",
    "wait_on_stream", "wait_on_cuda_event_record_corr_id", "input_dims", "input_type", "input_strides", "external_id",
    "python_id", "python_parent_id", "collective_name", "in_msg_nelems", "out_msg_nelems", "msg_dtype", "group_size",
    "process_rank", "in_split_size", "out_split_size", "index_correlation", "iteration", "end",
)  # fmt: skip


def _order(ns: Array) -> Sequence[str]:
    """Return the columns in HTA's order: of times with fractions it computes the ends first."""
    if not (ns % 1000).any():
        return _COLUMNS
    first = _COLUMNS.index("dur") + 1
    return *_COLUMNS[:first], "end", *_COLUMNS[first:-1]


def _in_us(ns: Array) -> Array:
    """Return moments as µs; as integers where all are whole, since floats of the size of an epoch are not exact."""
    return ns / 1000 if (ns % 1000).any() else ns // 1000


def smallest_type(values: Array) -> np.dtype[Any]:
    """Return the smallest signed type that holds some integers, as HTA keeps them."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    fits = (kind for kind in (np.int8, np.int16, np.int32) if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return np.dtype(next(fits, np.int64))


def _smallest(values: Array) -> Array:
    return values.astype(smallest_type(values))


def _numbers(trace: Trace) -> dict[str, Array]:
    events = trace.events
    out = {column: events.arg(ours) for column, ours in _NUMBERS.items()}
    return out | {
        column: np.maximum(0, events.arg(column)) for column in ("in_msg_nelems", "out_msg_nelems", "group_size")
    }


_NUMBERS = {
    "stream": "stream", "correlation": "correlation", "bytes": "bytes", "external_id": "external_id",
    "wait_on_stream": "wait_on_stream", "wait_on_cuda_event_record_corr_id": "wait_on_record",
}  # fmt: skip


def _texts(trace: Trace, rows: Array) -> dict[str, Array]:
    words, out = np.array([*trace.names, ""], dtype=object), {}
    for column, ours in (("collective_name", "collective_name"), ("msg_dtype", "dtype")):
        sparse = trace.events.args.get(ours)
        code = np.full(len(rows), len(trace.names)) if sparse is None else sparse.dense(len(trace.events))[rows]
        out[column] = words[code]
    return out


def _file_arguments(job: HtaJob, trace: Trace, rows: Array, *, from_file: bool) -> dict[str, Array]:
    if not from_file:
        return {
            column: np.full(len(rows), default, object if isinstance(default, str) else np.int8)
            for column, (_, default) in _FROM_FILE.items()
        }
    events, acts = trace.events, job.graph.activities
    rank_rows = np.arange(len(acts))[acts.of_rank(trace.rank)]
    values_in_file = arguments(
        job.graph, [key for key, _ in _FROM_FILE.values()], rank_rows[acts.event[rank_rows] >= 0]
    )
    order = np.argsort(events.index, kind="stable")
    place = order[np.searchsorted(events.index[order], acts.event[values_in_file.index])]
    out: dict[str, Array] = {}
    for column, (key, default) in _FROM_FILE.items():
        values: Array = np.full(len(events), default, dtype=object)
        has = values_in_file[key].notna().to_numpy()
        values[place[has]] = values_in_file[key].to_numpy()[has]
        out[column] = (values if isinstance(default, str) else _smallest(values.astype(np.int64)))[rows]
    return out


def partners(trace: Trace, device: Array) -> Array:
    """Return the position in the file of each event's partner by correlation, 0 if it is missing, -1 without one.

    Of several partners the last counts, as in HTA.
    """
    events = trace.events
    correlation = events.arg("correlation")
    partner = np.minimum(correlation, 0)
    for side, other in ((~device, device), (device, ~device)):
        side = side & (correlation != -1)
        other = other & (correlation != -1)
        keys, last = _last_of(correlation[other], events.index[other])
        if len(keys):
            at = np.minimum(np.searchsorted(keys, correlation[side]), len(keys) - 1)
            partner[side] = np.where(keys[at] == correlation[side], last[at], partner[side])
    return partner


def _last_of(keys: Array, values: Array) -> tuple[Array, Array]:
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    last = np.append(keys[1:] != keys[:-1], np.ones(min(1, len(keys)), np.bool_))
    return keys[last], values[last]


def step_of_events(trace: Trace, partner: Array) -> Array:
    """Return N of the ProfilerStep#N that each host event begins in; of device events that of their partner, else -1.

    HTA gives device events of stream 0 none: a defect that hides all work of AMD devices.
    """
    events = trace.events
    step = np.full(len(events), -1, np.int64)
    for row in np.flatnonzero(np.isin(events.name, [i for i, name in enumerate(trace.names) if is_step(name)])):
        inside = (events.start >= events.start[row]) & (events.start < events.end[row])
        step[inside] = step_of(trace.names[events.name[row]])
    operators = [code for code, category in enumerate(trace.categories) if category == "cpu_op"]
    on_stream = (events.arg("stream") >= 0) & ~np.isin(events.category, operators)
    order = np.argsort(events.index, kind="stable")
    at = (
        order[np.minimum(np.searchsorted(events.index[order], partner), max(0, len(order) - 1))]
        if len(order)
        else order
    )
    step[on_stream] = np.where(partner[on_stream] > 0, step[at[on_stream]], -1)
    return step
