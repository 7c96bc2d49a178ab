"""Training on CUDA devices with the kernels of real models: attention, matrix products, optimizer, loader, copies.

Kernels take what they take here; what a pair changes is either gone or counted in passes, so that the truth is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

from benchmarks.recorded.cuda import spinner
from benchmarks.recorded.job import RECORDED, WARM_UP, Job, pause

BATCH = 8
"""Sequences per batch. Chosen: a batch is collated from several, as loaders do; its time is shared among them."""


class Sequences(Dataset[torch.Tensor]):
    """Sequences of vectors that take `ms` each to get."""

    def __init__(self, count: int, length: int, width: int, ms: float) -> None:
        self.count, self.shape, self.ms = count, (length, width), ms

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> torch.Tensor:
        pause(self.ms)
        return torch.full(self.shape, 1.0 / (1 + at))


class Transformer(nn.Module):
    """Layers of attention and feed-forward; the first `tail` are annotated `layer`, the others `tail`."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        width = job.get("width", 1024)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(job.get("layers", 4) + job.get("tail", 0))
        )
        self.whole = job.get("layers", 4)
        self.item = job.get("item_per_layer", False)
        self.log: list[float] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # noqa: D102 - torch's
        for at, layer in enumerate(self.layers):
            with record_function("layer" if at < self.whole else "tail"):
                x = layer(x)
            if self.item:
                with record_function("watch"):
                    self.log.append(x.detach().norm().item())
        return x


