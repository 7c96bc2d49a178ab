"""Names, categories and lanes of events."""

from __future__ import annotations

from pathlib import Path

from htagraph.simulate.next_pftrace import message, packet
from tests.trace.pftrace.made import issues_of, slices, trace_of


def stage(*fields: tuple[int, int | str]) -> bytes:
    return packet((8, 5), (10, 1), (53, message((2, 3), *fields)))


def test_a_stage_has_its_own_name_or_that_of_its_kernel_or_its_kind(tmp_path: Path) -> None:
    names = [(2, message((1, 1), (2, "own"))), (24, message((1, 1), (2, "Kernel")))]
    names += [(24, message((1, 2), (2, "Vertex"))), (1000, message((1, 1), (3, "of the kernel")))]
    text = packet((10, 1), (12, message(*names))) + stage((14, 1), (20, 1)) + stage((14, 1), (19, 1)) + stage((14, 2))
    trace = trace_of(tmp_path / "a.pftrace", text + stage((14, 9)) + stage((17, "written")))
    assert [trace.names[name] for name in trace.events.name.tolist()] == [
        "own", "of the kernel", "Vertex", "(no name)", "written",
    ]  # fmt: skip
    categories = [trace.categories[category] for category in trace.events.category.tolist()]
    assert categories == ["kernel", "kernel", "Vertex", "", ""]
    assert issues_of(trace) == {"name_missing": 1, "no_base_time": 1}


def test_tracks_that_are_not_described_are_lanes_of_their_own(tmp_path: Path) -> None:
    trace = trace_of(tmp_path / "a.pftrace", slices((1, 7, 1), (2, 7, 2), (1, 8, 1), (2, 8, 2)))
    assert [trace.lanes[lane] for lane in trace.events.lane.tolist()] == [("", 7), ("", 8)]
    assert issues_of(trace)["track_unknown"] == 2


def test_a_category_that_is_not_in_the_file_is_reported(tmp_path: Path) -> None:
    begin = packet((8, 1), (10, 1), (11, message((9, 1), (11, 1), (3, 4), (23, "n"))))
    trace = trace_of(tmp_path / "a.pftrace", begin + slices((2, 1, 5)))
    assert issues_of(trace)["category_missing"] == 1
