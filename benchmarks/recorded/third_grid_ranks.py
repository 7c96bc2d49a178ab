"""Jobs whose ranks meet in a third set of ways: micro-batches, rings beside attention, tokens in a pipe, task farms.

Operators sleep, or multiply matrices where settings say `computes`.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections import deque

import torch
import torch.distributed as dist

from benchmarks.recorded.job import RECORDED, WARM_UP, Job


def accumulated(job: Job) -> None:
    """Accumulate gradients over micro-batches; all-reduce buckets beside backward of the last one only, then update."""
    x = torch.zeros(4, 32)
    buckets = [torch.zeros(job["elements"]) for _ in range(job.get("buckets", 3))]
    forward, backward, update = (job.operator(name) for name in ("forward", "backward", "update"))
    micro = job.get("micro", 3)
    for step in job.steps():
        works = []
        for part in range(micro):
            forward(x, job["forward_ms"])
            for bucket in buckets:
                backward(x, job["backward_ms"] * job.factor(step))
                if part == micro - 1:
                    works.append(dist.all_reduce(bucket, async_op=True))
        for work in works:
            work.wait()
        update(x, job.get("update_ms", 4))


def ring_attention(job: Job) -> None:
    """Attend to one block of keys while it goes on to the next rank and one comes from the last, once round."""
    blocks = [torch.zeros(job["elements"]) for _ in range(2)]
    attend, dense = job.operator("attend"), job.operator("dense")
    following = (job.rank + 1) % job.ranks
    before = (job.rank - 1) % job.ranks
    for step in job.steps():
        for turn in range(job.ranks):
            here = blocks[turn % 2]
            coming = blocks[1 - turn % 2]
            works = []
            if turn + 1 < job.ranks:
                works = [dist.isend(here, following), dist.irecv(coming, before)]
            attend(here, job["attend_ms"] * job.factor(step))
            for work in works:
                work.wait()
        dense(blocks[0], job["dense_ms"])


def tokens_in_pipe(job: Job) -> None:
    """Compile only with one of two tokens, which ranks take from a named pipe and put back, then all-reduce."""
    path = job.folder / "tokens"
    if job.rank == 0:
        os.mkfifo(path)
    dist.barrier()
    pipe = os.open(path, os.O_RDWR)
    if job.rank == 0:
        os.write(pipe, b"tt")
    x = torch.zeros(job["elements"])
    load, compile_, update = (job.operator(name) for name in ("load", "compile", "update"))
    for _ in job.steps():
        load(x, job["load_ms"][job.rank])
        token = os.read(pipe, 1)
        compile_(x, job["compile_ms"])
        os.write(pipe, token)
        dist.all_reduce(x)
        update(x, job.get("update_ms", 4))
    os.close(pipe)


def looked_up_ahead(job: Job) -> None:
    """Rank 1 asks rank 0 for rows of a table two steps before it trains on them, and has both requests under way."""
    x = torch.zeros(4, 32)
    wanted = [torch.zeros(256) for _ in range(2)]
    rows = [torch.zeros(job["elements"]) for _ in range(2)]
    lookup, train = job.operator("lookup"), job.operator("train")
    last = WARM_UP + RECORDED
    coming: deque[dist.Work] = deque()
    going: deque[dist.Work] = deque()

    def ask(step: int) -> None:
        going.append(dist.isend(wanted[step % 2], 0))
        coming.append(dist.irecv(rows[step % 2], 0))

    for step in job.steps():
        if job.rank == 0:
            dist.recv(wanted[step % 2], 1)
            if step >= 2:
                going.popleft().wait()
            lookup(x, job["lookup_ms"])
            going.append(dist.isend(rows[step % 2], 1))
            continue
        if step == 0:
            ask(0)
            ask(1)
        going.popleft().wait()
        coming.popleft().wait()
        train(x, job["train_ms"])
        if step + 2 < last:
            ask(step + 2)
    for work in going:
        work.wait()


def task_farm(job: Job) -> None:
    """Rank 0 plans tasks and sends the next to whichever rank asks first; a rank gets 0 when there are none."""
    question = torch.zeros(1)
    task = torch.zeros(1)
    if job.rank == 0:
        plan = job.operator("plan")
        for _ in job.steps():
            plan(task, job["plan_ms"])
            for ms in [*job["task_ms"], *[0.0] * (job.ranks - 1)]:
                asking = dist.recv(question)
                dist.send(torch.tensor([float(ms)]), asking)
        return
    operators = {True: job.operator("large"), False: job.operator("small")}
    for _ in job.steps():
        dist.send(question, 0)
        dist.recv(task, 0)
        while task.item():
            operators[task.item() >= job["large_from_ms"]](question, task.item())
            dist.send(question, 0)
            dist.recv(task, 0)


def full_pipe(job: Job) -> None:
    """Rank 0 extracts and writes a page into a named pipe that has room for one; rank 1 reads a page and trains."""
    path = job.folder / "pages"
    if job.rank == 0:
        os.mkfifo(path)
    dist.barrier()
    pipe = os.open(path, os.O_RDWR)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, mmap.PAGESIZE)
    x = torch.zeros(4, 32)
    extract, train = job.operator("extract"), job.operator("train")
    for _ in job.steps():
        if job.rank == 0:
            extract(x, job["extract_ms"])
            os.write(pipe, bytes(mmap.PAGESIZE))
        else:
            os.read(pipe, mmap.PAGESIZE)
            train(x, job["train_ms"])
    os.close(pipe)
