"""Jobs of two ranks whose collectives are slow beside copies, or slow for another reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.strategies import COMMUNICATE, COMPUTE, COPY, Json, complete, kernel, launch, op, runtime, step

__all__ = ["GATHER", "Step", "job_of", "kernels_beside_collectives"]

GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
FAST_US = 500
"""What an all-gather takes alone, µs."""
SLOW_US = 1_500
"""What a slow all-gather takes, µs."""
_SIZES = {
    "Collective name": "_allgather_base",
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1]",
    "In msg nelems": 1 << 20,
    "Out msg nelems": 2 << 20,
    "Group size": 2,
    "dtype": "BFloat16",
}


class Step(NamedTuple):
    """A step of one all-gather."""

    is_slow: bool
    copies_on: tuple[int, ...] = ()
    """The ranks on which a copy runs beside the all-gather."""
    copy_after_us: int = 0
    """How long after the all-gather the copy begins, µs."""
    late_us: int = 0
    """How much later than rank 0 rank 1 launches the all-gather, µs."""
    slow_us: int = SLOW_US
    """What the all-gather takes if it is slow, µs."""


def job_of(steps: Sequence[Step]) -> dict[int, list[Json]]:
    """Return the events of both ranks, one step after the other."""
    return {rank: _events(rank, steps) for rank in range(2)}


def kernels_beside_collectives() -> list[Json]:
    """Return steps of one rank with a kernel of 200 µs that takes 400 µs beside the collective of every other step."""
    events: list[Json] = []
    at = 0
    for number in range(10):
        lasts = 400 if number % 2 else 200
        correlation = 1 + 2 * number
        if number % 2:
            events += [op("c10d::allreduce_", at + 2, 10), launch(at + 5, 5, correlation + 1)]
            events.append(kernel(COMMUNICATE, at + 35, 250, correlation + 1, 20))
        events += [op("aten::mm", at + 15, 10), launch(at + 18, 5, correlation)]
        events.append(kernel(COMPUTE, at + 40, lasts, correlation))
        events.append(runtime("cudaDeviceSynchronize", at + 30, lasts + 40))
        events.append(step(number, at, lasts + 80))
        at += lasts + 90
    return events


def _events(rank: int, steps: Sequence[Step]) -> list[Json]:
    events: list[Json] = []
    at = 0
    for number, each in enumerate(steps):
        correlation = 1 + 2 * number
        lasts = each.slow_us if each.is_slow else FAST_US
        starts = at + 60 + (each.late_us if rank else 0)
        ends = at + 60 + each.late_us + lasts
        gather = complete("kernel", GATHER, starts, ends - starts, 17, stream=17, device=0, correlation=correlation)
        gather["args"] |= _SIZES
        call = op("c10d::_allgather_base_", starts - 30, 25)
        events += [call, launch(starts - 20, 6, correlation), gather | {"pid": 0}]
        if rank in each.copies_on:
            begins = at + 50 + each.copy_after_us
            events += [op("aten::copy_", at + 18, 9), runtime("cudaMemcpyAsync", at + 20, 5, correlation + 1)]
            events.append(kernel(COPY, begins, max(ends - begins, 100), correlation + 1, 21))
        events.append(runtime("cudaDeviceSynchronize", starts + 10, ends - starts - 5))
        events.append(step(number, at, ends + 20 - at))
        at = ends + 30
    return events
