"""Statistics of groups, against pandas' own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.group_stats import DISTRIBUTION, described, summed

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
