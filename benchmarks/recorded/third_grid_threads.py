"""Jobs of one process whose threads meet in a third set of ways: own deques, one of several waiters, trees, tickets.

Operators sleep, or multiply matrices where settings say `computes`.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial

import torch
from torch.profiler import record_function

from benchmarks.recorded.job import WARM_UP, Job
from benchmarks.recorded.mechanisms_threads import beside, looped


class _OwnQueues:
    """Tasks of three threads, a deque of each."""

    def __init__(self) -> None:
        self.tasks: list[deque[partial[torch.Tensor]]] = [deque(), deque(), deque()]
        self.begin = threading.Barrier(len(self.tasks))
        self.over = threading.Barrier(len(self.tasks))

    def next_task(self, worker: int) -> partial[torch.Tensor] | None:
        """Return the first task of a worker, or the last of the longest deque; None where all are empty."""
        if self.tasks[worker]:
            with suppress(IndexError):  # another worker was quicker
                return self.tasks[worker].popleft()
        with suppress(IndexError):
            return max(self.tasks, key=len).pop()
        return None

    def work(self, worker: int) -> None:
        """Do tasks until there are none, from when all workers are here until all have done theirs."""
        self.begin.wait()
        task = self.next_task(worker)
        while task is not None:
            task()
            task = self.next_task(worker)
        self.over.wait()


def own_queues(job: Job) -> None:
    """Each of three threads works its own deque off, then steals from the end of the longest; all meet at a barrier."""
    x = torch.zeros(4, 32)
    heavy, light, merge = (job.operator(name) for name in ("heavy", "light", "merge"))
    queues = _OwnQueues()

    def helping(worker: int) -> None:
        while True:
            queues.work(worker)

    for worker in (1, 2):
        beside(partial(helping, worker))
    for _ in job.steps():
        queues.tasks[0].extend([partial(heavy, x, job["heavy_ms"])] * job["heavy"])
        for tasks in queues.tasks[1:]:
            tasks.extend([partial(light, x, job["light_ms"])] * job["light"])
        queues.work(0)
        merge(x, job.get("merge_ms", 5))


def notified(job: Job) -> None:
    """Several threads wait on one condition; each task that the main thread has split off wakes one of them up."""
    x = torch.zeros(4, 32)
    split, encode, collate = (job.operator(name) for name in ("split", "encode", "collate"))
    lock = threading.Lock()
    work_there = threading.Condition(lock)
    work_over = threading.Condition(lock)
    tasks: deque[float] = deque()
    encoded: list[torch.Tensor] = []

    def encoding() -> None:
        while True:
            with work_there:
                while not tasks:
                    work_there.wait()
                ms = tasks.popleft()
            made = encode(x, ms)
            with work_over:
                encoded.append(made)
                work_over.notify()

    for _ in range(job.get("threads", 3)):
        beside(encoding)
    for _ in job.steps():
        for _ in range(job.get("tasks", 6)):
            split(x, job["split_ms"])
            with work_there:
                tasks.append(job["encode_ms"])
                work_there.notify()
        with work_over:
            work_over.wait_for(lambda: len(encoded) == job.get("tasks", 6))
            encoded.clear()
        collate(x, job.get("collate_ms", 5))


def in_order(job: Job) -> None:
    """Fetch parts by a pool and merge them in the order in which they were asked for, whichever is done first."""
    x = torch.zeros(4, 32)
    fetch, merge, train = (job.operator(name) for name in ("fetch", "merge", "train"))
    with ThreadPoolExecutor(job["threads"]) as pool:
        for _ in job.steps():
            parts = [pool.submit(fetch, x, ms) for ms in job["fetch_ms"]]
            for part in parts:
                merge(part.result(), job["merge_ms"])
            train(x, job["train_ms"])


def downstream(job: Job) -> None:
    """Train, and hand results to a thread that encodes them for another one that writes, by two queues of one."""
    x = torch.zeros(4, 32)
    train, encode, write = (job.operator(name) for name in ("train", "encode", "write"))
    raw: queue.Queue[torch.Tensor] = queue.Queue(maxsize=1)
    encoded: queue.Queue[torch.Tensor] = queue.Queue(maxsize=1)

    def encoding() -> None:
        while True:
            encoded.put(encode(raw.get(), job["encode_ms"]))

    def writing() -> None:
        while True:
            write(encoded.get(), job["write_ms"])

    beside(encoding)
    beside(writing)
    for _ in job.steps():
        raw.put(train(x, job["train_ms"]))


class _Slow(logging.Handler):
    """A handler of log records that takes time while it has the lock that `logging` gives each handler."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.write = job.operator("emit")
        self.ms = job["emit_ms"]

    def emit(self, record: logging.LogRecord) -> None:
        self.write(torch.zeros(len(record.getMessage())), self.ms)


def logged(job: Job) -> None:
    """A thread measures and logs without an end; the main thread logs one record per step by the same slow handler."""
    x = torch.zeros(4, 32)
    measure, train = job.operator("measure"), job.operator("train")
    logger = logging.Logger("recorded")
    logger.addHandler(_Slow(job))

    def measuring() -> None:
        while True:
            measure(x, job["measure_ms"])
            logger.info("temperature %d", 40)

    for step in job.steps():
        if step == WARM_UP:
            beside(measuring)
        train(x, job["train_ms"])
        logger.info("step %d", step)


