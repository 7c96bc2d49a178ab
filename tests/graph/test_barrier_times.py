from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.graph.barrier_times import BarrierTimes, group_medians
from htagraph.graph.clock_fits import medians

Tables = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
_CELLS = st.one_of(st.just(np.nan), st.integers(0, 9).map(float))


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    """Return ends, starts and first ends of some collectives (rows) of some ranks (columns)."""
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    values = draw(st.lists(_CELLS, min_size=3 * shape[0] * shape[1], max_size=3 * shape[0] * shape[1]))
    end, start, waited = np.array(values).reshape(3, *shape)
    return end, start, waited


def times_of(given_tables: Tables) -> BarrierTimes:
    row, column = np.nonzero(np.isfinite(np.stack(given_tables)).any(axis=0))
    end, start, waited = (table[row, column] for table in given_tables)
    return BarrierTimes(row, column, end, start, waited, ranks=given_tables[0].shape[1], origin=0)


@given(tables())
def test_a_table_of_single_ranks_is_the_table_that_was_given(whole: Tables) -> None:
    rows, columns = whole[0].shape
    found = times_of(whole).of([[column] for column in range(columns)], np.arange(rows))
    for one, other in zip(found, whole, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


@given(tables(), st.data())
def test_a_group_has_its_middle_end_last_arrival_and_first_end(whole: Tables, data: st.DataObject) -> None:
    rows, columns = whole[0].shape
    cut = data.draw(st.integers(0, columns))
    units = [each for each in (list(range(cut)), list(range(cut, columns))) if each]
    found = times_of(whole).of(units, np.arange(rows))
    for number, unit in enumerate(units):
        end, start, waited = (table[:, unit] for table in whole)
        assert np.array_equal(found.end[:, number], medians(end, axis=1), equal_nan=True)
        for table, times, empty, over in (
            (found.start, start, -np.inf, np.max),
            (found.waited, waited, np.inf, np.min),
        ):
            expected = over(np.where(np.isfinite(times), times, empty), axis=1)
            assert np.array_equal(table[:, number], np.where(np.isinf(expected), np.nan, expected), equal_nan=True)


@given(tables())
def test_a_pair_has_the_collectives_that_both_have(whole: Tables) -> None:
    times = times_of(whole)
    if times.ranks > 1:
        present = np.asarray(np.isfinite(np.stack(whole)).any(axis=0))
        both = present[:, :2].all(axis=1)
        for one, other in zip(times.pair(0, 1), whole, strict=True):
            assert np.array_equal(one, other[both][:, :2], equal_nan=True)


@given(tables())
def test_shared_rows_and_presence_are_those_of_the_table(whole: Tables) -> None:
    times = times_of(whole)
    present = np.isfinite(whole[1]) | np.isfinite(whole[2])
    every = list(range(times.ranks))
    assert times.shared_rows(every).tolist() == np.flatnonzero(present.sum(axis=1) > 1).tolist()
    assert np.array_equal(times.presence([[column] for column in every]), present[present.any(axis=1)])


def test_blocks_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htagraph.graph.barrier_times._BLOCK", 6)
    times = times_of((np.ones((7, 2)), np.zeros((7, 2)), np.ones((7, 2))))
    blocks = list(times.blocks([0, 1], np.arange(7)))
    assert [len(table.end) for _, table in blocks] == [3, 3, 1]
    assert [block.start for block, _ in blocks] == [0, 3, 6]


def test_medians_of_groups_leave_out_what_is_unknown() -> None:
    assert group_medians(np.array([4.0, 1.0, np.nan, 7.0]), np.array([0, 0, 0, 2]), 3)[[0, 2]].tolist() == [2.5, 7.0]
