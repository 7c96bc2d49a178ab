from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import SelectionError
from htagraph.core import traverse
from htagraph.core.contraction.net import UNBOUNDED
from htagraph.queries.replay import predict
from htagraph.queries.time_classes import Parts, TimeClasses, as_nanoseconds, class_parts, paths_of
from htagraph.queries.weights import NEVER, ChangeError, initial
from tests.queries.exact_replay import replay_with_factors, times_on_paths
from tests.reach import DATASETS, JOBS, graph_of, label
from tests.strategies import Frames, frames

CLASSES = TimeClasses(("a", "b", "c"), (UNBOUNDED, 4, 1), (False, False, True), ((0,), (1,), (0, 1), (1, 2)))


def test_the_time_of_several_classes_is_multiplied_by_all_their_factors() -> None:
    assert CLASSES.numerators(None)[0].tolist() == [1] * 5
    numbers, unit = CLASSES.numerators({"a": 0.3, "b": 1.5, "c": 0})
    assert [Fraction(int(number), unit) for number in numbers] == [1, *map(Fraction, ("3/10", "3/2", "9/20", "0"))]


def test_thirds_and_decimals_are_exact() -> None:
    numbers, unit = CLASSES.numerators({"a": 1 / 3, "b": 0.123})
    assert Fraction(int(numbers[1]), unit) == Fraction(1, 3)
    assert Fraction(int(numbers[3]), unit) == Fraction(41, 1000)


@given(st.floats(0, 1000))
def test_every_factor_is_nearly_exact(factor: float) -> None:
    numbers, unit = CLASSES.numerators({"a": factor})
    assert unit <= 1_000_000
    assert abs(int(numbers[1]) / unit - factor) <= 0.0000005 + 1e-9


def test_the_largest_factor_of_common_time_is_the_product() -> None:
    assert CLASSES.bounds.tolist() == [1, UNBOUNDED, 4, UNBOUNDED, 4]


def test_a_switch_is_on_or_off() -> None:
    with pytest.raises(ChangeError, match="give 1"):
        CLASSES.numerators({"c": 0.5})


def test_unknown_classes_and_bad_factors_are_refused() -> None:
    with pytest.raises(SelectionError, match="choose from a, b, c"):
        CLASSES.numerators({"d": 1})
    for factors in ({"a": -0.1}, {"b": 5}, {"a": float("inf")}):
        with pytest.raises(ChangeError, match="give a finite number"):
            CLASSES.numerators(factors)


def test_times_that_do_not_fit_are_refused() -> None:
    CLASSES.refuse_overflow([10**12] * 5, np.full(5, 1000))
    with pytest.raises(ChangeError, match="too long"):
        CLASSES.refuse_overflow([10**12] * 5, np.full(5, 10**6))


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6))
def test_times_are_rounded_to_the_nearest_ns(time: int, unit: int) -> None:
    rounded = int(as_nanoseconds(np.array([time]), unit)[0])
    assert abs(Fraction(time, unit) - rounded) <= Fraction(1, 2)


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


HALF = {"device": {"kind": "device"}}


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_the_longest_paths_of_every_trace_are_its_times(path: Path) -> None:
    graph = graph_of(path)
    time = times_on_paths(paths_of(graph))
    assert (time[:-3] == graph.time).all()
    assert time[-3] == graph.origin_ns
    assert time[-2] == graph.time[1::2][graph.awake].max()
    assert time[-1] == graph.time.max()


@given(frames())
@settings(max_examples=40)
def test_the_last_vertex_follows_all_others(dag: Frames) -> None:
    time = times_on_paths(paths_of(dag.graph))
    assert time[-1] == dag.graph.time.max()


@pytest.mark.parametrize("path", DATASETS, ids=label)
@pytest.mark.parametrize("factor", [0.0, 0.37, 1 / 3, 1.9])
def test_rounding_once_differs_from_rounding_each_edge_by_half_a_ns_per_edge(path: Path, factor: float) -> None:
    graph = graph_of(path)
    classes = {"operators": {"kind": ["op", "python", "runtime", "host_communication"]}}
    try:
        state = hg.what_if(graph).scale(factor=factor, **classes["operators"]).state
    except SelectionError:
        pytest.skip("no such time")
    rounded = predict(state.graph, state.lag, state.gap, state.head)
    exact = replay_with_factors(graph, classes, {"operators": factor})
    order, sources = graph.topological_order, graph.edges.source[graph.in_edges]
    edges = traverse.levels(order, graph.in_offsets, sources)
    # a lag and a gap are rounded for each edge of a path
    assert (np.abs(rounded - exact) <= edges).all()
    assert (rounded != exact).any() == (factor > 0)


def test_whole_factors_are_exact_in_both_ways() -> None:
    graph = graph_of(next(path for path in DATASETS if path.name == "demo"))
    for factor in (0, 1, 2, 5):
        state = hg.what_if(graph).scale(factor=factor, kind="device").state
        exact = replay_with_factors(graph, HALF, {"device": factor})
        assert (exact == predict(state.graph, state.lag, state.gap, state.head)).all()


def test_too_many_classes_are_refused() -> None:
    with pytest.raises(SelectionError, match="give at most 62"):
        paths_of(graph_of(DATASETS[0]), {str(i): {"rank": 0} for i in range(63)})
