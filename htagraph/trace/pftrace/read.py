"""One file → a Trace: slices of tracks and stages of devices as the events that Kineto's files have for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from htagraph.core.arrays import looked_up
from htagraph.core.errors import DamagedTraceError, IssueLog
from htagraph.core.naming import FRAME
from htagraph.trace.columns import Events, Facts, Flows, NodeDependencies, Trace, label
from htagraph.trace.kept import YEAR_NS, Extent, Frames, Sieve, extent_of, refuse_out_of_range, shifted, valid
from htagraph.trace.kineto.by_arguments import with_meaning_of_arguments
from htagraph.trace.kineto.collecting import Columns
from htagraph.trace.pftrace import scan
from htagraph.trace.pftrace.argument_columns import WANTED, add_arguments, call_keys, plain_numbers
from htagraph.trace.pftrace.events import PacketEvents, event_rows
from htagraph.trace.pftrace.facts import facts_of
from htagraph.trace.pftrace.labels import Labels
from htagraph.trace.pftrace.packets import DEVICE_COUNTERS, EVENT_NAMES, Packets, packets_of, text_of_file
from htagraph.trace.pftrace.samples import report_lost
from htagraph.trace.pftrace.spans import SYNC_KIND, Spans, lanes_of, numbers_of_events, spans_of
from htagraph.trace.remote import TracePath, known_state

__all__ = ["columns"]


def columns(  # noqa: PLR0913 - what every reader takes
    path: TracePath,
    rank_in: Callable[[Facts, IssueLog], int],
    progress: Callable[[int], None] | None = None,
    *,
    compiled: bool = True,
    frames: Frames | None = None,
    sieve: Sieve | None = None,
    part: int | None = None,
) -> Trace:
    """Return the events of a file as columns.

    Args:
        path: the file, maybe gzipped.
        rank_in: returns the rank of the file, given its facts and the log of its issues.
        progress: called with the bytes of the file that were read so far.
        compiled: has no effect, as this reader always runs compiled code.
        frames: decides which calls of Python functions are kept.
        sieve: decides which other events are kept.
        part: has no effect, as a file has one process.

    Raises:
        TraceError: the file cannot be read, or holds no packets.
    """
    stat = known_state(path)
    log = IssueLog(str(path))
    packets = packets_of(text_of_file(path, log, progress), log)
    facts = facts_of(packets)
    events = event_rows(
        packets,
        WANTED | call_keys(packets.interned_texts(EVENT_NAMES)),
    )
    into = Columns(log, frames, sieve)
    spans = spans_of(packets, events, log)
    report_lost(packets, events, log)
    _add(into, packets, events, spans)
    into.thin(last=True)
    into.frames.report(log)
    table = with_meaning_of_arguments(into.table(), into.names)
    extent = extent_of(table) if sieve is None else sieve.extent
    _refuse_without_events(path, packets, events, log)
    table = valid(table, extent)
    _report_times(facts, extent, log)
    out_of_unit = "a packet's time, or a snapshot of clocks, is damaged"
    refuse_out_of_range(extent, facts.origin_ns, path, out_of_unit)
    dependencies = _dependencies(
        events,
        table,
        log,
        whole=sieve is None,
    )
    rank = rank_in(facts, log)
    return Trace(
        rank=rank,
        path=path,
        facts=facts,
        names=tuple(into.names),
        categories=tuple(into.categories),
        lanes=tuple(into.lanes.lanes),
        thread_names=_thread_names(packets),
        events=shifted(table, facts.origin_ns),
        instants=shifted(into.instants(), facts.origin_ns),
        flows=_no_flows(),
        counts=_counts(packets, events),
        issues=log.issues(rank),
        fingerprint=stat,
        bookmarks={},
        format="pftrace",
        dependencies=dependencies,
    )


def _report_times(facts: Facts, extent: Extent, log: IssueLog) -> None:
    """Report damaged times, hours away from the rest, and a file that does not say when its times begin."""
    log.add(
        "time_outlier",
        "events hours away from all others (a clock error); dropped",
        extent.outliers,
    )
    if facts.base_ns is None and extent.events and extent.last < YEAR_NS:
        log.add(
            "no_base_time",
            "the file does not say when times begin: ranks share no clock",
        )


def _counts(packets: Packets, events: PacketEvents) -> Mapping[str, int]:
    """Return the number of events by the letters that Kineto has for their kinds."""
    counts = np.bincount(
        events.columns[scan.TYPE],
        minlength=scan.UNREADABLE + 1,
    ).tolist()
    phases = {
        "X": counts[scan.BEGIN] + counts[scan.DEVICE_WORK],
        "i": counts[scan.INSTANT],
        "C": counts[scan.COUNTER] + packets.count(DEVICE_COUNTERS),
        "M": len(packets.tracks),
    }
    return {phase: count for phase, count in phases.items() if count}


def _refuse_without_events(
    path: TracePath,
    packets: Packets,
    events: PacketEvents,
    log: IssueLog,
) -> None:
    if not len(events.body) and log.has("truncated"):
        msg = f"{path}: the file ends before its first event; was the job killed while the profiler exported?"
        raise DamagedTraceError(msg)


def _add(
    into: Columns,
    packets: Packets,
    events: PacketEvents,
    spans: Spans,
) -> None:
    """Add events that take time to the columns.

    Args:
        into: the columns, without any event so far.
        packets: the packets of the file.
        events: the events in the packets.
        spans: the events that take time.
    """
    labels = Labels(packets, events, into, into.log)
    is_sync = plain_numbers(events, SYNC_KIND)[spans.row] >= 0
    category = labels.categories(spans.row, is_sync)
    into.see(category, spans.start, spans.duration)
    is_frame = category == into.categories.get(FRAME, -1)
    left_out = into.frames.left_out_of(is_frame, spans.start, spans.duration)
    into_rows = ~left_out
    kept = spans.take(into_rows)
    category = category[into_rows].astype(np.int32)
    index = numbers_of_events(events)[kept.row].astype(np.int32)
    name = labels.names(kept.row).astype(np.int32)
    lane = lanes_of(labels, kept.row, is_sync[into_rows]).astype(np.int32)
    times = (
        (kept.start, kept.start),
        (kept.duration, kept.duration),
    )
    first = into.complete.add_rows((index, name, category, lane), *times)
    add_arguments(into, events, kept.row, category, first)
    into.note_frames(is_frame, left_out)


def _dependencies(
    events: PacketEvents,
    table: Events,
    log: IssueLog,
    *,
    whole: bool,
) -> NodeDependencies:
    """Return which stages waited for which.

    Args:
        events: the events of the file.
        table: the events that became rows.
        log: gets an issue about waits for stages that are not in the file.
        whole: whether no event was left out of the table.
    """
    if not len(events.waiting):
        return NodeDependencies()
    stage = np.flatnonzero(events.columns[scan.TYPE] == scan.DEVICE_WORK)
    ids = events.columns[scan.EVENT, stage]
    order = np.argsort(ids, kind="stable")
    awaited = looked_up(ids[order], stage[order], events.awaited)
    number = numbers_of_events(events)
    source = np.where(awaited >= 0, number[awaited], -1)
    target = number[events.waiting]
    is_matched = np.isin(source, table.index) & np.isin(target, table.index) & (source != target)
    if whole:
        detail = "dependencies between nodes of CUDA graphs whose nodes are not in the file; left out"
        log.add(
            "dependency_unmatched",
            detail,
            int(np.count_nonzero(~is_matched)),
        )
    return NodeDependencies(
        source[is_matched].astype(np.int32),
        target[is_matched].astype(np.int32),
    )


def _thread_names(
    packets: Packets,
) -> dict[tuple[int | str, int | str], str]:
    return {
        (
            label(track.pid),
            label(track.tid),
        ): track.name.strip()
        for track in packets.tracks.values()
        if track.name
    }


@cache
def _no_flows() -> Flows:
    none = np.zeros(0, np.int64)
    return Flows(
        none,
        none.astype(np.bool_),
        none.astype(np.int32),
        none,
    )
