"""Statistics of groups, against pandas' own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.group_stats import DISTRIBUTION, described, others_median, summed

GROUPS = 4
pairs = st.lists(st.tuples(st.integers(-1000, 1000), st.integers(0, GROUPS - 1)), max_size=30)


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
