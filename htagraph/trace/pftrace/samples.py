"""Samples of counters: of devices, for instance their power at a moment, and of tracks."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from htagraph.core.errors import IssueLog
from htagraph.core.tables import described
from htagraph.trace.columns import SAMPLES, Trace
from htagraph.trace.kept import MAX_NS
from htagraph.trace.pftrace import wire
from htagraph.trace.pftrace.messages import Field, Message, UnreadableError, fields, signed, text_of
from htagraph.trace.pftrace.packets import DEVICE_COUNTERS, Packets, packets_of, text_of_file
from htagraph.trace.pftrace.scan import COUNTER, TRACK_EVENT

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["samples"]

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
        body = np.array(
            [sample.body for sample in written],
            np.int64,
        )
        start, has_time = packets.times(body)
        has_time &= np.abs(start) < MAX_NS
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
        except UnreadableError:
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
    uuid = signed(by_number[_TRACK].value) if _TRACK in by_number else 0
    track = packets.tracks.get(uuid)
    process = track.pid if track is not None and track.pid >= 0 else -1
    name = track.name if track is not None else ""
    return [_CounterValue(body, -1, process, name, _number(value))]


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
                    number, name = _spec(spec.content)
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


def _spec(message: Message) -> tuple[int, str]:
    """Return the number and the name of a counter."""
    number = 0
    name = ""
    for field in fields(message):
        if field.number == 1:
            number = field.value
        elif field.number == 2:
            name = text_of(field.content)
    return number, name


def _value(message: Message) -> tuple[int, float]:
    """Return the number of a counter and a value of it."""
    number = 0
    value = math.nan
    for field in fields(message):
        if field.number == 1:
            number = field.value
        elif field.number in (2, 3):
            value = _number(field)
    return number, value


def _number(field: Field) -> float:
    """Return the number in a field: a float64 if it has eight bytes, else an integer."""
    if len(field.content) == 8:
        return float(struct.unpack("<d", field.content)[0])
    return float(signed(field.value))
