"""Facts that hold for all events of a file: tracks, clocks, names."""

from __future__ import annotations

import numpy as np

from htagraph.simulate.next_pftrace import message, packet
from htagraph.trace.pftrace.packets import EVENT_NAMES, SliceTrack
from tests.trace.pftrace.made import packets_in


def snapshot(**clocks: int) -> bytes:
    pairs = ((int(name.removeprefix("c")), time) for name, time in clocks.items())
    return packet((6, message(*((1, message((1, clock), (2, time))) for clock, time in pairs))))


def test_a_thread_belongs_to_the_process_of_the_track_around_it() -> None:
    process = message((1, 5), (3, message((1, 100), (6, "train"))))
    thread = message((1, 6), (5, 5), (4, message((1, 100), (2, 101), (5, "main"))))
    named = message((1, 7), (5, 6), (2, "loader"))
    around_itself = message((1, 8), (5, 8))
    packets, log = packets_in(b"".join(packet((60, each)) for each in (process, thread, named, around_itself)))
    assert packets.tracks[6] == SliceTrack(100, 101, "main", "train")
    assert packets.tracks[7] == SliceTrack(100, "loader", "loader", "train")
    assert packets.tracks[8] == SliceTrack(0, 0, "", "")
    assert not log.issues()


def test_times_of_other_clocks_are_moved() -> None:
    event = message((9, 1))
    texts = [packet((8, 50), (11, event)), packet((8, 60), (58, 3), (11, event)), packet((8, 60), (58, 9), (11, event))]
    packets, _ = packets_in(snapshot(c6=1000, c1=8000, c3=400) + b"".join(texts))
    times, is_known = packets.times(packets.event_bodies)
    assert times.tolist()[:2] == [50, 660]
    assert is_known.tolist() == [True, True, False]
    assert packets.base_ns == 7000


def test_defaults_of_a_sequence() -> None:
    defaults = packet((10, 4), (13, 1), (59, message((58, 3), (11, message((11, 77))))))
    texts = [packet((8, 5), (10, sequence), (11, message((9, 1)))) for sequence in (4, 2)]
    packets, _ = packets_in(snapshot(c6=1000, c3=400) + defaults + b"".join(texts))
    assert packets.times(packets.event_bodies)[0].tolist() == [605, 5]
    state = packets.state[packets.event_bodies].tolist()
    assert packets.default_track == {state[0]: 77}


def test_names_of_sequences_are_apart() -> None:
    def interned(sequence: int, name: str) -> bytes:
        return packet((10, sequence), (12, message((2, message((1, 1), (2, name))))), (11, message((9, 1))))

    packets, _ = packets_in(interned(1, "one") + interned(2, "two") + interned(1, "later"))
    names = [packets.interned_at(body, EVENT_NAMES)[1] for body in packets.event_bodies.tolist()]
    assert names == ["one", "two", "one"]  # the first text of a number stays
    assert np.unique(packets.state).tolist() == [0, 1]


def test_kinds_that_are_not_read_are_reported() -> None:
    _, log = packets_in(packet((1, b"")) + packet((1, b"x")) + packet((33, b"")))
    assert [(issue.what, issue.count) for issue in log.issues()] == [("packet_not_read", 2)]
    _, log = packets_in(packet((12, b"\x0a\x7f")))
    assert [(issue.what, issue.count) for issue in log.issues()] == [("packet_unreadable", 1)]
