"""HTA's frame: one row per event of a rank, names and categories as numbers, times in µs."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, looked_up
from htagraph.core.naming import COUNTER_RANGE
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable
from htagraph.hta.configs.config import AttributeSpec, ValueType
from htagraph.hta.configs.parser_config import AVAILABLE_ARGS, ParserConfig
from htagraph.hta.shapes.job import HtaJob
from htagraph.hta.shapes.names import DEVICE_SYNCS, device_side, step_of, stream_of_events
from htagraph.queries.arguments import arguments
from htagraph.trace.columns import Trace
from htagraph.trace.readers import reader_of

__all__ = [
    "add_iteration", "frame_of", "get_cpu_gpu_correlation", "ids_of_lanes", "in_whole", "parsed_frame", "rows_of",
    "smallest_type", "transform_correlation_to_index", "whole",
]  # fmt: skip

_DEFAULT = {spec.name: spec for spec in ParserConfig.ARGS_DEFAULT}
"""The arguments that are columns if nobody asks for others, by column."""
_IN_TRACE = {
    "stream": "stream", "correlation": "correlation", "bytes": "bytes", "external_id": "external_id",
    "wait_on_stream": "wait_on_stream", "wait_on_cuda_event_record_corr_id": "wait_on_record",
    "in_msg_nelems": "in_msg_nelems", "out_msg_nelems": "out_msg_nelems", "group_size": "group_size",
    "memory_bw_gbps": "bandwidth_gb_s", "collective_name": "collective_name", "msg_dtype": "dtype",
}  # fmt: skip
"""The columns of arguments that were read with the events, with our names; the others are still in the file."""


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
        and ``end`` (float64, µs, not relative). Integers have the smallest type for all events, as HTA keeps them.
    """
    trace = job.of_rank(rank)
    events, rows = trace.events, rows_of(job, trace, only)
    numbers = job.symbols.sym_index
    names = np.array([numbers[word] for word in trace.names], np.int64)
    categories = np.array([numbers[word] for word in trace.categories], np.int64)
    lane, (pids, tids) = events.lane[rows], ids_of_lanes(trace)
    partner = _partners(events.arg("correlation"), events.index, device_side(trace))
    front = {
        "index": _smallest(events.index)[rows], "cat": categories[events.category[rows]],
        "name": names[events.name[rows]], "pid": pids[lane], "tid": tids[lane],
        "ts": _in_us(events.start - job.zero_ns(rank))[rows], "dur": events.duration[rows] / 1000,
    }  # fmt: skip
    end = {"end": _in_us(events.end - job.base_ns(rank))[rows].astype(np.float64)}
    found = {name: _in_trace(trace, spec, rows) for name, spec in _DEFAULT.items() if name in _IN_TRACE}
    found |= _in_file(job, trace, rows, from_file=from_file)
    of_correlation = {"index_correlation": partner, "iteration": _steps_of_events(trace, partner)}
    columns = front | (end if (events.start % 1000).any() else {})  # of times with fractions HTA computes ends first
    columns |= {name: found[name] for name in _DEFAULT}
    columns |= {name: _smallest(values)[rows] for name, values in of_correlation.items()} | end
    return pd.DataFrame(columns, index=pd.Index(columns["index"]), copy=False)


def rows_of(job: HtaJob, trace: Trace, only: Array | None = None) -> Array:
    """Return the event of each row of `frame_of`, as its position in the rank's table of events."""
    order = np.argsort(~device_side(trace), kind="stable") if job.windowed else np.arange(len(trace.events))
    return order if only is None else order[only[order]]


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


def _in_trace(trace: Trace, spec: AttributeSpec, rows: Array) -> Any:  # noqa: ANN401 - an array of numpy or pandas
    """Return an argument of some events that was read with them."""
    ours = _IN_TRACE[spec.name]
    if spec.value_type is ValueType.String:
        sparse, words = trace.events.args.get(ours), np.array([*trace.names, ""], dtype=object)
        codes = np.full(len(rows), len(trace.names)) if sparse is None else sparse.dense(len(trace.events))[rows]
        return pd.array(words[codes], dtype="str")
    values = stream_of_events(trace) if ours == "stream" else trace.events.arg(ours)
    if spec.value_type is ValueType.Float:
        values = values[rows].astype(np.float64)
        return np.where(values < 0, 0.0, values)
    return _smallest(values if spec.default_value else np.maximum(0, values))[rows]


