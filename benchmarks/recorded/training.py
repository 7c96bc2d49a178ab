"""Training loops: data loader, forward, backward, optimizer, with the ways of sharing a model that PyTorch has."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

from benchmarks.recorded.job import RECORDED, WARM_UP, Block, Job, pause, timed

BATCH = 4
"""Samples per batch. Chosen: a batch is then collated from several, as loaders do; its time is shared among them."""


class Samples(Dataset[torch.Tensor]):
    """Samples that take `ms` each to get."""

    def __init__(self, count: int, width: int, ms: float) -> None:
        self.count, self.width, self.ms = count, width, ms

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> torch.Tensor:
        pause(self.ms)
        return torch.full((self.width,), float(at))


class Model(nn.Module):
    """Blocks one after the other; `recompute` drops activations of each and computes them again in backward."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        width = job.get("width", 32)
        self.blocks = nn.ModuleList([Block(width, job["operators"]) for _ in range(job.get("layers", 2))])
        self.unused = nn.Linear(width, width) if job.get("unused") else None
        self.recompute = job.get("recompute", False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # noqa: D102 - torch's
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False, context_fn=_recomputing) if self.recompute else block(x)
        return x

    def slow_down(self, factor: float) -> None:
        """Multiply the time of all timed operators."""
        for block in self.blocks:
            block.factor = factor


def _recomputing() -> tuple[Any, Any]:
    return nullcontext(), record_function("recompute")


def training(job: Job) -> None:
    """Run a training loop on one rank, or data parallel on several (`sync`: ddp, hand, fsdp)."""
    model = Model(job)
    trained = shared_model(job, model)
    optimizer = optimizer_of(job, model)
    loader = batches(job)
    for step in job.steps():
        model.slow_down(job.factor(step))
        job.stall(step)
        for part in range(job.get("accumulate", 1)):
            last = part + 1 == job.get("accumulate", 1)
            with trained.no_sync() if isinstance(trained, DistributedDataParallel) and not last else nullcontext():
                loss = trained(prepared(job, next(loader))).pow(2).mean()
                loss.backward()
        if job.ranks > 1 and job.get("sync") == "hand":
            dist.all_reduce(torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None]))
        optimizer.step()
        optimizer.zero_grad()
        after_step(job, step, model, loss.detach())


def shared_model(job: Job, model: Model) -> nn.Module:
    """Return the model as `sync` shares it between ranks."""
    sync = job.get("sync", "ddp")
    if job.ranks > 1 and sync == "ddp":
        unused = bool(job.get("unused"))
        megabytes = job.get("bucket_mb", 25)
        return DistributedDataParallel(model, bucket_cap_mb=megabytes, find_unused_parameters=unused)
    if job.ranks > 1 and sync == "fsdp":
        mesh = init_device_mesh("cpu", (job.ranks,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    return model


def optimizer_of(job: Job, model: Model) -> torch.optim.Optimizer:
    """Return SGD, sharded over ranks if `zero`; a step takes `optimizer_ms` more."""
    optimizer: torch.optim.Optimizer
    if job.get("zero"):
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=1e-6)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, foreach=True)
    if job.get("optimizer_ms"):
        optimizer.register_step_pre_hook(lambda *_: _update(job["optimizer_ms"]))  # runs within Optimizer.step
    return optimizer


def _update(ms: float) -> None:
    timed("update")(torch.zeros(4), ms)


def batches(job: Job) -> Any:  # noqa: ANN401 - an iterator of DataLoader, which is untyped here
    """Return an iterator over batches, each of which takes `loader_ms` in one of `workers` processes, or inline."""
    batch_ms = job.get("loader_ms", 0) * job.own("slow_loader", 1.0)
    count = BATCH * (WARM_UP + RECORDED + 2) * job.get("accumulate", 1)
    samples = Samples(count, job.get("width", 32), batch_ms / BATCH)
    workers = job.get("workers", 0)
    ahead = {"prefetch_factor": job.get("prefetch", 2)} if workers else {}
    return iter(DataLoader(samples, batch_size=BATCH, num_workers=workers, **ahead))


def prepared(job: Job, batch: torch.Tensor) -> torch.Tensor:
    """Return the batch after an annotated region: an operator, and as much Python that is in no operator."""
    if job.get("augment_ms"):
        with record_function("augment"):
            timed("crop")(batch, job["augment_ms"] / 2)
            pause(job["augment_ms"] / 2)
    return batch


def after_step(job: Job, step: int, model: Model, loss: torch.Tensor) -> None:
    """Log and save, as settings say: `log_ms` on rank 0 after a reduce to it, `save_ms` each `save_every` steps."""
    if job.get("log_ms") is not None:
        dist.reduce(loss, 0)
        if job.rank == 0 and job["log_ms"]:
            with record_function("log"):
                timed("write_log")(loss, job["log_ms"])
    if job.get("save_ms") and step % job["save_every"] == 0:
        with record_function("save_checkpoint"):
            torch.save(model.state_dict(), job.folder / f"checkpoint-{job.rank}.pt")
            pause(job["save_ms"])
