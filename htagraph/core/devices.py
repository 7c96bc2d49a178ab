"""Devices: their names, and the rates that their data sheets promise and that large kernels reach."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from math import log

from htagraph.core.errors import SelectionError, nearest_words

__all__ = [
    "PEAKS",
    "Peak",
    "device_named",
    "is_amd",
    "known_device",
    "narrow_speedup",
    "peak_of",
    "tf32_speedup",
]


@dataclass(frozen=True)
class Peak:
    """A device's peak rates, 0 where its data sheet gives none; and which share of the peaks large kernels reach."""

    gb_s: float
    """Memory bandwidth, 10⁹ B/s."""
    bits_16: float
    """16-bit floating point on matrix units (tensor cores), 10¹² operations/s."""
    bits_32: float
    """32-bit floating point on vector units, and on matrix units where there are some that can, 10¹² operations/s."""
    bits_64: float = 0.0
    """64-bit floating point, on matrix units where there are some that can, 10¹² operations/s."""
    bits_8: float = 0.0
    """8-bit floating point on matrix units, 10¹² operations/s."""
    tf32: float = 0.0
    """32-bit floating point rounded to 19 bits (TF32), on matrix units, 10¹² operations/s."""
    units: int = 0
    """Streaming multiprocessors, or compute units."""
    watts: float = 0.0
    """The most power that the board takes, W."""
    reach_32: float = 0.0
    """Share of `bits_32` that large products of matrices reach for seconds; 0 if nobody has published it."""
    reach_16: float = 0.0
    """The same of `bits_16`; also taken for other types on matrix units."""
    reach_memory: float = 0.0
    """Share of `gb_s` that large elementwise kernels reach; 0 if nobody has published it."""
    like: str = ""
    """The product of the family whose shares in 32 bits and of memory count, as nobody published them for this one."""

    @property
    def likely_reach_32(self) -> float:
        """Return the share of `bits_32` that is published or, where none is, that the board's power allows."""
        joules = _JOULES[1 if not self.tf32 else 2 if not self.bits_8 else 3]
        return self.reach_32 or min(_MOST_32, self.watts / (self.bits_32 * joules))

    def tflop_s(self, element_bytes: int, *, tf32: bool = False) -> float:
        """Return the peak throughput for elements of `element_bytes` bytes, 10¹² operations/s; 0 if unknown."""
        if tf32:
            return self.tf32
        return {1: self.bits_8, 2: self.bits_16, 4: self.bits_32, 8: self.bits_64}.get(element_bytes, 0.0)


