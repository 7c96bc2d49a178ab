"""Jobs of one process whose threads and tasks meet in a second set of ways: buffers, windows, limits, deadlines.

Operators sleep, or multiply matrices where settings say `computes`.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial

import torch

from benchmarks.recorded.job import WARM_UP, Job
from benchmarks.recorded.mechanisms_threads import beside


def buffered(job: Job) -> None:
    """A thread fills two buffers in turn while the main thread trains on the other; a condition guards both."""
    x = torch.zeros(4, 32)
    fill = job.operator("fill")
    train = job.operator("train")
    changed = threading.Condition()
    full = [False, False]

    def wait_until(slot: int, *, is_full: bool) -> None:
        with changed:
            changed.wait_for(lambda: full[slot] == is_full)

    def mark(slot: int, *, is_full: bool) -> None:
        with changed:
            full[slot] = is_full
            changed.notify_all()

    def filling() -> None:
        slot = 0
        while True:
            wait_until(slot, is_full=False)
            fill(x, job["fill_ms"])
            mark(slot, is_full=True)
            slot = 1 - slot

    for step in job.steps():
        if step == WARM_UP:
            beside(filling)
        slot = step % 2
        if step >= WARM_UP:
            wait_until(slot, is_full=True)
        train(x, job["train_ms"])
        if step >= WARM_UP:
            mark(slot, is_full=False)


def windowed(job: Job) -> None:
    """Tasks of asyncio call a service by `to_thread`; a semaphore lets `window` calls be in flight; training is one."""
    asyncio.run(_windowed(job))


async def _windowed(job: Job) -> None:
    x = torch.zeros(4, 32)
    call, train, combine = (job.operator(name) for name in ("call", "train", "combine"))
    window = asyncio.Semaphore(job["window"])

    async def request(ms: float) -> None:
        async with window:
            await asyncio.to_thread(call, x, ms)

    for _ in job.steps():
        requests = [asyncio.create_task(request(ms)) for ms in job["call_ms"]]
        await asyncio.to_thread(train, x, job["train_ms"])
        await asyncio.gather(*requests)
        combine(x, job["combine_ms"])


def prioritized(job: Job) -> None:
    """A thread serves a priority queue: one urgent task per step, for which the main thread waits, before others."""
    x = torch.zeros(4, 32)
    operators = [job.operator("urgent"), job.operator("background")]
    lengths_ms = [job["urgent_ms"], job["background_ms"]]
    train = job.operator("train")
    tasks: queue.PriorityQueue[tuple[int, int]] = queue.PriorityQueue()
    answered = threading.Event()

    def serving() -> None:
        while True:
            priority, _ = tasks.get()
            operators[priority](x, lengths_ms[priority])
            if priority == 0:
                answered.set()

    beside(serving)
    for step in job.steps():
        tasks.put((0, step))
        if step >= WARM_UP:
            for number in range(job.get("others", 2)):
                tasks.put((1, 100 * step + number))
        train(x, job["train_ms"])
        answered.wait()
        answered.clear()


class _ReadWriteLock:
    """A lock that several readers hold at a time, or one writer, who comes before readers that are not in yet."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.readers = 0
        self.writer = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock as one of its readers."""
        with self.changed:
            self.changed.wait_for(lambda: not self.writer)
            self.readers += 1
        yield
        with self.changed:
            self.readers -= 1
            self.changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone."""
        with self.changed:
            self.writer = True
            self.changed.wait_for(lambda: not self.readers)
        yield
        with self.changed:
            self.writer = False
            self.changed.notify_all()


def read_and_written(job: Job) -> None:
    """Threads read weights under a read-write lock, where the main thread updates the weights it has trained."""
    x = torch.zeros(4, 32)
    lock = _ReadWriteLock()
    train, update, score, reply = (job.operator(name) for name in ("train", "update", "score", "reply"))

    def reading(ms: float) -> None:
        while True:
            with lock.reading():
                score(x, ms)
            reply(x, job["reply_ms"])

    for step in job.steps():
        if step == WARM_UP:
            for ms in job["score_ms"]:
                beside(partial(reading, ms))
        train(x, job["train_ms"])
        with lock.writing():
            update(x, job["update_ms"])


