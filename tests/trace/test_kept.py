"""When the events of a file begin, counted by the second: against all starts at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.errors import IssueLog
from htagraph.core.naming import FRAME
from htagraph.trace import kept as sieves
from htagraph.trace.columns import GrowingTable, Trace
from htagraph.trace.kept import Extent, Extents, FirstOf, Frames, Launches, Survey, Windows, merged, overlaps
from htagraph.trace.kineto import decode, source
from htagraph.trace.kineto.events import is_frame
from htagraph.trace.readers import read_trace
from tests.damage import END, Json, call, document, healthy, issues, kernel, names, op, written
from tests.trace.kineto.same_columns import assert_same_columns

SECOND = 10**9
blocks = st.lists(st.lists(st.integers(-3 * SECOND, 40_000 * SECOND), max_size=6), max_size=4)
pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=6)


@given(blocks)
def test_blocks_say_what_all_starts_say(starts: list[list[int]]) -> None:
    extents = Extents()
    for block in starts:
        extents.see(np.array(block, np.int64), np.array(block, np.int64) % 7)
    every = sorted(start for block in starts for start in block)
    assert extents.count == extents.result().events == len(every)
    if every:
        low, high = (every[(len(every) - 1) * part // 4] // SECOND for part in (1, 3))
        slack = 4 * (high - low) + 3600
        limits = (low - slack) * SECOND, (high + slack + 1) * SECOND - 1
        valid = [start for start in every if limits[0] <= start <= limits[1]]
        assert extents.result()[:5] == (*limits, len(every) - len(valid), valid[0], valid[-1])
        assert extents.result().longest == max(start % 7 for start in every)


@pytest.mark.parametrize("stray", [0, 6395 * SECOND, 12_000 * SECOND, 14_000 * SECOND])
def test_what_starts_hours_away_from_the_rest_is_a_clock_error(stray: int) -> None:
    extents = Extents()
    extents.see(np.array([stray, *range(9_990 * SECOND, 10_000 * SECOND, SECOND)]), np.zeros(11, np.int64))
    early = stray < (9_992 - 4 * 5 - 3600) * SECOND
    assert extents.result().outliers == (early or stray > (9_997 + 4 * 5 + 3601) * SECOND)
    assert extents.result().first == (stray if stray == 6395 * SECOND else 9_990 * SECOND)


@pytest.mark.parametrize(("others", "outliers"), [(1, 1), (0, 0)])
def test_what_lasts_longer_than_the_recording_can_is_a_clock_error(others: int, outliers: int) -> None:
    extents = Extents()
    extents.see(np.arange(others + 1), np.array([*[SECOND] * others, 3_200_000_000 * SECOND]))
    assert extents.result().outliers == outliers
    assert extents.result().longest == (SECOND if others else 3_200_000_000 * SECOND)


def test_no_events_have_no_extent() -> None:
    assert Extents().result()[2:] == (0, 0, 0, 0, 0)


@given(pairs)
def test_merged_windows_cover_the_same_and_are_apart(windows: list[tuple[int, int]]) -> None:
    given_windows = np.array([(start, start + length) for start, length in windows], np.int64).reshape(-1, 2)
    found = merged(given_windows)

    def covered(some: np.ndarray) -> set[float]:
        return {half / 2 for start, end in some.tolist() for half in range(2 * start, 2 * end + 1)}

    assert covered(found) == covered(given_windows)
    assert (found[1:, 0] > found[:-1, 1]).all()


@given(pairs, pairs)
def test_an_event_overlaps_a_window_if_they_share_a_moment(
    windows: list[tuple[int, int]], events: list[tuple[int, int]]
) -> None:
    spans = merged(np.array([(start, start + length) for start, length in windows], np.int64).reshape(-1, 2))
    start, duration = np.array(events, np.int64).reshape(-1, 2).T
    expected = [any(a <= b + length and b <= end for a, end in spans.tolist()) for b, length in events]
    assert overlaps(start, duration, spans).tolist() == expected


def frame(number: int) -> Json:
    where = {"ph": "X", "cat": "Python_Function", "pid": 77, "tid": 77}
    return {**where, "name": f"<built-in method of object at {number:#x}>", "ts": 100 * number + 0.5, "dur": 40}


def file_with(folder: Path, frames: int) -> Path:
    return written(folder / "a.json", document([*map(frame, range(frames)), *healthy()]))


def read(path: Path, frames: Frames, *, compiled: bool) -> Trace:
    return read_trace(path, lambda *_: 0, compiled=compiled, frames=frames)


def frames_of(trace: Trace) -> list[int]:
    return trace.events.index[trace.in_categories(FRAME)].tolist()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("asked", "most", "kept", "reported"),
    [
        (None, 9, 9, {}), (True, 0, 9, {}), (None, 8, 0, {"python_left_out": 9}), (False, 9, 0, {"python_not_read": 9}),
    ],
)  # fmt: skip
def test_too_many_are_left_out_unless_asked_for_and_counted(
    asked: bool | None, most: int, kept: int, reported: dict[str, int], compiled: bool, tmp_path: Path,  # noqa: FBT001
) -> None:  # fmt: skip
    trace = read(file_with(tmp_path, 9), Frames(asked=asked, most=most), compiled=compiled)
    assert frames_of(trace) == list(range(kept))
    assert len(trace.events) == 18 + kept
    assert issues(trace) == reported
    assert trace.counts["X"] == 27


@pytest.mark.parametrize("most", [0, 3, 9])
def test_both_ways_leave_out_the_same(most: int, tmp_path: Path) -> None:
    path = file_with(tmp_path, 9)
    scanned, decoded = (read(path, Frames(most=most), compiled=compiled) for compiled in (True, False))
    assert_same_columns(scanned, decoded)


def test_names_of_what_is_not_read_are_not_kept(tmp_path: Path) -> None:
    trace = read(file_with(tmp_path, 9), Frames(asked=False), compiled=True)
    assert not [name for name in trace.names if "built-in" in name]


@pytest.mark.parametrize("compiled", [True, False])
def test_windows_keep_what_overlaps_them_and_report_nothing(compiled: bool, tmp_path: Path) -> None:  # noqa: FBT001
    windows = np.array([[150_000, 250_000], [700_000, 700_400]])
    trace = read(file_with(tmp_path, 9), Frames(asked=True, windows=windows), compiled=compiled)
    assert frames_of(trace) == [2]
    assert issues(trace) == {}


@given(st.lists(st.integers(0, 5)), st.integers(0, 12), st.sampled_from([None, True, False]))
def test_those_kept_and_those_left_out_are_all(blocks: list[int], most: int, asked: bool | None) -> None:  # noqa: FBT001
    frames, rows = Frames(asked=asked, most=most), 0
    for count in blocks:
        out = frames.left_out_of(np.ones(count, np.bool_), np.zeros(count, np.int64), np.zeros(count, np.int64))
        rows += count - int(out.sum())
        if frames.count(count - int(out.sum()), int(out.sum())):
            rows = 0
    assert (frames.kept, frames.kept + frames.left_out) == (rows, sum(blocks))
    assert (rows == sum(blocks)) == (frames.holds(sum(blocks)) or not sum(blocks))
    log = IssueLog("a.json")
    frames.report(log)
    assert [issue.count for issue in log.issues()] == ([frames.left_out] if frames.left_out else [])


@pytest.mark.parametrize(("category", "expected"), [("python_function", True), ("cpu_op", False), (7, False)])
def test_a_category_is_known_as_the_file_writes_it(category: object, expected: bool) -> None:  # noqa: FBT001
    assert is_frame(category) is expected


blocks_first_of = st.lists(st.lists(st.tuples(st.integers(-2, 6), st.booleans()), max_size=6), max_size=5)


@given(blocks_first_of)
def test_an_id_says_what_its_first_event_says(events: list[list[tuple[int, bool]]]) -> None:
    first = FirstOf()
    expected: dict[int, bool] = {}
    for block in events:
        first.add(np.array([each for each, _ in block], np.int64), np.array([says for _, says in block], np.bool_))
        for each, says in block:
            expected.setdefault(each, says)
    known, told = first.of(np.arange(-3, 8))
    assert known.tolist() == [each in expected for each in range(-3, 8)]
    assert told.tolist() == [expected.get(each, False) for each in range(-3, 8)]
    assert first.repeated == sum(map(len, events)) - len(expected)


ALL = Extent(valid_from=-(2**62), valid_to=2**62, last=10**9, longest=10**6, events=1)
NO_MARKS = np.zeros(0, np.int64)


def step(number: int, **envelope: Any) -> Json:
    where = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 77, "tid": 77}
    return {**where, "ts": 100 * number - 1, "dur": 99, **envelope}


def thinned(folder: Path, events: list[Json], begin_us: int, end_us: int) -> tuple[Trace, Windows]:
    """Return the trace of what lies in a window, and what found it."""
    windows = Windows(np.array([[begin_us, end_us]]) * 1000, ALL, NO_MARKS)
    path = written(folder / "a.json", document([*events, END]))
    return read_trace(path, lambda *_: 0, sieve=windows), windows


def kept(trace: Trace) -> list[int]:
    return trace.events.index.tolist()


@pytest.mark.parametrize("compiled", [True, False])
def test_a_survey_keeps_the_steps_and_counts_all(compiled: bool, tmp_path: Path) -> None:  # noqa: FBT001
    events = [op(1), step(1), call(1), kernel(1), step(2), op(2), step(3, cat="cpu_op"), step(4, cat="kernel")]
    survey = Survey()
    trace = read_trace(
        written(tmp_path / "a.json", document([*events, END])), lambda *_: 0, compiled=compiled, sieve=survey
    )
    assert names(trace) == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"]
    assert (survey.extent.events, survey.extent.first, survey.extent.last) == (8, 99_000, 399_000)
    assert trace.counts["X"] == 8


@pytest.mark.parametrize(("asked", "first"), [(True, 5_000), (False, 99_000), (None, 5_000)])
def test_python_functions_are_activities_if_they_are_kept(asked: bool | None, first: int, tmp_path: Path) -> None:  # noqa: FBT001
    events = [op(2), step(1), op(1, cat="python_function", ts=5), op(1, cat="overhead", ts=1)]
    survey = Survey()
    read_trace(written(tmp_path / "a.json", document([*events, END])), lambda *_: 0, sieve=survey)
    assert survey.span(Frames(asked=asked))[0] == first


def test_the_last_activity_is_no_python_function_that_is_left_out_and_no_overhead(tmp_path: Path) -> None:
    events = [op(1, ts=100), op(2, ts=200), op(3, cat="python_function", ts=300), op(4, cat="overhead", ts=400)]
    survey = Survey()
    read_trace(written(tmp_path / "a.json", document([*events, END])), lambda *_: 0, sieve=survey)
    assert [survey.span(Frames(asked=asked))[1] for asked in (True, False)] == [300_000, 200_000]


def test_host_events_that_overlap_a_window_are_kept(tmp_path: Path) -> None:
    events = [op(0, ts=0, dur=98), op(1, ts=0, dur=120), op(2, ts=150, dur=1), op(3, ts=190, dur=50), op(4, ts=202)]
    assert kept(thinned(tmp_path, events, 100, 200)[0]) == [1, 2, 3]


def test_device_work_is_kept_with_its_launch_wherever_both_are_in_the_file(tmp_path: Path) -> None:
    late, early = kernel(1, ts=900), kernel(5, ts=120)
    events = [late, early, call(1, ts=150), call(5, ts=500), kernel(1, ts=950)]
    with (
        patch.object(decode, "BLOCK_BYTES", 100),
        patch.object(source, "PIECE_BYTES", 100),
        patch.object(sieves, "_ROWS", 1),
    ):
        assert kept(thinned(tmp_path, events, 100, 200)[0]) == [0, 2, 4]


def test_the_first_of_several_launches_with_one_id_counts(tmp_path: Path) -> None:
    trace, windows = thinned(tmp_path, [call(1, ts=500), call(1, ts=150), kernel(1, ts=160)], 100, 200)
    assert kept(trace) == [1]
    assert windows.launches == Launches(external_ids_are_real=False, missing=0, repeated=1)


@pytest.mark.parametrize(("external", "rows"), [(101, [0, 1]), (102, []), (109, [1])])
def test_device_work_without_a_launch_goes_with_its_operator_or_by_its_time(
    external: int, rows: list[int], tmp_path: Path
) -> None:
    inside, outside = op(1, ts=120), op(2, ts=500)
    work = kernel(7, ts=150, args={"External id": external, "correlation": 7, "stream": 7})
    trace, windows = thinned(tmp_path, [inside, work, outside], 100, 200)
    assert kept(trace) == sorted({0, *rows})
    assert windows.launches.missing == (external == 109)


def test_all_that_is_no_activity_is_kept(tmp_path: Path) -> None:
    events = [op(1, ts=900), op(2, ts=900, cat="overhead"), kernel(3, ts=900, cat="gpu_user_annotation")]
    assert kept(thinned(tmp_path, events, 100, 200)[0]) == [1, 2]


@pytest.mark.parametrize("compiled", [True, False])
def test_rows_in_memory_do_not_grow_with_the_file(compiled: bool, tmp_path: Path) -> None:  # noqa: FBT001
    most = []
    for count in (200, 800):
        made = [make(number) for number in range(count) for make in (op, call, kernel)]
        path = written(tmp_path / f"{count}.json", document([*made, END]))
        held = [0]
        add = GrowingTable.add_times

        def counted(table: GrowingTable, *times: Any, held: list[int] = held, add: Any = add) -> None:
            add(table, *times)
            held.append(table.count)

        pieces = patch.object(decode, "BLOCK_BYTES", 5_000), patch.object(source, "PIECE_BYTES", 5_000)
        with pieces[0], pieces[1], patch.object(sieves, "_ROWS", 50), patch.object(GrowingTable, "add_times", counted):
            windows = Windows(np.array([[1_000_000, 2_000_000]]), ALL, NO_MARKS)
            trace = read_trace(path, lambda *_: 0, compiled=compiled, sieve=windows)
        assert len(trace.events) == 33
        most.append(max(held))
    assert most[1] <= most[0] < 200