_JOULES = (0, 20.0, 11.0, 6.5)
"""Energy of an operation in 32 bits on NVIDIA's vector units, 10⁻¹² J: before TF32, of Ampere, of what has 8 bits.
Fitted on boards that their power limits: P4 and T4; cuBLAS on L4, RTX 4090 and 5090. Doubled, such boards of which
nobody published a rate are half as fast."""
_MOST_32 = 0.87
"""Share of the 32-bit peak that boards reach whose power does not limit them. Source: median of P100, V100, A100 and
Hopper (0.79 to 0.96). It cannot be doubled; with a half, boards of which nobody published a rate are half as fast."""
PEAKS: dict[str, Peak] = {
    "P4": Peak(192, 0, 5.5, 0.17, 0, 0, 20, 75, 0.46, 0, 0.75),
    "P40": Peak(346, 0, 11.8, 0.37, 0, 0, 30, 250),
    "P100 SXM": Peak(732, 21.2, 10.6, 5.3, 0, 0, 56, 300, 0.79, 0, 0.73, like="P100 PCIe"),
    "P100 PCIe": Peak(732, 18.7, 9.3, 4.7, 0, 0, 56, 250, 0.79, 0, 0.73),
    "V100 SXM": Peak(900, 125, 15.7, 7.8, 0, 0, 80, 300, 0.96, 0, 0.88, like="V100 PCIe"),
    "V100 PCIe": Peak(900, 112, 14, 7, 0, 0, 80, 250, 0.96, 0, 0.88),
    "T4": Peak(320, 65, 8.1, 0.25, 0, 0, 40, 70, 0.55, 0.37, 0.75),
    "A100 40GB SXM": Peak(1555, 312, 19.5, 19.5, 0, 156, 108, 400, 0.9, 0.86, 0.86, like="A100 40GB PCIe"),
    "A100 40GB PCIe": Peak(1555, 312, 19.5, 19.5, 0, 156, 108, 250, 0.9, 0.82, 0.86),
    "A100 80GB SXM": Peak(2039, 312, 19.5, 19.5, 0, 156, 108, 400, 0.9, 0.86, 0.86, like="A100 40GB PCIe"),
    "A100 80GB PCIe": Peak(1935, 312, 19.5, 19.5, 0, 156, 108, 300, 0.9, 0.82, 0.86, like="A100 40GB PCIe"),
    "A10": Peak(600, 125, 31.2, 0.49, 0, 62.5, 72, 150),
    "A10G": Peak(600, 70, 35, 0.55, 0, 35, 80, 300, 0, 1),
    "A30": Peak(933, 165, 10.3, 10.3, 0, 82, 56, 165),
    "A40": Peak(696, 149.7, 37.4, 0.58, 0, 74.8, 84, 300),
    "RTX A5000": Peak(768, 111, 27.8, 0.43, 0, 55.6, 64, 230, 0, 0.85),
    "RTX A6000": Peak(768, 154.8, 38.7, 0.6, 0, 77.4, 84, 300),
    "RTX 3090": Peak(936, 71, 35.6, 0.56, 0, 35.6, 82, 350, 0, 1.1),
    "L4": Peak(300, 121, 30.3, 0.47, 242, 60, 58, 72, 0.4, 0.75),
    "L40": Peak(864, 181, 90.5, 1.4, 362, 90.5, 142, 300, 0, 0.94),
    "L40S": Peak(864, 362, 91.6, 1.4, 733, 183, 142, 350, 0, 0.7),
    "RTX 4090": Peak(1008, 165.2, 82.6, 1.3, 330.3, 82.6, 128, 450, 0.7, 1.08),
    "RTX 6000 Ada": Peak(960, 364.2, 91.1, 1.4, 728.5, 182.1, 142, 300, 0, 0.76),
    "H100 SXM": Peak(3350, 989, 67, 67, 1979, 495, 132, 700, 0.79, 0.8, like="H200 NVL"),
    "H100 PCIe": Peak(2000, 756, 51, 51, 1513, 378, 114, 350, 0.79, 0.66, like="H200 NVL"),
    "H100 NVL": Peak(3900, 835, 60, 60, 1671, 418, 132, 400, 0.79, 0.58, like="H200 NVL"),
    "H800": Peak(3350, 989, 67, 1, 1979, 495, 132, 700, 0.79, 0.8, like="H200 NVL"),
    "H20": Peak(4000, 148, 44, 1, 296, 74, 78, 400),
    "GH200": Peak(4000, 989, 67, 67, 1979, 495, 132, 700, 0.79, 0.85, like="H200 NVL"),
    "H200": Peak(4800, 989, 67, 67, 1979, 495, 132, 700, 0.79, 0.8, like="H200 NVL"),
    "H200 NVL": Peak(4800, 836, 60, 60, 1671, 418, 132, 600, 0.79, 1.02),
    "B200": Peak(8000, 2250, 80, 40, 4500, 1100, 148, 1000),
    "GB200": Peak(8000, 2500, 80, 40, 5000, 1250, 148, 1200),
    "RTX 5090": Peak(1792, 209.5, 104.8, 1.6, 419, 104.8, 170, 575, 0.79, 1.2),
    "RTX PRO 6000": Peak(1792, 503.8, 125, 2, 1007, 251.9, 188, 600, 0.67, 0.91),
    "MI100": Peak(1228, 184.6, 46.1, 11.5, 0, 0, 120, 300, 0.71, 0, 0.8),
    "MI210": Peak(1638, 181, 45.3, 45.3, 0, 0, 104, 300),
    "MI250X": Peak(1638, 191.5, 47.9, 47.9, 0, 0, 110, 280),  # one of its two dies: each is a device of its own
    "MI250": Peak(1638, 181, 45.3, 45.3, 0, 0, 104, 280),
    "MI300A": Peak(5300, 980.6, 122.6, 122.6, 1961, 490, 228, 550),
    "MI300X": Peak(5300, 1307, 163.4, 163.4, 2615, 654, 304, 750, 0, 0.58),
    "MI325X": Peak(6000, 1307, 163.4, 163.4, 2615, 654, 304, 1000),
    "MI355X": Peak(8000, 2516, 157.3, 78.6, 5033, 0, 256, 1400),
}
"""Peak rates by product name; of the products of a family, the usual one comes first.

The peaks are those of NVIDIA's and AMD's data sheets: dense (without sparsity), at boost clock. They are the roof of
the roofline: with a figure twice as large, a kernel's share of the peak halves, and the ridge point moves. The shares
reached are measurements of others: NeuSight's labels (sitar-lab/NeuSight; P4, P100, V100, T4, A100, MI100 in 32 bits),
cuBLAS in 32 bits on L4 (rtferraz/cuda-kernel-engineering), H200 NVL (also for other Hopper), RTX 4090, 5090 and PRO
6000 (xzwgit/gpu-flops-bench), and the largest 16-bit rates of mag-/gpu_benchmark. With a share twice as large, kernels
on this device are predicted twice as fast."""
_NOISE = frozenset((
    "nvidia", "amd", "tesla", "instinct", "geforce", "gpu", "graphics", "radeon", "generation", "accelerator", "oam",
    "edition", "server", "workstation", "blackwell", "quadro", "device",
))  # fmt: skip
"""Words of product names that tell no two devices apart."""
_PARTS = frozenset(("mig", "laptop", "mobile", "max", "q"))
"""Words that mean another device, or a part of one, than the product of that name."""
_FORMS = frozenset(("40gb", "80gb", "sxm", "pcie", "nvl"))
"""Words that tell the products of a family apart."""
_USUAL = frozenset(("H100", "V100", "P100"))
"""Families of which a bare name means the module on a baseboard (SXM), as most servers have it."""
_SAME = 0.15
"""How far peaks of one family may differ so that a name which fits several of them means the usual one: 15 %.
Chosen: as much as a prediction is off. Doubled, an A100 without its memory's size is taken as one of 40 GB."""


