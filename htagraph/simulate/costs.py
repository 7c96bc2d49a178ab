"""Durations: the nominal ones, times the factors of changes, times keyed random draws.

A draw is a pure function of its key, so that a changed parameter moves no other draw.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.simulate.codes import DeviceWork, Host, Op, Purpose
from htagraph.simulate.job import (
    Change,
    Job,
    RankPlace,
    RemoveKernels,
    ScaleKernels,
    ScaleNetwork,
    SetNetwork,
    SlowRank,
)
from htagraph.simulate.template import Template

Uint = npt.NDArray[np.uint64]
Float = npt.NDArray[np.float64]

_MASK: Final = int(np.iinfo(np.uint64).max)
# the constants of splitmix64 (Steele and others, 2014): the golden ratio in 64 bits, and two multipliers
GOLDEN, _M1, _M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
# mean and standard deviation of the sum of four uniform 16-bit numbers
_FIELD_MEAN, _FIELD_DEVIATION = 4 * 65535 / 2, (4 * (65536.0**2 - 1) / 12) ** 0.5


def mix(*parts: int) -> int:
    """Return a 64-bit hash of integers (splitmix64, folded left to right).

    Example:
        >>> mix(1, 2) == mix(1, 2), mix(1, 2) == mix(2, 1)
        (True, False)
    """
    state = 0
    for part in parts:
        state = (state + GOLDEN + (part & _MASK)) & _MASK
        state = ((state ^ (state >> 30)) * _M1) & _MASK
        state = ((state ^ (state >> 27)) * _M2) & _MASK
        state ^= state >> 31
    return state


def normal(base: Uint | int, keys: Uint) -> Float:
    """Return one approximately normal number per key, within ±3.47: the sum of four uniform numbers, standardized.

    `base` (a scalar, or one per key) chooses the stream of randomness. Sums and products only, so that every machine
    gives the same numbers.
    """
    state = keys + (np.uint64(base) if isinstance(base, int) else base) + np.uint64(GOLDEN)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(_M1)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(_M2)
    fields = (state ^ (state >> np.uint64(31))).view(np.uint16).reshape(len(keys), 4).sum(axis=1, dtype=np.int64)
    standard: Float = (fields - _FIELD_MEAN) / _FIELD_DEVIATION
    return standard


def uniform(base: int, key: int) -> float:
    """Return one number in [0, 1) for a key."""
    return (mix(base, key) >> 11) / (1 << 53)  # the upper 53 bits: those of a float64


Bool = npt.NDArray[np.bool_]
_MAX_DEVIATIONS = 3.0
"""Standard deviations at which the spread of collective ends is cut off, and by which it is divided. Chosen: then
`Job.end_spread_us` is the largest spread; doubling it halves the typical spread."""
_MIN_NOISE = 0.1
"""Least random factor of a duration. Chosen: with the largest jitter (0.25), draws reach down to 0.13, so it only
guards; doubling it cuts off the lowest draws of such jobs."""
_BLOCKING = (Op.HOLD, Op.EVENT_SYNC, Op.STREAM_SYNC, Op.DEVICE_SYNC)
_WHAT = {"compute": DeviceWork.COMPUTE, "memcpy": DeviceWork.MEMCPY, "memset": DeviceWork.MEMSET}


class Durations(NamedTuple):
    """Durations of the instructions of one (rank, step), integer ns."""

    host: list[int]  # host time, or a call's own cost
    latency: list[int]  # launch to earliest start; awaited end to return of a blocking call
    device: list[int]  # of the device work; transfer of a collective
    gap: list[int]  # after the work before on the stream; spread of a collective member's end
    released: frozenset[int]  # blocking instructions that wait for nothing


@dataclass(frozen=True)
class InstructionColumns:
    """The properties of a template's instructions that changes and draws depend on, as columns."""

    keys: Uint
    host: npt.NDArray[np.int8]
    device: npt.NDArray[np.int8]
    host_ns: Float
    latency_ns: Float
    device_ns: Float
    size: Float
    gap_ns: Float
    optimizer: Bool
    blocking: Bool
    names: list[str]  # name of the innermost op
    works: list[str]  # name of the device work
    calls: list[str]  # name of the call
    collective_keys: Uint
    collective_base: Uint  # index of the collective's group


