"""The first event with an id, for ids that come block by block."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.trace.reading.collect.first_of import FirstOf

blocks = st.lists(st.lists(st.tuples(st.integers(-2, 6), st.booleans()), max_size=6), max_size=5)


@given(blocks)
def test_an_id_says_what_its_first_event_says(events: list[list[tuple[int, bool]]]) -> None:
    first, expected = FirstOf(), dict[int, bool]()
    for block in events:
        first.add(np.array([each for each, _ in block], np.int64), np.array([says for _, says in block], np.bool_))
        for each, says in block:
            expected.setdefault(each, says)
    known, says = first.of(np.arange(-3, 8))
    assert known.tolist() == [each in expected for each in range(-3, 8)]
    assert says.tolist() == [expected.get(each, False) for each in range(-3, 8)]
    assert first.repeated == sum(map(len, events)) - len(expected)