@cache
def _words(name: str) -> frozenset[str]:
    """Return the words of a device's name, without those that tell nothing, in one spelling."""
    text = re.sub(r"hbm3e?|sxm\d?", " sxm ", name.lower())  # an H100 with HBM3 is the module
    text = re.sub(r"rtx", " rtx ", re.sub(r"pci-?e?", " pcie ", text))
    text = re.sub(r"(\d+)[ _-]?gi?b\b", r" \1gb ", text)
    words = {f"{word}gb" if word in ("40", "80") else word for word in re.findall(r"[a-z0-9]+", text)}
    return frozenset(words - _NOISE)


def _fitting(name: str) -> tuple[list[str], bool]:
    """Return (the products that a name may mean, whether the name says which)."""
    words = _words(name)
    if words & _PARTS:
        return [], False
    said = [product for product in PEAKS if _words(product) <= words]
    if said:
        return [max(said, key=lambda product: len(_words(product)))], True
    part = [product for product in PEAKS if words and words <= _words(product)]
    family = [product for product in PEAKS if _words(product) - _FORMS <= words]
    vague = part or family
    return vague, len(vague) == 1


def peak_of(device_name: str) -> Peak | None:
    """Return the peak rates of a device by the name that a recording has, or None if the name is unknown.

    Example:
        >>> peak_of("NVIDIA A100-SXM4-80GB").gb_s
        2039
    """
    return PEAKS.get(known_device(device_name))


