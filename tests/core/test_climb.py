from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.climb import climb
from htagraph.core.parents import nearest


@given(st.lists(st.tuples(st.integers(-1, 30), st.booleans()), min_size=1, max_size=30), st.data())
@settings(max_examples=60)
def test_climbing_compiled_and_level_by_level_are_the_same(forest: list[tuple[int, bool]], data: st.DataObject) -> None:
    above = np.array([min(parent, i - 1) for i, (parent, _) in enumerate(forest)], np.int64)
    wanted = np.array([each for _, each in forest], np.bool_)
    rows = np.array(data.draw(st.lists(st.integers(-1, len(forest) - 1), max_size=10)), np.int64)
    assert climb(above, wanted, rows, len(above)).tolist() == nearest(above, wanted, rows).tolist()
