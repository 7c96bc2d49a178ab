"""Samples of counters in Kineto's files: events of phase ``C``, for instance the power of a device at a moment."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from htagraph.core.arrays import Ints
from htagraph.core.errors import IssueLog
from htagraph.core.tables import described
from htagraph.trace.columns import SAMPLES, Trace, label
from htagraph.trace.kept import is_possible
from htagraph.trace.kineto.decode import split
from htagraph.trace.kineto.read import UNPADDED
from htagraph.trace.kineto.source import iter_bytes
from htagraph.trace.kineto.times import NO_TIME, FractionStyle, text_to_ns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["samples"]

_PHASE = "C"
_DEVICE = re.compile(r"GPU (\d{1,9}) Counters", re.ASCII)
"""Processes that hold the counters of a device. Source: `torch/profiler/_cupti/monitor_trace.py` of PyTorch 2.14.1."""
_ID_LIMIT = 2**63
"""Numbers of processes are int64: a larger number is a name."""


class _CounterEvent(msgspec.Struct, gc=False):
    """The parts of an event that a sample needs."""

    ph: Any = None
    name: Any = ""
    id: Any = None
    pid: Any = ""
    ts: msgspec.Raw = msgspec.Raw(b"")
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Sample(NamedTuple):
    """A value of a counter as the file has it."""

    device: int
    process: int
    counter: str
    time: str
    value: float


@described(SAMPLES)
def samples(trace: Trace) -> pd.DataFrame:
    """Return the samples of counters in a trace's file, in the order of the file.

    The name of a counter is that of its events, and behind it the name of the series, if that is another name:
    PyTorch's CUPTI backend writes one series without a name. Samples without a time that can be read are left out.

    Returns:
        One row per value: {columns}.
    """
    written = _written(trace) if trace.counts.get(_PHASE) else []
    table = SAMPLES.frame(
        {
            "device": [sample.device for sample in written],
            "process": [sample.process for sample in written],
            "counter": [sample.counter for sample in written],
            "start": _starts(trace, [sample.time for sample in written]),
            "value": [sample.value for sample in written],
        }
    )
    has_time = table["start"] != NO_TIME
    return table[has_time].reset_index(drop=True)


def _written(trace: Trace) -> list[_Sample]:
    """Return the samples of a file."""
    samples: list[_Sample] = []
    for event in _counter_events(trace):
        time = bytes(event.ts).decode("utf-8", "replace")
        device, process = _device(event.pid)
        for series, value in _series(event).items():
            counter = _name(event, series)
            samples.append(_Sample(device, process, counter, time, _number(value)))
    return samples


def _starts(trace: Trace, times: list[str]) -> Ints:
    """Return times of a file as ns on the rank's own clock; `NO_TIME` for a text that is no time."""
    padded, unpadded = text_to_ns(times, FractionStyle())
    lacks_zeros = trace.bookmarks[UNPADDED][0]
    start = unpadded if lacks_zeros else padded
    is_time = is_possible(start)
    return np.where(is_time, start + trace.facts.origin_ns, NO_TIME)


def _device(process: object) -> tuple[int, int]:
    """Return the number of the device that a process stands for, and that of a process without a name; -1 for none.

    Example:
        >>> _device("GPU 3 Counters"), _device("1"), _device("Spans")
        ((3, -1), (-1, 1), (-1, -1))
    """
    named = _DEVICE.fullmatch(str(process))
    if named:
        return int(named[1]), -1
    number = label(process)
    return -1, number if isinstance(number, int) and 0 <= number < _ID_LIMIT else -1


def _counter_events(trace: Trace) -> Iterator[_CounterEvent]:
    """Yield the events of a file that hold samples."""
    path = trace.unchanged_path()
    log = IssueLog(str(path))  # problems of the file were reported when it was loaded
    decode = msgspec.json.Decoder(list[_CounterEvent]).decode
    for _, events in split(iter_bytes(path, log), decode, {}, log):
        yield from (event for event in events if event.ph == _PHASE)


def _series(event: _CounterEvent) -> dict[str, Any]:
    """Return the values of an event by series; none where its arguments are no object."""
    values = msgspec.json.decode(event.args)
    return values if isinstance(values, dict) else {}


def _name(event: _CounterEvent, series: str) -> str:
    """Return the name of a counter, with its series and id where it has them."""
    name = str(event.name)
    words = [name] if series in ("", name) else [name, series]
    if event.id is not None:
        words.append(str(event.id))
    return " ".join(words)


def _number(value: object) -> float:
    """Return a value as a number, also where it is written as text; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan
