"""Jobs of one process whose threads run Python at once, so that the interpreter's lock lets them take turns."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.profiler import record_function

from benchmarks.recorded.job import Job

ROUNDS_PER_MS = 12_000
"""Rounds of a loop that stand for 1 ms. Chosen: about what one core of a server does; another number makes all Python
longer, or all shorter."""


def python(name: str) -> Callable[[float], int]:
    """Return a region of Python that never leaves the interpreter, for about as many ms as its argument says."""

    def work(ms: float) -> int:
        with record_function(name):
            number = 1
            for _ in range(round(ms * ROUNDS_PER_MS)):
                number = (number * 31 + 7) % 1_000_003
            return number

    return work


def prepared_beside(job: Job) -> None:
    """A thread prepares the next batch in Python while the main thread collates this one in Python, and trains."""
    x = torch.zeros(4, 32)
    prepare, collate = python("prepare"), python("collate")
    train = job.operator("train")
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(prepare, job["prepare_ms"])
        for _ in job.steps():
            coming.result()
            coming = thread.submit(prepare, job["prepare_ms"])
            collate(job["collate_ms"])
            train(x, job["train_ms"])


def parsed_by_pool(job: Job) -> None:
    """Threads of a pool each parse a part in Python; the main thread waits for all parts, and trains."""
    x = torch.zeros(4, 32)
    parsers = [python(f"parse {number}") for number in range(len(job["parse_ms"]))]
    train = job.operator("train")
    with ThreadPoolExecutor(len(parsers)) as pool:
        for _ in job.steps():
            parts = [pool.submit(parse, ms) for parse, ms in zip(parsers, job["parse_ms"], strict=True)]
            for part in parts:
                part.result()
            train(x, job["train_ms"])
