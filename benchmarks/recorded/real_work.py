"""Jobs that compute, as people write them: transformers in data, fully sharded, tensor and pipeline parallel; feeds.

Nothing sleeps: what takes time are products of matrices, attention, decompression and gloo.
"""

from __future__ import annotations

import multiprocessing
import queue
import threading
import zlib
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

from benchmarks.recorded.hand_overs import beside
from benchmarks.recorded.job import RECORDED, WARM_UP, Job, computed


class Layer(nn.Module):
    """A layer of a transformer: attention by hand or by the library's function, then two linear layers."""

    def __init__(self, width: int, attention: str, extra_ms: float) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm, self.attention, self.extra_ms = nn.LayerNorm(width), attention, extra_ms

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # noqa: D102 - torch's
        q, k, v = (each.unflatten(-1, (4, -1)).transpose(1, 2) for each in self.qkv(self.norm(x)).chunk(3, -1))
        with record_function("attention"):
            if self.attention == "hand":
                made = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1) @ v
            else:
                made = scaled_dot_product_attention(q, k, v)
        x = x + self.out(made.transpose(1, 2).flatten(-2))
        if self.extra_ms:
            computed("extra")(x.detach(), self.extra_ms)
        return x + self.down(torch.relu(self.up(x)))


class Transformer(nn.Module):
    """A small language model; `recompute` drops the activations of its layers."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        width = job.get("width", 128)
        extra = job.get("extra_ms", 0) * job.own("slow", 1.0)
        self.tokens = nn.Embedding(job.get("vocab", 400), width)
        self.layers = nn.ModuleList(
            Layer(width, job.get("attention", "hand"), extra) for _ in range(job.get("layers", 3))
        )
        self.head, self.recompute = nn.Linear(width, job.get("vocab", 400)), job.get("recompute", False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:  # noqa: D102 - torch's
        x = self.tokens(tokens)
        for layer in self.layers:
            with record_function("layer"):
                x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return self.head(x)


def language(job: Job) -> None:
    """Train a language model on one rank, or on several (`sync`: ddp, fsdp, none with an average each `every`)."""
    model = Transformer(job)
    trained: nn.Module = model
    sync = job.get("sync", "ddp") if job.ranks > 1 else "none"
    if sync == "ddp":
        trained = DistributedDataParallel(model, bucket_cap_mb=job.get("bucket_mb", 25))
        if job.get("half_gradients"):
            trained.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif sync == "fsdp":
        for layer in model.layers:
            fully_shard(layer, mesh=init_device_mesh("cpu", (job.ranks,)))
        fully_shard(model, mesh=init_device_mesh("cpu", (job.ranks,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=job.get("foreach", True))
    tokens = torch.randint(0, job.get("vocab", 400), (job.get("batch", 4), job.get("seq", 96)))
    for step in job.steps():
        for part in range(job.get("accumulate", 1)):
            quiet = sync == "ddp" and job.get("no_sync") and part + 1 < job.get("accumulate", 1)
            with trained.no_sync() if quiet else nullcontext(), record_function(f"micro_{part}"):
                cross_entropy(trained(tokens).flatten(0, 1), tokens.flatten()).backward()
        if job.get("clip"):
            with record_function("clip"):
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if job.ranks > 1 and sync == "none" and step % job["every"] == WARM_UP % job["every"]:
            with record_function("average"):
                dist.all_reduce(torch.cat([each.detach().flatten() for each in model.parameters()]))
        if job.get("log_ms") and job.rank == 0:
            with record_function("log"):
                computed("histogram")(tokens.float(), job["log_ms"])


def tensor_parallel(job: Job) -> None:
    """Train layers whose weights are split over the ranks; each layer all-reduces in forward and in backward."""
    width, layers = job.get("width", 256), job.get("layers", 3)
    mesh = init_device_mesh("cpu", (job.ranks,))
    blocks = [nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)) for _ in range(layers)]
    model = nn.Sequential(
        *[parallelize_module(each, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}) for each in blocks]
    )
    x = torch.ones(job.get("batch", 64), width)
    for step in job.steps():
        y = x
        for each in model:
            y = each(y)
            computed("extra")(x, job.get("extra_ms", 4) * job.factor(step))
        y.pow(2).mean().backward()
        model.zero_grad()


class _Stage(nn.Module):
    def __init__(self, width: int, ms: float) -> None:
        super().__init__()
        self.linear, self.ms = nn.Linear(width, width), ms

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        computed("stage")(x.detach(), self.ms)
        return torch.relu(self.linear(x))


def pipeline(job: Job) -> None:
    """Train stages on as many ranks by torch's own schedules, `stage_ms` of extra work in each forward."""
    width, micro = job.get("width", 512), job.get("micro", 4)
    stage = PipelineStage(_Stage(width, job["stage_ms"][job.rank]), job.rank, job.ranks, torch.device("cpu"))
    kind = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}[job.get("schedule", "1f1b")]
    schedule = kind(stage, n_microbatches=micro, loss_fn=lambda y, target: (y - target).pow(2).mean())
    x = torch.ones(micro * job.get("batch", 16), width)
    for _ in job.steps():
        if job.rank == 0:
            schedule.step(x)
        elif job.rank == job.ranks - 1:
            schedule.step(target=x, losses=[])
        else:
            schedule.step()


