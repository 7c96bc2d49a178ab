"""Files of packets, as Google's library reads them: tracks in order, and events on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htagraph.output.export.event_batches import BYTES, COUNT, GB_S, Slices, Values
from htagraph.output.export.packet_writer import PacketWriter

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
