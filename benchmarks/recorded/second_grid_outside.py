"""Jobs of one process over pools, rate limits, futures of PyTorch, loaders and forked writers: the second grid."""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info

from benchmarks.recorded.job import RECORDED, WARM_UP, Job, pause
from benchmarks.recorded.mechanisms_threads import beside

_FORK = multiprocessing.get_context("fork")

BATCH = 4
"""Samples of a batch. Chosen: a loader's reads are a few, so that their count, not only their length, matters."""


def replayed(job: Job) -> None:
    """A thread acts and inserts, the main thread samples: a limiter keeps inserts per sample near `per_sample`."""
    x = torch.zeros(4, 32)
    changed, counts = threading.Condition(), {"inserts": 0, "samples": 0}
    act, learn = job.operator("act"), job.operator("learn")
    per_sample, ahead = job["per_sample"], job.get("ahead", 1)

    def acting() -> None:
        while True:
            with changed:
                changed.wait_for(lambda: counts["inserts"] < per_sample * (counts["samples"] + ahead))
            act(x, job["act_ms"])
            with changed:
                counts["inserts"] += 1
                changed.notify_all()

    for step in job.steps():
        if step == WARM_UP:
            beside(acting)
        if step >= WARM_UP:
            with changed:
                changed.wait_for(lambda: counts["inserts"] >= per_sample * (counts["samples"] + 1))
                counts["samples"] += 1
                changed.notify_all()
        learn(x, job["learn_ms"])


def paced(job: Job) -> None:
    """Begin a step `every_ms` after the last one or later: a limit of requests per second, kept by sleeping."""
    x = torch.zeros(4, 32)
    request, train = job.operator("request"), job.operator("train")
    due = time.perf_counter()
    for _ in job.steps():
        time.sleep(max(0.0, due - time.perf_counter()))
        due = time.perf_counter() + job["every_ms"] / 1000
        request(x, job["request_ms"])
        train(x, job["train_ms"])


def collected(job: Job) -> None:
    """Threads set futures of PyTorch; `collect_all` of them and a `then`, which merges, are waited for by main."""
    x = torch.zeros(4, 32)
    part, merge, train = (job.operator(name) for name in ("part", "merge", "train"))

    def set_result(future: torch.futures.Future[torch.Tensor], ms: float) -> None:
        future.set_result(part(x, ms))

    with ThreadPoolExecutor(len(job["part_ms"])) as pool:
        for _ in job.steps():
            parts = [torch.futures.Future[torch.Tensor]() for _ in job["part_ms"]]
            merged = torch.futures.collect_all(parts).then(lambda _: merge(x, job["merge_ms"]))
            for future, ms in zip(parts, job["part_ms"], strict=True):
                pool.submit(set_result, future, ms)
            train(x, job["train_ms"])
            merged.wait()


class _Rows(Dataset[torch.Tensor]):
    """Rows that the process itself reads by an operator."""

    def __init__(self, job: Job) -> None:
        self.read, self.ms = job.operator("read"), job["read_ms"]

    def __getitem__(self, row: int) -> torch.Tensor:
        return self.read(torch.zeros(32), self.ms / BATCH)


class _Mined(Sampler[list[int]]):
    """Batches of the rows that a thread has found to be hard."""

    def __init__(self, hard: queue.Queue[list[int]]) -> None:
        self.hard = hard

    def __iter__(self) -> Iterator[list[int]]:
        while True:
            yield self.hard.get()


def mined(job: Job) -> None:
    """A thread chooses the rows of the next batch, which a loader without workers takes from its batch sampler."""
    x = torch.zeros(4, 32)
    mine, train = job.operator("mine"), job.operator("train")
    hard: queue.Queue[list[int]] = queue.Queue(maxsize=1)
    begin = threading.Event()

    def mining() -> None:
        for _ in range(WARM_UP):
            hard.put(list(range(BATCH)))
        begin.wait()
        while True:
            mine(x, job["mine_ms"])
            hard.put(list(range(BATCH)))

    beside(mining)
    batches = iter(DataLoader(_Rows(job), batch_sampler=_Mined(hard)))
    for step in job.steps():
        if step == WARM_UP:
            begin.set()
        train(next(batches), job["train_ms"])


class _Stream(IterableDataset[torch.Tensor]):
    """An endless stream of samples, of which each loader worker reads its own shard."""

    def __init__(self, ms: float) -> None:
        self.ms = ms

    def __iter__(self) -> Iterator[torch.Tensor]:
        worker = get_worker_info()
        for _ in range((WARM_UP + RECORDED + 8) * BATCH // worker.num_workers):
            pause(self.ms)
            yield torch.zeros(32)


def streamed(job: Job) -> None:
    """Train on batches of an `IterableDataset` that workers read and put together by a `collate_fn` that takes time."""
    x = torch.zeros(4, 32)
    train = job.operator("train")

    def padded(samples: list[torch.Tensor]) -> torch.Tensor:
        pause(job["collate_ms"])
        return torch.stack(samples)

    stream = _Stream(job["read_ms"] / BATCH)
    batches = iter(DataLoader(stream, BATCH, num_workers=job["workers"], collate_fn=padded, prefetch_factor=1))
    for _ in job.steps():
        next(batches)
        train(x, job["train_ms"])


def forked(job: Job) -> None:
    """Fork a process that writes a checkpoint each `every` steps; join the process before the next is forked."""
    x = torch.zeros(4, 32)
    train = job.operator("train")
    writer: Any = None
    for step in job.steps():
        train(x, job["train_ms"])
        if step % job["every"] == 0:
            if writer is not None:
                writer.join()
            writer = _FORK.Process(target=pause, args=(job["write_ms"],))
            writer.start()
    writer.join()


def beams(job: Job) -> None:
    """Score the beams of each token by a pool's `map`, then choose among them; a step decodes `tokens` tokens."""
    x = torch.zeros(4, 32)
    score, choose = job.operator("score"), job.operator("choose")
    with ThreadPoolExecutor(job["threads"]) as pool:
        for step in job.steps():
            for token in range(job.get("tokens", 3)):
                shift = step + token
                lengths_ms = [job["score_ms"][(beam + shift) % len(job["score_ms"])] for beam in range(job["beams"])]
                list(pool.map(lambda ms: score(x, ms), lengths_ms))
                choose(x, job["choose_ms"])


def stolen(job: Job) -> None:
    """The main thread and helpers take tasks, large ones first, from one deque until it is empty, then all meet."""
    x = torch.zeros(4, 32)
    tasks: deque[Callable[[], torch.Tensor]] = deque()
    large, small, merge = (job.operator(name) for name in ("large", "small", "merge"))
    start, over = threading.Semaphore(0), threading.Semaphore(0)
    helpers = range(job.get("helpers", 2))

    def work() -> None:
        while True:
            try:
                task = tasks.popleft()
            except IndexError:
                return
            task()

    def helping() -> None:
        while True:
            start.acquire()
            work()
            over.release()

    for _ in helpers:
        beside(helping)
    for _ in job.steps():
        tasks.extend([lambda: large(x, job["large_ms"])] * job["large"])
        tasks.extend([lambda: small(x, job["small_ms"])] * job["small"])
        start.release(len(helpers))
        work()
        for _ in helpers:
            over.acquire()
        merge(x, job.get("merge_ms", 4))
