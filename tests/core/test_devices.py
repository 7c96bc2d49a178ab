from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.devices import PEAKS, device_named, is_amd, known_device, peak_of
from htagraph.core.errors import SelectionError


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"), ("H100 SXM5", "H100 SXM"), ("h100sxm", "H100 SXM"),
        ("NVIDIA_A100_80GB_PCIe", "A100 80GB PCIe"), ("A100-SXM4-40GB", "A100 40GB SXM"), ("Tesla_P4", "P4"),
        ("AMD Instinct MI250X/MI250", "MI250X"), ("RTX4090", "RTX 4090"), ("NVIDIA GH200 480GB", "GH200"),
        ("AMD Instinct MI300X VF", "MI300X"), ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000"),
    ],
)  # fmt: skip
def test_names_of_recordings_and_of_people_mean_products(name: str, product: str) -> None:
    assert device_named(name) == (product, "")
    assert known_device(name) == product


def test_a_family_is_its_usual_member_and_says_so() -> None:
    product, note = device_named("H100")
    assert product == "H100 SXM"
    assert "H100 PCIe" in note


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("A100", "say which"), ("H1O0", "did you mean"), ("MI300", "MI300X"), ("zzz", "known are"), ("", "known are"),
        ("RTX 4090 Laptop GPU", "no known device"), ("A100-SXM4-80GB MIG 1g.10gb", "no known device"),
    ],
)  # fmt: skip
def test_what_is_unclear_is_refused(name: str, why: str) -> None:
    with pytest.raises(SelectionError, match=why):
        device_named(name)


@given(
    st.sampled_from(list(PEAKS)), st.sampled_from(["", "NVIDIA ", "AMD Instinct ", "Tesla "]), st.sampled_from(" _-")
)
def test_each_product_is_found_by_its_name(product: str, maker: str, between: str) -> None:
    name = maker + product
    assert device_named(name.replace(" ", between))[0] == product


@pytest.mark.parametrize("name", PEAKS)
def test_what_is_reached_is_a_share_of_a_peak(name: str) -> None:
    peak = PEAKS[name]
    assert peak == peak_of(name)
    assert is_amd(name) or 0.3 < peak.likely_reach_32 <= 0.96
    assert peak.reach_16 <= 1.2  # boards clock higher than their data sheets say
    assert peak.units > 0
    assert is_amd(name) == name.startswith("MI")
