"""All-to-alls whose messages differ by rank, against the definition on drawn sizes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.queries.uneven_exchange import uneven_exchange
from tests.findings.test_uneven_exchange import RANKS, rank_of
from tests.strategies import load

SIZES = st.lists(st.integers(1, 5000), min_size=RANKS, max_size=RANKS)


@given(st.lists(SIZES, min_size=1, max_size=4))
@settings(max_examples=15, deadline=None)
def test_ratios_are_those_of_the_sizes(received: list[list[int]]) -> None:
    found = uneven_exchange(load({rank: rank_of(rank, received) for rank in range(RANKS)}))
    messages = [[max(1000, size) for size in sizes] for sizes in received]
    ratios = sorted(RANKS * max(sizes) / sum(sizes) for sizes in messages)
    uneven = [ratio for ratio in ratios if ratio >= 1.5]
    assert (found is None) == (not uneven)
    if found is not None:
        assert (found.uneven, found.count) == (len(uneven), len(received))
        assert found.most_ratio == pytest.approx(uneven[-1])
        assert found.ratio == pytest.approx((uneven[(len(uneven) - 1) // 2] + uneven[len(uneven) // 2]) / 2)
