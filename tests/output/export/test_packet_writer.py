"""Files of packets, as Google's library reads them: tracks in order, and events on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.export.packet_writer import (
    PacketWriter,
    begin_packets,
    end_packets,
    field,
    message,
    value_packets,
    varint,
)
from htagraph.output.scene import BYTES, COUNT, GB_S, NO_NUMBER, Slices, Values

pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


def packets_of(path: Path) -> list[Any]:
    return list(pb.Trace.FromString(path.read_bytes()).packet)


def described(packets: list[Any]) -> dict[int, Any]:
    return {each.track_descriptor.uuid: each.track_descriptor for each in packets if each.HasField("track_descriptor")}


def named(what: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def x(name: str, pid: int, tid: int, ts: int, dur: int, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, **more}


def test_processes_and_their_tracks_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    with PacketWriter(tmp_path / "o.pftrace") as writer:
        writer.add([x("b", 2000, 9, 0, 1), x("c", 2000, 5, 0, 1), named("thread_sort_index", 2000, 9, sort_index=1)])
        writer.add([named("process_name", 2000, 0, name="rank 1"), named("thread_name", 2000, 5, name="thread 5")])
        writer.add([x("a", 1000, 1, 0, 1), named("process_name", 1000, 0, name="rank 0")])
    tracks = described(packets_of(tmp_path / "o.pftrace"))
    roots = sorted((each for each in tracks.values() if not each.parent_uuid), key=lambda each: each.sibling_order_rank)
    assert [each.name for each in roots] == ["rank 0", "rank 1"]
    assert all(each.child_ordering == each.EXPLICIT for each in roots)
    below = [each for each in tracks.values() if each.parent_uuid == roots[1].uuid]
    assert [(each.name, each.sibling_order_rank) for each in below] == [("2000 9", 1), ("thread 5", 5)]
    assert not any(each.HasField("process") for each in tracks.values())  # whose order no trace can tell the UI
    assert {each.sibling_merge_behavior for each in tracks.values()} == {2}  # tracks of one name stay apart


def test_the_paths_first_track_is_its_process(tmp_path: Path) -> None:
    with PacketWriter(tmp_path / "o.pftrace") as writer:
        writer.add([x("a", 1, 1, 0, 5), x("b", 1, 2, 0, 5), named("process_name", 1, 0, name="critical path"),
                    named("thread_name", 1, 1, name="where the time goes")])  # fmt: skip
    tracks = described(packets_of(tmp_path / "o.pftrace"))
    (root,) = (each for each in tracks.values() if not each.parent_uuid)
    assert (root.name, len(tracks)) == ("critical path: where the time goes", 2)
    begun = [each.track_event.track_uuid for each in packets_of(tmp_path / "o.pftrace") if each.track_event.type == 1]
    assert root.uuid in begun


def test_ends_stand_before_beginnings_and_arrows_at_the_slices_that_they_meet(tmp_path: Path) -> None:
    arrow = {"cat": "c", "name": "n", "id": 77, "pid": 5}
    at = np.array([3_000])
    batch = Slices([(5, 2)], ["later"], at * 0, at, at * 0 + 10, at * 0, at * 0 - 1, at * 0, np.zeros(0, np.uint8))
    with PacketWriter(tmp_path / "o.pftrace") as writer:
        writer.add([
            batch, x("in", 5, 1, 1, 1), x("out", 5, 1, 1, 2, cat="k", args={"v": 1}),
            {"ph": "s", "tid": 1, "ts": 2, **arrow}, {"ph": "f", "tid": 2, "ts": 3, **arrow},
        ])  # fmt: skip
    packets = packets_of(tmp_path / "o.pftrace")
    names = {each.iid: each.name for packet in packets for each in packet.interned_data.event_names}
    events = [each.track_event for each in packets if each.HasField("track_event")]
    assert [event.type for event in events] == [2, 2, 2, 1, 1, 1]
    begun = [(names[event.name_iid], list(event.flow_ids)) for event in events[3:]]
    assert begun == [("out", []), ("in", [77]), ("later", [77])]
    assert [each.legacy_json_value for each in events[3].debug_annotations] == ['{"v":1}']


def test_counters_have_units_and_stand_behind_the_tracks(tmp_path: Path) -> None:
    at, value = np.array([1, 2]), np.array([3, 4])
    with PacketWriter(tmp_path / "o.pftrace") as writer:
        writer.add([x("a", 5, 1_000_000, 0, 1)])
        writer.add(Values(5, name, "s", unit, at, value) for name, unit in (("q", COUNT), ("m", BYTES), ("b", GB_S)))
    packets = packets_of(tmp_path / "o.pftrace")
    tracks = described(packets)
    counters = [each for each in tracks.values() if each.HasField("counter")]
    units = [(each.name, each.counter.unit, each.counter.unit_name) for each in counters]
    assert units == [("q s", 0, ""), ("m s", 3, ""), ("b s", 0, "GB/s")]
    assert min(each.sibling_order_rank for each in counters) > 1_000_000
    values = [each.track_event.double_counter_value for each in packets if each.track_event.type == 4]
    assert values == [3, 4] * 3


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


@given(st.integers(0, 2**64 - 1), st.text(), st.integers(0, 2**31 - 1))
def test_a_message_is_read_back(uuid: int, name: str, rank: int) -> None:
    data = message((1, uuid), (2, name), (12, rank), (8, message((6, "GB/s"))))
    read = pb.TrackDescriptor.FromString(data)
    assert (read.uuid, read.name.encode()) == (uuid, name.encode("utf-8", "replace"))
    assert (read.sibling_order_rank, read.counter.unit_name) == (rank, "GB/s")
    assert data.startswith(field(1, uuid))
    assert len(varint(uuid)) == max(1, -(-uuid.bit_length() // 7))


def test_names_that_differ_behind_a_nul_stay_apart() -> None:
    assert field(2, "a\0b") != field(2, "a\0c") != field(2, "a")
    assert b"\0" not in field(2, "a\0b")
