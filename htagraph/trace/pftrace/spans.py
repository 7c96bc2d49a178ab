"""Events that take time: slices, from a begin to its end, and stages of a device; when and where each ran."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Ints, Mask
from htagraph.core.errors import IssueLog
from htagraph.trace.kept import MAX_NS, is_possible
from htagraph.trace.pftrace import scan
from htagraph.trace.pftrace.argument_columns import plain_numbers
from htagraph.trace.pftrace.events import PacketEvents
from htagraph.trace.pftrace.labels import Labels
from htagraph.trace.pftrace.packets import Packets
from htagraph.trace.pftrace.pairing import NO_END, paired

__all__ = [
    "DEVICE_KEYS",
    "SYNC_KIND",
    "Spans",
    "lanes_of",
    "numbers_of_events",
    "spans_of",
]

SYNC_KIND: Final = "cuda_sync_kind"
"""The argument that marks synchronizations, which have no category."""
DEVICE_KEYS: Final = (
    "device id",
    "stream id",
    "device",
    "stream",
)
"""Arguments that say the device and the stream of stages, and of synchronizations."""


_LOSSES: Final = (
    "packet_unreadable",
    "bytes_unreadable",
    "truncated",
    "phase_unknown",
)
"""Issues about packets that may have been begins or ends."""


class Spans(NamedTuple):
    """Events that take time, in the order of the file."""

    row: Ints
    """Row of the slice's begin, or of the stage, among `PacketEvents`."""
    start: Ints
    """ns, as in the file."""
    duration: Ints
    """ns."""

    def take(self, rows: Mask) -> Spans:
        """Return some of the events."""
        return Spans(
            self.row[rows],
            self.start[rows],
            self.duration[rows],
        )


def numbers_of_events(events: PacketEvents) -> Ints:
    """Return the position of each row among the events of the file; -1 for rows that are none."""
    is_event = np.isin(
        events.columns[scan.TYPE],
        (
            scan.BEGIN,
            scan.INSTANT,
            scan.COUNTER,
            scan.DEVICE_WORK,
        ),
    )
    return np.where(is_event, np.cumsum(is_event) - 1, -1)


def spans_of(
    packets: Packets,
    events: PacketEvents,
    log: IssueLog,
) -> Spans:
    """Return the events that take time, and report the rows that are no events."""
    kind = events.columns[scan.TYPE]
    log.add(
        "packet_unreadable",
        "packets that are damaged; left out",
        int((kind == scan.UNREADABLE).sum()),
    )
    log.add(
        "phase_unknown",
        "track events of no known type, which are no activities; left out",
        int((kind == 0).sum()),
    )
    time, is_timed = packets.times(events.body)
    detail = "packets whose clock the file does not relate to others; left out"
    log.add(
        "clock_unknown",
        detail,
        int(np.count_nonzero(~is_timed)),
    )
    end = _slice_ends(packets, events, time, is_timed, log)
    duration = np.where(
        kind == scan.DEVICE_WORK,
        events.columns[scan.DURATION],
        time[end] - time,
    )
    row = np.flatnonzero(is_timed & ((kind == scan.DEVICE_WORK) | ((kind == scan.BEGIN) & (end != NO_END))))
    spans = Spans(row, time[row], duration[row])
    is_sound = (spans.duration >= 0) & (spans.duration < MAX_NS) & is_possible(spans.start)
    log.add(
        "time_corrupt",
        "events whose times cannot be; dropped",
        int(np.count_nonzero(~is_sound)),
    )
    return spans.take(is_sound)


def _slice_ends(
    packets: Packets,
    events: PacketEvents,
    time: Ints,
    is_timed: Mask,
    log: IssueLog,
) -> Ints:
    """Return the row of the end of each slice's begin."""
    kind = events.columns[scan.TYPE]
    ends = np.full(len(kind), NO_END, np.int64)
    rows = np.flatnonzero(is_timed & ((kind == scan.BEGIN) | (kind == scan.END)))
    body = events.body[rows]
    sequence = packets.sequences(body)
    is_begin = kind[rows] == scan.BEGIN
    pairing = paired(
        sequence,
        events.columns[scan.TRACK, rows],
        time[rows],
        is_begin,
        is_damaged=any(log.has(loss) for loss in _LOSSES),
    )
    has_end = pairing.end != NO_END
    ends[rows[has_end]] = rows[pairing.end[has_end]]
    begins = int(np.count_nonzero(is_begin))
    count = int(np.count_nonzero(has_end))
    log.add(
        "begin_unpaired",
        "begins of slices without an end on their track; left out",
        begins - count,
    )
    log.add(
        "end_unpaired",
        "ends of slices without a begin on their track; left out",
        len(rows) - begins - count,
    )
    detail = "slices near lost begins or ends, to which another end fits as well; their durations may be wrong"
    log.add(
        "end_uncertain",
        detail,
        int(np.count_nonzero(pairing.is_uncertain)),
    )
    return ends


def lanes_of(labels: Labels, rows: Ints, is_sync: Mask) -> Ints:
    """Return the lane of each event: a stream of a device, or a track."""
    events = labels.events
    is_stage = events.columns[scan.TYPE, rows] == scan.DEVICE_WORK
    lane = np.empty(len(rows), np.int64)
    on_track = np.flatnonzero(~is_stage & ~is_sync)
    lane[on_track] = labels.lanes(rows[on_track])
    for chosen, device_key, stream_key in (
        (
            np.flatnonzero(is_stage),
            *DEVICE_KEYS[:2],
        ),
        (
            np.flatnonzero(is_sync & ~is_stage),
            *DEVICE_KEYS[2:],
        ),
    ):
        device = plain_numbers(events, device_key)[rows[chosen]]
        stream = plain_numbers(events, stream_key)[rows[chosen]]
        gpu = events.columns[scan.GPU, rows[chosen]]
        lane[chosen] = labels.device_lanes(
            np.where(device < 0, gpu, device),
            stream,
        )
    return lane
