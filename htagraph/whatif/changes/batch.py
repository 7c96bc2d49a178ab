"""Batch: the job works on another number of samples at once."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, coded
from htagraph.core.devices import peak_of
from htagraph.core.errors import SelectionError
from htagraph.core.flops import is_tf32_kernel
from htagraph.core.kinds import KernelKind, of_kinds
from htagraph.core.naming import names_that
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.arguments import argument_texts
from htagraph.queries.kernel_costs import Call, cost_of_call, device_name, kernel_costs, shaped_calls
from htagraph.queries.weights import State, Unsure, checked, loader_time, time_of, with_factor
from htagraph.whatif.batch_sizes import BatchLayout, layout_of, recorded_batch, resized_calls
from htagraph.whatif.kernel_times import KernelWork, resized

__all__ = ["batch", "recorded_size"]

_MOST = 1_000_000
"""The largest batch that may be asked for. Chosen: more is a mistake. Doubled, twice that."""
_KNOWN = 0.5
"""Shapes have to say the work of kernels with this share of the time. Chosen: a prediction of the other half says
nothing about the job. Doubled, a job with one kernel without shapes could not be predicted."""
_BEST = 0.95
"""Of the rates of kernels, this quantile stands for the peak of a device that is not known. Chosen: a few kernels read
from caches. Doubled, there is none."""
_BETWEEN = 0.03
"""Relative half width of a time between two recordings, or close to one of them. Measured on pairs of recordings of one
job. Doubled, intervals from two recordings are twice as wide."""
_HOSTS = 0.08
"""Relative half width of the times of operators on hosts, beside what their work says: memory and other programs.
Measured: operators in two recordings of one job at one batch differ by 4 % in the median, 21 % at the 95th percentile.
Doubled, intervals of jobs on hosts are a quarter wider."""
_TOLD = 0.01
"""Share of time without shapes from which a note says so. Chosen: less hardly moves a step. Doubled, fewer notes."""
_SHAPES = "record with record_shapes=True"


def batch(state: State, /, after: int, before: int | None = None) -> State:
    """Return the state in which the job works on batches of `after` samples, where it worked on `before`.

    Which dimensions of tensors are the batch, or a multiple of it (batch × sequence, batch × heads), follows from their
    shapes. Parameters, optimizers and gradients have none. A kernel has a floor, which stays, and a slope: the time
    that its operations or bytes need at the rate that kernels of its kind reach in the recording. The data loader
    takes as many times as long as the batch is larger; other host time stays, and the replay decides what binds.
    Libraries may choose other kernels for other sizes, which the interval allows for. Kernels without shapes lie
    between unchanged and in proportion. With other recordings of the job (`also` of
    `htagraph.what_if`), operators that both have take a time between or beyond the two.

    Args:
        state: the weights so far.
        after: the new batch size, 1 or more, of each rank.
        before: the recorded batch size; if not given, it is found by the shapes.

    Raises:
        SelectionError: no shapes were recorded, or they show no batch (of that size), or several that it may be.

    Source: the roofline model (Williams, Waterman, Patterson 2009), with a floor.
    """
    after = int(checked(after, "after", least=1, most=_MOST))
    job = _job_of(state.graph, before)
    times = _predicted(job, after)
    for other in state.also:
        times = _between(job, _job_of(other, None), after, times)
    factors = [np.divide(each, job.time, out=np.ones(len(each)), where=job.time > 0) for each in times]
    state = _with_times(state, job.table["activity"].to_numpy(np.int64), factors)
    with suppress(SelectionError):  # it has no loader
        state = with_factor(state, loader_time(state, {}), after / job.layout.batch)
    ranks, *done = state.scaled
    samples, work = (each * after / job.layout.batch for each in done)
    state = replace(state, scaled=(ranks, samples, work))
    return state.with_note(
        f"a batch of {after} and not {job.layout.batch}: {_scope(job, times[0])}; libraries may choose other kernels"
    )


def recorded_size(graph: DependencyGraph) -> int:
    """Return the batch of each rank, by the shapes of inputs.

    Raises:
        SelectionError: no shapes were recorded, or they show no batch, or several that it may be.
    """
    return _job_of(graph, None).layout.batch


@dataclass(frozen=True, eq=False)
class _Job:
    """A recording, seen as kernels of calls with a batch."""

    graph: DependencyGraph
    table: pd.DataFrame
    """As `kernel_costs` returns it."""
    call: Array
    """Per row: the number of its call, -1 for none."""
    layout: BatchLayout

    @property
    def time(self) -> Array:
        return self.table["time_us"].to_numpy(np.float64)

    @property
    def on_device(self) -> Array:
        return self.graph.activities.on_device[self.table["activity"].to_numpy(np.int64)]


def _job_of(graph: DependencyGraph, before: int | None) -> _Job:
    table, shaped = kernel_costs(graph), shaped_calls(graph)
    operator = table["operator"].to_numpy(np.int64)
    call = np.full(len(table), -1, np.int64)
    if not len(shaped.activity):
        msg = f"no shapes of inputs were recorded, which say how work grows with the batch: {_SHAPES}"
        raise SelectionError(msg)
    known = operator >= 0
    call[known] = shaped.number[np.searchsorted(shaped.activity, operator[known])]
    computes = ~of_kinds(table["kind"].to_numpy(), [KernelKind.COLLECTIVE])
    time = table["time_us"].to_numpy(np.float64)
    if time[known & computes].sum() < _KNOWN * time[computes].sum():
        share = 100 * time[known & computes].sum() / max(time[computes].sum(), 1e-9)
        msg = f"shapes say what {share:.0f} % of the kernels' time computes, too little for another batch: {_SHAPES}"
        raise SelectionError(msg)
    weights = np.bincount(call[known], time[known], len(shaped.calls))
    size = before if before is not None else _found([*zip(shaped.calls, weights.tolist(), strict=True)])
    size = int(checked(size, "before", least=1, most=_MOST))
    layout = layout_of(shaped.calls, size)
    if not layout.views:
        msg = f"before={size}: no tensor has this size as one of its two outermost dimensions"
        raise SelectionError(msg)
    return _Job(graph, table, call, layout)


def _found(weights: list[tuple[Call, float]]) -> int:
    sizes = recorded_batch(weights)
    if len(sizes) == 1:
        return sizes[0]
    if not sizes:
        msg = f"the recorded shapes show no batch: give its size, as before= or --batch BEFORE:AFTER, or {_SHAPES}"
    else:
        several = " or ".join(map(str, sizes[:4]))
        msg = f"by its shapes, the recorded batch may be {several}: give its size, as before= or --batch BEFORE:AFTER"
    raise SelectionError(msg)


def _predicted(job: _Job, after: int) -> tuple[Array, Array, Array]:
    """Return (the time of each row with another batch, its low end, its high end), µs."""
    table = job.table
    flop, moved, depth, doubt, tiles = _growth(job, after)
    now = table[["flop", "bytes"]].to_numpy(np.float64)
    waves = _wave_us(job)
    rates = _peaks(job)
    before = KernelWork(_roof(now[:, 0], now[:, 1], rates), depth[:, 0] * waves)
    then = KernelWork(_roof(now[:, 0] * flop, now[:, 1] * moved, rates), depth[:, 1] * waves)
    fill = _fill(job)
    fill = np.where(job.on_device & np.isnan(fill), tiles / _units(job), fill)
    mid, low, high = resized(table["kind"].to_numpy(), job.time, before, then, fill, _alike(job))
    computes = job.on_device & (job.call >= 0) & (job.time > 0)
    shortest = np.where(computes, np.minimum(job.time, job.time[computes].min(initial=np.inf)), 0.0)
    mid, high = np.maximum(mid, shortest), np.maximum(high, shortest)
    hosts = np.where(job.on_device | (mid == job.time), 1.0, 1 + _HOSTS)
    low, high = low / hosts, high * hosts
    low = np.where(doubt, np.minimum(low, job.time), low)
    high = np.where(doubt, np.maximum(high, job.time), high)
    blind = _blind(job)
    growth = _growth_of_kinds(job, mid, ~blind, after / job.layout.batch)[blind]
    ends = np.sort([np.ones_like(growth), np.full_like(growth, after / job.layout.batch)], axis=0)
    for column, share in ((mid, growth), (low, ends[0]), (high, ends[1])):
        column[blind] = job.time[blind] * share
    return mid, low, high


def _blind(job: _Job) -> Array:
    """Return the rows on devices of which nothing says how their work grows: copies, and kernels without shapes."""
    fixed = of_kinds(job.table["kind"].to_numpy(), [KernelKind.COLLECTIVE, KernelKind.OPTIMIZER])
    return job.on_device & (job.call < 0) & ~fixed


def _growth_of_kinds(job: _Job, then: Array, known: Array, times: float) -> Array:
    """Return how kernels of each row's kind grow whose shapes are known; where none is, halfway."""
    growth = np.full(len(then), np.sqrt(times))
    kind = job.table["kind"].to_numpy()
    for each in np.unique(kind).tolist():
        own = known & job.on_device & (kind == each)
        if job.time[own].sum() > 0:
            growth[kind == each] = then[own].sum() / job.time[own].sum()
    return np.clip(growth, min(times, 1.0), max(times, 1.0))


