"""HTA's frame: one row per event of a rank, names and categories as numbers, times in µs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.arguments import arguments
from htagraph.hta.names import is_step, step_of
from htagraph.hta.window import device_side
from htagraph.trace import Trace

if TYPE_CHECKING:
    from htagraph.hta.job import HtaJob

__all__ = ["frame_of", "partners", "step_of_events", "whole"]

Array = npt.NDArray[Any]

_TEXTS = frozenset({"collective_name", "msg_dtype"})
_FROM_FILE = {
    "input_dims": ("Input Dims", "-1"), "input_type": ("Input type", "-1"), "input_strides": ("Input Strides", "-1"),
    "python_id": ("Python id", -1), "python_parent_id": ("Python parent id", -1), "process_rank": ("Rank", -1),
    "in_split_size": ("In split size", "[]"), "out_split_size": ("Out split size", "[]"),
}  # fmt: skip


def whole(us: Array) -> Array:
    """Return times in µs as integers where all are whole, as HTA has them in traces of whole µs."""
    rounded = np.rint(us)
    return rounded.astype(np.int64) if np.array_equal(us, rounded) else us


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
        ``index``, ``cat``, ``name`` (numbers of `HtaJob.symbols`), ``pid``, ``tid`` (object), ``ts`` (µs since the
        earliest kept event of any rank; int64 in traces of whole µs), ``dur`` (float64, µs), the arguments that HTA
        parses by default with its defaults for absent ones, ``index_correlation`` (the partner by correlation, 0 where
        it is missing, -1 without correlation), ``iteration`` (N of ``ProfilerStep#N``, -1 outside) and ``end``
        (float64, µs, not relative).
    """
    trace = job.of_rank(rank)
    events, device = trace.events, device_side(trace)
    order = np.argsort(~device, kind="stable") if job.windowed else np.arange(len(events))
    order = order if only is None else order[only[order]]
    columns = _columns(job, trace, from_file=from_file)
    frame = pd.DataFrame({
        name: pd.Series(values[order], dtype="str" if name in _TEXTS else None, copy=False)
        for name, values in ((name, columns[name]) for name in _order(events.start))
    })  # fmt: skip
    frame.index = pd.Index(_smallest(events.index)[order])
    return frame


def _columns(job: HtaJob, trace: Trace, *, from_file: bool) -> dict[str, Array]:
    """Return the columns of a frame; integers in the smallest type that holds all of them, as HTA keeps them."""
    events = trace.events
    symbols = job.symbols.sym_index
    names = np.array([symbols[name] for name in trace.names], np.int64)
    categories = np.array([symbols[category] for category in trace.categories], np.int64)
    pids, tids = (_objects(ids) for ids in (zip(*trace.lanes, strict=True) if trace.lanes else ((), ())))
    partner = partners(trace, device_side(trace))
    columns = {
        "index": events.index, **_known_arguments(trace), **_file_arguments(job, trace, from_file=from_file),
        "index_correlation": partner, "iteration": step_of_events(trace, partner),
    }  # fmt: skip
    columns = {name: _smallest(values) if values.dtype.kind == "i" else values for name, values in columns.items()}
    return columns | {
        "cat": categories[events.category], "name": names[events.name], "pid": pids[events.lane],
        "tid": tids[events.lane], "ts": _in_us(events.start - job.first_ns), "dur": events.duration / 1000,
        "end": _in_us(events.end).astype(np.float64),
    }  # fmt: skip


def _objects(values: Sequence[object]) -> Array:
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


def _smallest(values: Array) -> Array:
    """Return integers in the smallest signed type that holds them."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    fits = (kind for kind in (np.int8, np.int16, np.int32) if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return values.astype(next(fits, np.int64))


def _known_arguments(trace: Trace) -> dict[str, Any]:
    events = trace.events
    words = np.array([*trace.names, ""], dtype=object)
    bandwidth = events.arg("bandwidth_gb_s").astype(np.float64)
    out: dict[str, Any] = {
        "stream": events.arg("stream"), "correlation": events.arg("correlation"), "bytes": events.arg("bytes"),
        "memory_bw_gbps": np.where(bandwidth < 0, 0.0, bandwidth), "external_id": events.arg("external_id"),
        "wait_on_stream": events.arg("wait_on_stream"),
        "wait_on_cuda_event_record_corr_id": events.arg("wait_on_record"),
    }  # fmt: skip
    for column in ("in_msg_nelems", "out_msg_nelems", "group_size"):
        out[column] = np.maximum(0, events.arg(column))
    for column, ours in (("collective_name", "collective_name"), ("msg_dtype", "dtype")):
        sparse = events.args.get(ours)
        code = np.full(len(events), len(trace.names)) if sparse is None else sparse.dense(len(events))
        out[column] = words[code]
    return out


def _file_arguments(job: HtaJob, trace: Trace, *, from_file: bool) -> dict[str, Any]:
    events, acts = trace.events, job.graph.activities
    mine = np.arange(len(acts))[acts.of_rank(trace.rank)]
    mine = mine[acts.event[mine] >= 0]
    keys = [key for key, _ in _FROM_FILE.values()]
    found = arguments(job.graph, keys, mine if from_file else mine[:0])
    rows = np.searchsorted(events.index, acts.event[found.index])
    out: dict[str, Any] = {}
    for column, (key, default) in _FROM_FILE.items():
        values: Array = np.full(len(events), default, dtype=object)
        has = found[key].notna().to_numpy()
        values[rows[has]] = found[key].to_numpy()[has]
        out[column] = values if isinstance(default, str) else values.astype(np.int64)
    return out


def partners(trace: Trace, device: Array) -> Array:
    """Return the position in the file of each event's partner by correlation, 0 if it is missing, -1 without one.

    Of several partners the last counts, as in HTA.
    """
    events = trace.events
    correlation = events.arg("correlation")
    partner = np.minimum(correlation, 0)
    for mine, theirs in ((~device, device), (device, ~device)):
        mine = mine & (correlation != -1)
        theirs = theirs & (correlation != -1)
        keys, last = _last_of(correlation[theirs], events.index[theirs])
        if len(keys):
            at = np.minimum(np.searchsorted(keys, correlation[mine]), len(keys) - 1)
            partner[mine] = np.where(keys[at] == correlation[mine], last[at], partner[mine])
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
    on_stream = (events.arg("stream") >= 0) & (events.arg("correlation") >= 0)
    order = np.argsort(events.index, kind="stable")
    at = (
        order[np.minimum(np.searchsorted(events.index[order], partner), max(0, len(order) - 1))]
        if len(order)
        else order
    )
    step[on_stream] = np.where(partner[on_stream] > 0, step[at[on_stream]], -1)
    return step
