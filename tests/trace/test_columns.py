from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.errors import TraceError
from htagraph.trace.columns import Flows, SparseColumn, Table
from tests.damage import document, healthy, loaded

rows = st.integers(0, 8).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.booleans(), min_size=count, max_size=count),
        st.dictionaries(st.integers(0, max(count - 1, 0)), st.integers(0, 9), max_size=count),
    )
)


def table(count: int, argument: dict[int, int]) -> Table:
    """Return a table whose columns hold the number of their row, with an argument on some rows."""
    number = np.arange(count, dtype=np.int32)
    sparse = SparseColumn(np.array([*argument], np.int32), np.array([*argument.values()], np.int64), -7)
    return Table(
        index=number, name=number, category=number, lane=number, start=number.astype(np.int64),
        duration=2 * number.astype(np.int64), args={"bytes": sparse},
    )  # fmt: skip


@given(rows)
def test_a_taken_table_has_the_rows_of_a_dense_one(made: tuple[int, list[bool], dict[int, int]]) -> None:
    count, keep, argument = made
    argument = argument if count else {}
    whole = table(count, argument)
    part = whole.take(np.array(keep, np.bool_))
    kept = [row for row in range(count) if keep[row]]
    assert len(part) == len(kept)
    for name in ("index", "name", "category", "lane", "start", "duration", "end"):
        assert getattr(part, name).tolist() == getattr(whole, name)[kept].tolist()
    assert part.arg("bytes").tolist() == [argument.get(row, -7) for row in kept]


def test_an_argument_that_no_row_has_is_minus_one() -> None:
    assert table(3, {}).arg("stream").tolist() == [-1, -1, -1]


def test_an_event_ends_its_duration_after_its_start() -> None:
    assert table(3, {}).end.tolist() == [0, 3, 6]


def test_shifted_flows_differ_in_their_times_only() -> None:
    flows = Flows(np.array([4, 5]), np.array([True, False]), np.array([0, 1], np.int32), np.array([10, 20]))
    moved = flows.shifted(100)
    assert moved.time.tolist() == [110, 120]
    assert (moved.id is flows.id, moved.is_start is flows.is_start, moved.lane is flows.lane) == (True, True, True)


def test_events_are_chosen_by_category(tmp_path: Path) -> None:
    trace = loaded(tmp_path, document(healthy(2)))
    names = np.array(trace.categories)[trace.events.category]
    for wanted in (("kernel",), ("kernel", "cpu_op"), ("absent",), ()):
        assert trace.in_categories(*wanted).tolist() == [name in wanted for name in names]


def test_columns_are_read_only(tmp_path: Path) -> None:
    trace = loaded(tmp_path, document(healthy(2)))
    with pytest.raises(ValueError, match="read-only"):
        trace.events.start[0] = 1


def test_a_file_that_was_changed_or_deleted_is_noticed(tmp_path: Path) -> None:
    trace = loaded(tmp_path, document(healthy(2)))
    assert trace.unchanged_path() == trace.path
    Path(trace.path).write_text("{}", encoding="utf-8")
    with pytest.raises(TraceError, match="was changed since it was loaded; load it again"):
        trace.unchanged_path()
    Path(trace.path).unlink()
    with pytest.raises(TraceError, match="cannot be read again"):
        trace.unchanged_path()
