"""Jobs of one process whose threads meet by what Python has for that: queues, events, joins, futures, locks, turns.

Operators sleep, or multiply matrices where settings say `computes`; `interpreted` holds the interpreter's lock.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait

import torch
from torch.profiler import record_function

from benchmarks.recorded.job import WARM_UP, Job

ROUNDS_PER_MS = 26_000
"""Rounds of a Python loop that stand for 1 ms. Chosen: about what one core of a server does; another number makes all
such loops longer, or all shorter."""


def looped(ms: float) -> int:
    """Take about `ms` milliseconds in a Python loop, which holds the interpreter's lock all the time.

    >>> looped(0)
    0
    """
    total = 0
    for number in range(round(ms * ROUNDS_PER_MS)):
        total += number * number % 7
    return total


def beside(function: Callable[[], None]) -> None:
    """Start a thread that ends with the process."""
    threading.Thread(target=function, daemon=True).start()


def merged(job: Job) -> None:
    """Fetch parts by a pool, merge each as soon as it is done (`as_completed`), then train."""
    x = torch.zeros(4, 32)
    fetch, merge, train = (job.operator(name) for name in ("fetch", "merge", "train"))
    with ThreadPoolExecutor(job.get("threads", 4)) as pool:
        for _ in job.steps():
            parts = [pool.submit(fetch, x, ms) for ms in job["fetch_ms"]]
            for _ in as_completed(parts):
                merge(x, job["merge_ms"])
            train(x, job["train_ms"])


def hedged(job: Job) -> None:
    """Ask two backends and go on with whichever answers first; the other one's answer is dropped."""
    x = torch.zeros(4, 32)
    primary, backup, rank = (job.operator(name) for name in ("primary", "backup", "rank"))
    with ThreadPoolExecutor(4) as pool:
        for _ in job.steps():
            asked = [pool.submit(primary, x, job["primary_ms"]), pool.submit(backup, x, job["backup_ms"])]
            wait(asked, return_when=FIRST_COMPLETED)
            rank(x, job["rank_ms"])