def training(job: Job) -> None:
    """Train a transformer: batches from a loader, copied to the device, forward, backward, optimizer, `loss.item()`."""
    model = Transformer(job).cuda()
    trained: nn.Module = DistributedDataParallel(model) if job.ranks > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, foreach=True)
    loader, spin = batches(job), spinner()
    for step in job.steps():
        x = next(loader).to("cuda", non_blocking=job.get("pinned", False))
        if job.get("tokenize_ms"):
            tokenize(job["tokenize_ms"])
        job.stall(step)
        if job.get("spin_ms"):
            spin(job["spin_ms"] * job.factor(step))
        with torch.autocast("cuda", torch.bfloat16):
            y = trained(x)
        loss = y.float().pow(2).mean()
        if job.get("metrics"):
            metrics(y.detach(), job["metrics"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if job.get("empty"):
            torch.cuda.empty_cache()
        loss.item()


def metrics(y: torch.Tensor, passes: int) -> None:
    """Compute something in `passes` matrix products and read it on the host."""
    with record_function("metrics"), torch.no_grad():
        flat = y.float().reshape(-1, y.shape[-1])
        for _ in range(passes):
            flat = flat @ (flat.T @ flat / flat.shape[0])
        flat.abs().max().item()


def tokenize(ms: float) -> None:
    """Take `ms` in Python that calls no operator."""
    pause(ms)


def batches(job: Job) -> Iterator[torch.Tensor]:
    """Return an iterator over batches, each of which takes `loader_ms` in one of `workers` processes, or inline."""
    count = BATCH * (WARM_UP + RECORDED + 2)
    samples = Sequences(count, job.get("length", 256), job.get("width", 1024), job.get("loader_ms", 0) / BATCH)
    workers = job.get("workers", 0)
    more: dict[str, Any] = {"prefetch_factor": 2} if workers else {}
    return iter(DataLoader(samples, batch_size=BATCH, num_workers=workers, pin_memory=job.get("pinned", False), **more))


def graphed(job: Job) -> None:
    """Replay a transformer's forward as a CUDA graph, between Python that takes `tokenize_ms` and an `.item()`."""
    model, spin = Transformer(job).cuda().eval(), spinner()
    x = torch.ones(BATCH, job.get("length", 256), job.get("width", 1024), device="cuda")

    def forward() -> torch.Tensor:
        spin(job.get("spin_ms", 1))
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            return model(x).float().mean()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            forward()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        mean = forward()
    for _ in job.steps():
        graph.replay()
        tokenize(job["tokenize_ms"])
        mean.item()


def run_ahead(job: Job) -> None:
    """Launch `count` small kernels behind a long one: the launch queue is full, and the host waits for room."""
    spin, x = spinner(), torch.ones(64, device="cuda")
    for _ in job.steps():
        spin(job["spin_ms"])
        for _ in range(job["count"]):
            x.mul_(1.0)
        pause(job["host_ms"])
        torch.cuda.synchronize()


def event_waits(job: Job) -> None:
    """Wait on the host for an event of a side stream: by `event.synchronize()`, or with `poll` by asking in a loop."""
    spin, side = spinner(), torch.cuda.Stream()
    done = torch.cuda.Event()
    for _ in job.steps():
        with torch.cuda.stream(side):
            spin(job["side_ms"])
            done.record(side)
        spin(job["spin_ms"])
        _until(done, poll=job.get("poll", False))
        pause(job["host_ms"])
        torch.cuda.synchronize()


def _until(done: torch.cuda.Event, *, poll: bool) -> None:
    if not poll:
        done.synchronize()
    while not done.query():
        pause(0.2)


def pinning(job: Job) -> None:
    """Pin host memory in each step (cudaHostAlloc), with kernels in flight, and give it back (cudaFreeHost)."""
    spin = spinner()
    for _ in job.steps():
        spin(job["spin_ms"])
        pinned = torch.empty(int(job["megabytes"] * 1e6), dtype=torch.uint8, pin_memory=True)
        pause(job["host_ms"])
        del pinned
        torch._C._host_emptyCache()
        torch.cuda.synchronize()


def prefetching(job: Job) -> None:
    """Copy the next batch on a side stream, from pinned memory in `pieces`, beside the kernels of this one."""
    spin, side = spinner(), torch.cuda.Stream()
    pieces = [torch.ones(int(16e6 / 4), pin_memory=True) for _ in range(job["pieces"])]

    def fetch() -> list[torch.Tensor]:
        with torch.cuda.stream(side):
            return [piece.to("cuda", non_blocking=True) for piece in pieces]

    ahead = fetch()
    for _ in job.steps():
        torch.cuda.current_stream().wait_stream(side)
        used, ahead = ahead, fetch()
        spin(job["spin_ms"])
        total = used[0].sum()
        total.item()


def two_ranks(job: Job) -> None:
    """Kernels, a stall on some ranks, an all-reduce; with `empty`, memory is given back by cudaFree in each step."""
    spin = spinner()
    gradient = torch.ones(job.get("elements", 1_000_000), device="cuda")
    for step in job.steps():
        block = torch.empty(300_000_000, dtype=torch.uint8, device="cuda") if job.get("empty") else None
        spin(job["spin_ms"] * job.factor(step))
        job.stall(step)
        work = dist.all_reduce(gradient, async_op=True)
        work.wait()
        del block
        if job.get("empty"):
            torch.cuda.empty_cache()
        spin(job.get("last_ms", 2))
        torch.cuda.synchronize()


def decoding(job: Job) -> None:
    """Generate tokens one by one: small kernels, logits to the host, a choice in Python, the token to the device."""
    model, spin = Transformer(job).cuda().eval(), spinner()
    for _ in job.steps():
        x = torch.ones(1, 1, job["width"], device="cuda")
        for _ in range(job["tokens"]):
            if job.get("spin_ms"):
                spin(job["spin_ms"])
            with torch.no_grad():
                logits = model(x)[0, -1]
            with record_function("choose"):
                best = int(logits.cpu().argmax())
                pause(job["choose_ms"])
            x = x + torch.tensor(float(best)).cuda()


def growing(job: Job) -> None:
    """Allocate blocks of ever new sizes, so that the allocator calls cudaMalloc, and frees cached ones by cudaFree."""
    spin, kept = spinner(), []
    for step in job.steps():
        spin(job["spin_ms"])
        for piece in range(job["blocks"]):
            with record_function("grow"):
                kept.append(torch.empty((64 + 4 * step + piece) << 20, dtype=torch.uint8, device="cuda"))
        pause(job["host_ms"])
        torch.cuda.synchronize()
        kept.clear()
