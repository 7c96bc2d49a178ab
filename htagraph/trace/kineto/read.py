"""One file → a Trace, its events as models, or the facts that it states of its recording."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from htagraph.core.errors import DamagedTraceError, IssueLog, NotATraceError, TraceError, shown
from htagraph.trace.columns import Device, Events, Facts, Group, Trace
from htagraph.trace.kept import HOUR_NS, Extent, Extents, Frames, Sieve
from htagraph.trace.kineto.collecting import Columns, add_durations, add_events
from htagraph.trace.kineto.decode import BlockDecoder, event_decoder
from htagraph.trace.kineto.events import DistributedInfo, Event, Header, parse_event
from htagraph.trace.kineto.source import SMALL_BYTES, ahead, iter_bytes
from htagraph.trace.kineto.split import find_events, split
from htagraph.trace.remote import TracePath, fingerprint, path_of

if TYPE_CHECKING:
    from htagraph.trace.kineto.from_blocks import BlockColumns

__all__ = [
    "EXPORTED_KEY", "STARTS", "SUFFIXES", "UNPADDED", "columns", "metadata", "parsed", "read_events", "recognizes",
    "survey",
]  # fmt: skip

SUFFIXES: tuple[str, ...] = (".json", ".json.gz", ".json.tmp", ".json.gz.tmp")
"""How names of these files end."""
EXPORTED_KEY = "htagraph"
"""Root key of the files that htagraph exports from traces, such as overlays. They are not recordings."""
STARTS, UNPADDED = "starts", "unpadded"
"""Bookmarks: where reading may begin, as rows of (number of an event, position of its text in the decompressed file),
ascending, none where the file was decoded event by event; and whether fractions of times lack their leading zeros
(March 2024), which columns correct."""
_SETTINGS_KEY = "htagraph_profile"  # that of `htagraph.trace.recording.profile`

_TAIL_BYTES = 1 << 20
"""Bytes at the end of a file in which the keys behind the events are looked for. Chosen: process groups of a large job
fit; a larger tail costs memory only."""
_MAX_NS = int(np.iinfo(np.int64).max) // 2 + 1
"""ns since 1970: later times (2116) are refused. Half of what int64 holds, so that the sum of two times fits."""
_YEAR_NS = 365 * 24 * HOUR_NS
"""If all starts are below this, times do not count from 1970. Chosen: no recording takes a year, and none is from
1970."""


def recognizes(path: TracePath) -> bool:
    """Return whether a file is named as Kineto's are."""
    return path.name.endswith(SUFFIXES)


def columns(
    path: TracePath,
    rank_in: Callable[[Facts, IssueLog], int],
    progress: Callable[[int], None] | None = None,
    *,
    compiled: bool = True,
    frames: Frames | None = None,
    sieve: Sieve | None = None,
) -> Trace:
    """Return one file's events as columns."""
    stat = _stat(path)
    log = IssueLog(str(path))
    raw_header: dict[str, Any] = {}
    frames = frames or Frames(asked=True)
    decode, into = BlockDecoder(raw_header, frames), Columns(log, frames, sieve)
    add_block = _block_columns(into).add if compiled else None
    pieces = iter_bytes(path, log, progress)
    for position, events in split(
        ahead(pieces) if compiled else pieces, decode, raw_header, log, add_block and decode.scan
    ):
        if isinstance(events, list):
            add_events(into, position, events)
        elif add_block is not None:  # for the type checker: only a scan makes blocks
            add_block(position, events)
        del events  # see split: before the next block
        into.thin()
    _refuse_without_events(path, into.counts, log)
    header = _header(raw_header, log)
    facts = _facts(header, raw_header)
    add_durations(into)
    into.thin(last=True)
    frames.report(log)
    table = into.table()
    extent = _extent(table) if sieve is None else sieve.extent
    _refuse_without_times(path, extent, log)
    table, instants, flows = _valid(table, extent), _valid(into.instants(), extent), into.flows(extent)
    lost = extent.outliers + into.instant.count - len(instants)
    log.add("time_outlier", "events hours away from all others (a clock error of the profiler); dropped", lost)
    if into.style.unpadded:
        log.add("unpadded_fractions", "fractions of times lack leading zeros (Kineto of March 2024); times corrected")
    if not into.window_end_seen and extent.events:
        log.add("no_window_end", "no 'Record Window End' event: the file was cut short, or written by another tool")
    if facts.base_ns is None and extent.events and extent.last < _YEAR_NS:
        log.add("no_base_time", "times are relative, but the file has no baseTimeNanoseconds: ranks share no clock")
    base, rank = facts.origin_ns, rank_in(facts, log)
    _refuse_out_of_range(extent, base, path)
    return Trace(
        rank=rank, path=path, facts=facts, names=tuple(into.names), categories=tuple(into.categories),
        lanes=tuple(into.lanes.lanes), thread_names=into.thread_names, events=_shifted(table, base),
        instants=_shifted(instants, base), flows=flows.shifted(base),
        counts=dict(into.counts), issues=log.issues(rank), fingerprint=stat,
        bookmarks={
            STARTS: np.array(into.starts, np.int64).reshape(-1, 2), UNPADDED: np.array([into.style.unpadded]),
        },
    )  # fmt: skip