def _growth(job: _Job, after: int) -> tuple[Array, Array, Array, Array, Array]:
    """Return per row (growth of operations, of bytes, depth before and after, whether it may not grow, tiles now)."""
    calls = shaped_calls(job.graph).calls
    count = len(calls) + 1
    flop, moved, depth, doubt = np.ones(count), np.ones(count), np.zeros((count, 2)), np.zeros(count, np.bool_)
    tiles = np.full(count, np.nan)
    for number in np.unique(job.call[job.call >= 0]).tolist():
        was = cost_of_call(calls[number])
        other, doubt[number] = resized_calls(calls[number], job.layout, after)
        now = cost_of_call(other)
        if was is None or now is None:
            continue
        flop[number] = now.flop / was.flop if was.flop > 0 else 1.0
        moved[number] = now.bytes / was.bytes if was.bytes > 0 else 1.0
        depth[number] = was.depth, now.depth
        tiles[number] = was.flop / (2 * was.depth * _BLOCK**2) if was.depth else np.nan
    still = of_kinds(job.table["kind"].to_numpy(), [KernelKind.OPTIMIZER])
    rows = np.where(still, -1, job.call)
    return flop[rows], moved[rows], depth[rows], doubt[rows], tiles[rows]


def _peaks(job: _Job) -> tuple[Array, Array]:
    """Return the peak rates of each row's device: (operations per µs, bytes per µs), by the recording if unknown."""
    table, acts = job.table, job.graph.activities
    rows = table["activity"].to_numpy(np.int64)
    flop_rate, byte_rate = (_best(table[name].to_numpy(np.float64), job.time) for name in ("flop", "bytes"))
    flops, moves = np.full(len(rows), flop_rate), np.full(len(rows), byte_rate)
    tf32 = names_that(is_tf32_kernel, job.graph.names)[acts.name[rows]]
    for rank in job.graph.ranks:
        peak = peak_of(device_name(job.graph, rank))
        if peak is not None:
            own = acts.rank[rows] == rank
            moves[own] = peak.gb_s * 1e3
            for size in (1, 2, 4, 8):
                for is_tf32 in (False, True):
                    rate = peak.tflop_s(size, tf32=is_tf32 and size == 4) * 1e6
                    alike = own & (table["element_bytes"].to_numpy() == size) & (tf32 == is_tf32)
                    flops[alike] = rate or flop_rate
    return flops, moves


