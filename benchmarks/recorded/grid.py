"""Jobs over who waits for whom, through what: peers that change, any sender, locks, semaphores, asyncio, sockets."""

from __future__ import annotations

import asyncio
import fcntl
import multiprocessing
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist
from torch.profiler import record_function
from torch.utils.data import DataLoader

from benchmarks.recorded.hand_overs import beside
from benchmarks.recorded.job import RECORDED, WARM_UP, Job, pause
from benchmarks.recorded.training import BATCH, Samples

_FORK = multiprocessing.get_context("fork")

POLL_S = 0.0005
"""Seconds between two looks at shared memory. Chosen: a fiftieth of what is waited for; less only fills the trace."""


def gossip(job: Job) -> None:
    """Average with one peer of four, another one in each step, by isend and irecv; all ranks never meet at once."""
    ours, theirs = torch.zeros(job["elements"]), torch.zeros(job["elements"])
    for step in job.steps():
        job.operator("compute")(ours, job["compute_ms"] * job.factor(step))
        peer = job.rank ^ (1 << step % 2)
        works = [dist.isend(ours, peer), dist.irecv(theirs, peer)]
        for work in works:
            work.wait()
        job.operator("mix")(theirs, job.get("mix_ms", 3))


def any_source(job: Job) -> None:
    """Rank 0 serves parameters to whoever sends a gradient first; workers never wait for each other."""
    x = torch.zeros(job["elements"])
    for step in job.steps():
        if job.rank:
            job.operator("compute")(x, job["compute_ms"] * job.factor(step))
            dist.send(x, 0)
            dist.recv(x, 0)
            continue
        for _ in range(job.ranks - 1):
            source = dist.recv(x)
            job.operator("update")(x, job["update_ms"])
            dist.send(x, source)


def slots(job: Job) -> None:
    """A thread fetches into `slots` slots, counted by semaphores; a slot is free when training on it is over."""
    x = torch.zeros(4, 32)
    fetch, train = job.operator("fetch"), job.operator("train")
    free, filled, begin = threading.Semaphore(job.get("slots", 1)), threading.Semaphore(0), threading.Event()

    def fetching() -> None:
        begin.wait()
        while True:
            free.acquire()
            fetch(x, job["fetch_ms"])
            filled.release()

    threading.Thread(target=fetching, daemon=True).start()
    for step in job.steps():
        if step == WARM_UP:
            begin.set()
        if step >= WARM_UP:
            filled.acquire()
        train(x, job["train_ms"])
        if step >= WARM_UP:
            free.release()


def tasks(job: Job) -> None:
    """Serve two clients that are asyncio tasks; they prepare, and the model runs, in threads of executors."""
    asyncio.run(_serve(job))


async def _serve(job: Job) -> None:
    x, asked = torch.zeros(4, 32), asyncio.Queue[asyncio.Future[None]]()
    prepare, model, loop = job.operator("prepare"), job.operator("model"), asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as device, ThreadPoolExecutor(2) as others:

        async def client() -> None:
            while True:
                await loop.run_in_executor(others, prepare, x, job["prepare_ms"])
                answer = loop.create_future()
                await asked.put(answer)
                await answer

        clients = [asyncio.create_task(client()) for _ in range(2)]
        for _ in job.steps():
            for _ in range(2):
                answer = await asked.get()
                await loop.run_in_executor(device, model, x, job["model_ms"])
                answer.set_result(None)
        for each in clients:
            each.cancel()


def averaged(job: Job) -> None:
    """A thread averages weights after each update, told by a condition; the next update waits until it is over."""
    x, changed, counts = torch.zeros(4, 32), threading.Condition(), {"updates": 0, "averages": 0}
    train, update, average = (job.operator(name) for name in ("train", "update", "ema"))

    def averaging() -> None:
        while True:
            with changed:
                changed.wait_for(lambda: counts["updates"] > counts["averages"])
            average(x, job["ema_ms"])
            with changed:
                counts["averages"] += 1
                changed.notify_all()

    threading.Thread(target=averaging, daemon=True).start()
    for _ in job.steps():
        train(x, job["train_ms"])
        with changed:
            changed.wait_for(lambda: counts["updates"] == counts["averages"])
        update(x, job.get("update_ms", 5))
        with changed:
            counts["updates"] += 1
            changed.notify_all()


def turns(job: Job) -> None:
    """Two threads train two models in turn, as adversaries do: each waits on a condition until it is its turn."""
    x, changed, turn = torch.zeros(4, 32), threading.Condition(), ["generator"]
    generate, discriminate = job.operator("generate"), job.operator("discriminate")

    def take(mine: str, other: str, work: Any, ms: float) -> None:  # noqa: ANN401 - an operator
        with changed:
            changed.wait_for(lambda: turn[0] == mine)
        work(x, ms)
        with changed:
            turn[0] = other
            changed.notify_all()

    def other() -> None:
        while True:
            take("discriminator", "generator", discriminate, job["discriminate_ms"])

    threading.Thread(target=other, daemon=True).start()
    for _ in job.steps():
        take("generator", "discriminator", generate, job["generate_ms"])


def locked(job: Job) -> None:
    """Ranks take turns at a cache that a file lock guards, then all-reduce; another rank comes first in each step."""
    x = torch.zeros(job["elements"])
    with (job.folder / "cache.lock").open("w") as file:
        for step in job.steps():
            job.operator("compute")(x, job["compute_ms"] + job.get("apart_ms", 3) * ((job.rank + step) % job.ranks))
            fcntl.flock(file, fcntl.LOCK_EX)
            job.operator("cached")(x, job["cached_ms"])
            fcntl.flock(file, fcntl.LOCK_UN)
            dist.all_reduce(x)