def _environment(pipe: Any, ms: float) -> None:  # noqa: ANN401 - a Connection
    torch.set_num_threads(1)
    state = torch.zeros(16)
    while True:
        pipe.recv()
        computed("environment")(state, ms)
        pipe.send(state.numpy())


def learner(job: Job) -> None:
    """Ask environments in other processes for their next states, then learn from these."""
    pairs = [multiprocessing.get_context("fork").Pipe() for _ in range(job.get("environments", 1))]
    for _, theirs in pairs:
        beside(_environment, theirs, job["environment_ms"])
    model = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 16))
    optimizer = torch.optim.Adam(model.parameters())
    for ours, _ in pairs:
        ours.send(0)
    for _ in job.steps():
        for _ in range(job.get("per_step", 3)):
            with record_function("collect"):
                states = torch.stack([torch.from_numpy(ours.recv()) for ours, _ in pairs])
            for ours, _ in pairs:  # they go on while the learner learns
                ours.send(0)
            with record_function("act"):
                computed("policy")(states, job["policy_ms"])
        model(states).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def server(job: Job) -> None:
    """Serve requests of `clients` threads, each with one request open, in batches of up to `max_batch`."""
    asked: queue.Queue[queue.Queue[int]] = queue.Queue()
    over = threading.Event()

    def client() -> None:
        answers: queue.Queue[int] = queue.Queue()
        while not over.is_set():
            computed("prepare")(torch.zeros(4), job["prepare_ms"])
            asked.put(answers)
            answers.get()

    threads = [threading.Thread(target=client, daemon=True) for _ in range(job.get("clients", 3))]
    for each in threads:
        each.start()
    for _ in job.steps():
        for _ in range(job.get("per_step", 3)):
            with record_function("gather_requests"):
                batch = [asked.get() for _ in range(job.get("max_batch", 2))]
            computed("model")(torch.zeros(4), job["model_ms"])
            for answers in batch:
                answers.put(1)
    over.set()


class _Packed(Dataset[torch.Tensor]):
    def __init__(self, count: int, passes: int) -> None:
        noise = torch.randint(0, 64, (120_000,), dtype=torch.uint8).numpy().tobytes()
        self.count, self.passes, self.packed = count, passes, zlib.compress(noise)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> torch.Tensor:
        for _ in range(self.passes):
            raw = bytearray(zlib.decompress(self.packed))
        return torch.frombuffer(raw, dtype=torch.uint8)[at : at + 256].float()


def vision(job: Job) -> None:
    """Train on samples that are decompressed by `workers` processes, or inline; `sync` by DDP on several ranks."""
    count = 4 * (WARM_UP + RECORDED + 3)
    samples = _Packed(count, job["passes"])
    loader = iter(DataLoader(samples, batch_size=4, num_workers=job.get("workers", 0)))
    model: nn.Module = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    if job.ranks > 1:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for _ in job.steps():
        x = next(loader)
        computed("augment")(x, job["augment_ms"])
        model(x).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
