from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.export.path_slices import us_texts
from htagraph.output.export.row_texts import (
    INTEGER,
    MICROSECONDS,
    NO_NUMBER,
    NO_TEXT,
    SPAN,
    TEXT,
    Column,
    row_texts,
)  # fmt: skip

NUMBERS = st.lists(st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-2000, 2000), min_size=1)


@given(NUMBERS)
def test_numbers_are_written_as_python_writes_them(numbers: list[int]) -> None:
    values = np.array(numbers, np.int64)
    rows = row_texts([Column(INTEGER, values), Column(TEXT, 0), Column(MICROSECONDS, values)], len(values), [b" "])
    expected = [f"{number} {us}" for number, us in zip(numbers, us_texts(values), strict=True)]
    assert bytes(rows.joined).decode().split(",\n") == expected


def test_what_a_row_lacks_is_left_out() -> None:
    columns = (
        Column(TEXT, np.array([1, NO_TEXT])),
        Column(SPAN, np.array([0, 2 << 32 | 3])),
        Column(INTEGER, np.array([NO_NUMBER, 4])),
    )
    rows = row_texts(columns, 2, [b"a", b"b"], np.frombuffer(b"0123456789", np.uint8))
    assert [bytes(rows.part(at, at + 1).joined) for at in range(2)] == [b"b", b"2344"]
