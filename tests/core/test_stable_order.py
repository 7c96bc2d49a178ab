"""The stable order of whole numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.stable_order import stable_order


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**63 - 1))))
def test_it_is_that_of_a_stable_sort_however_large_the_keys(keys: list[int]) -> None:
    column = np.array(keys, np.int64)
    assert stable_order(column).tolist() == np.argsort(column, kind="stable").tolist()
