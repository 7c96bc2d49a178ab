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
_SHAPES = "record with record_shapes=True"


def batch(state: State, /, after: int, before: int | None = None) -> State:
    """Return the state in which the job works on batches of `after` samples, where it worked on `before`.

    Which dimensions of tensors are the batch, or a multiple of it (batch × sequence, batch × heads), follows from their
    shapes. Parameters, optimizers and gradients have none. A kernel has a floor, which stays, and a slope: the time
    that its operations or bytes need at the rate that kernels of its kind reach in the recording. The data loader
    takes as
    many times as long as the batch is larger; other host time stays, and the replay decides what binds. Libraries may
    choose other kernels for other sizes, which the interval allows for. With other recordings of the job (`also` of
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
    layout = layout_of([each for each, weight in zip(shaped.calls, weights, strict=True) if weight > 0], size)
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
    flop, moved, depth, doubt = _growth(job, after)
    now = table[["flop", "bytes"]].to_numpy(np.float64)
    waves = _wave_us(job)
    rates = _peaks(job)
    before = KernelWork(_roof(now[:, 0], now[:, 1], rates), depth[:, 0] * waves)
    then = KernelWork(_roof(now[:, 0] * flop, now[:, 1] * moved, rates), depth[:, 1] * waves)
    mid, low, high = resized(table["kind"].to_numpy(), job.time, before, then, _fill(job), _alike(job))
    low = np.where(doubt, np.minimum(low, job.time), low)
    high = np.where(doubt, np.maximum(high, job.time), high)
    return mid, low, high


def _growth(job: _Job, after: int) -> tuple[Array, Array, Array, Array]:
    """Return per row (growth of operations, growth of bytes, depth before and after, whether it may not grow)."""
    calls = shaped_calls(job.graph).calls
    count = len(calls) + 1
    flop, moved, depth, doubt = np.ones(count), np.ones(count), np.zeros((count, 2)), np.zeros(count, np.bool_)
    for number in np.unique(job.call[job.call >= 0]).tolist():
        was = cost_of_call(calls[number])
        other, doubt[number] = resized_calls(calls[number], job.layout, after)
        now = cost_of_call(other)
        if was is None or now is None:
            continue
        flop[number] = now.flop / was.flop if was.flop > 0 else 1.0
        moved[number] = now.bytes / was.bytes if was.bytes > 0 else 1.0
        depth[number] = was.depth, now.depth
    still = of_kinds(job.table["kind"].to_numpy(), [KernelKind.OPTIMIZER])
    rows = np.where(still, -1, job.call)
    return flop[rows], moved[rows], depth[rows], doubt[rows]


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
_PROCESSORS = 100
"""Multiprocessors of a device, as a unit of depth. Source: V100 has 80, A100 108, H100 132. Doubled, a coefficient of
the fit is half."""


def _wave_us(job: _Job) -> Array:
    """Return the time of one wave of blocks per element of the inner dimension at the peak rate, µs; 0 on hosts."""
    on_device = job.graph.activities.on_device[job.table["activity"].to_numpy(np.int64)]
    return np.where(on_device, 2 * _TILE**2 * _PROCESSORS / _peaks(job)[0], 0.0)


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
    ends = (each / np.maximum(factors[0], 1e-9) for each in factors[1:])
    state = with_factor(state, time, factor[state.graph.edges.activity[time.edges]])
    return replace(state, unsure=(*state.unsure, Unsure(rows, *ends)))


def _scope(job: _Job, then: Array) -> str:
    """Return how the time of kernels grows, in words."""
    on_device = job.graph.activities.on_device[job.table["activity"].to_numpy(np.int64)]
    what = "kernels and copies" if on_device.any() else "operators"
    was, now = float(job.time.sum()), float(then.sum())
    return f"{what} take {now / 1000:.4g} ms and not {was / 1000:.4g} ms"