def _in_file(job: HtaJob, trace: Trace, rows: Array, *, from_file: bool) -> dict[str, Array]:
    """Return the arguments of some events that are still in the file, or their defaults."""
    specs = [spec for spec in _DEFAULT.values() if spec.name not in _IN_TRACE]
    if not from_file:
        kinds = {spec.name: object if isinstance(spec.default_value, str) else np.int8 for spec in specs}
        return {spec.name: np.full(len(rows), spec.default_value, kinds[spec.name]) for spec in specs}
    events, acts = trace.events, job.graph.activities
    rank_rows = np.arange(len(acts))[acts.of_rank(trace.rank)]
    collects = gc.isenabled()
    gc.disable()  # it would go through the lists of shapes again and again: two thirds of the time, and nothing to find
    try:
        given = arguments(job.graph, [spec.raw_name for spec in specs], rank_rows[acts.event[rank_rows] >= 0])
    finally:
        if collects:
            gc.enable()
    order = np.argsort(events.index, kind="stable")
    place = order[np.searchsorted(events.index[order], acts.event[given.index])]
    out: dict[str, Array] = {}
    for spec in specs:
        values: Array = np.full(len(events), spec.default_value, dtype=object)
        has = given[spec.raw_name].notna().to_numpy()
        values[place[has]] = given[spec.raw_name].to_numpy()[has]
        is_text = isinstance(spec.default_value, str)
        out[spec.name] = (values if is_text else _smallest(values.astype(np.int64)))[rows]
    return out


def ids_of_lanes(trace: Trace) -> tuple[Array, Array]:
    """Return (pid, tid) of each lane as in the file; as integers where all are, as in HTA's frames."""
    out = []
    for ids in zip(*trace.lanes, strict=True) if trace.lanes else ((), ()):
        of_lanes: Array = np.empty(len(ids), object)
        of_lanes[:] = ids
        whole_numbers = bool(ids) and all(isinstance(each, int) for each in ids)
        out.append(_smallest(of_lanes.astype(np.int64)) if whole_numbers else of_lanes)
    return out[0], out[1]


def _partners(correlation: Array, index: Array, device: Array) -> Array:
    """Return the position in the file of each event's partner by correlation, 0 if it is missing, -1 without one.

    Of several partners the last counts, as in HTA.
    """
    partner = np.minimum(correlation, 0)
    for side, other in ((~device, device), (device, ~device)):
        side = side & (correlation != -1)
        other = other & (correlation != -1)
        keys, at = np.unique(correlation[other][::-1], return_index=True)
        last = looked_up(keys, index[other][::-1][at], correlation[side])
        partner[side] = np.where(last >= 0, last, partner[side])
    return partner


def _steps_of_events(trace: Trace, partner: Array) -> Array:
    events, number = trace.events, np.array([step_of(name) for name in trace.names], np.int64)[trace.events.name]
    on_stream = (stream_of_events(trace) >= 0) & ~trace.in_categories("cpu_op")
    return _steps(number, (events.start, events.end), on_stream, events.index, partner)


def _steps(number: Array, times: tuple[Array, Array], on_stream: Array, index: Array, partner: Array) -> Array:
    """Return N of the ProfilerStep#N that each host event begins in; of device events that of their partner, else -1.

    HTA gives device events of stream 0 none, which hides all work of AMD devices. `number` is N of steps, else -1.
    """
    (start, end), step = times, np.full(len(number), -1, np.int64)
    for row in np.flatnonzero(number >= 0):
        step[(start >= start[row]) & (start < end[row])] = number[row]
    order = np.argsort(index, kind="stable")
    at = order[np.minimum(np.searchsorted(index[order], partner), len(order) - 1)]
    step[on_stream] = np.where(partner[on_stream] > 0, step[at[on_stream]], -1)
    return step


def get_cpu_gpu_correlation(df: pd.DataFrame) -> pd.DataFrame:
    """Return ``gpu_index`` and ``cpu_index``: the ``index`` of each device event of a frame and of its call."""
    pairs = df.loc[df["stream"].ge(0) & df["index_correlation"].gt(0), ["index", "index_correlation"]]
    return pairs.set_axis(["gpu_index", "cpu_index"], axis=1).reset_index(drop=True)


def transform_correlation_to_index(df: pd.DataFrame, symbol_table: TraceSymbolTable) -> pd.DataFrame:
    """Add ``index_correlation``, as in frames of `Trace.get_trace`, to the caller's frame, and return the frame."""
    device = df["name"].isin([symbol_table.sym_index.get(name) for name in DEVICE_SYNCS])
    device |= df["stream"].ge(0) & df["correlation"].ge(0)
    correlation, index = df["correlation"].to_numpy(np.int64), df["index"].to_numpy(np.int64)
    df["index_correlation"] = _smallest(_partners(correlation, index, device.to_numpy()))
    return df