def known_device(name: str) -> str:
    """Return the product that a recorded name means, ``""`` if it is unknown.

    Example:
        >>> known_device("Tesla V100-PCIE-32GB"), known_device("NVIDIA H100 80GB HBM3"), known_device("mine")
        ('V100 PCIe', 'H100 SXM', '')
    """
    return next(iter(_fitting(name)[0]), "")


def device_named(name: str) -> tuple[str, str]:
    """Return (the product that a user's name means, what was taken for granted; empty if the name says all).

    Raises:
        SelectionError: the name is unknown, or fits products that differ; the error names products.

    Example:
        >>> device_named("nvidia_h100_pcie"), device_named("h100")[0]
        (('H100 PCIe', ''), 'H100 SXM')
    """
    found, said = _fitting(name)
    if not found:
        like = nearest_words(name, [*PEAKS, *(each.split()[0] for each in PEAKS)])
        msg = f"{name!r} is no known device{like or '; known are ' + ', '.join(PEAKS)}"
        raise SelectionError(msg)
    if said:
        return found[0], ""
    peaks = [(PEAKS[each].gb_s, PEAKS[each].bits_32, PEAKS[each].tflop_s(2) or 1) for each in found]
    apart = max(abs(log(one / other)) for each in peaks for one, other in zip(each, peaks[0], strict=True))
    if apart > _SAME and not {found[0].split()[0]} & _USUAL:
        msg = f"{name!r} may be {', '.join(found[:-1])} or {found[-1]}: say which"
        raise SelectionError(msg)
    return found[0], f"{name} is taken as {found[0]}, not as {' or '.join(found[1:])}"


def is_amd(product: str) -> bool:
    """Return True for a product of AMD, whose kernels are others than NVIDIA's.

    Example:
        >>> is_amd("MI300X"), is_amd("H100 SXM")
        (True, False)
    """
    return product.startswith("MI")


_GENERATIONS = (
    (r"\b(gtx|titan|quadro|rtx 20\d0|tesla [kmpvt]\d|radeon)", 0.0),
    (r"geforce rtx [345]0\d0", 1.0),
    (r"\b(ada|rtx a\d+|rtx pro|pg50[69])\b", 2.0),
)
"""How many times as fast as 32-bit numbers TF32 is, by what the names of a generation match. Source: NVIDIA's data
sheets: tensor cores of GeForce multiply TF32 at the rate of the general cores, others at twice that rate or more. With
2 in place of 1, TF32 is advised to GeForce, where it gains nothing."""


def tf32_speedup(name: str) -> float | None:
    """Return how many times as fast as in 32 bits a device multiplies in TF32 by its peaks, or by its generation.

    It is 0 for a device without TF32, or of AMD, where PyTorch's settings do not reach it; None for an unknown device.

    Example:
        >>> tf32_speedup("NVIDIA A100-SXM4-80GB"), tf32_speedup("Tesla V100-SXM2-16GB")
        (8.0, 0.0)
        >>> tf32_speedup("NVIDIA GeForce RTX 3060"), tf32_speedup("NVIDIA RTX 500 Ada"), tf32_speedup("mine")
        (1.0, 2.0, None)
    """
    product = known_device(name)
    if product:
        peak = PEAKS[product]
        return 0.0 if is_amd(product) else peak.tf32 / peak.bits_32
    text = name.lower()
    return next((speedup for pattern, speedup in _GENERATIONS if re.search(pattern, text)), None)


def narrow_speedup(name: str) -> float | None:
    """Return how many times as fast as in 32 bits a device multiplies in 16 bits by its peaks; None if unknown.

    Example:
        >>> narrow_speedup("NVIDIA GeForce RTX 3060"), narrow_speedup("NVIDIA A100-SXM4-80GB"), narrow_speedup("mine")
        (2.0, 16.0, None)
    """
    product = known_device(name)
    if product:
        return PEAKS[product].bits_16 / PEAKS[product].bits_32
    tf32 = tf32_speedup(name)
    return 2 * tf32 if tf32 else None
