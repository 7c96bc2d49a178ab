"""The stable order of whole numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.arrays import coded, distinct, marked, occurring, stable_order, sums_by, texts_of


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**63 - 1))))
def test_it_is_that_of_a_stable_sort_however_large_the_keys(keys: list[int]) -> None:
    column = np.array(keys, np.int64)
    assert stable_order(column).tolist() == np.argsort(column, kind="stable").tolist()


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


@given(st.lists(st.integers(-1, 9), max_size=30), st.lists(st.integers(-1, 9), max_size=5))
@settings(max_examples=50)
def test_what_is_among_some_numbers_is_what_numpy_finds(column: list[int], numbers: list[int]) -> None:
    found = marked(np.array(numbers, np.int32), 11)[np.array(column, np.int32)]
    assert found.tolist() == np.isin(column, numbers).tolist()


@given(st.lists(st.integers(-3, 9), max_size=30))
@settings(max_examples=50)
def test_numbers_that_occur_are_those_of_a_set(column: list[int]) -> None:
    assert occurring(np.array(column, np.int32)) == sorted(set(column))


@given(st.lists(st.text(max_size=3), max_size=5), st.data())
@settings(max_examples=50)
def test_a_column_of_numbers_of_texts_is_the_column_of_the_texts(texts: list[str], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(-1, len(texts) - 1), max_size=10))
    column = texts_of(texts, numbers)
    plain = pd.array([texts[number] if number >= 0 else "" for number in numbers], dtype="str")
    assert column.dtype == plain.dtype
    assert column.tolist() == plain.tolist()


_WIDE = st.sampled_from([-(2**63), -1, 0, 1, 7, 2**62, 2**63 - 1])


@given(st.lists(st.tuples(_WIDE, _WIDE, st.integers(0, 2)), min_size=1, max_size=30))
def test_numbers_of_rows_are_those_of_distinct_rows_however_far_apart_values_are(rows: list[tuple[int, ...]]) -> None:
    columns = np.array(rows, np.int64).T
    _, number = np.unique(columns, axis=1, return_inverse=True)
    assert coded(*columns).tolist() == number.ravel().tolist()