def columns(job: Job, place: RankPlace, template: Template) -> InstructionColumns:
    """Lay a template out as columns, for the rank at `place`."""
    code, events = template.instructions, template.events
    device = np.array([i.device for i in code], np.int8)
    together = device == DeviceWork.COLLECTIVE
    index = [place.roles[i.role].index if i.role else 0 for i in code]
    return InstructionColumns(
        keys=np.array([i.key for i in code], np.uint64),
        host=np.array([i.host for i in code], np.int8),
        device=device,
        host_ns=np.array([i.host_ns for i in code], np.float64),
        latency_ns=np.array([i.latency_ns for i in code], np.float64),
        device_ns=np.array([i.device_ns for i in code], np.float64),
        size=np.array([_moved(i.kind, i.size, place.roles[i.role].ranks) if i.role else 0.0 for i in code], np.float64),
        gap_ns=np.where(together, 0.0, job.kernel_gap_us * 1e3),
        optimizer=np.array([i.optimizer for i in code], np.bool_),
        blocking=np.array([i.op in _BLOCKING for i in code], np.bool_),
        names=[i.name for i in code],
        works=[events[i.work].name if i.work >= 0 and i.op is not Op.HOLD else "" for i in code],
        calls=[events[i.call].name if i.call >= 0 else "" for i in code],
        collective_keys=np.array([max(i.order, 0) for i in code], np.uint64),
        collective_base=np.array(index, np.uint64),
    )


def _moved(kind: str, size: int, ranks: tuple[int, ...]) -> float:
    """Return the bytes that a rank sends in a collective of ring algorithms (as NCCL-tests count bus bandwidth)."""
    share = (len(ranks) - 1) / len(ranks)
    shares = {"all_reduce": 2 * share, "all_gather": share, "reduce_scatter": share, "all_to_all": share}
    return size * shares.get(kind, 1.0)


@dataclass
class _Factors:
    """The running product of all changes for one (rank, step)."""

    host: Float
    latency: Float
    device: Float
    released: Bool
    latency_us: float
    ns_per_byte: float


def draw(job: Job, rank: int, step: int, columns: InstructionColumns, slower: Float | float = 1.0) -> Durations:
    """Return the durations of one (rank, step); `step` counts from 0, and -1 is what follows the last.

    `slower` multiplies the device work of each instruction, collectives apart.
    """
    factors = _factors(job, rank, step, columns)
    together = columns.device == DeviceWork.COLLECTIVE
    transfer = factors.latency_us * 1e3 + columns.size * factors.ns_per_byte
    base = {purpose: mix(job.seed, rank + 1, step, purpose) for purpose in Purpose}
    noise = _noise(job, base[Purpose.DEVICE], columns.keys)
    shared = np.uint64(mix(job.seed, 0, step, Purpose.TRAFFIC)) + columns.collective_base * np.uint64(GOLDEN)
    noise = np.where(together, _noise(job, shared, columns.collective_keys), noise)
    device = np.where(together, transfer, columns.device_ns * factors.device * slower) * noise
    deviations = np.abs(normal(base[Purpose.GAP], columns.keys)).clip(max=_MAX_DEVIATIONS)
    spread = job.end_spread_us * 1e3 * deviations / _MAX_DEVIATIONS
    gap = columns.gap_ns * _noise(job, base[Purpose.GAP], columns.keys)
    load = _load_ns(job, step, columns)
    host = columns.host_ns * factors.host * _noise(job, base[Purpose.HOST], columns.keys)
    latency = columns.latency_ns * factors.latency * _noise(job, base[Purpose.LATENCY], columns.keys)
    return Durations(
        _ns(host + load),
        _ns(latency + load),
        _ns(device),
        _ns(np.where(together, spread, gap)),
        frozenset(np.flatnonzero(factors.released).tolist()),
    )


def _load_ns(job: Job, step: int, columns: InstructionColumns) -> Float:
    """Return how long each instruction takes to load the code of a kernel, in the first launch of the kernel."""
    load = np.zeros(len(columns.works))
    if step != 0 or not job.load_us:
        return load
    is_kernel = np.isin(columns.device, (DeviceWork.COMPUTE, DeviceWork.COLLECTIVE))
    launches = np.flatnonzero(is_kernel & (columns.host == Host.LAUNCH))
    names = [columns.works[launch] for launch in launches.tolist()]
    _, first = np.unique(names, return_index=True)
    load[launches[first]] = job.load_us * 1e3
    return load


