from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.counting import offsets_by_key


@given(st.lists(st.integers(0, 5), max_size=20), st.sampled_from([np.int32, np.int64]))
@settings(max_examples=50)
def test_offsets_count_the_keys_below(keys: list[int], dtype: type[np.integer]) -> None:
    offsets = offsets_by_key(np.array(keys, dtype), 6)
    assert offsets.tolist() == [sum(key < each for key in keys) for each in range(7)]


@pytest.mark.parametrize("key", [-1, 6])
def test_keys_outside_of_their_range_are_refused(key: int) -> None:
    with pytest.raises(ValueError, match="where there are 6"):
        offsets_by_key(np.array([0, key], np.int32), 6)
