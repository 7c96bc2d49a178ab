"""Record `gloo_ddp/`: a DistributedDataParallel job on CPU, four ranks, one Kineto trace per rank.

Needs PyTorch, any build (`gloo_ddp/` was recorded with 2.13.0 for CPU), which `htagraph` itself does not.
What the recording has in it, on purpose:

* a small transformer, a `DataLoader`, an optimizer, and gradients in three DDP buckets, so that every step
  has several `gloo:all_reduce` on the back end's own two threads, the first while backward still runs;
* one all-reduce that the main thread waits for (the mean loss, as for a log line);
* one slow rank: `--straggler` multiplies matrices (annotated `extra_work`) before every backward;
* three recorded steps, with shapes; no Python stacks, so no path of the recording machine.

Example:
    python data/record_gloo_ddp.py -o data/gloo_ddp
"""

import argparse
import gzip
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

WAIT, WARMUP, ACTIVE = 1, 1, 3
STEPS = WAIT + WARMUP + ACTIVE


@dataclass(frozen=True)
class Job:
    """What every rank has to know; the sizes are small to keep the files small, not to learn anything.

    `hidden` is the width of the model; `bucket_mb` the size in MiB at which DDP closes a bucket of gradients;
    `extra_matmuls` the number of `extra_size`-wide matrix products that the straggler adds to each step.
    """

    folder: Path
    ranks: int
    straggler: int
    extra_matmuls: int
    extra_size: int = 512
    vocabulary: int = 512
    hidden: int = 128
    layers: int = 2
    tokens: int = 64
    batch: int = 4
    bucket_mb: float = 0.4


def language_model(job: Job) -> nn.Module:
    """Return a transformer that predicts a token at each position."""
    blocks = [
        nn.TransformerEncoderLayer(job.hidden, nhead=4, dim_feedforward=2 * job.hidden, dropout=0.0, batch_first=True)
        for _ in range(job.layers)
    ]
    embedding = nn.Embedding(job.vocabulary, job.hidden)
    return nn.Sequential(embedding, *blocks, nn.Linear(job.hidden, job.vocabulary))


def random_batches(job: Job, rank: int) -> DataLoader:
    """Return a loader with one batch of (tokens, next tokens) per step for this rank."""
    text = torch.randint(job.vocabulary, (STEPS * job.batch * job.ranks, job.tokens + 1))
    data = TensorDataset(text[:, :-1].contiguous(), text[:, 1:].contiguous())
    sampler = DistributedSampler(data, num_replicas=job.ranks, rank=rank, seed=0)
    return DataLoader(data, batch_size=job.batch, sampler=sampler)


def be_late(job: Job, rank: int) -> None:
    """Spend time on work that only the straggler has."""
    if rank != job.straggler:
        return
    with record_function("extra_work"):
        matrix = torch.eye(job.extra_size)
        for _ in range(job.extra_matmuls):
            matrix = matrix @ matrix


def train(job: Job, rank: int) -> None:
    """Run the job's steps on this rank; write the trace of the last three to `rank-N.json` in its folder."""
    torch.manual_seed(0)
    model = DistributedDataParallel(language_model(job), bucket_cap_mb=job.bucket_mb)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)
    loss_of = nn.CrossEntropyLoss()
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(str(job.folder / f"rank-{rank}.json")),
        record_shapes=True,
    ) as profiler:
        for tokens, next_tokens in random_batches(job, rank):
            loss = loss_of(model(tokens).flatten(0, 1), next_tokens.flatten())
            be_late(job, rank)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            dist.all_reduce(loss.detach())
            profiler.step()


def run_rank(rank: int, job: Job) -> None:
    """Join the process group over loopback, train, leave."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{job.folder}/store", rank=rank, world_size=job.ranks)
    try:
        train(job, rank)
    finally:
        dist.destroy_process_group()


def anonymous(trace: str) -> str:
    """Replace the recording machine's name and folder; every other byte stays as Kineto wrote it."""
    trace = re.sub(r'"host_name": "[^"]*"', '"host_name": "localhost"', trace)
    return re.sub(r'"traceName": "[^"]*?([^"/]*)"', r'"traceName": "\1"', trace)


def record(job: Job, output: Path) -> None:
    """Run the job in one process per rank and put `rank-N.json.gz` into the output folder."""
    mp.spawn(run_rank, args=(job,), nprocs=job.ranks)
    output.mkdir(parents=True, exist_ok=True)
    for rank in range(job.ranks):
        trace = anonymous((job.folder / f"rank-{rank}.json").read_text())
        packed = gzip.compress(trace.encode(), compresslevel=9, mtime=0)
        (output / f"rank-{rank}.json.gz").write_bytes(packed)


def main() -> None:
    """Read the command line and record."""
    parser = argparse.ArgumentParser(description="Record a 4-rank DDP job on CPU, one Kineto trace per rank.")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for rank-N.json.gz")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--straggler", type=int, default=2, help="the rank with extra work")
    parser.add_argument("--extra-matmuls", type=int, default=12, help="how much extra work, per step")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        job = Job(Path(folder), options.ranks, options.straggler, options.extra_matmuls)
        record(job, options.output)


if __name__ == "__main__":
    main()
