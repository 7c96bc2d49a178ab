"""How long kernels take on another device: the roofs of both devices, and how near to the roofs kernels come.

The time of a kernel is modelled on both devices, and the recorded time is multiplied by the ratio. A model has a floor,
which hardly changes between devices, the operations at the rate that large products reach, and the bytes at the
bandwidth that large elementwise kernels reach, one after the other. The floor of a kernel whose few warps left the
recorded device idle is larger: more of its time depends on no rate. A product is computed in tiles, one per unit at a
time: the last tiles leave units idle, so that small products come less near to the roof of a larger device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Mask
from htagraph.core.devices import PEAKS, is_amd
from htagraph.core.kernels import SIZES
from htagraph.whatif.rates import TILE, by_fill, split

__all__ = ["PRECISIONS", "Kernels", "Ratios", "instead", "ratios"]

_TAIL = 0.5
"""Tiles' times by which a product takes longer than whole units would: on average half a tile of each unit is left
over. Fitted: least spread of times over the model, 0.17 in logarithm, on products of NeuSight's labels; 0.20
without, and 0.20 where it is 1.2. Doubled, small products gain less from more units."""
_FLOORS_NS = (2_000, 7_000)
"""The time of a kernel that does next to nothing, and of an operator that was timed alone, ns. Source: the shortest
kernels of traces; the median of NeuSight's operators that compute nothing (6 to 12 µs). Doubled, kernels of 4 µs are
no faster on any device."""
_REACHES = (0.8, 0.86)
"""Shares of the peak on matrix units, and of the memory's bandwidth, of devices without other published figures.
Source: medians of `PEAKS`. It cannot be doubled; with a half, such devices are half as fast."""
_AMD = (0.71, 0.80)
"""Shares of the peak in 32 bits, and of the memory's bandwidth, of AMD's devices of which nobody published more.
Source: NeuSight's labels on MI100. It cannot be doubled; with a half, such devices are half as fast."""
_OFF = 0.07
"""Relative half width of a 90 % interval: of all products of a job together, and of all other kernels. Chosen: with the
spread of runs, intervals hold 99 % of pairs of devices whose shares are published, as devices that nobody has measured
by operator are further off. Doubled, intervals are half as wide again."""
_OFF_UNPUBLISHED, _OFF_ALIKE, _OFF_VENDOR, _OFF_UNSHAPED, _OFF_POWER = 0.20, 0.12, 0.15, 0.06, 0.10
"""What is added, as an independent error, for a device whose reached share of operations is not published; for one
whose share is that of its family, or whose share of the memory's bandwidth is not published; for kernels of another
vendor, for products whose operations are not known, and for boards that their power limits, which reach more when they
are cool. Chosen: the spread of shares in `PEAKS`, of operations and of bandwidth; how far models on MI100 and NVIDIA's
devices are off; the tail of small products; how much equal products on T4 differ. Doubled, such intervals are wider."""
_LIMITED = 0.6
"""The share of the 32-bit peak below which its power limits a board. Chosen: between P4, T4 and L4, and all boards with
a published share. It cannot be doubled; at 0.7, Ada counts as limited."""

PRECISIONS = tuple(SIZES)
"""Types of products by their number."""


@dataclass(frozen=True, eq=False)
class Kernels:
    """The operations, bytes and times of kernels, as recorded on one device."""

    time_ns: npt.NDArray[np.float64]
    """Recorded times."""
    product: Mask
    """Whether operations may bound them."""
    unknown: Mask
    """Whether nothing says what bounds them."""
    flop: npt.NDArray[np.float64]
    """NaN if unknown."""
    bytes: npt.NDArray[np.float64]
    """NaN if unknown."""
    written: npt.NDArray[np.float64]
    """Elements of a product's result; NaN if unknown."""
    precision: npt.NDArray[np.int64]
    """Index into `PRECISIONS` of products; -1 if unknown."""
    alone: Mask
    """Whether they are operators that were timed alone, and not kernels."""
    warps: npt.NDArray[np.float64]
    """Warps of the grid per multiprocessor; NaN where unknown."""


class Ratios(NamedTuple):
    """New time over recorded time of each kernel."""

    ratio: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    """The least ratio over `ratio`, of 90 %."""
    high: npt.NDArray[np.float64]
    """The largest ratio over `ratio`, of 90 %."""


def instead(precision: str, device: str) -> str:
    """Return the type in which a device computes products of a type that it has no units for.

    Example:
        >>> instead("bf16", "V100 SXM"), instead("fp8", "A100 80GB SXM"), instead("fp16", "T4")
        ('fp32', 'fp16', 'fp16')
    """
    peak = PEAKS[device]
    tensor = is_amd(device) or peak.tf32 > 0
    has = {
        "fp8": peak.bits_8 > 0, "fp16": peak.bits_16 > 0, "bf16": tensor, "tf32": peak.tf32 > 0,
    }.get(precision, True)  # fmt: skip
    return precision if has else "fp16" if precision == "fp8" and peak.bits_16 else "fp32"