def batched(job: Job) -> None:
    """Serve as many requests at once as arrive within `timeout_ms` of the first; a step is a batch."""
    x = torch.zeros(4, 32)
    requests: queue.Queue[threading.Event] = queue.Queue()
    prepare, model = job.operator("prepare"), job.operator("model")
    clients = job["prepare_ms"]

    def asking(ms: float) -> None:
        answered = threading.Event()
        while True:
            prepare(x, ms)
            requests.put(answered)
            answered.wait()
            answered.clear()

    for ms in clients:
        beside(partial(asking, ms))
    for _ in job.steps():
        batch = [requests.get()]
        until = time.monotonic() + job["timeout_ms"] / 1000
        while len(batch) < len(clients):
            try:
                batch.append(requests.get(timeout=max(0.0, until - time.monotonic())))
            except queue.Empty:
                break
        model(x, job["model_ms"] + job.get("each_ms", 0) * len(batch))
        for answered in batch:
            answered.set()


def watched(job: Job) -> None:
    """A thread per step writes; the main thread joins it for `timeout_ms` at a time and reports between."""
    x = torch.zeros(4, 32)
    train, write, report = (job.operator(name) for name in ("train", "write", "report"))
    for _ in job.steps():
        writing = threading.Thread(target=write, args=(x, job["write_ms"]))
        writing.start()
        train(x, job["train_ms"])
        writing.join(job["timeout_ms"] / 1000)
        while writing.is_alive():
            report(x, job["report_ms"])
            writing.join(job["timeout_ms"] / 1000)


def overdue(job: Job) -> None:
    """Wait at most `deadline_ms` for weights that a thread fetches; without them, go on with those of before."""
    x = torch.zeros(4, 32)
    wanted, fresh = threading.Event(), threading.Event()
    fetch, train, apply = (job.operator(name) for name in ("fetch", "train", "apply"))

    def fetching() -> None:
        while True:
            wanted.wait()
            wanted.clear()
            fetch(x, job["fetch_ms"])
            fresh.set()

    beside(fetching)
    wanted.set()
    for _ in job.steps():
        train(x, job["train_ms"])
        if fresh.wait(timeout=job["deadline_ms"] / 1000):
            fresh.clear()
            apply(x, job["apply_ms"])
            wanted.set()


def speculated(job: Job) -> None:
    """Draft the next tokens while a thread verifies the last; those behind a rejected one are drafted again."""
    x = torch.zeros(4, 32)
    draft, verify, accept = (job.operator(name) for name in ("draft", "verify", "accept"))

    def drafted() -> None:
        for _ in range(job.get("tokens", 4)):
            draft(x, job["draft_ms"])

    with ThreadPoolExecutor(1) as target:
        for step in job.steps():
            verdict = target.submit(verify, x, job["verify_ms"])
            drafted()
            verdict.result()
            if step % job.get("reject_every", 3) == 0:
                drafted()
            accept(x, job.get("accept_ms", 2))


def offloaded(job: Job) -> None:
    """A thread stores each layer's activations, at most `limit` in flight, and loads them one layer ahead."""
    x = torch.zeros(4, 32)
    forward, backward, store, load = (job.operator(name) for name in ("forward", "backward", "store", "load"))
    room = threading.BoundedSemaphore(job["limit"])
    layers = range(job.get("layers", 5))

    def stored() -> None:
        store(x, job["store_ms"])
        room.release()

    with ThreadPoolExecutor(1) as copier:
        for _ in job.steps():
            outgoing = []
            for _ in layers:
                forward(x, job["forward_ms"])
                room.acquire()
                outgoing.append(copier.submit(stored))
            wait(outgoing)
            coming = copier.submit(load, x, job["load_ms"])
            for layer in layers:
                coming.result()
                if layer + 1 < len(layers):
                    coming = copier.submit(load, x, job["load_ms"])
                backward(x, job["backward_ms"])
