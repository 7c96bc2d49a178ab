"""How long kernels take at another size: a floor, and a slope that all kernels of their kind in the recording show.

A kernel that says how many warps it had per multiprocessor has a floor by how full the device was; the time that the
device's peak rates need for its work is never part of the floor.

Another kernel, or an operator on a host, takes `floor + depth + efficiency · roof`. The roof is the time that peak
rates need; the depth, of products of matrices, is the time in which one wave of blocks of threads goes through the
inner dimension. Each kind of kernel has its own coefficients, fitted to all its kernels in the recording.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.statistics import STANDS_OUT
from htagraph.whatif.rates import by_fill, split

__all__ = ["KernelWork", "resized"]

_OFF = 0.1
"""How far the times of all kernels may be off together, at any other size: clocks, other kernels of a library. Measured
on pairs of sizes of one model on seven devices. Doubled, intervals of a batch twice as large are nearly twice as
wide."""
_DRIFT = 0.08
"""The same per factor of e in size: caches hold less, and more of a device is filled. Measured likewise. Doubled,
intervals of a batch eight times as large are nearly twice as wide."""
_SHAPES = 0.25
"""The same, of how far times of kernels of a kind are off their fit: kernels that fit badly at recorded sizes do at
others. Chosen: a size changes less about a kernel than which kernel it is does. Doubled, intervals of kinds that fit
badly are nearly twice as wide."""
_SPREAD = 0.1
"""The least relative spread of the times of kernels of a kind around their fit. Measured on products of matrices on an
A100. Doubled, fits need four times as much evidence for a wave's time."""
_MOST_SPREAD = 0.5
"""The most that a kind's spread counts as, so that a few odd kernels do not decide for all. Chosen: five times the
least. Doubled, intervals of kinds that fit badly are twice as wide."""
_WAVES = 2
"""So many waves of blocks are a kernel's floor at most. Chosen: one that fills the device, and one filled in part.
Doubled, kernels of several waves are taken to have more floor."""

_FLOOR_US = 3.0
"""Floors are expected to be around this or less, µs: launch, first load and last store of a kernel, dispatch.
Source: the shortest kernels of recordings on V100, A100 and H100 take 1 to 4 µs. Small kernels have to show a larger
floor. Doubled, a floor that twenty kernels of 100 µs hint at is nearly twice as large."""


@dataclass(frozen=True, eq=False)
class KernelWork:
    """What kernels do, one entry per kernel."""

    roof_us: Array
    """The time in which the device's peak rates allow it, µs; NaN where unknown."""
    depth_us: Array
    """The time of one wave's pass through the inner dimension of a product at the peak rate, µs; 0 for others."""
    on_host: Array
    """True for operators on hosts, whose times say by themselves how far they may be off their fit."""
    warps: Array
    """Warps of the grid per multiprocessor as recorded; NaN where unknown, and on hosts."""

    def terms(self) -> Array:
        """Return a row per kernel: (1, depth, roof)."""
        return np.stack([np.ones(len(self.roof_us)), self.depth_us, self.roof_us], axis=1)


class _Resized(NamedTuple):
    """Predicted times, the ends of their intervals, µs, and whether their work changes."""

    usual: Array
    low: Array
    high: Array
    changed: Array


