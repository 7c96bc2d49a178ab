"""Calls of Python functions: which are kept, that both ways of reading agree, and that what is left out is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.issues import IssueLog
from htagraph.core.naming import FRAME
from htagraph.trace.columns import Trace
from htagraph.trace.reading.frames import Frames, is_frame
from htagraph.trace.reading.read import read_trace
from tests.damage import Json, document, healthy, issues, written
from tests.trace.reading.same_columns import assert_same_columns


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
