"""What keeps its row while a file is read: steps for a survey, what lies in windows; and how many rows there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from htagraph.trace.columns import Trace
from htagraph.trace.reading import source, split
from htagraph.trace.reading.collect import sieves
from htagraph.trace.reading.collect.growing import GrowingTable
from htagraph.trace.reading.collect.sieves import Launches, Survey, Windows
from htagraph.trace.reading.extent import Extent
from htagraph.trace.reading.frames import Frames
from htagraph.trace.reading.read import read_trace
from tests.damage import END, Json, call, document, kernel, names, op, written

ALL = Extent(valid_from=-(2**62), early=0, first=0, last=10**9, longest=10**6, events=1)
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
    assert survey.first(Frames(asked=asked)) == first


def test_the_last_activity_is_no_python_function_that_is_left_out_and_no_overhead(tmp_path: Path) -> None:
    events = [op(1, ts=100), op(2, ts=200), op(3, cat="python_function", ts=300), op(4, cat="overhead", ts=400)]
    survey = Survey()
    read_trace(written(tmp_path / "a.json", document([*events, END])), lambda *_: 0, sieve=survey)
    assert [survey.last(Frames(asked=asked)) for asked in (True, False)] == [300_000, 200_000]


def test_host_events_that_overlap_a_window_are_kept(tmp_path: Path) -> None:
    events = [op(0, ts=0, dur=98), op(1, ts=0, dur=120), op(2, ts=150, dur=1), op(3, ts=190, dur=50), op(4, ts=202)]
    assert kept(thinned(tmp_path, events, 100, 200)[0]) == [1, 2, 3]


def test_device_work_is_kept_with_its_launch_wherever_both_are_in_the_file(tmp_path: Path) -> None:
    late, early = kernel(1, ts=900), kernel(5, ts=120)
    events = [late, early, call(1, ts=150), call(5, ts=500), kernel(1, ts=950)]
    with (
        patch.object(split, "BLOCK_BYTES", 100),
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

        pieces = patch.object(split, "BLOCK_BYTES", 5_000), patch.object(source, "PIECE_BYTES", 5_000)
        with pieces[0], pieces[1], patch.object(sieves, "_ROWS", 50), patch.object(GrowingTable, "add_times", counted):
            windows = Windows(np.array([[1_000_000, 2_000_000]]), ALL, NO_MARKS)
            trace = read_trace(path, lambda *_: 0, compiled=compiled, sieve=windows)
        assert len(trace.events) == 33
        most.append(max(held))
    assert most[1] <= most[0] < 200
