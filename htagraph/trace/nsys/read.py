"""One export, or one process of it, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from htagraph.core.arrays import Array, Mask
from htagraph.core.errors import IssueLog, RankError, shown
from htagraph.trace.columns import (
    ArgumentColumn,
    Events,
    Facts,
    Flows,
    GrowingTable,
    Interner,
    LaneInterner,
    SparseColumn,
    Trace,
    as_array,
)
from htagraph.trace.kept import MAX_NS, Frames, Sieve, extent_of, refuse_out_of_range, shifted, valid
from htagraph.trace.nsys.database import ABSENT, Database, opened
from htagraph.trace.nsys.facts import facts_of
from htagraph.trace.nsys.names import NCCL, steps
from htagraph.trace.nsys.rows import SOURCES, EventRows, Source, alike, thread_of
from htagraph.trace.remote import TracePath, known_state

__all__ = ["columns"]

_LISTED: Final = 5
"""Tables that an issue lists. Chosen: a line. Doubled, the line is longer."""
_UNNAMED: Final = "(no name)"
_ABOUT: Final = frozenset({"CUPTI_ACTIVITY_KIND_CUDA_EVENT", "DIAGNOSTIC_EVENT", "CUDA_GRAPH_EVENTS", "ANALYSIS_FILE"})
"""Tables with times that are no events, or that other rows refer to."""


@dataclass(eq=False)
class _Collected:
    """The events of a process so far, as sieves see them."""

    names: Interner[str] = field(default_factory=Interner)
    categories: Interner[str] = field(default_factory=Interner)
    lanes: LaneInterner = field(default_factory=LaneInterner)
    complete: GrowingTable = field(default_factory=GrowingTable)

    def drop(self, rows: Array) -> None:
        """Drop events."""
        self.complete.keep(~rows)

    def coded(self, interner: Interner[str], words: Sequence[str], code: Array) -> Array:
        """Return the numbers of words in a vocabulary of the trace, given their numbers in a table's."""
        return np.array([*(interner[word] for word in words), 0], np.int32)[code]


@dataclass(frozen=True)
class _Kept:
    """The rows of a table that a rank keeps."""

    source: Source
    index: Array
    """The number of each row among all events of the file."""
    rows: EventRows
    kept: Mask


def columns(  # noqa: PLR0913 - what every reader takes
    path: TracePath, rank_in: Callable[[Facts, IssueLog], int], progress: Callable[[int], None] | None = None, *,
    compiled: bool = True, frames: Frames | None = None, sieve: Sieve | None = None,
    part: int | None = None,
) -> Trace:  # fmt: skip
    """Return the events of an export, of one of its processes if there are several that used a device."""
    stat = known_state(path)
    log = IssueLog(str(path))
    with opened(path) as database:
        facts = facts_of(database)
        process = _process(path, facts, part)
        tables, about = _tables(database, process, facts.processes, log)
        tables = _with_steps(tables, log)
        into = _Collected()
        for table in tables:
            _add(into, table, sieve)
        if sieve is not None:
            sieve.thin(into, last=True)
        thread_names = _thread_names(database)
        if process in (None, *facts.processes[:1]):
            _report_others(database, log)
    events = _finished(into, sieve, log, path, facts)
    if progress is not None:
        progress(stat[0])
    none = np.zeros(0, np.int64)
    rank = rank_in(facts, log)
    return Trace(
        rank=rank, path=path, facts=facts, names=tuple(into.names), categories=tuple(into.categories),
        lanes=tuple(into.lanes.lanes), thread_names=thread_names, events=events,
        instants=Events(*(none.astype(np.int32),) * 4, none, none, {}),
        flows=Flows(none, none.astype(np.bool_), none.astype(np.int32), none),
        counts={"X": sum(int(table.kept.sum()) for table in tables), "M": about}, issues=log.issues(rank),
        fingerprint=stat, bookmarks={}, format="nsys",
    )  # fmt: skip


def _process(path: TracePath, facts: Facts, part: int | None) -> int | None:
    """Return the process that is read; None for a file without device work, whose processes are read as one."""
    if part is not None or len(facts.processes) < 2:
        return part if part is not None else next(iter(facts.processes), None)
    msg = (
        f"{path}: holds {len(facts.processes)} processes that used a device, which are that many ranks; give the file "
        "alone, or in a list, not for one rank"
    )
    raise RankError(msg)


