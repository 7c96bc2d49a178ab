"""Partners of a sequence's items: the true one is always among them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.alignment import partners

LOOKS = st.lists(st.integers(0, 12), min_size=12, max_size=40)


@given(LOOKS, st.lists(st.booleans(), min_size=40, max_size=40))
def test_the_true_partner_is_among_those_of_a_pattern_with_losses(text: list[int], kept: list[bool]) -> None:
    rows = np.flatnonzero(kept[: len(text)])
    found = partners(np.array(text)[rows], np.zeros(len(rows)), np.array(text), np.zeros(len(text)))
    if found.share == 1.0 and len(rows) > len(text) // 2 and not _stands_together(text, rows):
        for item, truth in enumerate(rows.tolist()):
            assert truth in found.partner[found.item == item] or item not in found.item


def _stands_together(text: list[int], rows: np.ndarray) -> bool:
    """Return whether the pattern's items are next to each other somewhere: that place is taken."""
    pattern = sorted(text[row] for row in rows)
    return any(sorted(text[at : at + len(rows)]) == pattern for at in range(len(text)))


@given(LOOKS, LOOKS)
def test_partners_look_alike(pattern: list[int], text: list[int]) -> None:
    one, two = np.array(pattern), np.array(text)
    found = partners(one, np.zeros(len(one)), two, np.arange(len(two)) % 2)
    assert (one[found.item] == two[found.partner]).all()


def test_lanes_of_the_text_need_not_keep_their_order() -> None:
    found = partners(np.array([1, 3, 2, 4]), np.zeros(4), np.array([1, 2, 3, 4]), np.array([0, 0, 1, 1]))
    assert (found.item.tolist(), found.partner.tolist()) == ([0, 1, 2, 3], [0, 2, 1, 3])


def test_what_looks_alike_on_two_lanes_may_be_either() -> None:
    found = partners(np.array([1, 1]), np.array([0, 1]), np.array([1, 1]), np.array([0, 1]))
    assert found.partner.tolist() == [0, 1, 0, 1]


def test_one_too_many_has_no_partner() -> None:
    found = partners(np.array([1, 5, 5, 2]), np.zeros(4), np.array([1, 5, 2]), np.zeros(3))
    assert found.item.tolist() == [0, 3]
