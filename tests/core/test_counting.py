from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.counting import numbered, occurrences, offsets_by_key, sum_in_common


@given(st.lists(st.integers(0, 5), max_size=20), st.sampled_from([np.int32, np.int64]))
@settings(max_examples=50)
def test_offsets_count_the_keys_below(keys: list[int], dtype: type[np.integer]) -> None:
    offsets = offsets_by_key(np.array(keys, dtype), 6)
    assert offsets.tolist() == [sum(key < each for key in keys) for each in range(7)]


@pytest.mark.parametrize("key", [-1, 6])
def test_keys_outside_of_their_range_are_refused(key: int) -> None:
    with pytest.raises(ValueError, match="where there are 6"):
        offsets_by_key(np.array([0, key], np.int32), 6)


NUMBERS = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(NUMBERS, max_size=30))
@settings(max_examples=100)
def test_numbers_are_those_of_numpys_unique(keys: list[int]) -> None:
    column = np.array(keys, np.int64)
    found, number = numbered(column)
    expected = np.unique(column, return_inverse=True)
    assert np.array_equal(found, expected[0])
    assert np.array_equal(number, expected[1].ravel())


def test_many_distinct_keys_are_numbered_as_the_table_grows() -> None:
    keys = np.random.default_rng(7).permutation(np.arange(20_000) * (1 << 40))
    found, number = numbered(np.concatenate((keys, keys)))
    assert np.array_equal(found, np.arange(20_000) * (1 << 40))
    assert np.array_equal(found[number[:20_000]], keys)
    assert np.array_equal(number[:20_000], number[20_000:])


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2)), max_size=20),
    in_order=st.booleans(),
)
@settings(max_examples=100)
def test_rows_are_counted_among_those_of_their_code_in_the_order_of_time(
    rows: list[tuple[int, int, int]], *, in_order: bool
) -> None:
    rows = sorted(rows, key=lambda row: row[1:]) if in_order else rows
    code, first, last = np.array(rows, np.int64).reshape(-1, 3).T
    before, sizes = occurrences(code, 4, first, last)
    keys = [(*row[1:], at) for at, row in enumerate(rows)]
    expected = [
        sum(other[0] == row[0] and there < here for other, there in zip(rows, keys, strict=True))
        for row, here in zip(rows, keys, strict=True)
    ]
    assert before.tolist() == expected
    assert sizes.tolist() == [sum(row[0] == each for row in rows) for each in range(4)]


NUMBERS_COMMON = st.dictionaries(st.integers(0, 30), st.integers(-(10**12), 10**12))


@given(NUMBERS_COMMON, st.sets(st.integers(0, 30)))
def test_the_values_of_what_both_have_are_summed(some: dict[int, int], other: set[int]) -> None:
    rows = sorted(some)
    values = np.array([some[row] for row in rows], np.int64)
    found = sum_in_common(np.array(rows, np.int64), values, np.array(sorted(other), np.int64))
    assert found == sum(value for row, value in some.items() if row in other)