def _tables(database: Database, process: int | None, ranks: Sequence[int], log: IssueLog) -> tuple[list[_Kept], int]:
    """Return (the rows of each table that a process keeps, how many rows name something and are no events)."""
    tables, first, about = list[_Kept](), 0, 0
    for source in SOURCES:
        if "start" not in database.columns.get(source.table, ()):
            first += database.count(source.table)
            continue
        where, positions = database.of_process(source.table, process)
        rows = source.read(database, source.table, where)
        rows = _on_right_device(tables, rows) if source.categories == ("cuda_sync",) else rows
        if ranks and process == ranks[0]:  # once per file
            _report_foreign(database, source, ranks, log)
        kept, names = _kept(source, rows, process, log)
        index = first + (np.arange(len(kept)) if positions is None else positions)
        tables.append(_Kept(source, index.astype(np.int32), rows, kept))
        first, about = first + database.count(source.table), about + names
    return tables, about


def _report_foreign(database: Database, source: Source, ranks: Sequence[int], log: IssueLog) -> None:
    """Report rows of processes that are no ranks."""
    detail = f"rows of {source.table} of processes that used no device; left out"
    for column in ("globalPid", "globalTid"):
        found = database.processes(source.table, column)
        log.add("other_process", detail, sum(count for each, count in found if each not in ranks))


def _kept(source: Source, rows: EventRows, process: int | None, log: IssueLog) -> tuple[Mask, int]:
    """Return (which rows are events that can be read, how many are none); report the others."""
    other = (rows.process != process) & (rows.process != ABSENT) & (process is not None)
    is_event, last = rows.category >= 0, np.maximum(np.abs(rows.start), np.abs(rows.end))
    own, timed = is_event & ~other, (rows.start != ABSENT) & (rows.end != ABSENT)
    log.add("time_missing", f"rows of {source.table} without a start or an end; dropped", int((own & ~timed).sum()))
    kept = own & timed & (rows.end >= rows.start) & (last < MAX_NS)
    wrong = own & timed & ~kept
    if wrong.any():
        at = int(np.argmax(wrong))
        detail = f"rows of {source.table} whose times cannot be, such as {rows.start[at]} to {rows.end[at]} ns; dropped"
        log.add("time_corrupt", detail, int(wrong.sum()))
    log.add("range_open", "ranges without an end, which came after the recording; kept as moments", rows.open)
    nameless = int((kept & (rows.name < 0)).sum())
    log.add("name_missing", f"rows of {source.table} whose name is not in the file; read as {_UNNAMED}", nameless)
    return kept, int((~is_event & ~other).sum())


def _on_right_device(tables: Sequence[_Kept], rows: EventRows) -> EventRows:
    """Return synchronizations on the devices of their contexts, as the process's work says; they name the wrong one."""
    devices: dict[int, int] = {}
    for table in tables:
        if table.source.on_device:
            pairs = np.stack([table.rows.args[name][table.kept] for name in ("context", "device")])
            devices |= dict(np.unique(pairs, axis=1).T.tolist())
    context, number = np.unique(rows.args["context"], return_inverse=True)
    right = np.array([*(devices.get(each, ABSENT) for each in context.tolist()), ABSENT], np.int64)[number.ravel()]
    device = np.where(right == ABSENT, rows.args["device"], right)
    lane = np.where(device == ABSENT, -1, device), rows.lane[1]
    return replace(rows, args=rows.args | {"device": device}, lane=lane)


def _with_steps(tables: list[_Kept], log: IssueLog) -> list[_Kept]:
    """Return the tables with the ranges that are steps under the names of steps."""
    ranges = next((table for table in tables if table.source.table == "NVTX_EVENTS"), None)
    if ranges is None:
        return tables
    calls = [table for table in tables if table.source.categories[0] == "cuda_runtime" and table.kept.any()]
    window = [table for table in (calls or tables) if table.kept.any()]
    rows = ranges.rows
    own = np.array([*(not name.startswith(f"{NCCL}:") for name in rows.names), False])[rows.name]
    at = np.flatnonzero(ranges.kept & own & (rows.category == ranges.source.categories.index("user_annotation")))
    if not window or not len(at):
        return tables
    begin = min(int(table.rows.start[table.kept].min()) for table in window)
    end = max(int(table.rows.end[table.kept].max()) for table in window)
    called = [rows.names[code] for code in rows.name[at].tolist()]
    pattern, numbers = steps(called, rows.start[at], rows.end[at], rows.lane[1][at], (begin, end))
    names, name = list(rows.names), rows.name.copy()
    for row, number in numbers.items():
        name[at[row]] = len(names)
        names.append(f"ProfilerStep#{number}")
    if numbers:
        detail = f"NVTX ranges {shown(pattern)} cover the recording and repeat: read as steps (ProfilerStep#N)"
        log.add("steps_by_range", detail, len(numbers))
    return [replace(each, rows=replace(rows, names=names, name=name)) if each is ranges else each for each in tables]


