"""Packets of slices and counters, as Google's library reads them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.export.event_batches import Slices
from htagraph.output.export.packets import begin_packets, end_packets, value_packets
from htagraph.output.export.row_texts import NO_NUMBER

pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

Event: Any = pb.TrackEvent
numbers = st.integers(0, 2**62)
texts = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=200), max_size=3)
slices = st.tuples(numbers, st.integers(0, 2**40) | st.just(NO_NUMBER), st.integers(1, 2**31), texts | st.none(),
                   st.lists(numbers, max_size=3))  # fmt: skip


def columns(rows: list[tuple[Any, ...]], width: int) -> list[Any]:
    return [np.array([row[at] for row in rows], np.int64) for at in range(width)]


@given(st.lists(slices, max_size=8))
def test_slices_are_read_back(rows: list[tuple[Any, ...]]) -> None:
    start, duration, track = columns(rows, 3)
    args = [b"" if row[3] is None else json.dumps(row[3]).encode() for row in rows]
    ends = np.cumsum([0, *map(len, args)])
    flows = np.array([flow for row in rows for flow in row[4]], np.int64)
    first = np.cumsum([0, *(len(row[4]) for row in rows)])
    at = np.arange(len(rows))
    some = Slices([], [], at, start, duration, at, np.where(at % 2, at, -1), (ends[:-1] << 32) | np.diff(ends),
                  np.frombuffer(b"".join(args), np.uint8))  # fmt: skip
    data, starts = begin_packets(some, track, at + 300, (flows, first))
    assert starts[-1] == len(data)
    for row in range(len(rows)):
        packets = pb.Trace.FromString(data[starts[row] : starts[row + 1]].tobytes()).packet
        event = packets[0].track_event
        kind = Event.TYPE_INSTANT if duration[row] == NO_NUMBER else Event.TYPE_SLICE_BEGIN
        assert (packets[0].timestamp, packets[0].trusted_packet_sequence_id) == (start[row], 1)
        assert (event.type, event.track_uuid, event.name_iid) == (kind, track[row], 300 + row)
        assert list(event.category_iids) == ([300 + row] if row % 2 else [])
        assert list(event.flow_ids) == rows[row][4]
        assert [each.legacy_json_value.encode() for each in event.debug_annotations] == [args[row]] * bool(args[row])
        assert len(packets) == 1 + (duration[row] == 0)
        if duration[row] == 0:
            assert packets[1].track_event.type == Event.TYPE_SLICE_END


@given(st.lists(st.tuples(numbers, st.integers(1, 2**40), st.floats(allow_nan=False)), max_size=8))
def test_ends_and_values_are_read_back(rows: list[tuple[int, int, float]]) -> None:
    moment, track = columns(rows, 2)
    ends = pb.Trace.FromString(end_packets(track, moment).tobytes()).packet
    assert [(p.timestamp, p.track_event.track_uuid, p.track_event.type) for p in ends] == [
        (row[0], row[1], Event.TYPE_SLICE_END) for row in rows
    ]
    values = pb.Trace.FromString(value_packets(7, moment, np.array([row[2] for row in rows])).tobytes()).packet
    assert [(p.timestamp, p.track_event.track_uuid, p.track_event.double_counter_value) for p in values] == [
        (row[0], 7, row[2]) for row in rows
    ]
