"""Slices on lanes against looking at each of them; slices and counters as JSON: what json reads back of them."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph import critical_path
from htagraph.core.kinds import ActivityKind
from htagraph.output.export.trace_writer import slice_rows, value_rows
from htagraph.output.plot.style import text_color
from htagraph.output.scene import (
    COUNT,
    GB_S,
    KIND_COLORS,
    Slices,
    Values,
    nesting_tracks,
    path_scene,
    rows_below,
    scene_of,
    threads_first,
    tint,
    tracks_of,
)
from htagraph.queries.path_segments import CATEGORIES
from tests.strategies import Json, jobs, load


def test_every_category_of_a_path_and_kind_of_device_work_has_a_color() -> None:
    assert set(CATEGORIES) <= set(KIND_COLORS)
    assert {each.label for each in (ActivityKind.COMPUTATION, ActivityKind.MEMORY)} <= set(KIND_COLORS)


@pytest.mark.parametrize("color", sorted(set(KIND_COLORS.values())))
def test_black_letters_can_be_read_on_a_tint(color: str) -> None:
    assert text_color(tint(color)) == "#000000"


NAMES = ['a"b', "µ\\", "cat", ""]
rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2**60), st.integers(0, 9), st.integers(0, 3)), max_size=6)


@given(rows)
def test_slices_as_json_say_what_their_columns_say(rows: list[tuple[int, int, int, int]]) -> None:
    place, start, duration, name = (np.array([row[at] for row in rows], np.int64) for at in range(4))
    args = b'{"x":1}'
    some = Slices([(1, 2), (3, 4)], NAMES, place, start, duration, name, np.where(place, 2, -1),
                  np.where(name, len(args), 0), np.frombuffer(args, np.uint8))  # fmt: skip
    read = json.loads(b"[" + bytes(slice_rows(some).joined) + b"]", parse_float=Decimal)
    assert len(some) == len(read)
    for row, event in zip(rows, read, strict=True):
        assert (event["pid"], event["tid"]) == some.places[row[0]]
        assert (event["ts"] * 1000, event["dur"] * 1000) == row[1:3]
        assert event["name"].rstrip() == NAMES[row[3]].rstrip()
        assert event.get("cat") == ("cat" if row[0] else None)
        assert event.get("args") == ({"x": 1} if row[3] else None)
    assert slice_rows(some.rows(np.arange(len(rows))[::-1])).starts[-1] == slice_rows(some).starts[-1]


def test_values_are_whole_or_have_six_decimals() -> None:
    at = np.array([1, 2_000, 3])
    for unit, value in ((COUNT, np.array([3, 0, 3])), (GB_S, np.array([0.5, 1e-7, 1e6]))):
        some = Values(7, "a", "b", unit, at, value)
        read = json.loads(b"[" + bytes(value_rows(some).joined) + b"]")
        assert [event["args"]["b"] for event in read] == np.round(value, 6).tolist()
        assert [event["ts"] for event in read] == [0.001, 2, 0.003]


SLICES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 8)), max_size=12)


def columns(slices: list[tuple[int, int, int]]) -> np.ndarray:
    return np.array(slices, np.int64).reshape(-1, 3).T


@given(SLICES)
def test_slices_of_a_track_are_disjoint_or_nested(slices: list[tuple[int, int, int]]) -> None:
    lane, start, duration = columns(slices)
    level, end = nesting_tracks(lane, start, duration), start + duration
    for one in range(len(slices)):
        for other in range(len(slices)):
            if (lane[one], level[one]) == (lane[other], level[other]) and start[one] < start[other] < end[one]:
                assert end[other] <= end[one]
    assert set(level.tolist()) == set(range(int(level.max(initial=-1)) + 1))


@given(SLICES)
def test_what_nests_needs_one_track(slices: list[tuple[int, int, int]]) -> None:
    _, start, duration = columns(slices)
    assert not nesting_tracks(np.arange(len(slices)), start, duration).any()


@given(SLICES)
def test_slices_of_a_row_follow_each_other(slices: list[tuple[int, int, int]]) -> None:
    lane, start, duration = columns(slices)
    row = rows_below(lane, start, duration)
    for place in {*zip(lane.tolist(), row.tolist(), strict=True)}:
        here = np.flatnonzero((lane == place[0]) & (row == place[1]))
        here = here[np.lexsort((duration[here], start[here]))]
        assert (start[here][1:] >= (start + duration)[here][:-1]).all()


@given(jobs())
def test_a_scene_has_each_activity_at_its_time_on_its_lane(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    acts, chosen = graph.activities, np.arange(len(graph.activities))
    scene = scene_of(graph, chosen, threads_first, nesting_tracks)
    assert [scene.lanes[at] for at in scene.lane] == [graph.lane_of(each) for each in chosen.tolist()]
    assert (scene.start == graph.time[2 * chosen]).all()
    assert (scene.duration == graph.time[2 * chosen + 1] - scene.start).all()
    keys = [threads_first(lane, 0) for lane in scene.lanes]
    assert keys == sorted(keys)
    assert len(keys) == len(np.unique(acts.lane))
    tracks, track = tracks_of(scene.lane, scene.row)
    assert tracks == sorted(tracks)
    assert [tracks[at] for at in track] == [*zip(scene.lane.tolist(), scene.row.tolist(), strict=True)]


@given(jobs())
def test_the_scene_of_a_path_tiles_its_window(job: dict[int, list[Json]]) -> None:
    path = critical_path(load(job))
    for scene in (path_scene(path), path_scene(path, threads_first)):
        assert scene.duration.sum() == path.makespan_ns
        assert (scene.start[1:] == (scene.start + scene.duration)[:-1]).all()
        assert [scene.lanes[at].rank for at in scene.lane] == path.graph.activities.rank[path.segments.place].tolist()