def _add(into: _Collected, table: _Kept, sieve: Sieve | None) -> None:
    rows, kept = table.rows, np.flatnonzero(table.kept)
    start, duration = rows.start[kept], rows.end[kept] - rows.start[kept]
    names = into.coded(into.names, [*rows.names, _UNNAMED], rows.name[kept] % (len(rows.names) + 1))
    category = into.coded(into.categories, table.source.categories, rows.category[kept])
    pid, tid = (column[kept] for column in rows.lane)
    _, one, of = np.unique(alike(pid, tid), return_index=True, return_inverse=True)
    lanes = zip(pid[one].tolist(), tid[one].tolist(), strict=True)
    lane = np.array([*(into.lanes[each] for each in lanes), 0], np.int32)[of]
    if sieve is not None:
        sieve.see(into, category, start, duration)
    first = into.complete.add_rows((table.index[kept], names, category, lane), (start, start), (duration, duration))
    for name in (each for each in rows.args if each != "context"):
        values = rows.args[name][kept]
        known = np.flatnonzero(values >= 0)
        column = ArgumentColumn(name, "float64" if values.dtype == np.float64 else "int64", -1)
        into.complete.add_args(column, (first + known).astype(np.int32), values[known])
    for name, texts in rows.texts.items():
        has = [(place, texts[row]) for place, row in enumerate(kept.tolist()) if texts and texts[row]]
        codes = np.array([into.names[text] for _, text in has], np.int32)
        places = np.array([place for place, _ in has], np.int32) + np.int32(first)
        into.complete.add_args(ArgumentColumn(name, "str", ""), places, codes)


def _finished(into: _Collected, sieve: Sieve | None, log: IssueLog, path: TracePath, facts: Facts) -> Events:
    """Return the events, without those whose times are clock errors, in ns since 1970."""
    part = into.complete
    args = {name: SparseColumn(as_array(rows), as_array(each), -1) for name, (rows, each) in part.args.items()}
    index, name, category, lane = map(part.column, ("index", "name", "category", "lane"))
    events = Events(index, name, category, lane, part.column("start"), part.column("duration"), args)
    extent = extent_of(events) if sieve is None else sieve.extent
    log.add("time_outlier", "events hours away from all others; dropped", extent.outliers)
    if facts.base_ns is None and extent.events:
        log.add("no_base_time", "the file does not say when times begin (an old release): ranks share no clock")
    base = facts.origin_ns
    refuse_out_of_range(extent, base, path, "the start of the session, or an event's time, is damaged")
    return shifted(valid(events, extent), base)


def _thread_names(database: Database) -> dict[Any, str]:
    """Return the names of threads by (process id, thread id); the first of several."""
    found = database.numbers("ThreadNames", ("globalTid", "nameId"))
    if len(found) < 2:
        return {}
    texts = database.strings(found["nameId"])
    lanes = zip(*(column.tolist() for column in thread_of(found["globalTid"])), strict=True)
    names: dict[Any, str] = {}
    for lane, number in zip(lanes, found["nameId"].tolist(), strict=True):
        names.setdefault(lane, texts.get(number, ""))
    return names


def _report_others(database: Database, log: IssueLog) -> None:
    known = {source.table for source in SOURCES if "start" in database.columns.get(source.table, ())} | _ABOUT
    timed = (table for table, names in database.columns.items() if {"start", "timestamp", "rawTimestamp"} & {*names})
    counts = {table: database.count(table) for table in timed if table not in known}
    counts |= {source.table: database.count(source.table) for source in SOURCES if source.table not in known}
    listed = [f"{shown(table)} ({count:,})" for table, count in counts.items() if count]
    more = ", …" if len(listed) > _LISTED else ""
    detail = f"rows of tables that are not read: {', '.join(listed[:_LISTED])}{more}"
    log.add("table_not_read", detail, sum(counts.values()))
