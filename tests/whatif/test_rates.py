"""Test `whatif.rates`: a fixed part and a rate."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.whatif.rates import by_fill, split

TIMES = st.lists(st.floats(0, 1e9), min_size=1, max_size=5).map(np.array)


@given(TIMES, st.floats(-1e9, 1e9), st.floats(0, 100), st.floats(0, 100))
def test_times_follow_the_amount(time: np.ndarray, fixed: float, less: float, more: float) -> None:
    """As much work takes as long; more takes no less; no work takes the fixed part; parts are never negative."""
    rated = split(time, fixed)
    assert np.allclose(rated.at(1), time, atol=0)
    assert (rated.at(max(less, more)) >= rated.at(min(less, more))).all()
    assert np.array_equal(rated.at(0), rated.fixed)
    assert (rated.fixed >= 0).all()
    assert (rated.paced >= 0).all()


@given(TIMES, st.floats(0, 1e6), st.floats(1, 64))
def test_a_fuller_device_grows_more(time: np.ndarray, warps: float, growth: float) -> None:
    """A kernel grows between not at all and in proportion, and the more, the fuller its device is."""
    less, more = (by_fill(time, np.full(len(time), each)).at(growth) for each in (warps, 2 * warps))
    tiny = 1e-9 * growth * time
    assert (time - tiny <= less).all()
    assert (less <= more + tiny).all()
    assert (more <= growth * time + tiny).all()


def test_kernels_without_a_record_have_no_fixed_part() -> None:
    """A kernel whose warps are not recorded grows in proportion here: its floor is found elsewhere."""
    assert by_fill(np.array([5.0]), np.array([np.nan])).at(3).tolist() == [15.0]
