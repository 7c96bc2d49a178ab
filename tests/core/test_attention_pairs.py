from __future__ import annotations

from itertools import product

import pytest

from htagraph.core.attention_pairs import attended_pairs


@pytest.mark.parametrize(("queries", "keys"), [*product(range(5), range(5))])
def test_the_pairs_are_those_that_a_walk_over_all_of_them_finds(queries: int, keys: int) -> None:
    for first, last in product([None, *range(-6, 6)], repeat=2):
        if first is not None and last is not None and last < first - 1:
            continue
        found = sum(
            (first is None or key >= query + first) and (last is None or key <= query + last)
            for query, key in product(range(queries), range(keys))
        )
        assert attended_pairs(queries, keys, first=first, last=last) == found


def test_a_long_text_takes_no_longer() -> None:
    assert attended_pairs(10**15, 10**15, last=0) == 10**15 * (10**15 + 1) // 2
