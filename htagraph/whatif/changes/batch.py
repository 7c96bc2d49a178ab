"""Batch: the job works on another number of samples at once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, coded, marked
from htagraph.core.devices import peak_of
from htagraph.core.errors import SelectionError, shown
from htagraph.core.flops import moves_nothing
from htagraph.core.kernels import is_tf32_kernel
from htagraph.core.kinds import EdgeKind, KernelKind, of_kinds
from htagraph.core.naming import is_data_loader, names_that
from htagraph.core.statistics import MOST
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.arguments import recorded_numbers
from htagraph.queries.fetches import fetch_time
from htagraph.queries.interruptions import rare_pauses
from htagraph.queries.kernel_costs import cost_of_call, device_name, kernel_costs, shaped_calls, used_device
from htagraph.queries.weights import (
    NOTED_SHARE,
    ChangeError,
    Modelled,
    OwnTime,
    State,
    Unsure,
    checked,
    with_factor,
    with_factors,
)
from htagraph.trace.readers import setting_for
from htagraph.whatif.batch_sizes import BatchLayout, layout_of, recorded_batch, resized_calls
from htagraph.whatif.kernel_times import KernelWork, resized
from htagraph.whatif.rates import TILE

__all__ = ["batch", "recorded_size"]

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
_HOST_FLOP_US = 50e6
"""Operations per µs that no operator on a host reaches. Source: two sockets of 64 cores with AVX-512 do some 20 in
single precision. Doubled, operators that only launch work of a device pass for fast hosts more often."""
_CAPTURES = "replayed CUDA graphs hide them; record what was captured, too, and give it as --captures (captures=)"
_BySample: TypeAlias = dict[tuple[str, str], tuple[Array, float]]


def batch(state: State, /, recorded: int | None = None, new: int | None = None) -> State:
    """Return the state in which the job works on batches of `new` samples, where it worked on `recorded`.

    Which dimensions of tensors are the batch, or a multiple of it (batch × sequence, batch × heads), follows from their
    shapes. Parameters, optimizers and gradients have none. A kernel has a floor, which stays, and a slope: the time
    that its operations or bytes need at the rate that kernels of its kind reach in the recording. The data loader
    takes as many times as long as the batch is larger; other host time stays, and the replay decides what binds.
    Libraries may choose other kernels for other sizes, which the interval allows for. Kernels without shapes lie
    between unchanged and in proportion. With other recordings of the job (`also` of
    `htagraph.what_if`), operators that both have take a time between or beyond the two.

    Args:
        state: the weights so far.
        recorded: the recorded batch size of each rank; None where the shapes shall say it.
        new: the new batch size of each rank, 1 or more.

    Raises:
        SelectionError: no new size is given, no shapes were recorded, the shapes show another batch than `recorded`,
            or they show no batch, or several that it may be, and no size is given.

    Example:
        >>> import htagraph as hg
        >>> job = hg.what_if(hg.load("data/gpu_demo/train"))
        >>> job.batch(16, 32).run().speedup == job.batch(new=32).run().speedup < 1
        True

    Source: the roofline model (Williams, Waterman, Patterson 2009), with a floor.
    """
    if new is None:
        said = f"batch({shown(recorded)}) says the recorded batch" if recorded is not None else "no size is given"
        msg = f"{said}; give the new one, as batch(new=64), or both, as batch(32, 64)"
        raise ChangeError(msg)
    after = int(checked(new, "new", least=1))
    if Modelled.BATCH in state.modelled:
        msg = "the job has another batch already; give one batch"
        raise SelectionError(msg)
    job = _job_of(state.graph, recorded)
    others = _others(job, state.also, after)
    times = _predicted(job, after)
    for other in others:
        times = _between(job, other, after, times)
    usual, low, high = (np.divide(each, job.time, out=np.ones(len(each)), where=job.time > 0) for each in times)
    most = np.maximum(usual, 1e-9)
    state = with_factors(state, job.table["activity"].to_numpy(np.int64), usual, low / most, high / most)
    state = _rarer_pauses(state, float(times[0].sum() / max(job.time.sum(), 1e-9)))
    state = with_factor(state, fetch_time(state), _loader_growth(job, others, after))
    said = f", by another recording for {_shared(job, others[-1]):.0%} of their time" if others else ""
    ranks, *done = state.scaled
    samples, work = (each * after / job.layout.batch for each in done)
    state = replace(state, scaled=(ranks, samples, work))
    scope = f"a batch of {after} and not {job.layout.batch}: {_scope(job, times[0])}{said}"
    return state.with_model(Modelled.BATCH, f"{scope}; libraries may choose other kernels")


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


def _job_of(graph: DependencyGraph, recorded: int | None) -> _Job:
    table = kernel_costs(graph)
    shaped = shaped_calls(graph)
    loads = names_that(is_data_loader, graph.names)[graph.activities.name]
    table = table[~graph.tree.inside(loads)[table["activity"]]]  # the loader's time is its own
    operator = table["operator"].to_numpy(np.int64)
    call = np.full(len(table), -1, np.int64)
    known = operator >= 0
    call[known] = shaped.number[np.searchsorted(shaped.activity, operator[known])]
    _refuse_unknown(graph, table, call)
    counts = np.minimum(np.bincount(call[known], minlength=len(shaped.calls)), 1).tolist()
    size = _size(recorded_batch(zip(shaped.calls, counts, strict=True)), recorded)
    layout = layout_of(shaped.calls, size)
    if not layout.views:
        msg = f"a recorded batch of {size}: no tensor has this size as one of its two outermost dimensions"
        raise SelectionError(msg)
    return _Job(graph, table, call, layout)


def _refuse_unknown(graph: DependencyGraph, table: pd.DataFrame, call: Array) -> None:
    """Raise where shapes say too little of the work that takes time, or where a device was not recorded."""
    rows = table["activity"].to_numpy(np.int64)
    traces = graph.traces.values()
    device = graph.activities.on_device
    name = graph.activities.name[rows]
    known = call >= 0
    usual = table["time_us"].groupby(coded(call, name)).transform("median").to_numpy(np.float64)
    if not device.any() and (used_device(graph) or _best(table["flop"].to_numpy(np.float64), usual) > _HOST_FLOP_US):
        msg = f"the job used a device whose work was not recorded: record with {setting_for(traces, 'device')}"
        raise SelectionError(msg)
    views = names_that(moves_nothing, graph.names)[name] & ~device[rows]
    computes = ~of_kinds(table["kind"].to_numpy(), [KernelKind.COLLECTIVE]) & ~views
    if (share := usual[known & computes].sum() / max(usual[computes].sum(), 1e-9)) >= MOST and known.any():
        return
    replayed = marked(graph.edges.target[graph.edges.kind == EdgeKind.GRAPH] >> 1, len(device))[rows]
    shapes = setting_for(traces, "shapes")
    how = f": record with {shapes}" if shapes else ""
    if usual[computes & ~known & replayed].sum() > MOST * usual[computes & ~known].sum():
        how = f": {_CAPTURES}"
    msg = f"shapes of inputs say what {share:.0%} of the kernels' time computes, too little for another batch{how}"
    raise SelectionError(msg)


def _size(shown_by_shapes: list[int], recorded: int | None) -> int:
    """Return the recorded batch: as a user says, unless shapes contradict, or as shapes say.

    Raises:
        SelectionError: the shapes show another batch than `recorded`, or without `recorded` none, or several.
    """
    sizes = " or ".join(map(str, shown_by_shapes[:4]))
    if recorded is not None:
        size = int(checked(recorded, "recorded", least=1))
        if shown_by_shapes and size not in shown_by_shapes:
            msg = f"a recorded batch of {size} contradicts the shapes of inputs: by them, each rank's batch is {sizes}"
            raise SelectionError(f"{msg} (the recorded batch comes first: batch(32, 64), --batch 32:64)")  # noqa: EM102
        return size
    if len(shown_by_shapes) == 1:
        return shown_by_shapes[0]
    what = f"by its shapes, the recorded batch may be {sizes}" if sizes else "the recorded shapes show no batch"
    msg = f"{what}: give its size, as batch(RECORDED, NEW) or --batch RECORDED:NEW (of capacity, as before=)"
    raise SelectionError(msg)


def _predicted(job: _Job, after: int) -> tuple[Array, Array, Array]:
    """Return (the time of each row with another batch, its low end, its high end), µs."""
    table = job.table
    flop, moved, depth, doubt, tiles = _growth(job, after)
    now = table[["flop", "bytes"]].to_numpy(np.float64)
    rates = _peaks(job)
    waves = np.where(job.on_device, 2 * TILE * _units(job) / rates[0], 0.0)  # µs per element of the inner dimension
    warps = recorded_numbers(job.graph, ["warps per SM"], table["activity"].to_numpy(np.int64))["warps per SM"]
    before = KernelWork(_roof(now[:, 0], now[:, 1], rates), depth[:, 0] * waves, ~job.on_device, warps)
    then = KernelWork(_roof(now[:, 0] * flop, now[:, 1] * moved, rates), depth[:, 1] * waves, ~job.on_device, warps)
    fill = np.where(job.on_device, tiles / _units(job), np.nan)
    alike = coded(job.call, job.graph.activities.name[table["activity"].to_numpy(np.int64)])
    mid, low, high = resized(table["kind"].to_numpy(), job.time, before, then, fill, alike)
    computes = job.on_device & (job.call >= 0) & (job.time > 0)
    shortest = np.where(computes, np.minimum(job.time, job.time[computes].min(initial=np.inf)), 0.0)
    mid, high = np.maximum(mid, shortest), np.maximum(high, shortest)
    hosts = np.where(job.on_device | (mid == job.time), 1.0, 1 + _HOSTS)
    low = np.minimum(low / hosts, np.where(doubt, job.time, np.inf))
    high = np.maximum(high * hosts, np.where(doubt, job.time, 0))
    blind = _blind(job)
    growth = _growth_of_kinds(job, mid, ~blind, after / job.layout.batch)[blind]
    ends = np.sort([np.ones_like(growth), np.full_like(growth, after / job.layout.batch)], axis=0)
    for column, share in ((mid, growth), (low, ends[0]), (high, ends[1])):
        column[blind] = job.time[blind] * share
    return mid, low, high


def _blind(job: _Job) -> Array:
    """Return the rows on devices whose growth with the batch nothing shows: copies, and kernels without shapes."""
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
        other, doubt[number] = resized_calls(calls[number], job.layout, after)
        was = cost_of_call(calls[number])
        now = cost_of_call(other)
        if was is None or now is None:
            continue
        flop[number] = now.flop / was.flop if was.flop > 0 else 1.0
        moved[number] = now.bytes / was.bytes if was.bytes > 0 else 1.0
        depth[number] = was.depth, now.depth
        tiles[number] = was.flop / (2 * was.depth * TILE) if was.depth else np.nan
    still = of_kinds(job.table["kind"].to_numpy(), [KernelKind.OPTIMIZER])
    rows = np.where(still, -1, job.call)
    return flop[rows], moved[rows], depth[rows], doubt[rows], tiles[rows]


def _peaks(job: _Job) -> tuple[Array, Array]:
    """Return the peak rates of each row's device: (operations per µs, bytes per µs), by the recording if unknown."""
    table = job.table
    acts = job.graph.activities
    rows = table["activity"].to_numpy(np.int64)
    flop_rate, byte_rate = (_best(table[name].to_numpy(np.float64), job.time) for name in ("flop", "bytes"))
    flops = np.full(len(rows), flop_rate)
    moves = np.full(len(rows), byte_rate)
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


