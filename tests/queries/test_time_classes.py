from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph import SelectionError
from htagraph.core.contraction.vectors import UNBOUNDED
from htagraph.queries.time_classes import TimeClasses, as_nanoseconds
from htagraph.queries.weights import ChangeError

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
