"""Slices and values of counters as JSON: what json reads back of them."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.kinds import ActivityKind
from htagraph.output.export.trace_writer import slice_rows, value_rows
from htagraph.output.plot.style import text_color
from htagraph.output.scene import COUNT, GB_S, KIND_COLORS, Slices, Values, tint
from htagraph.queries.path_segments import CATEGORIES


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
