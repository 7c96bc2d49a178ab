from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph import SelectionError
from htagraph.queries.class_parts import Parts, class_parts
from htagraph.queries.weights import NEVER, initial
from tests.reach import DATASETS, graph_of

AWAY = -(10**12)
"""Less than any number that counts, ns."""


def value(parts: Parts, factors: list[int]) -> list[int]:
    """Return the numbers that parts make with a factor for each class."""
    made = parts.rest.copy()
    for position, mask, amount in zip(*parts.amounts(), strict=True):
        product = np.prod([factor for number, factor in enumerate(factors) if mask >> number & 1], dtype=np.int64)
        made[position] += amount * product
    return made.tolist()


def test_an_amount_of_several_classes_is_multiplied_by_all_their_factors() -> None:
    parts = Parts.of(np.array([10, 20, 30]))
    parts.multiply(np.array([0, 1]), np.array([10, 15]), 0)
    parts.multiply(np.array([1, 2]), np.array([15, 30]), 1)
    assert value(parts, [1, 1]) == [10, 20, 30]
    assert value(parts, [2, 3]) == [20, 5 + 6 * 15, 90]


@given(st.lists(st.integers(0, 50), min_size=4, max_size=4), st.data())
def test_a_switch_leads_from_one_number_to_the_other(before: list[int], data: st.DataObject) -> None:
    after = [data.draw(st.sampled_from([0, number, NEVER, number + 3])) for number in before]
    parts = Parts.of(np.array(before))
    parts.switch(np.array(before), np.array(after), 0)
    assert value(parts, [1]) == before
    switched = value(parts, [0])
    assert [max(number, AWAY) for number in switched] == [max(number, AWAY) for number in after]


def test_an_edge_may_come_with_a_switch() -> None:
    parts = Parts.of(np.array([NEVER]))
    parts.switch(np.array([NEVER]), np.array([5]), 0)
    assert value(parts, [0]) == [5]
    assert value(parts, [1])[0] < AWAY
    with pytest.raises(SelectionError, match="add the same dependency"):
        parts.switch(np.array([NEVER]), np.array([5]), 1)


def test_two_switches_may_take_the_same_time_away_but_not_parts_of_it() -> None:
    before, after = np.array([10]), np.array([4])
    parts = Parts.of(before)
    parts.multiply(np.array([0]), np.array([2]), 2)
    parts.switch(before, after, 0)
    assert [value(parts, factors)[0] for factors in ([1, 1, 1], [0, 1, 1], [0, 1, 5], [1, 1, 5])] == [10, 4, 4, 18]
    with pytest.raises(SelectionError, match="leaves some of the time"):
        parts.switch(before, after, 1)
    parts = Parts.of(before)
    parts.switch(before, after, 0)
    parts.switch(before, after, 1)
    assert [value(parts, factors)[0] for factors in ([1, 1], [0, 1], [1, 0], [0, 0])] == [10, 4, 4, 4]


def test_time_that_a_change_leaves_is_not_multiplied() -> None:
    parts = Parts.of(np.array([10]))
    parts.multiply(np.array([0]), np.array([8]), 0)
    with pytest.raises(SelectionError, match="leaves some of the time"):
        parts.switch(np.array([10]), np.array([5]), 1)


def test_without_classes_everything_is_rest() -> None:
    graph = graph_of(DATASETS[0])
    parts = class_parts(initial(graph), {})
    assert np.array_equal(parts.lag.rest, graph.edges.lag)
    assert np.array_equal(parts.gap.rest, graph.gap)
    assert not len(parts.lag.amounts()[0])


def test_changes_that_leave_a_moment_alone_are_not_combined() -> None:
    graph = graph_of(next(path for path in DATASETS if path.name == "demo"))
    edges = graph.edges
    several = np.flatnonzero(np.diff(graph.in_offsets) == 2)[0]
    states = {}
    for name, edge in zip("ab", graph.in_edges[graph.in_offsets[several] :][:2], strict=True):
        lag = edges.lag.copy()
        lag[edge] = NEVER
        states[name] = replace(initial(graph), lag=lag)
    assert class_parts(initial(graph), {"a": states["a"]}).switches == (True,)
    with pytest.raises(SelectionError, match="without anything that it follows"):
        class_parts(initial(graph), states)
