from __future__ import annotations

import pytest

from htagraph.core.device_peaks import PEAKS, Peak, peak_of


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [("NVIDIA A100-PG509-200", 1555), ("NVIDIA A100-SXM4-80GB", 2039), ("NVIDIA H100 80GB HBM3", 3350),
     ("NVIDIA L40S", 864), ("AMD Instinct MI300X", 5300), ("Tesla V100-SXM2-16GB", 900), ("NVIDIA H100 PCIe", 2000)],
)  # fmt: skip
def test_a_device_is_known_by_words_in_its_name(name: str, bandwidth: float) -> None:
    peak = peak_of(name)
    assert peak is not None
    assert peak.gb_s == bandwidth


def test_other_devices_have_no_known_peak() -> None:
    assert peak_of("") is None
    assert peak_of("NVIDIA Z9000") is None
    assert all(peak.tflop_s(3) == 0 for peak in PEAKS.values())


@pytest.mark.parametrize("name", PEAKS)
def test_smaller_elements_are_never_slower(name: str) -> None:
    peak = PEAKS[name]
    known = [rate for rate in (peak.bits_64, peak.bits_32, peak.tf32, peak.bits_16, peak.bits_8) if rate]
    assert known == sorted(known)
    assert peak.gb_s > 0


def test_throughput_is_chosen_by_the_size_of_an_element() -> None:
    peak = Peak(1000, bits_16=16, bits_32=32, bits_64=64, bits_8=8, tf32=19)
    assert [peak.tflop_s(size) for size in (1, 2, 4, 8, 16)] == [8, 16, 32, 64, 0]
    assert peak.tflop_s(4, tf32=True) == 19


def test_a_word_within_another_word_is_no_device() -> None:
    assert peak_of("NVIDIA XA100") is None
    assert peak_of("NVIDIA A1000") is None
