"""Call sites: numbers for rows, groups of rows, and what encloses a call."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.kinds import ActivityKind
from htagraph.graph.evidence.call_sites import grouped, mixed, owners
from tests.strategies import Json, annotation, complete, launch, op, step, traces
from tests.waiting import by_hand

PLACES = (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.HOST_COMMUNICATION)


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-1, 2**40)), min_size=1, max_size=20))
def test_numbers_are_equal_exactly_where_all_columns_are(rows: list[tuple[int, int]]) -> None:
    number = mixed(*np.array(rows, np.int64).T).tolist()
    assert [[a == b for b in number] for a in number] == [[a == b for b in rows] for a in rows]


def test_the_order_of_columns_matters() -> None:
    assert mixed(np.array([1]), np.array([2])) != mixed(np.array([2]), np.array([1]))


@given(st.lists(st.integers(0, 4), max_size=20))
def test_groups_are_the_rows_of_each_value(key: list[int]) -> None:
    groups = sorted(rows.tolist() for rows in grouped(np.array(key, np.int64)))
    assert groups == sorted([i for i, each in enumerate(key) if each == value] for value in set(key))


@given(traces())
@settings(max_examples=20)
def test_the_owner_is_the_first_place_on_the_way_up(events: list[Json]) -> None:
    acts = by_hand(events).activities
    rows = np.flatnonzero(~acts.on_device)
    owner, _ = owners(acts, rows)
    for row, innermost in zip(rows.tolist(), owner.tolist(), strict=True):
        at = int(acts.parent[row])
        while at >= 0 and acts.kind[at] not in PLACES:
            at = int(acts.parent[at])
        assert innermost == at


def test_python_frames_and_steps_do_not_tell_places_apart() -> None:
    def nested(at: float, number: int) -> list[Json]:
        return [
            step(number, at, 20), annotation("forward", at + 1, 18),
            complete("python_function", f"model.py({number}): forward", at + 2, 16), op("aten::mm", at + 3, 9),
            launch(at + 4, 1, number),
        ]  # fmt: skip

    acts = by_hand([*nested(0, 1), *nested(100, 2), launch(130, 1, 3)]).activities
    calls = np.flatnonzero(acts.kind == ActivityKind.RUNTIME) if not (acts.kind == ActivityKind.LAUNCH).any() else None
    rows = np.flatnonzero(acts.arg("correlation") > 0) if calls is None else calls
    _, path = owners(acts, rows)
    assert path[0] == path[1] != path[2]
