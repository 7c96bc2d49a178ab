"""Jobs over event loops, and over processes and programs that are not recorded: the third grid.

Operators sleep, or multiply matrices where settings say `computes`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import torch

from benchmarks.recorded import hand_overs
from benchmarks.recorded.job import WARM_UP, Job, pause
from benchmarks.recorded.mechanisms_threads import beside

_FORK = multiprocessing.get_context("fork")


class _Server:
    """A model behind an asyncio loop, which waits up to `window_s` for the second of two requests."""

    def __init__(self, run: Callable[[], torch.Tensor], window_s: float) -> None:
        self.run = run
        self.window_s = window_s
        self.device = ThreadPoolExecutor(1)
        self.requests = asyncio.Queue[asyncio.Future[None]]()

    async def ask(self) -> None:
        """Ask for an answer and wait for it."""
        answer = asyncio.get_running_loop().create_future()
        await self.requests.put(answer)
        await answer

    async def serve(self) -> None:
        """Answer a batch after the other, without an end."""
        while True:
            batch = [await self.requests.get()]
            with suppress(TimeoutError):
                batch.append(await asyncio.wait_for(self.requests.get(), self.window_s))
            await asyncio.get_running_loop().run_in_executor(self.device, self.run)
            for answer in batch:
                answer.set_result(None)


def served_by_loop(job: Job) -> None:
    """Two threads, one of them the main one, prepare and ask a server in a third, whose loop batches what they ask."""
    x = torch.zeros(4, 32)
    prepare, decode, model = (job.operator(name) for name in ("prepare", "decode", "model"))
    loop = asyncio.new_event_loop()
    server = _Server(lambda: model(x, job["model_ms"]), job["window_ms"] / 1000)

    def ask() -> None:
        asyncio.run_coroutine_threadsafe(server.ask(), loop).result()

    def client() -> None:
        while True:
            decode(x, job["decode_ms"])
            ask()

    beside(lambda: loop.run_until_complete(server.serve()))
    for step in job.steps():
        if step == WARM_UP:
            beside(client)
        prepare(x, job["prepare_ms"])
        ask()


def coroutines(job: Job) -> None:
    """Fetch and decode in executors, by coroutines with a queue of one behind each; train in one, or in the loop."""
    asyncio.run(_coroutines(job))


async def _coroutines(job: Job) -> None:
    x = torch.zeros(4, 32)
    fetch, decode, train = (job.operator(name) for name in ("fetch", "decode", "train"))
    raw = asyncio.Queue[torch.Tensor](1)
    ready = asyncio.Queue[torch.Tensor](1)
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as fetcher, ThreadPoolExecutor(1) as decoder, ThreadPoolExecutor(1) as trainer:

        async def fetching() -> None:
            while True:
                await raw.put(await loop.run_in_executor(fetcher, fetch, x, job["fetch_ms"]))

        async def decoding() -> None:
            while True:
                fetched = await raw.get()
                await ready.put(await loop.run_in_executor(decoder, decode, fetched, job["decode_ms"]))

        stages = [asyncio.create_task(fetching()), asyncio.create_task(decoding())]
        for _ in job.steps():
            batch = await ready.get()
            if job.get("blocks"):
                train(batch, job["train_ms"])
            else:
                await loop.run_in_executor(trainer, train, batch, job["train_ms"])
        for stage in stages:
            stage.cancel()


def mapped(job: Job) -> None:
    """Merge parts that a pool of processes makes, in the order of `Pool.imap`, then train."""
    x = torch.zeros(4, 32)
    merge, train = job.operator("merge"), job.operator("train")
    with _FORK.Pool(job["processes"]) as pool:
        for _ in job.steps():
            for _ in pool.imap(pause, job["part_ms"]):
                merge(x, job["merge_ms"])
            train(x, job["train_ms"])


def gated(job: Job) -> None:
    """Start a program that evaluates each third step; two steps later wait for it, as it says whether to go on."""
    x = torch.zeros(4, 32)
    train, decide = job.operator("train"), job.operator("decide")
    evaluation: subprocess.Popen[bytes] | None = None
    for step in job.steps():
        if step % 3 == 0:
            evaluation = subprocess.Popen(["sleep", str(job["evaluate_ms"] / 1000)])
        train(x, job["train_ms"])
        if step % 3 == 2 and evaluation is not None:
            evaluation.wait()
            decide(x, job.get("decide_ms", 3))


def taking_turns(job: Job) -> None:
    """This process and another one train two models on one device, which a lock of `multiprocessing` guards."""
    x = torch.zeros(4, 32)
    train, log = job.operator("train"), job.operator("log")
    device = _FORK.Lock()
    begin = _FORK.Event()
    neighbour = hand_overs.beside(_holding, device, begin, job["held_ms"], job["apart_ms"])
    for step in job.steps():
        if step == WARM_UP:
            begin.set()
        with device:
            train(x, job["train_ms"])
        log(x, job["log_ms"])
    neighbour.kill()


def _holding(device: Any, begin: Any, held_ms: float, apart_ms: float) -> None:  # noqa: ANN401 - of multiprocessing
    begin.wait()
    while True:
        with device:
            pause(held_ms)
        pause(apart_ms)
