from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.devices import PEAKS
from htagraph.whatif.device_times import PRECISIONS, Kernels, instead, ratios

PRODUCT = st.sampled_from(list(PEAKS))


def kernels(
    time_us: float, *, product: bool = False, unknown: bool = False, flop: float = np.nan, moved: float = np.nan,
    written: float = np.nan, precision: str = "fp32", warps: float = np.nan,
) -> Kernels:  # fmt: skip
    numbers = [np.array([each]) for each in (flop, moved, written)]
    place = PRECISIONS.index(precision) if precision else -1
    flags = np.array([product]), np.array([unknown])
    columns: list[Any] = [np.array([time_us * 1000]), *flags, *numbers, np.array([place]), np.array([False])]
    columns += [np.array([warps])]
    return Kernels(*columns)


ANY = st.fixed_dictionaries(
    {
        "time_us": st.floats(0.5, 1e5), "product": st.booleans(), "unknown": st.booleans(), "flop": st.floats(1, 1e13),
        "moved": st.floats(1, 1e10), "precision": st.sampled_from([*PRECISIONS, ""]),
    }
)  # fmt: skip


@given(PRODUCT, PRODUCT, ANY)
def test_there_and_back_is_the_same_time(here: str, there: str, work: dict[str, Any]) -> None:
    one = kernels(**work)
    forth = ratios(one, here, there)
    assert forth.low[0] < 1 < forth.high[0]
    assert np.isfinite(forth.ratio).all() and forth.ratio[0] > 0
    if work["product"] and work["precision"] and not work["unknown"]:
        assert forth.ratio[0] * ratios(one, there, here).ratio[0] == pytest.approx(1)


def test_large_kernels_follow_the_roofs_and_tiny_ones_the_floor() -> None:
    h100, t4 = PEAKS["H100 SXM"], PEAKS["T4"]
    large = kernels(1e6, product=True, flop=4e12, written=1e9, precision="fp16")
    roof = t4.bits_16 * t4.reach_16 / (h100.bits_16 * h100.reach_16)
    assert ratios(large, "T4", "H100 SXM").ratio[0] == pytest.approx(roof, rel=0.01)
    assert ratios(kernels(1e6), "T4", "H100 SXM").ratio[0] == pytest.approx(320 * 0.75 / (3350 * 0.86), rel=0.01)
    assert ratios(kernels(2), "T4", "H100 SXM").ratio[0] == 1


def test_a_small_product_gains_less_from_more_units() -> None:
    sizes = [
        ratios(kernels(1e3, product=True, flop=1e9, written=n), "A100 40GB SXM", "H100 SXM").ratio[0]
        for n in (1e5, 1e7, 1e9)
    ]
    assert sizes == sorted(sizes, reverse=True)


def test_a_kernel_of_few_warps_gains_less_from_another_device() -> None:
    """The fewer warps a kernel had, the more of its time depends on no rate; the time of its bytes always does."""
    gains = [ratios(kernels(50, moved=1e7, warps=each), "A100 40GB SXM", "H100 SXM").ratio[0] for each in (1, 64, 1e6)]
    assert gains == sorted(gains, reverse=True)
    unknown = ratios(kernels(50, moved=1e7), "A100 40GB SXM", "H100 SXM").ratio[0]
    assert gains[-1] == pytest.approx(unknown)
    bound = ratios(kernels(1e3, moved=1.3e9, warps=1), "A100 40GB SXM", "H100 SXM").ratio[0]
    assert bound == pytest.approx(ratios(kernels(1e3, moved=1.3e9), "A100 40GB SXM", "H100 SXM").ratio[0], rel=0.05)


def test_what_is_unknown_has_both_ratios_in_its_interval() -> None:
    found = ratios(kernels(1e4, unknown=True), "V100 SXM", "L4")
    low, high = found.ratio[0] * found.low[0], found.ratio[0] * found.high[0]
    for known in (kernels(1e4), kernels(1e4, product=True)):
        assert low < ratios(known, "V100 SXM", "L4").ratio[0] < high


@pytest.mark.parametrize(
    ("device", "wanted", "used"),
    [("V100 SXM", "bf16", "fp32"), ("A100 80GB SXM", "fp8", "fp16"), ("V100 SXM", "tf32", "fp32"),
     ("P4", "fp16", "fp32"), ("MI100", "bf16", "bf16"), ("H100 SXM", "fp8", "fp8")],
)  # fmt: skip
def test_a_type_without_units_is_another_type(device: str, wanted: str, used: str) -> None:
    assert instead(wanted, device) == used
    slower = ratios(kernels(1e5, product=True, precision=wanted), "H100 SXM", device).ratio[0]
    assert slower >= 1
