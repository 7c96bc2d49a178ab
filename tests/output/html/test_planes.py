"""What is packed is read back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.html.planes import differences, packed
from tests.output.html.unpacking import unpacked

NUMBERS = st.lists(st.integers(-(2**52), 2**52), max_size=30)


@given(NUMBERS, NUMBERS)
def test_integers_are_read_back(first: list[int], second: list[int]) -> None:
    whole = packed({"first": np.array(first, np.int64), "second": np.abs(np.array(second, np.int64))})
    assert unpacked(whole.columns, whole.data) == {"first": first, "second": [abs(each) for each in second]}


def test_small_numbers_take_one_plane_and_zeros_none() -> None:
    columns = packed({"zeros": np.zeros(9, np.int64), "small": np.arange(9)}).columns
    assert [column["planes"] for column in columns] == [0, 1]


def test_equal_columns_give_equal_bytes() -> None:
    made = [packed({"a": np.arange(1000)}, {"names": b'["x"]'}).data for _ in range(2)]
    assert made[0] == made[1]
    assert made[0][4:8] == b"\0\0\0\0"  # gzip's time


@given(NUMBERS)
def test_sums_of_differences_are_the_values(values: list[int]) -> None:
    assert np.cumsum(differences(np.array(values, np.int64))).tolist() == values
