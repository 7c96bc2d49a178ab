"""Jobs of one process whose threads hand work over by a queue or by futures."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import torch

from benchmarks.recorded.job import WARM_UP, Job, timed


def producers(job: Job) -> None:
    """Several threads produce (`timed::produce`) into one queue; the main thread consumes (`timed::consume`)."""
    x = torch.zeros(4, 4)
    ready: queue.Queue[torch.Tensor] = queue.Queue(maxsize=job.get("depth", 2))
    over = threading.Event()

    def produce() -> None:
        while not over.is_set():
            made = timed("produce")(x, job["produce_ms"])
            while not over.is_set():
                try:
                    ready.put(made, timeout=0.5)
                    break
                except queue.Full:  # it is asked again whether the job is over
                    pass

    threads = [threading.Thread(target=produce, daemon=True) for _ in range(job.get("producers", 2))]
    timed("produce"), timed("consume")  # registered before threads run
    for step in job.steps():
        if step == WARM_UP:  # not earlier: while the profiler starts, the queue would fill
            for thread in threads:
                thread.start()
        timed("consume")(x if step < WARM_UP else ready.get(), job["consume_ms"])
    over.set()
    for thread in threads:
        thread.join()


def pool(job: Job) -> None:
    """Each step submits `tasks` (`timed::decode`) to a pool of `threads`, computes itself, then waits for them all."""
    x = torch.zeros(4, 4)
    for name in ("decode", "assemble", "train"):
        timed(name)
    with ThreadPoolExecutor(job.get("threads", 2)) as workers:
        for _ in job.steps():
            tasks = [workers.submit(timed("decode"), x, job["decode_ms"]) for _ in range(job.get("tasks", 4))]
            timed("train")(x, job["train_ms"])
            for task in tasks:
                task.result()
            timed("assemble")(x, job.get("assemble_ms", 5))