def add_iteration(df: pd.DataFrame, symbol_table: TraceSymbolTable) -> pd.DataFrame:
    """Add ``iteration``, as in frames of `Trace.get_trace`, to the caller's frame that has ``index_correlation``.

    Returns:
        The profiler steps: ``ts``, ``dur``, ``name``, ``s_name`` (N of ``ProfilerStep#N``) and ``iter`` (the name).
    """
    number = np.array([step_of(name) for name in symbol_table.sym_table], np.int64)[df["name"].to_numpy()]
    start, partner, index = (df[name].to_numpy() for name in ("ts", "index_correlation", "index"))
    on_stream = df["stream"].ge(0) & df["cat"].ne(symbol_table.sym_index.get("cpu_op", -1))
    end = start + df["dur"].to_numpy()
    df["iteration"] = _smallest(_steps(number, (start, end), on_stream.to_numpy(), index, partner))
    steps = df.loc[number >= 0, ["ts", "dur", "name"]]
    return steps.assign(s_name=number[number >= 0], iter=[symbol_table.sym_table[name] for name in steps["name"]])


def parsed_frame(job: HtaJob, rank: int, config: ParserConfig) -> pd.DataFrame:
    """Return a copy of a rank's frame with the columns of arguments that a configuration asks for.

    The file is read again where it asks for arguments that are not among HTA's default ones, and for CUPTI's counters,
    each of which is a column too. The columns of the frame that hold no arguments (``index``, ``cat``, ...) stay.
    """
    frame, trace = job.frame(rank).copy(), job.of_rank(rank)
    specs, counts = config.get_args(), COUNTER_RANGE in trace.categories
    others = config.parse_all_args or any(spec.name not in _DEFAULT for spec in specs)
    if not others and not counts and specs == list(_DEFAULT.values()):
        return frame
    from_file = None
    if others or counts:
        category = None if others else COUNTER_RANGE
        from_file = reader_of(trace).category_arguments(trace.unchanged_path(), category).reindex(frame["index"])
        specs = _all_specs(from_file) if config.parse_all_args else specs
        if counts and not config.parse_all_args:
            counters = from_file[frame["cat"].eq(job.symbols.sym_index[COUNTER_RANGE]).to_numpy()].dropna(
                axis=1, how="all"
            )
            known = {spec.name for spec in specs}
            specs = [
                *specs,
                *(AttributeSpec(str(key), str(key), ValueType.Int, -1) for key in counters if key not in known),
            ]
    columns = {spec.name: _column(frame, from_file, spec) for spec in specs}
    fixed = [name for name in frame.columns if name not in _DEFAULT]
    columns = {name: values for name, values in columns.items() if name not in fixed}
    front = fixed[: fixed.index("dur") + 1]
    return pd.concat([frame[front], pd.DataFrame(columns, index=frame.index), frame[fixed[len(front) :]]], axis=1)


def _all_specs(from_file: pd.DataFrame) -> list[AttributeSpec]:
    """Return every argument that an event has: first the arguments that HTA knows, in its order, then the others."""
    known = {spec.raw_name: spec for spec in AVAILABLE_ARGS.values() if spec.raw_name != "name"}
    keys = from_file.columns[from_file.notna().any()].tolist()
    out = [spec for raw_name, spec in known.items() if raw_name in keys]
    others = [key for key in keys if key not in known]
    return out + [ParserConfig.make_attribute_spec(key, from_file[key].dropna().iloc[0]) for key in others]


def _column(frame: pd.DataFrame, from_file: pd.DataFrame | None, spec: AttributeSpec) -> Array | pd.Series:
    """Return one argument of all events; numbers in the smallest type that holds them."""
    if spec in _DEFAULT.values():
        return frame[spec.name]
    values: Array = np.full(len(frame), spec.default_value, object)
    if from_file is not None and spec.raw_name in from_file:
        given = from_file[spec.raw_name]
        has = given.notna().to_numpy(np.bool_)
        values[has] = given.to_numpy()[has]
    if spec.value_type not in (ValueType.Int, ValueType.Float):
        return values
    if all(isinstance(value, int) for value in values):
        return _smallest(values.astype(np.int64))
    return values.astype(np.float64) if all(isinstance(value, int | float) for value in values) else values
