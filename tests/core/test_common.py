from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.common import sum_in_common

NUMBERS = st.dictionaries(st.integers(0, 30), st.integers(-(10**12), 10**12))


@given(NUMBERS, st.sets(st.integers(0, 30)))
def test_the_values_of_what_both_have_are_summed(some: dict[int, int], other: set[int]) -> None:
    rows = sorted(some)
    values = np.array([some[row] for row in rows], np.int64)
    found = sum_in_common(np.array(rows, np.int64), values, np.array(sorted(other), np.int64))
    assert found == sum(value for row, value in some.items() if row in other)