def joined(job: Job) -> None:
    """Start two threads in each step and join both."""
    x = torch.zeros(4, 32)
    left, right, update = (job.operator(name) for name in ("left", "right", "update"))
    for _ in job.steps():
        threads = [
            threading.Thread(target=left, args=(x, job["left_ms"])),
            threading.Thread(target=right, args=(x, job["right_ms"])),
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        update(x, job.get("update_ms", 6))


def drained(job: Job) -> None:
    """Train and put results into a bounded queue, which a thread empties: a full queue holds training up."""
    x = torch.zeros(4, 32)
    results: queue.Queue[torch.Tensor] = queue.Queue(maxsize=job.get("depth", 2))
    train, upload = job.operator("train"), job.operator("upload")

    def uploading() -> None:
        while True:
            upload(results.get(), job["upload_ms"])

    beside(uploading)
    for step in job.steps():
        train(x, job["train_ms"])
        if step >= WARM_UP:
            results.put(x)


def relayed(job: Job) -> None:
    """Two threads work one after the other, told by events, beside the main thread, which waits for the second."""
    x = torch.zeros(4, 32)
    first, second, own = (job.operator(name) for name in ("first", "second", "own"))
    begin, between, over = threading.Event(), threading.Event(), threading.Event()

    def stage(before: threading.Event, work: Callable[[torch.Tensor, float], torch.Tensor], after: threading.Event,
              ms: float) -> None:  # fmt: skip
        while True:
            before.wait()
            before.clear()
            work(x, ms)
            after.set()

    beside(lambda: stage(begin, first, between, job["first_ms"]))
    beside(lambda: stage(between, second, over, job["second_ms"]))
    for _ in job.steps():
        begin.set()
        own(x, job["own_ms"])
        over.wait()
        over.clear()


def called_back(job: Job) -> None:
    """A future's callback submits the next task to another pool; the main thread trains and waits for the last one."""
    x = torch.zeros(4, 32)
    decode, embed, train = (job.operator(name) for name in ("decode", "embed", "train"))
    with ThreadPoolExecutor(1) as decoders, ThreadPoolExecutor(1) as embedders:

        def ask() -> Future[None]:
            answer: Future[None] = Future()

            def decoded(_: Future[torch.Tensor]) -> None:
                then = embedders.submit(embed, x, job["embed_ms"])
                then.add_done_callback(lambda _: answer.set_result(None))

            decoders.submit(decode, x, job["decode_ms"]).add_done_callback(decoded)
            return answer

        for _ in job.steps():
            coming = ask()
            train(x, job["train_ms"])
            coming.result()


def contended(job: Job) -> None:
    """The main thread and an indexing thread take turns under one lock, each with work of its own outside."""
    x, lock = torch.zeros(4, 32), threading.Lock()
    names = ("read", "index", "train", "log")
    read, index, train, log = (job.operator(name) for name in names)

    def indexing() -> None:
        while True:
            read(x, job["read_ms"])
            with lock:
                index(x, job["index_ms"])

    for step in job.steps():
        if step == WARM_UP:
            beside(indexing)
        with lock:
            train(x, job["train_ms"])
        log(x, job["log_ms"])


def dispatched(job: Job) -> None:
    """Put the tasks of a step into an unbounded queue for `threads` threads, train, then take as many answers."""
    x = torch.zeros(4, 32)
    tasks: queue.SimpleQueue[float] = queue.SimpleQueue()
    answers: queue.SimpleQueue[torch.Tensor] = queue.SimpleQueue()
    score, train, combine = (job.operator(name) for name in ("score", "train", "combine"))

    def scoring() -> None:
        while True:
            answers.put(score(x, tasks.get()))

    for _ in range(job.get("threads", 2)):
        beside(scoring)
    for _ in job.steps():
        for _ in range(job.get("tasks", 5)):
            tasks.put(job["score_ms"])
        train(x, job["train_ms"])
        for _ in range(job.get("tasks", 5)):
            answers.get()
        combine(x, job.get("combine_ms", 4))


def replicas(job: Job) -> None:
    """Replicas in threads meet at a barrier, whose action, run by the last of them, averages."""
    x = torch.zeros(4, 32)
    forward, average = job.operator("forward"), job.operator("average")
    barrier = threading.Barrier(len(job["forward_ms"]), action=lambda: average(x, job.get("average_ms", 5)))

    def replica(ms: float) -> None:
        try:
            while True:
                forward(x, ms)
                barrier.wait()
        except threading.BrokenBarrierError:  # the job is over
            return

    threads = [threading.Thread(target=replica, args=(ms,)) for ms in job["forward_ms"][1:]]
    for each in threads:
        each.start()
    for _ in job.steps():
        forward(x, job["forward_ms"][0])
        barrier.wait()
    barrier.abort()
    for each in threads:
        each.join()


def hogwild(job: Job) -> None:
    """Threads train on shared weights without waiting for each other, but update them under a lock; main counts."""
    x, lock = torch.zeros(4, 32), threading.Lock()
    losses: queue.Queue[torch.Tensor] = queue.Queue(maxsize=1)
    forward, update, log = (job.operator(name) for name in ("forward", "update", "log"))

    def training() -> None:
        while True:
            made = forward(x, job["forward_ms"])
            with lock:
                update(made, job["update_ms"])
            losses.put(made)

    for step in job.steps():
        if step == WARM_UP:
            for _ in range(job.get("threads", 2)):
                beside(training)
        if step >= WARM_UP:
            for _ in range(job.get("threads", 2)):
                losses.get()
        log(x, job.get("log_ms", 3))


def interpreted(job: Job) -> None:
    """A thread tokenizes in a Python loop, ahead by a queue; the main thread collates in another one, then trains."""
    x = torch.zeros(4, 32)
    ready: queue.Queue[int] = queue.Queue(maxsize=job.get("depth", 1))
    begin, train = threading.Event(), job.operator("train")

    def tokenizing() -> None:
        begin.wait()
        while True:
            with record_function("tokenize"):
                made = looped(job["tokenize_ms"])
            ready.put(made)

    beside(tokenizing)
    for step in job.steps():
        if step == WARM_UP:
            begin.set()
        if step >= WARM_UP:
            ready.get()
        with record_function("collate"):
            looped(job["collate_ms"])
        train(x, job["train_ms"])
