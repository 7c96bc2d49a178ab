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
    work, then = (KernelWork(each * roof, none, none > 0, np.full(5, np.nan)) for each in (1, times))
    mid, low, high = resized(kind, floor + slope * roof, work, then, np.full(5, np.nan), np.arange(5))
    truth = floor + slope * times * roof
    assert ((low <= mid) & (mid <= high)).all()
    assert abs(mid.sum() / truth.sum() - 1) < 0.1


def test_operators_on_hosts_say_nothing_about_kernels_on_devices() -> None:
    """A rank without a device beside one with it: the host's long floors are none of the device."""
    roof, host = np.array([10.0, 20, 40, 10, 20, 40]), np.arange(6) > 2
    kind, none = np.full(6, KernelKind.ELEMENTWISE), np.zeros(6)
    work, then = (KernelWork(times * roof, none, host, np.full(6, np.nan)) for times in (1, 2))
    time = 1.2 * roof + 200 * host
    both, _, _ = resized(kind, time, work, then, np.full(6, np.nan), np.arange(6))
    before, after = (KernelWork(each.roof_us[:3], none[:3], host[:3], each.warps[:3]) for each in (work, then))
    device, _, _ = resized(kind[:3], time[:3], before, after, np.full(3, np.nan), np.arange(3))
    assert both[:3] == pytest.approx(device)


@given(st.floats(0.01, 1e4), st.floats(0.01, 1), st.floats(0.1, 16))
def test_how_full_a_device_is_says_the_floor_and_peak_rates_say_what_is_none(
    warps: float, share: float, times: float
) -> None:
    """A kernel keeps the part of its time that few warps explain, but none of the time that peak rates need."""
    time, kind, none = np.full(4, 50.0), np.full(4, KernelKind.GEMM), np.zeros(4)
    work, then = (KernelWork(each * share * time, none, none > 0, np.full(4, warps)) for each in (1, times))
    mid, low, high = resized(kind, time, work, then, np.full(4, np.nan), np.arange(4))
    fixed = min(1 / (1 + warps / 64), 1 - share)
    assert mid == pytest.approx(time * (fixed + (1 - fixed) * times))
    assert ((low <= mid) & (mid <= high)).all()
    assert (mid >= then.roof_us * (1 - 1e-9)).all()


@given(st.floats(0.1, 16))
def test_an_interruption_gets_rarer_with_less_work_and_no_longer_with_more(times: float) -> None:
    """One of five equal kernels was stopped: the other four say what each takes at another size."""
    roof, kind, none, unknown = np.full(5, 40.0), np.full(5, KernelKind.GEMM), np.zeros(5), np.full(5, np.nan)
    time = np.array([50.0, 50, 50, 50, 5_000])
    work, then = (KernelWork(each * roof, none, none > 0, unknown) for each in (1, times))
    mid, low, high = resized(kind, time, work, then, unknown, np.zeros(5))
    assert mid[4] - mid[0] == pytest.approx(4_950 * min(mid[0] / 50, 1))
    assert low[4] <= mid[4] <= high[4]