_PROCESSORS = 100
"""Multiprocessors of a device that is not known. Source: V100 has 80, A100 108, H100 132. Doubled, a coefficient of the
fit is half."""


def _units(job: _Job) -> Array:
    """Return the multiprocessors of each row's device."""
    rank = job.graph.activities.rank[job.table["activity"].to_numpy(np.int64)]
    peaks = {each: peak_of(device_name(job.graph, each)) for each in np.unique(rank).tolist()}
    return np.array([((peak := peaks[each]) and peak.units) or _PROCESSORS for each in rank.tolist()], np.float64)


def _others(job: _Job, also: tuple[DependencyGraph, ...], after: int) -> list[_Job]:
    """Return the other recordings of a job, the nearest one on the other side of the new batch last, or the nearest."""
    others = []
    for graph in also:
        try:
            others.append(other := _job_of(graph, None))
        except SelectionError as error:
            msg = f"also=: {error}"
            raise SelectionError(msg) from error
        if other.layout.batch == job.layout.batch:
            msg = f"also=: both recordings have a batch of {job.layout.batch}; give one with another batch"
            raise SelectionError(msg)
        if _shared(job, other) < NOTED_SHARE:
            msg = "also=: hardly any time of this job is in operators of its shapes; give a recording of the same job"
            raise SelectionError(msg)
    here = job.layout.batch - after
    return sorted(others, key=lambda at: (here * (at.layout.batch - after) < 0, -abs(np.log(at.layout.batch / after))))


