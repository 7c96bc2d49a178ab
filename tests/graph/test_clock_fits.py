"""Fits of clock offsets against brute force and known truth."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.graph import clock_fits
from htagraph.graph.clock_fits import (
    BarrierTimes,
    feasible_offsets,
    fitted,
    group_medians,
    islands,
    least_ahead,
    limits,
    medians,
    no_offset_is_possible,
)
from htagraph.graph.tolerances import LIMITS


def met(seed: int, ranks: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (ends, arrivals, offsets) of ranks that met, a row per meeting, on clocks that are off."""
    draw = np.random.default_rng(seed)
    start = 5e6 * np.arange(count)[:, None] + draw.exponential(3e5, (count, ranks))
    end = start.max(axis=1)[:, None] + draw.uniform(1e4, 4e5, (count, ranks))  # ends scatter
    offset = np.concatenate(([0.0], draw.uniform(-1e6, 1e6, ranks - 1)))
    return end + offset, start + offset, offset


@pytest.mark.parametrize("seed", range(20))
def test_limits_hold_the_truth_and_the_middle_is_possible(seed: int) -> None:
    end, start, offset = met(seed, 2 + seed % 3, 1 + seed % 5)
    low, high = limits(least_ahead(end, start))
    assert (low <= offset + 1).all()
    assert (offset <= high + 1).all()
    middle = feasible_offsets(end, start)
    assert ((start - middle).max(axis=1) <= (end - middle).min(axis=1) + 1).all()


def test_one_direction_limits_one_side() -> None:
    """A send limits the clock of its receive only: the receive may be over any time later."""
    start, waited = np.array([[0.0, np.nan]]), np.array([[np.nan, 50.0]])
    low, high = limits(least_ahead(waited, start))
    assert (low[1], high[1]) == (-np.inf, 50.0)


@pytest.mark.parametrize("seed", range(20))
def test_clocks_may_be_right_unless_somebody_ends_before_another_arrives(seed: int) -> None:
    end, start, _ = met(seed, 3, 5)
    assert no_offset_is_possible(least_ahead(end, start)) == bool((start.max(axis=1) <= end.min(axis=1) + 2_000).all())


@pytest.mark.parametrize("axis", [0, 1])
def test_medians_are_those_of_numpy(axis: int) -> None:
    draw = np.random.default_rng(axis)
    values = draw.normal(size=(40, 30))
    values[draw.random(values.shape) < 0.5] = np.nan
    assert np.array_equal(medians(values, axis), np.nanmedian(values, axis=axis))


def chained(ranks: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (ends, offsets) of ranks that meet four at a time, each four sharing two with the next."""
    draw = np.random.default_rng(seed)
    offset = np.concatenate(([0.0], draw.uniform(-1e6, 1e6, ranks - 1)))
    end = np.full((3 * ranks, ranks), np.nan)
    for line in range(len(end)):
        first = 2 * line % max(1, ranks - 3)
        end[line, first : first + 4] = 1e6 * line + offset[first : first + 4]
    return end, offset


@pytest.mark.parametrize("ranks", [6, 60])
@pytest.mark.parametrize("drifting", [False, True])
def test_clocks_that_meet_in_a_chain_are_fitted(ranks: int, drifting: bool) -> None:  # noqa: FBT001 - a parameter
    end, offset = chained(ranks, ranks)
    time = np.linspace(-1, 1, len(end))
    found, drift = fitted(end, time, drifting=drifting)
    assert np.abs(found - offset).max() < 1e-3
    assert np.abs(drift).max() < 1e-3


def test_clocks_of_two_islands_are_fitted_each_by_itself() -> None:
    """Nothing links them, so that the equations have many solutions: offsets within an island are what counts."""
    ends = [chained(30, seed) for seed in (1, 2)]
    end = np.full((180, 60), np.nan)
    end[:90, :30], end[90:, 30:] = ends[0][0], ends[1][0]
    found, _ = fitted(end, np.zeros(180), drifting=False)
    for part, (_, offset) in zip((found[:30], found[30:]), ends, strict=True):
        assert np.abs(part - part[0] - offset).max() < 1e-3


def test_islands_are_what_shared_rows_link() -> None:
    present = np.zeros((3, 6), np.bool_)
    present[0, [0, 3]] = present[1, [3, 5]] = present[2, [1, 4]] = True
    assert islands(present) == [[0, 3, 5], [1, 4], [2]]


def test_a_fit_of_many_clocks_looks_at_the_ends_as_often_as_one_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    pull = Mock(wraps=clock_fits._pull)
    monkeypatch.setattr(clock_fits, "_pull", pull)
    passes = {}
    for ranks in (64, 512):
        pull.reset_mock()
        end, _, _ = met(1, ranks, 20)
        fitted(end, np.zeros(len(end)), drifting=False)
        passes[ranks] = pull.call_count
    assert passes[512] <= 1.3 * passes[64]


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
    monkeypatch.setattr(clock_fits, "LIMITS", replace(LIMITS, cells=6))
    times = times_of((np.ones((7, 2)), np.zeros((7, 2)), np.ones((7, 2))))
    blocks = list(times.blocks([0, 1], np.arange(7)))
    assert [len(table.end) for _, table in blocks] == [3, 3, 1]
    assert [block.start for block, _ in blocks] == [0, 3, 6]


def test_medians_of_groups_leave_out_what_is_unknown() -> None:
    assert group_medians(np.array([4.0, 1.0, np.nan, 7.0]), np.array([0, 0, 0, 2]), 3)[[0, 2]].tolist() == [2.5, 7.0]