def _best(work: Array, time: Array) -> float:
    """Return the rate that only few kernels exceed; 1 without any."""
    known = (work > 0) & (time > 0)
    return float(np.quantile(work[known] / time[known], _BEST)) if known.any() else 1.0


def _roof(flop: Array, moved: Array, rates: tuple[Array, Array]) -> Array:
    """Return the time that the peak rates allow, µs."""
    by_flop = np.nan_to_num(flop) / rates[0]
    return np.where(np.isnan(moved), np.nan, np.maximum(by_flop, moved / rates[1]))


_TILE = 64
"""Rows and columns of the result that a block of threads computes, as a unit of depth. Chosen: libraries use 32 to 256.
Doubled, a coefficient of the fit is a quarter."""
_BLOCK = 128
"""Rows and columns of the result that a block of threads computes, where the recording has no grid. Chosen: libraries
use 64 to 256. Doubled, kernels are taken to run in a quarter as many waves."""
_PROCESSORS = 100
"""Multiprocessors of a device that is not known. Source: V100 has 80, A100 108, H100 132. Doubled, a coefficient of the
fit is half."""


def _wave_us(job: _Job) -> Array:
    """Return the time of one wave of blocks per element of the inner dimension at the peak rate, µs; 0 on hosts."""
    return np.where(job.on_device, 2 * _TILE**2 * _units(job) / _peaks(job)[0], 0.0)


