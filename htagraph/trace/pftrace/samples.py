"""Samples of counters: of devices, for instance their power at a moment, and of tracks."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from htagraph.core.errors import IssueLog
from htagraph.core.tables import described
from htagraph.trace.columns import SAMPLES, Trace
from htagraph.trace.kept import is_possible
from htagraph.trace.kineto.scan.grammar import rows_address, text_address
from htagraph.trace.pftrace import scan, wire
from htagraph.trace.pftrace.events import PacketEvents
from htagraph.trace.pftrace.messages import Field, Message, UnreadableError, fields, named, signed
from htagraph.trace.pftrace.packets import DEVICE_COUNTERS, Packets, packets_of, text_of_file
from htagraph.trace.pftrace.scan import COUNTER, TRACK_EVENT, unreadable_samples

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["report_lost", "samples"]

_PHASE: Final = "C"
_DESCRIPTION, _VALUES, _DEVICE = range(1, 4)
"""Fields of the samples of a device."""
_TYPE: Final = 9
"""Number of the field of a track event's type."""
_TRACK: Final = 11
"""Number of the field of a track event's track."""
_INTEGER: Final = 30
"""Number of the field of a track event's value, if it is an integer."""
_FLOAT: Final = 44
"""Number of the field of a track event's value, if it is a float64."""


class _CounterValue(NamedTuple):
    """A value of a counter as the file has it."""

    body: int
    """The body that holds the value."""
    device: int
    process: int
    counter: str
    value: float


@described(SAMPLES)
def samples(trace: Trace) -> pd.DataFrame:
    """Return the samples of counters in a trace's file, in the order of the file.

    Returns:
        One row per value: {columns}.
    """
    written = list[_CounterValue]()
    start = np.zeros(0, np.int64)
    has_time = np.zeros(0, np.bool_)
    if trace.counts.get(_PHASE):
        path = trace.unchanged_path()
        log = IssueLog(str(path))  # problems of the file were reported when it was loaded
        packets = packets_of(text_of_file(path, log), log)
        written = _written(packets)
        bodies = [sample.body for sample in written]
        start, has_time = packets.times(
            np.array(bodies, np.int64),
        )
        has_time &= is_possible(start)
    table = SAMPLES.frame(
        {
            "device": [sample.device for sample in written],
            "process": [sample.process for sample in written],
            "counter": [sample.counter for sample in written],
            "start": np.where(
                has_time,
                start + trace.facts.origin_ns,
                0,
            ),
            "value": [sample.value for sample in written],
        }
    )
    return table[has_time].reset_index(drop=True)


def report_lost(packets: Packets, events: PacketEvents, log: IssueLog) -> None:
    """Report the samples that `samples` cannot return: damaged, of an unknown clock, or with an impossible time."""
    of_device = np.flatnonzero(packets.bodies[:, wire.KIND] == DEVICE_COUNTERS)
    bodies = np.ascontiguousarray(packets.bodies[of_device])
    unreadable = unreadable_samples(
        text_address(packets.text),
        (rows_address(bodies), len(bodies)),
    )
    log.add(
        "packet_unreadable",
        "packets that are damaged; left out",
        unreadable,
    )
    _, is_timed = packets.times(of_device)
    log.add(
        "clock_unknown",
        "samples whose clock the file does not relate to others; left out",
        int(np.count_nonzero(~is_timed)),
    )
    is_sample = events.columns[scan.TYPE] == scan.COUNTER
    on_track = events.body[is_sample]
    every_sample = np.concatenate([of_device, on_track])
    start, is_timed = packets.times(every_sample)
    is_corrupt = is_timed & ~is_possible(start)
    log.add(
        "time_corrupt",
        "samples whose times cannot be; left out",
        int(np.count_nonzero(is_corrupt)),
    )


def _written(packets: Packets) -> list[_CounterValue]:
    """Return the samples of a file."""
    written = list[_CounterValue]()
    names: dict[tuple[int, int], str] = {}
    kinds = packets.bodies[:, wire.KIND]
    for body in np.flatnonzero(np.isin(kinds, [DEVICE_COUNTERS, TRACK_EVENT])).tolist():
        message = packets.message(body)
        try:
            if kinds[body] == TRACK_EVENT:
                written += _of_track(packets, body, message)
            else:
                sequence = int(packets.bodies[body, wire.SEQUENCE])
                written += _of_device(body, message, names, sequence)
        except UnreadableError:  # an issue of the trace since the file was loaded
            continue
    return written


def _of_track(
    packets: Packets,
    body: int,
    message: Message,
) -> list[_CounterValue]:
    """Return the sample in a track event; none if the event is no sample."""
    by_number = {field.number: field for field in fields(message)}
    kind = by_number.get(_TYPE)
    value = by_number.get(_INTEGER, by_number.get(_FLOAT))
    if kind is None or kind.value != COUNTER or value is None:
        return []
    uuid = 0
    if _TRACK in by_number:
        uuid = signed(by_number[_TRACK].value)
    process = -1
    name = ""
    track = packets.tracks.get(uuid)
    if track is not None:
        process = max(track.pid, -1)
        name = track.name
    sample = _CounterValue(
        body,
        -1,
        process,
        name,
        _number(value),
    )
    return [sample]


def _of_device(
    body: int,
    message: Message,
    names: dict[tuple[int, int], str],
    sequence: int,
) -> list[_CounterValue]:
    """Return the samples in a message, and note the names of counters in it."""
    device = 0
    values = list[tuple[int, float]]()
    for field in fields(message):
        if field.number == _DEVICE:
            device = signed(field.value)
        elif field.number == _VALUES:
            values.append(_value(field.content))
        elif field.number == _DESCRIPTION:
            for spec in fields(field.content):
                if spec.number == 1:
                    number, name = named(spec.content, number=1, name=2)
                    names[sequence, number] = name
    return [
        _CounterValue(
            body,
            device,
            -1,
            names.get(
                (sequence, number),
                f"counter {number}",
            ),
            value,
        )
        for number, value in values
    ]


def _value(message: Message) -> tuple[int, float]:
    """Return the number of a counter and a value of it."""
    number = 0
    value = math.nan
    for field in fields(message):
        if field.number == 1:
            number = signed(field.value)
        elif field.number in (2, 3):
            value = _number(field)
    return number, value


def _number(field: Field) -> float:
    """Return the number in a field: a float64 if it has eight bytes, else an integer."""
    if len(field.content) == 8:
        return float(struct.unpack("<d", field.content)[0])
    return float(signed(field.value))