def retried(job: Job) -> None:
    """Call a service; where it has not answered within `timeout_ms`, pause and call again. Each third call stalls."""
    x = torch.zeros(4, 32)
    call, stalled, train = (job.operator(name) for name in ("call", "stalled", "train"))
    with ThreadPoolExecutor(job.get("threads", 3)) as pool:
        for step in job.steps():
            operator, ms = (call, job["call_ms"]) if step % 3 else (stalled, job["stalled_ms"])
            asked = pool.submit(operator, x, ms)
            try:
                asked.result(timeout=job["timeout_ms"] / 1000)
            except TimeoutError:
                time.sleep(job["pause_ms"] / 1000)
                pool.submit(call, x, job["call_ms"]).result()
            train(x, job["train_ms"])


def hedged_late(job: Job) -> None:
    """Ask a second backend only where the first has not answered within `patience_ms`; go on with the first answer."""
    x = torch.zeros(4, 32)
    primary, backup, rank = (job.operator(name) for name in ("primary", "backup", "rank"))
    with ThreadPoolExecutor(4) as pool:
        for step in job.steps():
            asked = [pool.submit(primary, x, job["primary_ms"][step % len(job["primary_ms"])])]
            if not wait(asked, timeout=job["patience_ms"] / 1000).done:
                asked.append(pool.submit(backup, x, job["backup_ms"]))
            wait(asked, return_when=FIRST_COMPLETED)
            rank(x, job["rank_ms"])


class _FairLock:
    """A lock that is given to whoever has waited longest: each draws a ticket."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.drawn = 0
        self.served = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock."""
        with self.changed:
            ticket = self.drawn
            self.drawn += 1
            self.changed.wait_for(lambda: self.served == ticket)
        yield
        with self.changed:
            self.served += 1
            self.changed.notify_all()


def ticketed(job: Job) -> None:
    """Threads prepare and score under a fair lock of one device, where the main thread updates what it has trained."""
    x = torch.zeros(4, 32)
    prepare, score, train, update = (job.operator(name) for name in ("prepare", "score", "train", "update"))
    device = _FairLock()

    def scoring(ms: float) -> None:
        while True:
            prepare(x, ms)
            with device.held():
                score(x, job["score_ms"])

    for step in job.steps():
        if step == WARM_UP:
            for ms in job["prepare_ms"]:
                beside(partial(scoring, ms))
        train(x, job["train_ms"])
        with device.held():
            update(x, job["update_ms"])


class _Tree:
    """Who has come to the inner nodes of a binary tree over four leaves: nodes 2 and 3, and 1, their root."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.came = {1: 0, 2: 0, 3: 0}

    def is_last(self, node: int) -> bool:
        """Return whether whoever comes now is the second of two, and forget both then."""
        with self.lock:
            self.came[node] = (self.came[node] + 1) % 2
            return self.came[node] == 0


def last_done(job: Job) -> None:
    """Four threads compute a leaf each; the later of two combines both and goes up; main waits for the root."""
    x = torch.zeros(4, 32)
    operators = [job.operator(name) for name in job.get("leaves", ["leaf"] * 4)]
    train, combine, update = (job.operator(name) for name in ("train", "combine", "update"))
    tree = _Tree()
    reduced = threading.Event()

    def climb(leaf: int) -> None:
        operators[leaf](x, job["leaf_ms"][leaf])
        node = 2 + leaf // 2
        while node and tree.is_last(node):
            combine(x, job["combine_ms"])
            node //= 2
        if node == 0:
            reduced.set()

    with ThreadPoolExecutor(4) as pool:
        for _ in job.steps():
            for leaf in range(4):
                pool.submit(climb, leaf)
            train(x, job["train_ms"])
            reduced.wait()
            reduced.clear()
            update(x, job.get("update_ms", 5))


def parsed(job: Job) -> None:
    """Three threads of a pool parse in Python loops, one at a time by the interpreter's lock; main collates, trains."""
    x = torch.zeros(4, 32)
    train = job.operator("train")

    def parse() -> None:
        with record_function("parse"):
            looped(job["parse_ms"])

    with ThreadPoolExecutor(3) as pool:
        for _ in job.steps():
            parts = [pool.submit(parse) for _ in range(3)]
            for part in parts:
                part.result()
            with record_function("collate"):
                looped(job["collate_ms"])
            train(x, job["train_ms"])


def told_only(job: Job) -> None:
    """Put records of each step into an unbounded queue, which a thread uploads; nobody ever waits for the thread."""
    x = torch.zeros(4, 32)
    records: queue.SimpleQueue[torch.Tensor] = queue.SimpleQueue()
    upload, forward, backward = (job.operator(name) for name in ("upload", "forward", "backward"))

    def uploading() -> None:
        while True:
            upload(records.get(), job["upload_ms"])

    beside(uploading)
    for _ in job.steps():
        for part in (forward, backward):
            records.put(part(x, job["part_ms"]))


class _Bucket:
    """A bucket of at most one token, into which one drops each `every_ms`."""

    def __init__(self, every_ms: float) -> None:
        self.every_s = every_ms / 1000
        self.tokens = 1.0
        self.looked_at = time.perf_counter()

    def take(self) -> None:
        """Take a token, and sleep until there is one."""
        self._fill()
        if self.tokens < 1:
            time.sleep((1 - self.tokens) * self.every_s)
            self._fill()
        self.tokens = max(0.0, self.tokens - 1)

    def _fill(self) -> None:
        now = time.perf_counter()
        self.tokens = min(1.0, self.tokens + (now - self.looked_at) / self.every_s)
        self.looked_at = now


def limited(job: Job) -> None:
    """Ask a service that grants a token per request, then train, for longer in each second step."""
    x = torch.zeros(4, 32)
    request, train = job.operator("request"), job.operator("train")
    bucket = _Bucket(job["every_ms"])
    for step in job.steps():
        bucket.take()
        request(x, job["request_ms"])
        train(x, job["train_ms"][step % len(job["train_ms"])])
