from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.parents import ancestors, nearest, outermost


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[int], list[bool]]:
    """Return (parent of each row, -1 for none; whether each row is wanted), rows in any order."""
    count = draw(st.integers(0, 8))
    label = draw(st.permutations(range(count)))
    above = [-1] * count
    for i in range(count):
        parent = draw(st.integers(-1, i - 1))
        above[label[i]] = label[parent] if parent >= 0 else -1
    return above, draw(st.lists(st.booleans(), min_size=count, max_size=count))


def chain(above: list[int], row: int) -> list[int]:
    """Return a row and its ancestors, from the row upwards."""
    return [row, *chain(above, above[row])] if row >= 0 else []


@given(forests())
def test_the_nearest_is_the_first_wanted_on_the_chain_of_parents(forest: tuple[list[int], list[bool]]) -> None:
    above, wanted = forest
    rows = [*range(len(above)), -1]
    expected = [next((each for each in chain(above, row) if wanted[each]), -1) for row in rows]
    assert nearest(np.array(above, np.int64), np.array(wanted, np.bool_), rows).tolist() == expected


@given(forests())
def test_the_outermost_are_the_wanted_rows_without_a_wanted_ancestor(forest: tuple[list[int], list[bool]]) -> None:
    above, wanted = forest
    expected = [row for row in range(len(above)) if [each for each in chain(above, row) if wanted[each]] == [row]]
    assert outermost(np.array(above, np.int64), np.array(wanted, np.bool_)).tolist() == expected


@given(forests())
def test_ancestors_are_all_that_lie_on_the_chains_of_parents(forest: tuple[list[int], list[bool]]) -> None:
    above, wanted = forest
    rows = [row for row in range(len(above)) if wanted[row]]
    expected = {each for row in rows for each in chain(above, row)[1:]}
    assert np.flatnonzero(ancestors(np.array(above, np.int64), rows)).tolist() == sorted(expected)


class Counted(np.ndarray):
    """A mask that counts how many of its values were asked for."""

    asked = 0

    def __getitem__(self, key: Any) -> Any:
        Counted.asked += np.size(key)
        return np.asarray(self)[key]


def test_deep_forests_are_not_climbed_level_by_level() -> None:
    count = 2_000
    above = np.arange(-1, count - 1)
    wanted = np.zeros(count, np.bool_)
    wanted[0] = True
    Counted.asked = 0
    assert not nearest(above, wanted.view(Counted), np.arange(count)).any()
    assert Counted.asked <= 20 * count, "level by level, it would be count * count / 2"
