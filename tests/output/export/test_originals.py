"""Whether a first pass over a file finds its slices and arrows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.errors import IssueLog
from htagraph.output.export.originals import ArrowEnds, Arrows, MetSlices, survey
from htagraph.output.scene import nesting_tracks
from htagraph.trace.kineto.collecting import Columns
from htagraph.trace.readers import READERS


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


def test_a_file_of_another_format_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = hg.load("data/demo", ranks=[0])
    monkeypatch.setitem(READERS, "rows", SimpleNamespace())
    monkeypatch.setitem(graph.traces, 0, replace(graph.traces[0], format="rows"))
    with pytest.raises(hg.TraceError, match="from files of PyTorch's profiler only, not from rows"):
        survey(graph, 0)


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


ENDS = st.lists(
    st.tuples(
        st.sampled_from("stf"),
        st.sampled_from(["ac2g", "fwdbwd"]),
        st.integers(0, 3),
        st.integers(0, 8),
        st.integers(0, 4),
    ),
    max_size=25,
)
"""Phase, category, id, time (µs), and the slice that the end meets plus 1."""


def listed(arrows: Arrows) -> list[tuple[str, str, int, int]]:
    return [(*arrows.labels[label], *ends) for label, *ends in zip(arrows.label, arrows.tail, arrows.head, strict=True)]


@given(ENDS)
def test_each_head_has_the_last_tail_of_its_id(rows: list[tuple[str, str, int, int, int]]) -> None:
    start = np.array([0, 2000, 1000, 5000])
    columns = Columns(IssueLog(""))
    ends = ArrowEnds(columns)
    events: list[Any] = [
        SimpleNamespace(ph=phase, cat=category, name="n", id=number, ts=moment, pid=slice_, tid=0)
        for phase, category, number, moment, slice_ in rows
    ]
    ends.add(events, exact=False)
    slice_of = {number: lane[0] - 1 for lane, number in columns.lanes.items()}
    met = lambda lane, _: np.array([slice_of[each] for each in lane.tolist()], np.int64)  # noqa: E731
    arrows = ends.arrows(start, met, np.asarray, unpadded=False)
    expected, used, tails = [], set(), dict[tuple[str, int], int]()
    for at in sorted(range(len(rows)), key=lambda at: (rows[at][3], rows[at][0] != "s")):
        phase, category, number, _, slice_ = rows[at]
        tail = tails.get((category, number))
        first = -1 if tail is None else rows[tail][4] - 1
        if phase != "s" and first >= 0 and slice_ > 0 and first != slice_ - 1 and start[first] <= start[slice_ - 1]:
            expected.append((category, "n", first, slice_ - 1))
            used |= {at, tail}
        if phase != "f":
            tails[category, number] = at
    assert (listed(arrows), arrows.ends_left_out) == (expected, len(rows) - len(used))


@pytest.mark.parametrize("bad", ["", "soon", "1e300", None, msgspec.Raw(b""), msgspec.Raw(b'""'), 1e300, float("nan")])
def test_arrows_and_instants_without_a_time_cost_the_others_nothing(bad: object) -> None:
    ends = ArrowEnds(Columns(IssueLog("")))
    events: list[Any] = [
        SimpleNamespace(ph=phase, cat="c", name="n", id=1, ts=moment, pid=1, tid=1)
        for phase, moment in [("s", 1), ("s", bad), ("f", 3), ("i", bad), ("C", 7), ("C", bad)]
    ]
    ends.add(events, exact=False)
    assert ends.others(unpadded=False).tolist() == [7_000]
    arrows = ends.arrows(
        np.array([0, 2000]), lambda _, moment: (moment > 2000).astype(np.int64), np.asarray, unpadded=False
    )
    assert listed(arrows) == [("c", "n", 0, 1)]


SLICES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 10)), max_size=20)


def test_an_arrow_meets_the_innermost_slice_around_its_end() -> None:
    lane, start, duration = np.array([0, 0, 1]), np.array([0, 2, 0]), np.array([10, 4, 5])
    slices = MetSlices(lane, start, duration, nesting_tracks(lane, start, duration))
    assert slices.met(np.array([0, 0, 0, 1, 1]), np.array([2, 4, 8, 5, 6])).tolist() == [1, 1, 0, 2, -1]
