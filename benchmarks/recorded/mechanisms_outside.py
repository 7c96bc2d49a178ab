"""Jobs whose pace another process sets, or may set, that is not recorded: pools, barriers, events, tickers, files."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch.profiler import record_function

from benchmarks.recorded.hand_overs import beside
from benchmarks.recorded.job import WARM_UP, Job, computed, pause

_FORK = multiprocessing.get_context("fork")

POLL_S = 0.001
"""Seconds between two looks at a file. Chosen: a twentieth of what is waited for; less only fills the trace."""


def pooled(job: Job) -> None:
    """Take batches from a pool of processes, `ahead` of them asked for at any time, and train."""
    x, coming = torch.zeros(4, 32), deque[Future[None]]()
    train = job.operator("train")
    with ProcessPoolExecutor(job.get("workers", 2), mp_context=_FORK) as pool:
        pool.submit(pause, 1).result()
        for step in job.steps():
            while step >= WARM_UP and len(coming) < job.get("ahead", 2):
                coming.append(pool.submit(pause, job["make_ms"]))
            if coming:
                with record_function("next_batch"):
                    coming.popleft().result()
                coming.append(pool.submit(pause, job["make_ms"]))
            train(x, job["train_ms"])


def barred(job: Job) -> None:
    """Meet another process, a simulation, at a barrier of processes in each step."""
    meeting = _FORK.Barrier(2)
    other = beside(_simulating, meeting, job["simulate_ms"])
    x, train = torch.zeros(4, 32), job.operator("train")
    for step in job.steps():
        train(x, job["train_ms"])
        if step >= WARM_UP:
            with record_function("meet"):
                meeting.wait()
    other.terminate()


def _simulating(meeting: Any, simulate_ms: float) -> None:  # noqa: ANN401 - of multiprocessing, which is untyped
    while True:
        meeting.wait()
        pause(simulate_ms)


def lockstep(job: Job) -> None:
    """Act, tell another process, an environment, by an event, and wait for its event: they never run at one time."""
    acted, seen = _FORK.Event(), _FORK.Event()
    other = beside(_environment, acted, seen, job["world_ms"])
    x, act = torch.zeros(4, 32), job.operator("act")
    for _ in job.steps():
        act(x, job["act_ms"])
        acted.set()
        with record_function("observe"):
            seen.wait()
        seen.clear()
    other.terminate()


def _environment(acted: Any, seen: Any, world_ms: float) -> None:  # noqa: ANN401 - of multiprocessing
    while True:
        acted.wait()
        acted.clear()
        pause(world_ms)
        seen.set()


def ticked(job: Job) -> None:
    """Take a sample each time that another process, a sensor, has one: it writes into a pipe at a fixed rate."""
    source, sink = os.pipe()
    begin = _FORK.Event()
    sensor = beside(_ticking, sink, begin, job["every_ms"])
    x, train = torch.zeros(4, 32), job.operator("train")
    for step in job.steps():
        if step == WARM_UP:
            begin.set()
        if step >= WARM_UP:
            with record_function("sample"):
                os.read(source, 1)
        train(x, job["train_ms"])
    sensor.terminate()


def _ticking(sink: int, begin: Any, every_ms: float) -> None:  # noqa: ANN401 - of multiprocessing
    begin.wait()
    began, ticks = time.perf_counter(), 0
    while True:
        os.write(sink, b"t")
        ticks += 1
        pause(max(0.0, 1000 * (began - time.perf_counter()) + ticks * every_ms))


def filed(job: Job) -> None:
    """Another process writes one file after the other, at most two ahead; this one looks for the next and trains."""
    begin = _FORK.Event()
    maker = beside(_writing, job.folder, begin, job["make_ms"])
    x, train = torch.zeros(4, 32), job.operator("train")
    for step in job.steps():
        if step == WARM_UP:
            begin.set()
        if step >= WARM_UP:
            file = job.folder / f"shard-{step - WARM_UP}"
            with record_function("find"):
                while not file.exists():
                    time.sleep(POLL_S)
            file.unlink()
        train(x, job["train_ms"])
    maker.terminate()


def _writing(folder: Path, begin: Any, make_ms: float) -> None:  # noqa: ANN401 - of multiprocessing
    begin.wait()
    made = 0
    while True:
        pause(make_ms)
        while made >= 2 and (folder / f"shard-{made - 2}").exists():
            time.sleep(POLL_S)
        (folder / f"shard-{made}").touch()
        made += 1


def neighboured(job: Job) -> None:
    """Multiply matrices beside `neighbours` other processes that do the same without an end."""
    others = [beside(_busy) for _ in range(job["neighbours"])]
    x = torch.zeros(4, 32)
    embed, model = computed("embed"), computed("model")
    for _ in job.steps():
        embed(x, job["embed_ms"])
        model(x, job["model_ms"])
    for each in others:
        each.terminate()


def _busy() -> None:
    torch.set_num_threads(1)
    while True:
        computed("busy")(torch.zeros(4), 10)
