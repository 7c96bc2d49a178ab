"""What a file's columns make of categories, ids, absent times and fractions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.trace.kept import Extents
from htagraph.trace.kineto.collecting import Columns, add_durations, fields_of, typed
from htagraph.trace.kineto.decode import plain_events
from htagraph.trace.kineto.events import MODELS, columns
from htagraph.trace.kineto.times import NO_TIME
from tests.damage import END, healthy, kernel, log, op
from tests.trace.kineto.described import collected, described


def new() -> Columns:
    return Columns(log())


def test_categories_have_one_number_however_they_are_written() -> None:
    into = new()
    numbers = [into.category(written, None) for written in ("kernel", "Kernel", "cpu_op", "Operator", "mine")]
    assert numbers == [0, 0, 1, 1, 2]
    assert list(into.categories) == ["kernel", "cpu_op", "mine"]


@pytest.mark.parametrize(
    ("process", "category"),
    [("CPU functions", "cpu_op"), ("CUDA functions", "kernel"), ("", ""), (7, ""), (None, ""), ("python", "")],
)
def test_an_absent_category_is_that_of_an_old_files_process(process: object, category: str) -> None:
    into = new()
    number = into.category(None, process)
    assert list(into.categories)[number] == category
    assert into.category("kernel", "CPU functions") == into.categories["kernel"]


_ids = st.integers(-(2**65), 2**65) | st.integers(-3, 3) | st.sampled_from(["7", "-7", "a", "", "0x7", 1.5, 2**63])


@given(st.lists(_ids))
def test_ids_are_int64_and_equal_if_they_are_written_alike(ids: list[object]) -> None:
    into = new()
    numbers = [into.flow_id(each) for each in ids]
    assert all(-(2**63) <= number < 2**63 for number in numbers)
    assert [[one == other for one in numbers] for other in numbers] == [
        [str(one) == str(other) for one in ids] for other in ids
    ]
    for number, written in zip(numbers, ids, strict=True):
        in_range = isinstance(written, int | str) and str(written).isdigit() and int(written) < 2**63
        assert number == int(written) if in_range else number < 0  # type: ignore[call-overload]


def test_absent_durations_are_reported() -> None:
    into = new()
    into.note_absent(2)
    into.note_absent(0)
    assert [(issue.what, issue.count) for issue in into.log.issues(0)] == [("dur_missing", 2)]


def add(into: Columns, start: list[int], duration: list[int]) -> None:
    """Append events without names whose durations would be 5 ns shorter if fractions were not padded."""
    count = len(start)
    for column in ("index", "name", "category", "lane"):
        into.complete.columns[column].extend(range(count))
    into.complete.add_times("start", np.array(start), np.array(start))
    into.complete.add_times("duration", np.array(duration), np.array(duration) - 5)


def test_times_that_cannot_be_are_reported_once_per_event() -> None:
    into = new()
    assert into.sound(np.array([NO_TIME, 2, 3]), np.array([-1, -1, 4])).tolist() == [False, False, True]
    assert [issue.count for issue in into.log.issues(0)] == [1, 1]


@pytest.mark.parametrize(("zeros", "unpadded"), [(0, False), (1, True)])
def test_fractions_that_lack_zeros_anywhere_count_so_everywhere(zeros: int, unpadded: bool) -> None:  # noqa: FBT001
    into = new()
    add(into, [1, 2], [10, 20])
    one = (np.array([3]), np.array([True]), np.array([0], np.int32), np.array([500]), np.array([5]))
    into.flow_parts += [one, one]
    into.style.fractions, into.style.short, into.style.trailing_zero = 3, 1, zeros
    assert into.style.unpadded == unpadded
    assert into.table().duration.tolist() == ([5, 15] if unpadded else [10, 20])
    assert into.flows(Extents().result()).time.tolist() == ([5, 5] if unpadded else [500, 500])


def test_columns_without_events_have_their_types() -> None:
    flows, table = new().flows(Extents().result()), new().table()
    assert [each.dtype for each in (flows.id, flows.is_start, flows.lane, flows.time)] == [
        np.int64, np.bool_, np.int32, np.int64,
    ]  # fmt: skip
    assert (len(table), len(new().instants()), table.args) == (0, 0, {})


def test_the_fields_of_unknown_categories_are_worked_out_once() -> None:
    assert fields_of("one that nobody knows") is fields_of("another")
    assert fields_of("cpu_op") != fields_of("another")


def test_an_argument_is_absent_in_rows_that_have_none() -> None:
    into = new()
    add(into, [1, 2, 3], [1, 1, 1])
    for bulk in columns():
        if bulk.column.name in {"stream", "comms_id"}:
            into.complete.add_args(bulk.column, np.array([1], np.int32), np.array([9], bulk.column.dtype))
    table = into.table()
    missing = {bulk.column.name: bulk.column.missing for bulk in columns()}
    for name, column in table.args.items():
        assert column.dense(3).tolist() == [missing[name], 9, missing[name]]
    assert set(table.args) == {"stream", "comms_id"}


def of(*events: Any, **how: Any) -> Any:
    return described(collected([events], compiled=False, **how))


def test_rows_say_what_the_events_say() -> None:
    (first, second) = of(kernel(1), op(2))["events"]
    known = {"index": 0, "name": "gemm<1>", "category": "kernel", "lane": (0, 7), "start": 120_500, "duration": 50_001}
    assert first.items() >= {**known, "device": 0, "stream": 7, "correlation": 1}.items()
    known = {"index": 1, "name": "aten::mm", "category": "cpu_op", "lane": (77, 77), "start": 200_000}
    assert second.items() >= {**known, "duration": 30_000, "external_id": 102, "stream": -1}.items()


@pytest.mark.parametrize("exact", [False, True])
@settings(max_examples=15)
@given(cuts=st.sets(st.integers(1, 8)))
def test_events_in_pieces_are_those_of_one_piece(cuts: set[int], *, exact: bool) -> None:
    events = healthy(2)
    edges = [0, *sorted(cuts), len(events)]
    pieces = [events[start:stop] for start, stop in itertools.pairwise(edges)]
    assert described(collected(pieces, compiled=False, exact=exact)) == of(*events, exact=exact)


def test_instants_have_rows_if_they_have_a_category() -> None:
    marker = {"ph": "i", "name": "mine", "ts": 5, "pid": 1, "tid": 2}
    found = of(marker, {**marker, "ph": "I", "cat": "mine"}, END)
    assert [row["index"] for row in found["instants"]] == [1]
    assert found["window end"]
    assert not of(marker, {**END, "ph": "X"})["window end"]


def test_begins_and_ends_are_rows_once_all_are_known() -> None:
    begin = {"ph": "B", "cat": "cpu_op", "name": "outer", "pid": 1, "tid": 2, "ts": 10}
    end = {"ph": "E", "pid": 1, "tid": 2, "ts": 14.5}
    into = collected([[op(1), begin], [end, op(2)]], compiled=False)
    assert [(position, event.ph) for position, event in into.durations] == [(1, "B"), (2, "E")]
    add_durations(into)
    rows = described(into)["events"]
    assert [(row["index"], row["name"]) for row in rows] == [(0, "aten::mm"), (3, "aten::mm"), (1, "outer")]
    assert (rows[2]["start"], rows[2]["duration"]) == (10_000, 4_500)


@pytest.mark.parametrize("category", sorted(MODELS))
def test_fields_of_a_category_are_those_that_its_model_names(category: str) -> None:
    of_category = [name for _, bulk in fields_of(category) for name in [bulk.column.name]]
    expected = {bulk.column.name for bulk in columns() if category in bulk.categories}
    assert set(of_category) == expected
    today = {bulk.column.name: bulk.keys[0] for bulk in columns()}
    last = {bulk.column.name: bulk.keys for _, bulk in fields_of(category)}  # the last of each column
    own = {key for _, bulk in fields_of(category) for key in bulk.keys}
    assert all(last[name] == (today[name],) for name in last if today[name] in own)


def test_values_of_other_types_are_those_of_the_model() -> None:
    into, bulk = Columns(log()), next(each for each in columns() if each.column.name == "stream")
    values = [7, "8", 9.0, None, "nine", 2**70]
    events = plain_events(b'[{"cat": "kernel", "name": "a"}]', exact=False, calls=False) * len(values)
    assert typed(into, values, bulk, events).tolist() == [7, 8, 9, -1, -1, -1]
    assert [(issue.what, issue.count) for issue in into.log.issues(0)] == [
        ("value_unreadable", 1), ("value_out_of_range", 1),
    ]  # fmt: skip
