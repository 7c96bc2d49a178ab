"""One file → a Trace, its events as models, or one event again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from htagraph.core.errors import DamagedTraceError, NotATraceError, TraceError
from htagraph.core.issues import IssueLog
from htagraph.trace.columns import Table, Trace
from htagraph.trace.events import Event, Header, parse_event
from htagraph.trace.reading.decode import BlockDecoder, Columns, event_decoder, event_text_decoder
from htagraph.trace.reading.salvage import salvage_header
from htagraph.trace.reading.source import iter_bytes
from htagraph.trace.reading.split import find_events, split
from htagraph.trace.reading.times import padded

__all__ = ["read_event", "read_events", "read_header", "read_trace"]

_HEAD_BYTES = 64 << 10
_LAST_NS = 2**62
_TAIL_BYTES = 1 << 20
_FAR = 4  # times the middle half of all events
_HOUR_NS = 3_600_000_000_000


def read_trace(path: Path, rank_in: Callable[[Header], int], progress: Callable[[int], None] | None = None) -> Trace:
    """Return one file's events as columns.

    Args:
        path: a Kineto trace, JSON or gzipped JSON.
        rank_in: decides which rank the file belongs to, from its header.
        progress: told how many bytes of the file have been consumed.

    Raises:
        TraceError: the file cannot be read, is no trace, or is damaged beyond recovery.
    """
    stat = _stat(path)
    log = IssueLog(str(path))
    raw_header: dict[str, Any] = {}
    decode, columns = BlockDecoder(), Columns(log)
    for position, events in split(iter_bytes(path, log, progress), decode, raw_header, log):
        try:
            columns.add(position, events)
        except TraceError as error:  # a value that cannot be what its field says
            msg = f"{path}: {error}"
            raise TraceError(msg) from error
        del events  # see split: before the next block
    if not columns.counts and log.has("truncated"):
        msg = f"{path}: the file ends before its first event does (a killed export?)"
        raise DamagedTraceError(msg)
    if set(columns.counts) <= {""} and (columns.counts or log.has("event_unreadable")):
        msg = f"{path}: JSON, but its list is not of events (objects with a phase, ph); not a Kineto trace"
        raise NotATraceError(msg)
    header = _header(raw_header, log)
    table = _without_outliers(columns.table(), log)
    if columns.style.unpadded:
        log.add("unpadded_fractions", "times of March 2024, whose fractions lack leading zeros; read as written then")
    if not columns.window_end_seen and len(table):
        log.add("no_window_end", "no 'Record Window End': written by another tool, or cut off before the end")
    if header.base_time_nanoseconds is None and len(table) and int(table.start.max()) < _HOUR_NS * 24 * 365:
        log.add("no_base_time", "relative timestamps without a base: ranks cannot be placed on one clock")
    base, rank = header.base_time_nanoseconds or 0, rank_in(header)
    _refuse_out_of_range(table, base, path)
    return Trace(
        rank=rank, path=path, header=header, names=tuple(columns.names), categories=tuple(columns.categories),
        lanes=tuple(columns.lanes.lanes), thread_names=columns.thread_names, events=_shifted(table, base),
        instants=_shifted(columns.instants(), base), flows=columns.flows().shifted(base),
        counts=dict(columns.counts), issues=log.issues(rank), fingerprint=stat, unpadded=columns.style.unpadded,
    )  # fmt: skip


def read_events(path: str | Path) -> Iterator[Event]:
    """Yield every event of a trace file as its validated pydantic model, in the file's order.

    For whoever wants the objects; `load` is about twenty times faster.

    Times are the decimals in the file. Files of two weeks in March 2024 lack the zeros at the start of fractions
    (``12.5`` meant 12.005 µs), which shows only once the whole file is read: `load` corrects it, this does not.

    Args:
        path: a Kineto trace, JSON or gzipped JSON.

    Yields:
        Models of `htagraph.trace.events`, each with every argument that the file had.

    Raises:
        TraceError: the file cannot be read, or an event does not fit its model; names file, event and field.

    Warns:
        UserWarning: behind the last event, where the file is damaged: what was repaired or lost.

    Example:
        >>> import htagraph as hg
        >>> first = next(hg.read_events("data/demo/rank-0.json.gz"))
        >>> first.ph in "XMisfC"
        True
    """
    path = Path(path)
    log = IssueLog(str(path))
    for position, raws in split(iter_bytes(path, log), event_decoder(), {}, log):
        for number, raw in enumerate(raws, position):
            yield _parsed(raw, number, path)
    if log.issues():
        found = "; ".join(f"{issue.detail} ({issue.count})" for issue in log.issues())
        warnings.warn(f"{path}: {found}", stacklevel=2)


def read_event(path: Path, index: int, *, unpadded: bool = False) -> Event:
    """Return the event at position `index` of the file's events.

    Args:
        path: a Kineto trace, JSON or gzipped JSON.
        index: the position.
        unpadded: whether fractions lack the zeros at their start, as `Trace.unpadded` says; else they are decimals.

    Raises:
        TraceError: the file has fewer events.
    """
    log = IssueLog(str(path))
    for position, texts in split(iter_bytes(path, log), event_text_decoder(), {}, log):
        if index < position + len(texts):
            # like any text of events: what bulk decoding skips over, such as bad UTF-8, may need repair
            alone = iter((b"[", bytes(texts[index - position]), b"]"))
            for _, raws in split(alone, event_decoder(), {}, log):
                return _parsed(_padded(raws[0]) if unpadded else raws[0], index, path)
            break
    msg = f"{path}: has no event {index}; was the file changed since it was loaded?"
    raise TraceError(msg)


def read_header(path: Path, *, and_tail: bool) -> Header:
    """Return the root keys that stand before the events: cheap, for finding out which rank a file is.

    Args:
        path: a Kineto trace.
        and_tail: where the head has no ``distributedInfo``, look for it behind the events: traces that were requested
            from outside the job have it there. This decompresses the whole file.
    """
    log = IssueLog(str(path))
    raw: dict[str, Any] = {}
    find_events(iter_bytes(path, log, piece_bytes=_HEAD_BYTES), raw, log)
    if and_tail and "distributedInfo" not in raw:
        tail = b""
        for piece in iter_bytes(path, log):
            tail = (tail + piece)[-_TAIL_BYTES:]
        raw |= salvage_header(tail, log)
    return _header(raw, log)


def _padded(raw: dict[str, Any]) -> dict[str, Any]:
    """Return an event with the zeros that the fractions of its times lack."""
    return raw | {key: padded(str(raw[key])) for key in ("ts", "dur") if isinstance(raw.get(key), Decimal | str)}


def _parsed(raw: dict[str, Any], number: int, path: Path) -> Event:
    try:
        return parse_event(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        msg = f"{path}: event {number}: {where}: {first['msg']} (got {first['input']!r})"
        raise TraceError(msg) from error


def _stat(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error})"
        raise TraceError(msg) from error
    return stat.st_size, stat.st_mtime_ns


def _header(raw: dict[str, Any], log: IssueLog) -> Header:
    try:
        return Header.model_validate(raw)
    except ValidationError as error:
        bad = {str(problem["loc"][0]) for problem in error.errors()}
        for key in sorted(bad):
            log.add("header_key_lost", f"{key} does not have the form a trace gives it; ignored")
        return Header.model_validate({key: value for key, value in raw.items() if key not in bad})


def _without_outliers(table: Table, log: IssueLog) -> Table:
    """Drop events whose start is 0 or hours before everything else: known errors of CUPTI and XPU."""
    if not len(table):
        return table
    low, high = np.quantile(table.start, (0.25, 0.75))  # some files have 0 for every event of a kind
    early = table.start < low - _FAR * (high - low) - _HOUR_NS
    log.add("time_outlier", "events hours before all others (clock errors of the profiler); dropped", int(early.sum()))
    return table.take(~early) if early.any() else table


def _refuse_out_of_range(table: Table, base: int, path: Path) -> None:
    """Refuse times that int64 ns cannot hold: they would wrap around and be wrong without a word."""
    ends = (int(table.start.min()), int(table.start.max()) + int(table.duration.max())) if len(table) else (0, 0)
    if not -_LAST_NS < base + ends[0] <= base + ends[1] < _LAST_NS:
        msg = (
            f"{path}: times beyond the year 2115: baseTimeNanoseconds, or an event's ts or dur, is no time in its unit"
        )
        raise TraceError(msg)


def _shifted(table: Table, base: int) -> Table:
    if base:
        np.add(table.start, base, out=table.start)
    for column in (table.index, table.name, table.category, table.lane, table.start, table.duration):
        column.flags.writeable = False
    return table
