"""Jobs on CUDA devices: real kernels, copies, allocations, graphs, streams and NCCL.

`torch.cuda._sleep` launches one kernel, `spin_kernel`, that takes a given number of clock cycles: the device's
counterpart of an operator that sleeps. Kernels that compute stand beside it. Every step ends with a wait for the
device, so that the host does not run ahead: when a step begins is then when the device is done with the one before.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from benchmarks.recorded.job import Job, pause

_CALIBRATION_CYCLES = 50_000_000
"""Cycles that are timed to learn the clock rate. Chosen: some 30 ms, long beside a launch; more only takes longer."""


def spinner() -> Callable[[float], None]:
    """Return a function that keeps the current stream busy for some ms, at the clock rate measured now."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(_CALIBRATION_CYCLES)  # the clock rises with load: the second run counts
    begin.record()
    torch.cuda._sleep(_CALIBRATION_CYCLES)
    end.record()
    torch.cuda.synchronize()
    cycles_per_ms = _CALIBRATION_CYCLES / begin.elapsed_time(end)
    return lambda ms: torch.cuda._sleep(int(ms * cycles_per_ms))


def syncs(job: Job) -> None:
    """Kernels, then `.item()` if `item`, then host work that could have run beside them."""
    spin, x = spinner(), torch.ones(1024, 1024, device="cuda")
    for _ in job.steps():
        spin(job["spin_ms"])
        loss = (x @ x).sum()
        if job.get("item"):
            loss.item()
        pause(job["host_ms"])
        spin(job["spin_ms"] / 4)
        torch.cuda.synchronize()


def copies(job: Job) -> None:
    """A copy of `megabytes` to the device, from pageable or pinned memory, between kernels, then one back."""
    spin = spinner()
    host = torch.ones(int(job["megabytes"] * 1e6 / 4), pin_memory=job["pinned"])
    for _ in job.steps():
        spin(job["spin_ms"])
        device = host.to("cuda", non_blocking=True)
        spin(job["spin_ms"])
        (device[:1024] * 2).to("cpu")
        pause(job.get("host_ms", 2))


def allocations(job: Job) -> None:
    """Kernels, then memory that grows by cudaMalloc, and with `empty` is given back by cudaFree in each step."""
    spin = spinner()
    for _ in job.steps():
        blocks = [torch.empty(int(job["megabytes"] * 1e6), dtype=torch.uint8, device="cuda") for _ in range(4)]
        spin(job["spin_ms"])
        del blocks
        if job.get("empty"):
            torch.cuda.empty_cache()
        pause(job["host_ms"])
        torch.cuda.synchronize()


def small_kernels(job: Job) -> None:
    """Many small kernels, launched one by one, or with `graph` replayed as one CUDA graph that forks and joins."""
    spin, x = spinner(), torch.ones(256, 256, device="cuda")
    side = torch.cuda.Stream()

    def kernels() -> None:
        for _ in range(job["count"]):
            x.mul_(1.0)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            spin(job.get("side_ms", 1))
        spin(job.get("spin_ms", 2))
        torch.cuda.current_stream().wait_stream(side)
        x.add_(0.0)

    run: Callable[[], None] = kernels
    if job.get("graph"):
        kernels()  # once outside: libraries and the allocator are ready
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kernels()
        run = graph.replay
    for _ in job.steps():
        run()
        torch.cuda.synchronize()


def two_streams(job: Job) -> None:
    """A side stream that works beside the main stream, ordered by events in both directions."""
    spin, x = spinner(), torch.ones(8192, 8192, device="cuda")
    side, ready, done = torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()
    for _ in job.steps():
        spin(job["first_ms"])
        ready.record()
        with torch.cuda.stream(side):
            side.wait_event(ready)
            for _ in range(job["passes"]):
                x.mul_(1.0)
            done.record(side)
        spin(job["beside_ms"])
        torch.cuda.current_stream().wait_event(done)
        spin(job["last_ms"])
        torch.cuda.synchronize()


def data_parallel(job: Job) -> None:
    """DistributedDataParallel over NCCL: forward and backward with `spin_ms` of kernels more, `slow` on some ranks."""
    torch.cuda.set_device(job.rank)
    spin = spinner()
    width = job.get("width", 2048)
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(job.get("layers", 4))]).cuda()
    shared = DistributedDataParallel(model, device_ids=[job.rank]) if job.ranks > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, foreach=True)
    x = torch.ones(job.get("batch", 512), width, device="cuda")
    for step in job.steps():
        spin(job["spin_ms"] * job.factor(step))
        loss = shared(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
