from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.kinds import KernelKind
from htagraph.whatif.kernel_times import KernelWork, resized


@given(st.floats(0, 4), st.floats(1, 3), st.sampled_from([0.25, 0.5, 2.0, 4.0, 8.0]))
def test_a_floor_and_a_slope_that_kernels_show_are_found(floor: float, slope: float, times: float) -> None:
    roof = np.array([1.0, 3.0, 10.0, 30.0, 100.0])
    kind, none = np.full(5, KernelKind.ELEMENTWISE), np.zeros(5)
    work, then = KernelWork(roof, none), KernelWork(times * roof, none)
    mid, low, high = resized(kind, floor + slope * roof, work, then, np.full(5, np.nan), np.arange(5))
    truth = floor + slope * times * roof
    assert ((low <= mid) & (mid <= high)).all()
    assert abs(mid.sum() / truth.sum() - 1) < 0.1