def _refuse_without_events(path: TracePath, counts: Mapping[str, int], log: IssueLog) -> None:
    if not counts and log.has("truncated"):
        msg = f"{path}: the file ends within its first event; was the job killed while the profiler exported?"
        raise DamagedTraceError(msg)
    if set(counts) <= {""} and (counts or log.has("event_unreadable")):
        msg = f"{path}: not a Kineto trace: JSON, but the list does not hold events (objects with a phase, ph)"
        raise NotATraceError(msg)


def _refuse_without_times(path: TracePath, extent: Extent, log: IssueLog) -> None:
    lost = [issue.detail for issue in log.issues() if issue.what == "time_corrupt"]
    if lost and not extent.events:
        msg = f"{path}: no event has a time that can be read; {lost[0]}"
        raise DamagedTraceError(msg)


def _block_columns(columns: Columns) -> BlockColumns:
    from htagraph.trace.kineto.from_blocks import BlockColumns  # loads compiled code

    return BlockColumns(columns)


def read_events(path: str | PathLike[str]) -> Iterator[Event]:
    """Yield every event of a trace file as its validated pydantic model, in the file's order.

    Use `read_events` where you need objects; `load` is about twenty times faster.

    Times are the decimals in the file. Files of two weeks in March 2024 lack the leading zeros of fractions (``12.5``
    meant 12.005 µs). This error shows only once the whole file is read: `load` corrects the times, `read_events` does
    not.

    Args:
        path: a Kineto trace, JSON or gzipped JSON.

    Yields:
        Models of `htagraph.trace.kineto.events`, each with every argument that the file had.

    Raises:
        TraceError: the file cannot be read, or an event does not fit its model; the message names event and field.

    Warns:
        UserWarning: after the last event, if the file is damaged: what was repaired or lost.

    Example:
        >>> import htagraph as hg
        >>> first = next(hg.read_events("data/demo/rank-0.json.gz"))
        >>> first.ph in "XMisfC"
        True
    """
    path = path_of(path)
    log = IssueLog(str(path))
    for position, raws in split(iter_bytes(path, log), event_decoder(), {}, log):
        for number, raw in enumerate(raws, position):
            yield parsed(raw, number, path)
    if log.issues():
        problems = "; ".join(f"{issue.detail} ({issue.count})" for issue in log.issues())
        warnings.warn(f"{path}: {problems}", stacklevel=2)