def _noise(job: Job, base: Uint | int, keys: Uint) -> Float:
    """Return random factors around 1, at least `_MIN_NOISE`."""
    return np.maximum(1.0 + job.jitter * normal(base, keys), _MIN_NOISE)


def _ns(values: Float) -> list[int]:
    """Return durations in whole nanoseconds.

    Raises:
        OverflowError: one is longer than a recording can be.
    """
    if (values >= np.iinfo(np.int64).max).any():
        msg = "a duration of more than 2^63 ns"
        raise OverflowError(msg)
    numbers: list[int] = np.rint(values).astype(np.int64).tolist()
    return numbers


def _factors(job: Job, rank: int, step: int, columns: InstructionColumns) -> _Factors:
    count = len(columns.names)
    (host, latency, device), released = np.ones((3, count)), np.zeros(count, np.bool_)
    factors = _Factors(host, latency, device, released, job.network_latency_us, 1 / job.network_gb_s)
    for change in (*job.slow_ranks, *job.changes):
        if _concerns(change, rank, step):
            _apply(change, columns, factors)
    return factors


def _concerns(change: Change, rank: int, step: int) -> bool:
    ranks = getattr(change, "ranks", None)
    steps = getattr(change, "steps", None)
    if isinstance(change, SlowRank) and change.rank != rank:
        return False
    return (ranks is None or rank in ranks) and (steps is None or step in steps)


def _matching(names: list[str], glob: str) -> Bool:
    if glob == "*":
        return np.ones(len(names), np.bool_)
    known = {name: fnmatchcase(name, glob) for name in set(names)}
    return np.array([known[name] for name in names], np.bool_)


def _apply(change: Change, columns: InstructionColumns, factors: _Factors) -> None:
    """Multiply one change into the factors."""
    host, device = columns.host, columns.device
    if isinstance(change, ScaleKernels | RemoveKernels):
        chosen = _matching(columns.works, change.name) & (device != DeviceWork.NONE)
        if isinstance(change, ScaleKernels) and change.what != "any":
            chosen &= device == _WHAT[change.what]
        factors.device[chosen] *= change.factor if isinstance(change, ScaleKernels) else 0.0
    elif change.change == "scale_host":
        factors.host[(host == Host.PROGRAM) & _matching(columns.names, change.op)] *= change.factor
    elif change.change == "scale_launches":
        factors.host[host == Host.LAUNCH] *= change.factor
        factors.latency[device != DeviceWork.NONE] *= change.latency_factor
    elif change.change == "scale_loader":
        factors.host[host == Host.LOADER] *= change.factor
    elif change.change == "scale_optimizer":
        factors.host[columns.optimizer] *= change.factor
        factors.device[columns.optimizer] *= change.factor
    elif change.change == "remove_sync":
        chosen = _matching(columns.calls, change.name) & _matching(columns.names, change.op)
        factors.released |= columns.blocking & chosen & ~_matching(columns.works, "*HtoD*")
    else:
        _apply_place(change, columns, factors)


def _apply_place(change: ScaleNetwork | SetNetwork | SlowRank, columns: InstructionColumns, factors: _Factors) -> None:
    """Multiply a change of the network, or of one rank, into the factors."""
    if isinstance(change, ScaleNetwork):
        factors.ns_per_byte *= change.factor
        factors.latency_us *= change.latency_factor
    elif isinstance(change, SetNetwork):
        factors.latency_us = factors.latency_us if change.latency_us is None else change.latency_us
        factors.ns_per_byte = factors.ns_per_byte if change.gb_s is None else 1 / change.gb_s
    elif change.what == "kernels":
        chosen = (columns.device == DeviceWork.COMPUTE) & _matching(columns.works, change.name)
        factors.device[chosen] *= change.factor
    elif change.what == "host":
        busy = np.isin(columns.host, (Host.PROGRAM, Host.LAUNCH, Host.CALL))
        factors.host[busy & _matching(columns.names, change.name)] *= change.factor
    else:
        factors.host[columns.host == Host.LOADER] *= change.factor
