from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.contraction.vectors import UNBOUNDED, cover_together, covers, sparse

_VECTORS = st.tuples(*[st.integers(-4, 4)] * 3)


@given(_VECTORS, _VECTORS, st.tuples(*[st.sampled_from([UNBOUNDED, 1, 2])] * 2))
@settings(max_examples=200)
def test_a_vector_covers_another_if_it_is_as_long_for_all_factors(
    first: tuple[int, ...], second: tuple[int, ...], limits: tuple[int, ...]
) -> None:
    # the difference is linear in each factor, so that the corners decide; 100 stands for any
    corners = itertools.product([1], *([0, 100 if limit == UNBOUNDED else limit] for limit in limits))
    longer = all(np.dot(first, factors) >= np.dot(second, factors) for factors in corners)
    rows = np.array([first]), 0, np.array([second]), 0
    assert covers(*rows, np.array([1, *limits])) == longer


def test_vectors_become_numbers_and_amounts() -> None:
    made = sparse(np.array([[5, 0, 2], [1, 0, 0], [0, 3, 4]]))
    assert made.base.tolist() == [5, 1, 0]
    assert made.offsets.tolist() == [0, 1, 1, 3]
    assert list(zip(made.component.tolist(), made.amount.tolist(), strict=True)) == [(2, 2), (1, 3), (2, 4)]


@given(_VECTORS, _VECTORS, _VECTORS, st.tuples(*[st.sampled_from([UNBOUNDED, 1, 2])] * 2))
@settings(max_examples=300)
def test_two_vectors_that_cover_a_third_one_are_longer_for_all_factors(
    first: tuple[int, ...], second: tuple[int, ...], third: tuple[int, ...], limits: tuple[int, ...]
) -> None:
    rows = 1000 * np.array([first, second, third])
    if not cover_together(rows, 0, 1, 2, np.array([1, *limits])):
        return
    each = [np.linspace(0, 50 if limit == UNBOUNDED else limit, 40) for limit in limits]
    factors = np.array([[1, *values] for values in itertools.product(*each)])
    length = factors @ rows.T
    assert (length[:, :2].max(axis=1) >= length[:, 2]).all()


def test_a_vector_between_two_others_is_covered_by_both_together() -> None:
    rows = np.array([[100, 0], [0, 100], [40, 40], [60, 60]])
    bounds = np.array([1, UNBOUNDED])
    assert cover_together(rows, 0, 1, 2, bounds)
    assert cover_together(rows, 1, 0, 2, bounds)
    assert not cover_together(rows, 0, 1, 3, bounds)
    assert not covers(rows, 0, rows, 2, bounds)
    assert not covers(rows, 1, rows, 2, bounds)