def _shared(job: _Job, other: _Job) -> float:
    """Return the share of a job's time that is in calls which another recording has, too."""
    own, known = _by_sample(job), _by_sample(other)
    return sum(float(job.time[own[key][0]].sum()) for key in own.keys() & known.keys()) / max(job.time.sum(), 1e-9)


def _between(job: _Job, other: _Job, after: int, times: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Return the times of rows that another recording with another batch has, too, on the line through both."""
    share = (after - job.layout.batch) / (other.layout.batch - job.layout.batch)
    known = _by_sample(other)
    for key, (rows, usual) in _by_sample(job).items():
        if key in known and usual and (ratio := 1 + share * (known[key][1] / usual - 1)) > 0:
            wide = 1 + (_BETWEEN + _HOSTS * ~job.on_device[rows]) * (1 + max(share - 1, -share, 0.0))
            for column, power in zip(times, (0, -1, 1), strict=True):
                column[rows] = job.time[rows] * ratio * wide**power
    return times


def _rarer_pauses(state: State, growth: float) -> State:
    """Return the state in which steps of less work have fewer pauses that the same code hardly ever makes."""
    pauses = rare_pauses(state.graph)
    if growth >= 1 or not len(pauses):
        return state
    none = np.zeros(0, np.int64)
    unsure = Unsure(none, np.zeros(len(pauses)), np.full(len(pauses), 1 / growth), pauses)
    state = with_factor(state, OwnTime(none, none, pauses), growth)
    return replace(state, unsure=(*state.unsure, unsure))


def _loader_growth(job: _Job, others: list[_Job], after: int) -> float:
    """Return how many times as long the data loader takes: in proportion, or on the line through two recordings."""
    both = [(each.layout.batch, each.graph.activities, each.graph.names) for each in (job, *others[-1:])]
    took = [acts.duration[names_that(is_data_loader, names)[acts.name]] for _, acts, names in both]
    if not others or not all(map(len, took)) or not (own := np.median(took[0])):
        return after / job.layout.batch
    return max(1 + (after - both[0][0]) / (both[1][0] - both[0][0]) * (float(np.median(took[1]) / own) - 1), 0.0)


def _by_sample(job: _Job) -> _BySample:
    """Return (the rows of each call, the usual time of one), by name and shapes for a batch of 1."""
    calls = shaped_calls(job.graph).calls
    rows: dict[tuple[str, str], list[Array]] = defaultdict(list)
    for number in np.unique(job.call[job.call >= 0]).tolist():
        alone, _ = resized_calls(calls[number], job.layout, 1)
        rows[alone.name, str(alone.dims)].append(np.flatnonzero(job.call == number))
    own = {key: np.concatenate(parts) for key, parts in rows.items()}
    took = job.table.groupby("operator")["time_us"].sum()
    operators = job.table["operator"].to_numpy(np.int64)
    return {key: (at, float(took[np.unique(operators[at])].median())) for key, at in own.items()}


def _scope(job: _Job, then: Array) -> str:
    """Return how the time of kernels grows, in words."""
    what = "kernels and copies" if job.on_device.any() else "operators"
    was, now, blind = float(job.time.sum()), float(then.sum()), float(job.time[_blind(job)].sum())
    said = f"{what} take {now / 1000:.4g} ms and not {was / 1000:.4g} ms"
    if blind >= NOTED_SHARE * was:
        said += f", of which {blind / was:.0%} is of no known shape: between unchanged and in proportion to the batch"
    return said