def resized(
    kind: Array, time_us: Array, work: KernelWork, then: KernelWork, fill: Array, alike: Array
) -> tuple[Array, Array, Array]:
    """Return (the time of each kernel with other work, its low end, its high end), µs.

    The floor of a kernel is known by how full it left the device. Without that record, the time above the fit of the
    kernel's kind is floor or slope, and the prediction lies between both. The ends are the two readings, widened by how
    far fits may be off.

    Args:
        kind: `KernelKind` of each kernel.
        time_us: as recorded, µs.
        work: as recorded.
        then: as predicted.
        fill: blocks of threads per multiprocessor of kernels whose warps are not known, NaN where neither is.
        alike: a number that is equal for equal kernels of equal calls. A kernel that takes much longer than usual was
            interrupted: the usual time says what its floor is. The interruption gets no longer with more work, and
            rarer with less.

    Returns:
        Three columns, µs; kernels of unknown work keep their time.

    Example:
        >>> time, roof = np.array([12.0, 22.0, 42.0]), np.array([10.0, 20, 40])
        >>> from htagraph.core.kinds import KernelKind
        >>> kind, none, unknown = np.full(3, KernelKind.ELEMENTWISE), np.zeros(3), np.full(3, np.nan)
        >>> before, after = (KernelWork(times * roof, none, none > 0, unknown) for times in (1, 2))
        >>> mid, _, _ = resized(kind, time, before, after, unknown, np.arange(3))
        >>> mid.round().tolist()
        [22.0, 42.0, 82.0]
    """
    usual_us = pd.Series(time_us).groupby(alike).transform("median").to_numpy(np.float64)
    interrupted_us = np.where(time_us > STANDS_OUT * usual_us, time_us - usual_us, 0.0)
    working_us = time_us - interrupted_us
    usual, low, high, changed = _resized_work(kind, working_us, work, then, fill, alike)
    growth = np.divide(usual, working_us, out=np.ones(len(usual)), where=working_us > 0)
    share = np.divide(interrupted_us, working_us, out=np.zeros(len(usual)), where=working_us > 0)
    usual = usual + interrupted_us * np.minimum(growth, 1)
    low = np.where(changed, low, low + interrupted_us)
    return usual, low, np.maximum(usual, high * (1 + share))


def _resized_work(kind: Array, time: Array, work: KernelWork, then: KernelWork, fill: Array, alike: Array) -> _Resized:
    """Return the times of kernels that nothing interrupted; see `resized`."""
    before = work.terms()
    after = then.terms()
    finite = np.isfinite(before) & np.isfinite(after)
    known = finite.all(axis=1) & (time > 0)
    changed = known & (before != after).any(axis=1)
    columns = np.stack([time, time, time]).astype(np.float64)
    filled = changed & np.isfinite(work.warps)
    roof = work.roof_us[filled]
    roof_then = then.roof_us[filled]
    columns[:, filled] = _by_fill(time[filled], roof, roof_then, work.warps[filled])
    group = 2 * kind.astype(np.int64) + work.on_host
    for number in np.unique(group[changed & ~filled]).tolist():
        of_kind = known & (group == number)
        rows = np.flatnonzero(of_kind & changed & ~filled)
        time_of_kind = time[of_kind]
        factors, spread = _fit(before[of_kind], time_of_kind, alike[of_kind], passes=1 + number % 2)
        least_floor = min(_FLOOR_US, float(time_of_kind.min()))
        fit_of = (spread, float(factors[2]), least_floor)
        was = before[rows] * factors
        now = after[rows] * factors
        columns[:, rows] = _scaled(time[rows], was, now, fill[rows], fit_of)
    return _Resized(columns[0], columns[1], columns[2], changed)


def _by_fill(time: Array, roof: Array, roof_then: Array, warps: Array) -> Array:
    """Return a row of times of kernels whose warps were recorded, one of low ends and one of high ends.

    At the low end, all that an empty device leaves idle stays so, up to the peak; at the high one, a launch alone does.
    """
    growth = np.divide(roof_then, roof, out=np.ones(len(roof)), where=roof > 0)
    filled = by_fill(time, warps)
    rated = split(time, np.minimum(filled.fixed, time - roof))
    usual = rated.at(growth)
    at_peak = np.where(roof < time, roof_then, usual)  # a roof above the time counts bytes that caches hold
    most_fixed = np.maximum(filled.at(growth), np.minimum(usual, at_peak))
    least_fixed = split(time, np.minimum(rated.fixed, _FLOOR_US)).at(growth)
    readings = np.stack([usual, most_fixed, least_fixed])
    drift = _drift(growth, 0.0)
    low = readings.min(axis=0) / drift
    high = readings.max(axis=0) * drift
    return np.stack([usual, low, high])


def _drift(growth: Array, spread: float) -> Array:
    """Return the factor by which times of so many times the work may be off, which kernels of a spread show."""
    per_e = np.hypot(_DRIFT, _SHAPES * spread)
    times_e = np.abs(np.log(np.maximum(growth, 1e-9)))
    together = (growth != 1) * _OFF
    return np.asarray(np.exp(together + per_e * times_e))


