"""Quantiles of Student's t distribution, against a table and against drawn numbers."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.core.student import upper_quantile

TABLE = {
    (0.05, 1): 6.314, (0.001, 1): 318.309, (0.005, 2): 9.925, (0.001, 3): 10.215, (0.001, 4): 7.173,
    (0.025, 5): 2.571, (0.001, 10): 4.144, (0.025, 30): 2.042, (0.0005, 120): 3.373,
}  # fmt: skip
"""Of any book of statistics: (probability, degrees of freedom), quantile."""


@pytest.mark.parametrize("case", TABLE)
def test_the_quantiles_are_those_of_the_tables(case: tuple[float, int]) -> None:
    assert upper_quantile(*case) == pytest.approx(TABLE[case], abs=1e-3)


@pytest.mark.parametrize("chance", [0.0001, 0.01, 0.05])
def test_more_freedom_needs_less_and_whole_numbers_are_nothing_special(chance: float) -> None:
    each = [upper_quantile(chance, freedom) for freedom in np.arange(1, 40, 0.25)]
    assert (np.diff(each) < 1e-3).all()


def test_drawn_numbers_exceed_the_quantile_as_often_as_it_says() -> None:
    drawn = np.random.default_rng(0).standard_t(4.5, 200_000)
    assert (drawn > upper_quantile(0.01, 4.5)).mean() == pytest.approx(0.01, abs=0.001)
