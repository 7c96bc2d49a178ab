"""Events that take time."""

from __future__ import annotations

from pathlib import Path

from htagraph.simulate.next_pftrace import message, packet
from tests.trace.pftrace.made import issues_of, slices, trace_of


def test_times_that_cannot_be_are_reported(tmp_path: Path) -> None:
    stages = b"".join(packet((8, time), (10, 1), (53, message((2, duration)))) for time, duration in (
        (5, 2**63), (2**62, 1), (5, 7),
    ))  # fmt: skip
    trace = trace_of(tmp_path / "a.pftrace", stages)
    assert trace.events.duration.tolist() == [7]
    assert issues_of(trace)["time_corrupt"] == 2


def test_events_of_unknown_clocks_and_types_are_reported(tmp_path: Path) -> None:
    unknown = packet((8, 5), (58, 70), (10, 1), (11, message((9, 1), (11, 1))))
    untyped = packet((8, 5), (10, 1), (11, message((11, 1))))
    trace = trace_of(tmp_path / "a.pftrace", unknown + untyped + slices((1, 1, 5), (2, 1, 9)))
    assert len(trace.events) == 1
    assert {what: issues_of(trace)[what] for what in ("clock_unknown", "phase_unknown")} == {
        "clock_unknown": 1,
        "phase_unknown": 1,
    }