def _scaled(
    time: Array, was: Array, now: Array, fill: Array, fit_of: tuple[float, float, float]
) -> tuple[Array, Array, Array]:
    """Return the times where the terms are `now` and not as they `was`, and the ends of the interval.

    `fit_of` is (the spread of times around the fit, the coefficient of the roof, the floor that any may have).
    """
    spread, per_roof, least_floor = fit_of
    (floor, slope), (floor_then, slope_then) = ((terms[:, :2].sum(axis=1), terms[:, 2]) for terms in (was, now))
    fit = np.maximum(floor + slope, 1e-9)
    growth = np.divide(slope_then, slope, out=np.ones(len(fit)), where=slope > 0)
    deeper = np.divide(floor_then, floor, out=np.ones(len(fit)), where=floor > 0)
    in_share = floor * time / fit
    with_rest = floor * np.minimum(1, time / fit)
    with_rest = with_rest + np.minimum(np.maximum(time - fit, 0), with_rest)  # a step or a call more than usual
    with_rest = np.maximum(with_rest, np.minimum(time, least_floor))
    most = time * np.minimum(1, _WAVES / np.maximum(np.nan_to_num(fill), 1e-9))
    ends = []
    for part in (in_share, with_rest):
        fixed = np.minimum(part, most)
        ends.append(fixed * deeper + (time - fixed) * growth)
    mid = np.sqrt(ends[0] * ends[1])
    # blocks run in waves, of which the last one may be filled in part only, or the only one
    filled = fill * growth
    waves_before = np.maximum(1, np.ceil(fill))
    waves_after = np.maximum(1, np.ceil(filled))
    waves = time * waves_after / waves_before
    in_waves = np.where(np.isfinite(waves), waves, mid)
    idle = 1 - np.minimum(np.nan_to_num(fill, nan=1.0), 1.0)  # what leaves most of the device idle only fills it
    mid = mid ** ((1 - idle) / 2) * in_waves ** ((1 + idle) / 2)
    drift = _drift(growth, spread)
    # and larger ones may reach the peak
    ends[0] = np.where(
        fill < _WAVES, np.minimum(ends[0], np.maximum(time, floor_then + slope_then / per_roof)), ends[0]
    )
    return mid, np.minimum(np.minimum(*ends), mid) / drift, np.maximum(np.maximum(*ends), mid) * drift


def _fit(terms: Array, time: Array, alike: Array, *, passes: int) -> tuple[Array, float]:
    """Return (the coefficients with the smallest relative errors, by how much times are off them, as a share).

    No coefficient is below 0, that of the roof not below 1. Kernels that are alike count once, with their mean time,
    weighted by their total time. A coefficient of the depth is expected around 1, in units of a wave, and a floor
    around some µs: kernels have to say so if these are not 0; in a second pass, for hosts, less the worse they fit.
    """
    _, number = np.unique(alike, return_inverse=True)
    total, count = np.bincount(number, time), np.bincount(number)
    sizes = np.stack([np.bincount(number, column) / count for column in terms.T], axis=1)
    usual, share = total / count, total / total.sum()
    fitted, spread = np.zeros(3), _SPREAD
    for _ in range(passes):
        fitted = _nonnegative(sizes, usual, np.sqrt(share * len(usual)) / usual / spread, _SPREAD / spread)
        tiny = np.finfo(np.float64).tiny
        predicted = sizes @ fitted
        positive = np.maximum(predicted, tiny)
        off = np.log(usual / positive)
        spread = float(np.clip(np.sqrt(share @ np.square(off - share @ off)), _SPREAD, _MOST_SPREAD))
    return fitted, spread


def _nonnegative(sizes: Array, usual: Array, weight: Array, depth_prior: float) -> Array:
    least = np.array([0.0, 0.0, 1.0])
    matrix = np.concatenate([sizes * weight[:, None], np.diag([1 / _FLOOR_US, depth_prior, 0.0])])
    wanted = np.append((usual - sizes @ least) * weight, np.zeros(3))
    best, error = np.zeros(3), float(np.square(wanted).sum())
    for many in range(1, 4):
        for chosen in map(list, combinations(range(3), many)):
            found = np.linalg.lstsq(matrix[:, chosen], wanted, rcond=None)[0]
            off = float(np.square(matrix[:, chosen] @ found - wanted).sum())
            if (found >= 0).all() and off < error * 0.999:
                best, error = np.zeros(3), off
                best[chosen] = found
    fitted = best + least
    fitted[0] = min(fitted[0], float(usual.min()))
    return np.asarray(fitted)