def polled(job: Job) -> None:
    """Another process makes the next batch into shared memory, at which this one looks again and again."""
    asked, made = _FORK.Value("q", 0, lock=False), _FORK.Value("q", 0, lock=False)
    maker = beside(_make_shared, asked, made, job["make_ms"])
    x = torch.zeros(4, 32)
    for step in job.steps():
        if step == WARM_UP:
            asked.value += 1
        if step >= WARM_UP:
            while made.value < asked.value:
                time.sleep(POLL_S)
            asked.value += 1
        job.operator("train")(x, job["train_ms"])
    maker.terminate()


def _make_shared(asked: Any, made: Any, make_ms: float) -> None:  # noqa: ANN401 - of ctypes
    while True:
        while made.value == asked.value:
            time.sleep(POLL_S)
        pause(make_ms)
        made.value += 1


def looked_up(job: Job) -> None:
    """Rank 1 asks rank 0 for rows of a table by a Unix socket and waits for the answer; they share no collective."""
    x, path = torch.zeros(4, 32), str(job.folder / "lookup")
    with socket.socket(socket.AF_UNIX) as ours:
        if job.rank == 0:
            ours.bind(path)
            ours.listen()
        dist.barrier()
        if job.rank == 1:
            ours.connect(path)
        with ours if job.rank else ours.accept()[0] as line:
            for step in job.steps():
                if job.rank == 0:
                    line.recv(1)
                    job.operator("lookup")(x, job["lookup_ms"])
                    line.sendall(b"a")
                else:
                    line.sendall(b"q")
                    line.recv(1)
                    job.operator("dense")(x, job["dense_ms"] * job.factor(step))


def distilled(job: Job) -> None:
    """Rank 0, the teacher, sends what it computed to rank 1, the student, and goes on while that is under way."""
    logits = [torch.zeros(job["elements"]) for _ in range(2)]
    sent = None
    for step in job.steps():
        x = logits[step % 2]
        if job.rank == 0:
            job.operator("teacher")(x, job["teacher_ms"])
            if sent is not None:
                sent.wait()
            sent = dist.isend(x, 1)
        else:
            dist.recv(x, 0)
            job.operator("student")(x, job["student_ms"])
    if sent is not None:
        sent.wait()


def uneven(job: Job) -> None:
    """Mixture of experts with uneven counts: `tokens` says how many each expert gets, `expert_ms` how long it takes."""
    counts, mine = job["tokens"], job["tokens"][job.rank]
    x, arrived = torch.zeros(sum(counts)), torch.zeros(mine * job.ranks)
    for _ in job.steps():
        job.operator("attention")(x, job["attn_ms"])
        dist.all_to_all_single(arrived, x, [mine] * job.ranks, counts)
        job.operator("expert")(arrived, job["expert_ms"][job.rank])
        dist.all_to_all_single(x, arrived, counts, [mine] * job.ranks)
        job.operator("update")(x, job.get("update_ms", 4))


def saved(job: Job) -> None:
    """Compute and all-reduce; each `every` steps all ranks write their part of a checkpoint and meet at a barrier."""
    x = torch.zeros(job["elements"])
    for step in job.steps():
        job.operator("compute")(x, job["compute_ms"])
        dist.all_reduce(x)
        if step % job["every"] == 0:
            with record_function("checkpoint"):
                job.operator("save")(x, job["save_ms"] * job.own("disk", 1.0))
                dist.barrier()


def exits(job: Job) -> None:
    """Run as many layers as a rank's batch happens to need, two to five, then all-reduce."""
    x = torch.zeros(job["elements"])
    for step in job.steps():
        for _ in range(random.Random(1000 * step + job.rank).randint(2, 5)):
            job.operator("layer")(x, job["layer_ms"])
        dist.all_reduce(x)
        job.operator("update")(x, job.get("update_ms", 4))


def owners(job: Job) -> None:
    """Reduce each shard to its owner beside backward, update the own shard, broadcast all shards at once."""
    shards = [torch.zeros(job["elements"]) for _ in range(job.ranks)]
    for step in job.steps():
        works = []
        for owner, shard in enumerate(shards):
            job.operator("backward")(shard, job["backward_ms"] * job.factor(step))
            works.append(dist.reduce(shard, owner, async_op=True))
        for work in works:
            work.wait()
        job.operator("update")(shards[job.rank], job["update_ms"][job.rank])
        works = [dist.broadcast(shard, owner, async_op=True) for owner, shard in enumerate(shards)]
        for work in works:
            work.wait()


def round_robin(job: Job) -> None:
    """Take batches from two loaders in turn, each with a worker of its own; `loader_ms` per batch of each."""
    count = BATCH * (WARM_UP + RECORDED + 4)
    sources = [iter(DataLoader(Samples(count, 32, ms / BATCH), BATCH, num_workers=1)) for ms in job["loader_ms"]]
    for step in job.steps():
        job.operator("train")(next(sources[step % 2]), job["train_ms"])


def sequence(job: Job) -> None:
    """Sequence parallel: gather activations beside a norm, compute, reduce-scatter beside another operator."""
    part, whole = torch.zeros(job["elements"]), torch.zeros(job["elements"] * job.ranks)
    for step in job.steps():
        for _ in range(job.get("layers", 2)):
            work = dist.all_gather_into_tensor(whole, part, async_op=True)
            job.operator("norm")(part, job["norm_ms"])
            work.wait()
            job.operator("block")(whole, job["block_ms"] * job.factor(step))
            work = dist.reduce_scatter_tensor(part, whole, async_op=True)
            job.operator("mask")(part, job["mask_ms"])
            work.wait()