def survey(path: TracePath, *, and_tail: bool) -> Facts:
    """Return the facts that stand before the events: cheap, enough to find a file's rank.

    With `and_tail`, a ``distributedInfo`` that is not before the events is looked for behind them, where traces on
    demand (requested from outside the job) have it: this decompresses the whole file.
    """
    log = IssueLog(str(path))
    raw: dict[str, Any] = {}
    find_events(iter_bytes(path, log, piece_bytes=SMALL_BYTES), raw, log)
    if and_tail and "distributedInfo" not in raw:
        from htagraph.trace.kineto.salvage import salvage_header  # few files have a header behind the events

        tail = b""
        for piece in iter_bytes(path, log):
            tail = (tail + piece)[-_TAIL_BYTES:]
        raw |= salvage_header(tail, log)
    return _facts(_header(raw, log), raw)


def metadata(facts: Facts) -> dict[str, Any]:
    """Return what a file says beside its events, by the keys of Kineto, with the types of the schema."""
    return _header(dict(facts.written), IssueLog("")).model_dump(by_alias=True, exclude_none=True)


def parsed(raw: dict[str, Any], number: int, path: TracePath) -> Event:
    """Return an event of a file as its model."""
    try:
        return parse_event(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        msg = f"{path}: event {number}: {where}: {first['msg']} (got {shown(first['input'])})"
        raise TraceError(msg) from error


def _stat(path: TracePath) -> tuple[int, int]:
    try:
        return fingerprint(path)
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error})"
        raise TraceError(msg) from error


def _header(raw: dict[str, Any], log: IssueLog) -> Header:
    try:
        return Header.model_validate(raw)
    except ValidationError as error:
        bad = {str(problem["loc"][0]) for problem in error.errors()}
        for key in sorted(bad):
            log.add("header_key_lost", f"header key {key} has an unexpected type; ignored")
        return Header.model_validate({key: value for key, value in raw.items() if key not in bad})


def _facts(header: Header, raw: Mapping[str, Any]) -> Facts:
    """Return what a header says, in the words of all formats."""
    info = header.distributed_info or DistributedInfo()
    settings = raw.get(_SETTINGS_KEY)
    run = {
        "world size": info.world_size,
        "job": header.job_name,
        "version": header.job_version,
        "attempt": header.job_attempt_index,
    }
    return Facts(
        rank=info.rank, world_size=info.world_size or 0, backend=info.backend or "", host=header.host_name or "",
        groups=tuple(
            Group(
                each.pg_name or "", each.pg_desc or "", each.pg_size,
                tuple(each.ranks) if isinstance(each.ranks, list) else each.ranks,
            ) for each in info.pg_config
        ),
        devices=tuple(Device(each.id, each.name or "") for each in header.device_properties),
        job=header.job_name or "", run=", ".join(f"{what} {value}" for what, value in run.items() if value is not None),
        base_ns=header.base_time_nanoseconds, has_shapes=bool(header.record_shapes or header.with_flops),
        has_stacks=bool(header.with_stack), on_cuda=header.cuda_runtime_version is not None,
        settings=settings if isinstance(settings, dict) else {}, exported=EXPORTED_KEY in raw, written=raw,
    )  # fmt: skip


def _extent(table: Events) -> Extent:
    extents = Extents()
    extents.see(table.start, table.duration)
    return extents.result()


def _valid(table: Events, extent: Extent) -> Events:
    """Return the events without those whose times are known errors of CUPTI and XPU: 0, hours early, or centuries."""
    valid = extent.holds(table.start, table.duration)
    return table if valid.all() else table.take(valid)


def _refuse_out_of_range(extent: Extent, base: int, path: TracePath) -> None:
    """Raise an error for times that int64 ns cannot hold: they would overflow silently."""
    if not -_MAX_NS < base + extent.first <= base + extent.last + extent.longest < _MAX_NS:
        what = "baseTimeNanoseconds (ns), or an event's ts or dur (µs), is not in its unit"
        msg = f"{path}: times beyond the year 2115: {what}"
        raise TraceError(msg)


def _shifted(table: Events, base: int) -> Events:
    if base:
        np.add(table.start, base, out=table.start)
    for column in (
        table.index,
        table.name,
        table.category,
        table.lane,
        table.start,
        table.duration,
    ):
        column.flags.writeable = False
    return table
