"""Jobs of one recorded process to which threads, or other processes that are not recorded, hand work over."""

from __future__ import annotations

import multiprocessing
import queue
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch.profiler import record_function

from benchmarks.recorded.job import WARM_UP, Job, pause
from benchmarks.recorded.training import Model

_FORK = multiprocessing.get_context("fork")


def beside(function: Callable[..., None], *given: Any) -> Any:  # noqa: ANN401 - what the function takes; a process
    """Start another process, which ends with this one."""
    process = _FORK.Process(target=function, args=given, daemon=True)
    process.start()
    return process


def requests(job: Job) -> None:
    """Serve requests that come from another process through a socket.

    The client thinks for `think_ms` after each answer, or sends a request each `every_ms` whatever the server does.
    """
    ours, theirs = socket.socketpair()
    client = beside(_client, theirs, ours, job.get("think_ms", 0), job.get("every_ms", 0), job["serve_ms"])
    theirs.close()
    x = torch.zeros(4, 32)
    for step in job.steps():
        if step < WARM_UP:
            continue
        if step == WARM_UP:  # not earlier: while the profiler starts, requests would pile up
            ours.sendall(b"g")
        with record_function("receive"):
            ours.recv(1)
        job.operator("serve")(x, job["serve_ms"])
        ours.sendall(b"a")
    ours.close()
    client.join()


def _client(ours: socket.socket, theirs: socket.socket, think_ms: float, every_ms: float, serve_ms: float) -> None:
    theirs.close()
    ours.recv(1)
    ours.sendall(b"r")
    ours.recv(1)  # the first answer may take long: requests paced from its beginning on would pile up
    pause(think_ms or every_ms - serve_ms)
    began, sent = time.perf_counter(), 0
    try:
        while True:
            ours.sendall(b"r")
            sent += 1
            if every_ms:
                pause(max(0.0, 1000 * (began - time.perf_counter()) + sent * every_ms))
            elif ours.recv(1):
                pause(think_ms)
            else:
                return
    except OSError:  # the server has closed its end
        return


def piped(job: Job) -> None:
    """Another process makes the next batch, asked for through a pipe, while this one trains."""
    ours, theirs = _FORK.Pipe()
    feeder = beside(_answer, theirs, job["make_ms"])
    model, batch = Model(job), torch.zeros(4, 32)
    for step in job.steps():
        if step == WARM_UP:
            ours.send("next")
        if step >= WARM_UP:
            with record_function("fetch"):
                ours.recv()
            ours.send("next")
        model(batch).pow(2).mean().backward()
        model.zero_grad()
    ours.recv()
    ours.send("over")
    feeder.join()


def _answer(connection: Any, make_ms: float) -> None:  # noqa: ANN401 - a Connection, whose type is private
    while connection.recv() == "next":
        pause(make_ms)
        connection.send(b"batch")


def queued(job: Job) -> None:
    """Another process makes items ahead, into a queue of at most `depth`; this one takes them out and computes."""
    items, begin = _FORK.Queue(job.get("depth", 2)), _FORK.Event()
    maker = beside(_make, items, begin, job["make_ms"])
    x = torch.zeros(4, 32)
    for step in job.steps():
        if step == WARM_UP:
            begin.set()
        if step >= WARM_UP:
            items.get()
        job.operator("train")(x, job["train_ms"])
    maker.terminate()


def _make(items: Any, begin: Any, make_ms: float) -> None:  # noqa: ANN401 - of multiprocessing, which are untyped
    begin.wait()
    while True:
        pause(make_ms)
        items.put(b"item")


def fed(job: Job) -> None:
    """A thread makes batches in Python, in no operator, into a queue; the main thread trains."""
    ready: queue.Queue[float] = queue.Queue(maxsize=job.get("depth", 1))
    begin = threading.Event()

    def make() -> None:
        begin.wait()
        while True:
            pause(job["make_ms"])
            ready.put(0.0)

    threading.Thread(target=make, daemon=True).start()
    model, batch = Model(job), torch.zeros(4, 32)
    for step in job.steps():
        if step == WARM_UP:
            begin.set()
        if step >= WARM_UP:
            ready.get()
        model(batch).pow(2).mean().backward()
        model.zero_grad()


def writer(job: Job) -> None:
    """A thread writes a checkpoint each `every` steps; the next one waits until the one before is written."""
    x = torch.zeros(4, 32)
    train, write = job.operator("train"), job.operator("write")
    written: Future[Any] | None = None
    with ThreadPoolExecutor(1) as thread:
        for step in job.steps():
            train(x, job["train_ms"])
            if step % job["every"] == 0:
                if written is not None:
                    written.result()
                written = thread.submit(write, x, job["write_ms"])


def ahead(job: Job) -> None:
    """A thread decodes the next batch, asked for one step ahead, while the main thread trains on this one."""
    x = torch.zeros(4, 32)
    decode, train = job.operator("decode"), job.operator("train")
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(decode, x, 1.0)
        for _ in job.steps():
            batch = coming.result()
            coming = thread.submit(decode, batch, job["decode_ms"])
            train(batch, job["train_ms"])


def stages(job: Job) -> None:
    """A thread reads, a second one augments what the first has read, the main thread trains: two queues in a row."""
    x = torch.zeros(4, 32)
    read, augment, train = (job.operator(name) for name in ("read", "augment", "train"))
    raw: queue.Queue[torch.Tensor] = queue.Queue(maxsize=1)
    ready: queue.Queue[torch.Tensor] = queue.Queue(maxsize=1)
    begin = threading.Event()

    def reader() -> None:
        begin.wait()
        while True:
            raw.put(read(x, job["read_ms"]))

    def augmenter() -> None:
        while True:
            ready.put(augment(raw.get(), job["augment_ms"]))

    for each in (reader, augmenter):
        threading.Thread(target=each, daemon=True).start()
    for step in job.steps():
        if step == WARM_UP:
            begin.set()
        train(ready.get() if step >= WARM_UP else x, job["train_ms"])


def meeting(job: Job) -> None:
    """Two threads compute and meet at a `threading.Barrier` in each step, then the main thread updates."""
    x = torch.zeros(4, 32)
    left, right, update = (job.operator(name) for name in ("left", "right", "update"))
    before, after = threading.Barrier(2), threading.Barrier(2)

    def other() -> None:
        try:
            while True:
                before.wait()
                right(x, job["right_ms"])
                after.wait()
        except threading.BrokenBarrierError:  # the job is over
            return

    thread = threading.Thread(target=other)
    thread.start()
    for _ in job.steps():
        before.wait()
        left(x, job["left_ms"])
        after.wait()
        update(x, job.get("update_ms", 5))
    before.abort()
    thread.join()
