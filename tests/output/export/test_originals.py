"""Whether a first pass over a file finds its slices and arrows."""

from __future__ import annotations

import json
from pathlib import Path

import htagraph as hg
from htagraph.output.export.originals import survey


def test_every_activity_of_a_file_is_one_of_its_slices() -> None:
    graph = hg.load("data/demo")
    acts = graph.activities
    for rank in graph.ranks:
        original = survey(graph, rank)
        events = acts.event[acts.of_rank(rank)]
        assert set(events[events >= 0].tolist()) <= set(original.index.tolist())
        assert [original.tracks[track] for track in original.track.tolist()] == list(
            zip(original.lane.tolist(), original.level.tolist(), strict=True)
        )


def test_slices_are_in_the_order_of_the_file_whether_complete_or_made_of_begins_and_ends(tmp_path: Path) -> None:
    place = {"cat": "cpu_op", "pid": 1, "tid": 1}
    events = [
        {"ph": "B", "name": "first", "ts": 1, **place}, {"ph": "E", "ts": 3, **place},
        {"ph": "X", "name": "second", "ts": 5, "dur": 2, **place},
    ]  # fmt: skip
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    graph = hg.load(tmp_path / "trace.json")
    original = survey(graph, 0)
    assert original.index.tolist() == [0, 2]
    assert original.duration.tolist() == [2_000, 2_000]
    assert (original.start - original.start[0]).tolist() == [0, 4_000]
    hg.to_perfetto(hg.critical_path(graph), tmp_path / "path.json")
    written = json.loads((tmp_path / "path.json").read_text())["traceEvents"]
    drawn = [event["name"] for event in written if event["ph"] == "X" and event["pid"] == 1000]
    assert drawn == ["first", "second"]
