from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.kinds import KernelKind
from htagraph.whatif.kernel_times import KernelWork, resized


@given(st.floats(0, 4), st.floats(1, 3), st.sampled_from([0.25, 0.5, 2.0, 4.0, 8.0]))
def test_a_floor_and_a_slope_that_kernels_show_are_found(floor: float, slope: float, times: float) -> None:
    roof = np.array([1.0, 3.0, 10.0, 30.0, 100.0])
    kind, none = np.full(5, KernelKind.ELEMENTWISE), np.zeros(5)
    work, then = KernelWork(roof, none, none > 0), KernelWork(times * roof, none, none > 0)
    mid, low, high = resized(kind, floor + slope * roof, work, then, np.full(5, np.nan), np.arange(5))
    truth = floor + slope * times * roof
    assert ((low <= mid) & (mid <= high)).all()
    assert abs(mid.sum() / truth.sum() - 1) < 0.1


def test_operators_on_hosts_say_nothing_about_kernels_on_devices() -> None:
    """A rank without a device beside one with it: the host's long floors are none of the device."""
    roof, host = np.array([10.0, 20, 40, 10, 20, 40]), np.arange(6) > 2
    kind, none = np.full(6, KernelKind.ELEMENTWISE), np.zeros(6)
    work, then = KernelWork(roof, none, host), KernelWork(2 * roof, none, host)
    time = 1.2 * roof + 200 * host
    both, _, _ = resized(kind, time, work, then, np.full(6, np.nan), np.arange(6))
    before, after = (KernelWork(each.roof_us[:3], none[:3], host[:3]) for each in (work, then))
    device, _, _ = resized(kind[:3], time[:3], before, after, np.full(3, np.nan), np.arange(3))
    assert both[:3] == pytest.approx(device)
