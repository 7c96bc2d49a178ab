from __future__ import annotations

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.texts import texts_of


@given(st.lists(st.text(max_size=3), max_size=5), st.data())
@settings(max_examples=50)
def test_a_column_of_numbers_of_texts_is_the_column_of_the_texts(texts: list[str], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(-1, len(texts) - 1), max_size=10))
    column = texts_of(texts, numbers)
    plain = pd.array([texts[number] if number >= 0 else "" for number in numbers], dtype="str")
    assert column.dtype == plain.dtype
    assert column.tolist() == plain.tolist()