def _units(job: _Job) -> Array:
    """Return the multiprocessors of each row's device."""
    rank = job.graph.activities.rank[job.table["activity"].to_numpy(np.int64)]
    peaks = {each: peak_of(device_name(job.graph, each)) for each in np.unique(rank).tolist()}
    known = {each: peak.units if peak is not None else 0 for each, peak in peaks.items()}
    return np.array([known[each] or _PROCESSORS for each in rank.tolist()], np.float64)


def _fill(job: _Job) -> Array:
    """Return the blocks of threads per multiprocessor of each row, NaN where it is not recorded."""
    texts = argument_texts(job.graph, ["blocks per SM"], job.table["activity"].to_numpy(np.int64))["blocks per SM"]
    numbers = [None if text is None else text.decode().strip('"') for text in texts]
    return np.asarray(pd.to_numeric(pd.Series(numbers, dtype=object), errors="coerce"), np.float64)


def _alike(job: _Job) -> Array:
    """Return a number per row, equal for equal kernels of equal calls."""
    name = job.graph.activities.name[job.table["activity"].to_numpy(np.int64)]
    return coded(job.call, name)


def _between(job: _Job, other: _Job, after: int, times: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Return the times of rows that another recording with another batch has, too, on the line through both."""
    sizes = job.layout.batch, other.layout.batch
    if sizes[0] == sizes[1]:
        msg = f"also=: both recordings have a batch of {sizes[0]}; give one with another batch"
        raise SelectionError(msg)
    (own, mean), (_, mean_other) = (_by_sample(each) for each in (job, other))
    share = (after - sizes[0]) / (sizes[1] - sizes[0])
    mid, low, high = (each.copy() for each in times)
    beyond = max(share - 1, -share, 0.0)
    for key, rows in own.items():
        if key in mean_other:
            ratio = max(1 + share * (mean_other[key] / mean[key] - 1), 0.0)
            if not ratio:
                continue
            mid[rows] = job.time[rows] * ratio
            wide = 1 + _BETWEEN * (1 + beyond)
            low[rows], high[rows] = mid[rows] / wide, mid[rows] * wide
    return mid, low, high


def _by_sample(job: _Job) -> tuple[dict[tuple[str, str], Array], dict[tuple[str, str], float]]:
    """Return (the rows of each call, the mean time of one), by name and shapes for a batch of 1."""
    calls = shaped_calls(job.graph).calls
    rows: dict[tuple[str, str], list[Array]] = defaultdict(list)
    for number in np.unique(job.call[job.call >= 0]).tolist():
        alone, _ = resized_calls(calls[number], replace(job.layout), 1)
        rows[alone.name, str(alone.dims)].append(np.flatnonzero(job.call == number))
    own = {key: np.concatenate(parts) for key, parts in rows.items()}
    operators = job.table["operator"].to_numpy(np.int64)
    return own, {key: float(job.time[at].sum() / len(np.unique(operators[at]))) for key, at in own.items()}


def _with_times(state: State, rows: Array, factors: list[Array]) -> State:
    """Return the state with the times of kernels or operators multiplied, known between the two other factors."""
    count = len(state.graph.activities)
    factor, chosen = np.ones(count + 1), np.zeros(count + 1, np.bool_)
    moved = rows[np.abs(np.array(factors) - 1).max(axis=0) > 0]
    factor[rows], chosen[moved] = factors[0], True
    time = time_of(state, chosen, loader=False, outside=np.zeros(count, np.bool_))
    time = replace(time, gaps=np.zeros(0, np.int64))
    low, high = (each / np.maximum(factors[0], 1e-9) for each in factors[1:])
    state = with_factor(state, time, factor[state.graph.edges.activity[time.edges]])
    return replace(state, unsure=(*state.unsure, Unsure(rows, low, high)))


def _scope(job: _Job, then: Array) -> str:
    """Return how the time of kernels grows, in words."""
    what = "kernels and copies" if job.on_device.any() else "operators"
    was, now, blind = float(job.time.sum()), float(then.sum()), float(job.time[_blind(job)].sum())
    said = f"{what} take {now / 1000:.4g} ms and not {was / 1000:.4g} ms"
    if blind >= _TOLD * was:
        said += f", of which {blind / was:.0%} is of no known shape: between unchanged and in proportion to the batch"
    return said
