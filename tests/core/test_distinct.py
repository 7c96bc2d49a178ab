from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.distinct import distinct, sums_by


@given(st.lists(st.integers(0, 9), max_size=30))
@settings(max_examples=50)
def test_distinct_numbers_are_those_of_a_set(numbers: list[int]) -> None:
    assert distinct(np.array(numbers, np.int64), 10).tolist() == sorted(set(numbers))


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-(2**55), 2**55)), max_size=30))
@settings(max_examples=50)
def test_sums_are_exact_beyond_the_precision_of_floats(pairs: list[tuple[int, int]]) -> None:
    key, value = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    keys, sums = sums_by(key, value)
    assert keys.tolist() == sorted({each for each, _ in pairs})
    assert sums.tolist() == [sum(ns for other, ns in pairs if other == each) for each in keys.tolist()]
