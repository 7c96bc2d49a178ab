"""Peak bandwidth and arithmetic throughput of devices, from their makers' data sheets."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["PEAKS", "Peak", "peak_of"]


@dataclass(frozen=True)
class Peak:
    """A device's peak rates; 0 where its data sheet gives none."""

    gb_s: float
    """Memory bandwidth, 10⁹ B/s."""
    bits_16: float
    """16-bit floating point on matrix units (tensor cores), 10¹² operations/s."""
    bits_32: float
    """32-bit floating point on vector units, 10¹² operations/s."""
    bits_64: float = 0.0
    """64-bit floating point, on matrix units where there are some that can, 10¹² operations/s."""
    bits_8: float = 0.0
    """8-bit floating point on matrix units, 10¹² operations/s."""
    tf32: float = 0.0
    """32-bit floating point rounded to 19 bits (TF32), on matrix units, 10¹² operations/s."""

    def tflop_s(self, element_bytes: int, *, tf32: bool = False) -> float:
        """Return the peak throughput for elements of `element_bytes` bytes, 10¹² operations/s; 0 if unknown."""
        if tf32:
            return self.tf32
        return {1: self.bits_8, 2: self.bits_16, 4: self.bits_32, 8: self.bits_64}.get(element_bytes, 0.0)


PEAKS: dict[str, Peak] = {
    "V100": Peak(900, 125, 15.7, 7.8),
    "T4": Peak(320, 65, 8.1),
    "A100.*80GB": Peak(2039, 312, 19.5, 19.5, 0, 156),
    "A100": Peak(1555, 312, 19.5, 19.5, 0, 156),
    "A10G?": Peak(600, 125, 31.2, 0, 0, 62.5),
    "A30": Peak(933, 165, 10.3, 10.3, 0, 82),
    "L4": Peak(300, 121, 30.3, 0, 242, 60),
    "L40S": Peak(864, 362, 91.6, 0, 733, 183),
    "H100 PCIe": Peak(2000, 756, 51, 51, 1513, 378),
    "H100 NVL": Peak(3900, 835, 60, 60, 1671, 418),
    "H100": Peak(3350, 989, 67, 67, 1979, 495),
    "H200": Peak(4800, 989, 67, 67, 1979, 495),
    "B200": Peak(8000, 2250, 80, 40, 4500, 1100),
    "MI250X": Peak(1638, 191.5, 47.9, 47.9),  # one of its two dies: each is a device of its own
    "MI250": Peak(1638, 181, 45.3, 45.3),
    "MI300X": Peak(5300, 1307, 163.4, 163.4, 2615, 654),
    "MI325X": Peak(6000, 1307, 163.4, 163.4, 2615, 654),
}
"""Peak rates by a pattern of words in the product name; the first pattern that matches counts.

The figures are those of NVIDIA's and AMD's data sheets: dense (without sparsity), at boost clock. They are the roof of
the roofline: with a figure twice as large, a kernel's share of the peak halves, and the ridge point moves.
"""


def peak_of(device_name: str) -> Peak | None:
    """Return the peak rates of a device by its product name, or None if the name is unknown.

    Example:
        >>> peak_of("NVIDIA A100-SXM4-80GB").gb_s
        2039
    """
    for words, peak in PEAKS.items():
        if re.search(rf"(?<![A-Za-z0-9]){words}(?![A-Za-z0-9])", device_name):
            return peak
    return None
