"""Blocks of the compiled scan make the columns that decoded events make, in one piece or many."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.damage import END, call, healthy, kernel, op
from tests.trace.kineto.described import collected, described


def both(*events: Any, **how: Any) -> Any:
    """Return what the columns of a block say, and those of decoded events too."""
    found = described(collected([events], **how))
    assert found == described(collected([events], compiled=False, **how))
    return found


FLOW = {"ph": "s", "id": 5, "pid": 1, "tid": 1, "ts": 1.5, "cat": "fwdbwd", "name": "fwdbwd"}
ODD = [
    kernel(4, args={"stream": "7", "device": None, "correlation": 2**70, "blocks per SM": "N/A"}),
    kernel(5, args={"stream": [1], "registers per thread": 2**31, "est. achieved occupancy %": 3}),
    op(6, name="c10d::allreduce_", cat="user_annotation"), {**call(7), "cat": None, "pid": "CPU functions"},
    {"ph": "X", "pid": "CUDA functions", "ts": 1.5, "dur": 2}, {"ph": "B", "name": "b", "ts": 2}, {"ph": "E", "ts": 3},
    {**FLOW, "ph": "f", "id": "x"}, {**FLOW, "id": None}, {**FLOW, "cat": "ac2g"}, {**FLOW, "id": 2**64},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 1, "args": {"Addr": 2**64 - 1, "Bytes": -8}},
    op(8, dur=-3), op(9, ts=None, dur=None), {"ph": "i", "name": "mine", "ts": 5},
]  # fmt: skip


@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize("exact", [False, True])
@settings(max_examples=8)
@given(data=st.data())
def test_blocks_in_pieces_are_those_of_one_piece(data: st.DataObject, *, exact: bool, calls: bool) -> None:
    events = data.draw(st.permutations([*ODD, *healthy(1)]))
    cuts = data.draw(st.sets(st.integers(1, len(events) - 1), max_size=5))
    edges = [0, *sorted(cuts), len(events)]
    pieces = [events[start:stop] for start, stop in itertools.pairwise(edges)]
    found = described(collected(pieces, exact=exact, calls=calls))
    one = both(*events, exact=exact, calls=calls)
    assert {**found, "issues": sorted(found["issues"])} == {**one, "issues": sorted(one["issues"])}


@pytest.mark.parametrize(
    ("keys", "category"),
    [
        ({"pid": "CPU functions"}, "cpu_op"), ({"pid": "CUDA functions", "cat": None}, "kernel"), ({"pid": 7}, ""),
        ({}, ""), ({"pid": "CUDA functions", "cat": "Operator"}, "cpu_op"), ({"cat": ""}, ""),
    ],
)  # fmt: skip
def test_an_absent_category_is_that_of_an_old_files_process(keys: Any, category: str) -> None:
    event = {"ph": "X", "name": "a", "ts": 1, "dur": 2, **keys}
    found = both({**event, "cat": "mine", "pid": 1}, event, event)
    assert [row["category"] for row in found["events"]] == ["mine", category, category]


def test_instants_without_a_category_have_no_row_but_may_end_the_window() -> None:
    marker = {"ph": "i", "name": "mine", "ts": 5}
    found = both(marker, {**marker, "cat": "mine"}, {**marker, "ph": "I", "cat": "mine"})
    assert [row["index"] for row in found["instants"]] == [1, 2]
    assert (found["counts"], found["window end"]) == ({"i": 2, "I": 1}, None)
    assert both(END)["window end"]


def test_begins_and_ends_are_kept_with_their_positions() -> None:
    found = both(op(1), {"ph": "B", "name": "b", "ts": 2}, op(2), {"ph": "E", "ts": 3})
    assert found["durations"] == [(1, "B", "b"), (3, "E", "")]
    assert [row["index"] for row in found["events"]] == [0, 2]


@pytest.mark.parametrize(("calls", "expected"), [(False, {None}), (True, {"[[2, 3], []]", ""})])
def test_arguments_of_calls_are_kept_for_backends_on_host_threads(calls: bool, expected: set[Any]) -> None:  # noqa: FBT001
    rows = both(op(1, name="gloo:all_reduce"), op(2), call(3), calls=calls)["events"]
    assert {row.get("input_dims") for row in rows} == expected
    assert all("input_dims" not in row or bool(row["input_dims"]) == (row["name"] == "gloo:all_reduce") for row in rows)


def test_an_argument_of_another_category_is_not_read() -> None:
    found = both(kernel(1), op(2, args={"stream": 9}), op(3, args={"stream": "odd"}))
    assert [row["stream"] for row in found["events"]] == [7, -1, -1]
    assert not found["issues"]


def test_fractions_are_padded_or_not_over_all_blocks() -> None:
    early, late = op(1, ts=10.5, dur=1.123), op(2, ts=11.25, dur=7.5)
    texts = [[early], [late], [FLOW]]
    for compiled in (False, True):
        into = collected(texts, compiled=compiled, exact=True)
        assert (into.style.fractions, into.style.short, into.style.unpadded) == (5, 4, False)
        into.style.fractions, into.style.trailing_zero = 9, 1  # as if another block had shown them
        found = described(into)
        assert [(row["start"], row["duration"]) for row in found["events"]] == [(10_005, 1_123), (11_025, 7_005)]
        assert [time for *_, time in found["flows"]] == [1_005]
