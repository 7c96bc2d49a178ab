"""Decoded events, as objects, are appended to columns piece by piece."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.trace.kineto.collecting import Columns
from htagraph.trace.kineto.decode import plain_events
from htagraph.trace.kineto.events import MODELS, columns
from htagraph.trace.kineto.from_events import add_durations, fields_of, typed
from tests.damage import END, healthy, kernel, log, op
from tests.trace.kineto.described import collected, described


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


@pytest.mark.parametrize(("calls", "expected"), [(False, {None}), (True, {"[[2, 3], []]", ""})])
def test_arguments_of_calls_are_kept_for_backends_on_host_threads(calls: bool, expected: set[Any]) -> None:  # noqa: FBT001
    rows = of(op(1, name="gloo:all_reduce"), op(2), calls=calls)["events"]
    assert {row.get("input_dims") for row in rows} == expected


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
