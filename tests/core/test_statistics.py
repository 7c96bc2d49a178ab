"""Statistics of groups, against pandas' own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.statistics import DISTRIBUTION, described, others_median, summed, upper_quantile

GROUPS = 4
pairs = st.lists(st.tuples(st.integers(-1000, 1000), st.integers(0, GROUPS - 1)), max_size=30)


@pytest.mark.slow
@given(pairs)
def test_statistics_are_those_of_pandas(rows: list[tuple[int, int]]) -> None:
    values = np.array([value for value, _ in rows], np.float64)
    group = np.array([each for _, each in rows], np.int64)
    found, total = described(values, group, GROUPS), summed(values, group, GROUPS)
    for each in range(GROUPS):
        expected = pd.Series(values[group == each]).describe()
        assert [found[name][each] for name in DISTRIBUTION] == pytest.approx(expected.to_list(), nan_ok=True)
        assert total["sum"][each] == values[group == each].sum()
        for name in ("count", "mean", "std", "min", "max"):
            assert total[name][each] == pytest.approx(found[name][each], nan_ok=True)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-1, 3)), max_size=30))
def test_the_median_of_the_others(rows: list[tuple[int, int]]) -> None:
    values, group = np.array([row[0] for row in rows], float), np.array([row[1] for row in rows], np.int64)
    found = others_median(values, group)
    for i, (_, number) in enumerate(rows):
        others = [value for j, (value, other) in enumerate(rows) if other == number and j != i]
        if number < 0 or not others:
            assert np.isnan(found[i])
        else:
            assert found[i] == np.median(others)


TABLE = {
    (0.05, 1): 6.314, (0.001, 1): 318.309, (0.005, 2): 9.925, (0.001, 3): 10.215, (0.001, 4): 7.173,
    (0.025, 5): 2.571, (0.001, 10): 4.144, (0.025, 30): 2.042, (0.0005, 120): 3.373,
}  # fmt: skip
"""Of any book of statistics: (probability, degrees of freedom), quantile."""


@pytest.mark.parametrize("case", TABLE)
def test_the_quantiles_are_those_of_the_tables(case: tuple[float, int]) -> None:
    assert upper_quantile(*case) == pytest.approx(TABLE[case], abs=1e-3)


@pytest.mark.parametrize("chance", [0.0001, 0.01, 0.05])
def test_more_freedom_needs_less_and_whole_numbers_are_nothing_special(chance: float) -> None:
    each = [upper_quantile(chance, freedom) for freedom in np.arange(1, 40, 0.25)]
    assert (np.diff(each) < 1e-3).all()


def test_drawn_numbers_exceed_the_quantile_as_often_as_it_says() -> None:
    drawn = np.random.default_rng(0).standard_t(4.5, 200_000)
    assert (drawn > upper_quantile(0.01, 4.5)).mean() == pytest.approx(0.01, abs=0.001)