def ratios(kernels: Kernels, recorded: str, device: str) -> Ratios:
    """Return how long kernels take on one device over their time on another one.

    Where the type of a product, or the bound of a kernel, is not known, the ratio is the geometric mean of the
    ratios that are possible, and the interval holds all these ratios.
    """
    possible = _by_precision(kernels, recorded, device)
    moved = _times(kernels, recorded, device, np.zeros(len(kernels.time_ns), np.bool_), kernels.precision)
    low = np.where(kernels.product, possible.min(axis=0), moved)
    high = np.where(kernels.product, possible.max(axis=0), moved)
    low[kernels.unknown] = np.minimum(possible.min(axis=0), moved)[kernels.unknown]
    high[kernels.unknown] = np.maximum(possible.max(axis=0), moved)[kernels.unknown]
    ratio = np.sqrt(low * high)
    off = np.exp(_widths(kernels, recorded, device, kernels.time_ns * ratio))
    return Ratios(ratio, low / ratio / off, high / ratio * off)


def _by_precision(kernels: Kernels, recorded: str, device: str) -> Array:
    """Return the ratios of kernels as products, a row per type that an unknown type may be."""
    every = np.ones(len(kernels.time_ns), np.bool_)
    guesses = [
        np.where(kernels.precision < 0, PRECISIONS.index(guess), kernels.precision) for guess in ("fp16", "fp32")
    ]
    return np.stack([_times(kernels, recorded, device, every, guess) for guess in guesses])


def _times(kernels: Kernels, recorded: str, device: str, product: Array, precision: Array) -> Array:
    """Return the modelled time on a device over that on the recorded one.

    Work that is not known, or more than the recorded time allows, is as much as the recorded time allows.
    """
    floor = np.where(kernels.alone, _FLOORS_NS[1], _FLOORS_NS[0])
    left = np.maximum(kernels.time_ns - floor, 0)
    rate, new_rate = _rates(precision, recorded), _rates(precision, device)
    flop = np.where(product, np.where(np.isnan(kernels.flop), left * rate, kernels.flop), 0)
    most = np.where(product, 0, left * _bandwidth(recorded))
    moved = np.where(product, np.nan_to_num(kernels.bytes), np.fmin(kernels.bytes, most))
    moved = np.where(np.isnan(kernels.bytes), most, moved)
    tiles = np.where(np.isnan(kernels.written), np.inf, np.maximum(kernels.written / TILE, 1))
    before, after = (
        flop / each_rate * (1 + _TAIL * PEAKS[each].units / tiles) + moved / _bandwidth(each)
        for each, each_rate in ((recorded, rate), (device, new_rate))
    )
    time = np.maximum(kernels.time_ns, 1)
    of_model = time * floor / (floor + before)
    of_few_warps = np.where(product, 0, np.minimum(by_fill(time, kernels.warps).fixed, time - before))
    growth = np.divide(after, before, out=np.ones(len(before)), where=before > 0)
    return np.asarray(split(time, np.maximum(of_model, of_few_warps)).at(growth) / time)


def _bandwidth(device: str) -> float:
    """Return the bandwidth that large elementwise kernels reach, bytes per ns."""
    return PEAKS[device].gb_s * (PEAKS[device].reach_memory or (_AMD if is_amd(device) else _REACHES)[1])


def _rates(precision: Array, device: str) -> Array:
    """Return the operations per ns that large products of each type reach on a device."""
    return np.array([_rate(each, device) for each in PRECISIONS])[precision]


def _rate(precision: str, device: str) -> float:
    peak, used = PEAKS[device], instead(precision, device)
    most = peak.tflop_s(SIZES[used], tf32=used == "tf32") or peak.bits_32
    plain = used in ("fp32", "fp64")
    if plain:
        return 1000 * most * (peak.reach_32 or _AMD[0] if is_amd(device) else peak.likely_reach_32)
    return 1000 * most * (peak.reach_16 or _REACHES[0])


def _limited(device: str) -> bool:
    """Return whether power limits a board."""
    return not is_amd(device) and PEAKS[device].likely_reach_32 < _LIMITED


def _widths(kernels: Kernels, recorded: str, device: str, new_ns: Array) -> Array:
    """Return the half width of the interval of each kernel's ratio, in logarithm.

    Errors of products and of other kernels are independent, so that a job is less far off than both at their ends.
    """
    may_compute = kernels.product | kernels.unknown
    vendor = _OFF_VENDOR**2 * (is_amd(recorded) != is_amd(device))
    product = vendor + _OFF**2 + _OFF_UNSHAPED**2 * np.isnan(kernels.flop)
    moved = vendor + _OFF**2
    for name in (recorded, device):
        product = product + _unknown_rate(kernels.precision, name)
        moved += _unknown_bandwidth(name)
    width = np.sqrt(np.where(may_compute, product, moved))
    off_ns = width * new_ns
    computing_ns = float(off_ns[may_compute].sum())
    moving_ns = float(off_ns[~may_compute].sum())
    return np.asarray(width * np.hypot(computing_ns, moving_ns) / max(computing_ns + moving_ns, 1e-9))


def _unknown_rate(precision: Array, device: str) -> Array:
    """Return the square of how far the rate of products of each type may be off on a device, in logarithm."""
    peak = PEAKS[device]
    plain = np.isin(precision, (PRECISIONS.index("fp32"), PRECISIONS.index("fp64")))
    of_32 = _OFF_ALIKE * bool(peak.like) if peak.reach_32 else _OFF_UNPUBLISHED
    of_16 = 0.0 if peak.reach_16 else _OFF_UNPUBLISHED
    return np.where(plain, of_32, of_16) ** 2 + _OFF_POWER**2 * _limited(device)


def _unknown_bandwidth(device: str) -> float:
    """Return the square of how far the bandwidth of a device may be off, in logarithm."""
    peak = PEAKS[device]
    return 0.0 if peak.reach_memory and not peak.like else _OFF_ALIKE**2
