"""What every recorded job is made of: timed operators, a profiled loop of steps, and this rank's share of settings."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

SPIN_S = 0.0001
"""Seconds at the end of each pause that are spun, not slept, so that a late wake-up does not lengthen it. Chosen:
longer than a timer's lateness under real-time scheduling (about 60 µs); twice it would keep the cores of a small
machine busy when many ranks pause at once."""

WARM_UP = 2
"""Steps before the recorded ones. Chosen: buffers, connections and threads exist after one; more only take time."""

RECORDED = 10
"""Steps that are recorded. Chosen: enough that the mean without the first and last is steady; files grow with it."""

SETTINGS_KEY = "htagraph_profile"
"""Key in the trace under which a recording says how it was made: as in `htagraph.profile`, which is not needed here."""

_LIBRARY = torch.library.Library("timed", "DEF")
_DEFINED: set[str] = set()


def pause(ms: float) -> None:
    """Take `ms` milliseconds without holding the GIL for most of it."""
    until = time.perf_counter() + ms / 1000
    if ms / 1000 > 2 * SPIN_S:
        time.sleep(ms / 1000 - SPIN_S)
    while time.perf_counter() < until:
        pass


def _paused(x: torch.Tensor, ms: float) -> torch.Tensor:
    pause(ms)
    return x.clone()


def timed(name: str) -> Callable[[torch.Tensor, float], torch.Tensor]:
    """Return the operator ``timed::<name>``, which takes as many ms as its second argument says."""
    if name not in _DEFINED:
        _LIBRARY.define(f"{name}(Tensor x, float ms) -> Tensor")
        _LIBRARY.impl(name, _paused, "CPU")
        _DEFINED.add(name)
    return getattr(torch.ops.timed, name)


PASSES_PER_MS = 8
"""Products of two 128 x 128 matrices that stand for 1 ms. Chosen: about what one core of a server does; another number
makes all computing operators longer, or all shorter."""


def computed(name: str) -> Callable[[torch.Tensor, float], torch.Tensor]:
    """Return a region ``timed::<name>`` that multiplies matrices for about as many ms as its second argument says."""

    def compute(x: torch.Tensor, ms: float) -> torch.Tensor:
        with record_function(f"timed::{name}"):
            made = matrix = torch.full((128, 128), 1 / 128)
            for _ in range(round(ms * PASSES_PER_MS)):
                made = torch.mm(made, matrix)
            return x.clone()

    return compute


class _Timed(torch.autograd.Function):
    """An operator ``timed::<name>`` whose backward is ``timed::<name>_backward``."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, name: str, ms: float, back_ms: float) -> torch.Tensor:  # noqa: ANN401
        ctx.name, ctx.back_ms = name, back_ms
        ctx.save_for_backward(x)
        return timed(name)(x, ms)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:  # noqa: ANN401 - autograd's signature
        _ = ctx.saved_tensors  # most operators need their input: with activation checkpointing it is computed again
        return timed(ctx.name + "_backward")(grads[0], ctx.back_ms) if ctx.back_ms else grads[0], None, None, None


class Block(nn.Module):
    """A linear layer and timed operators after it: {name: (ms forward, ms backward)}, times `factor`."""

    def __init__(self, width: int, operators: dict[str, tuple[float, float]]) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.operators, self.factor = operators, 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # noqa: D102 - torch's
        x = self.linear(x)
        for name, (ms, back_ms) in self.operators.items():
            x = _Timed.apply(x, name, ms * self.factor, back_ms * self.factor)
        return x


class Job:
    """One rank of a job: its settings, and its steps, which are recorded into `folder`."""

    def __init__(self, folder: Path, rank: int, settings: dict[str, Any]) -> None:
        self.folder, self.rank, self.settings = folder, rank, settings
        self.ranks: int = settings.get("ranks", 1)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a setting
        return self.settings[name]

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - a setting
        """Return a setting, or the default."""
        return self.settings.get(name, default)

    def own(self, name: str, default: float = 0.0) -> float:
        """Return this rank's figure of a setting that gives some ranks one: {"2": 1.5}."""
        return float(self.get(name, {}).get(str(self.rank), default))

    def operator(self, name: str) -> Callable[[torch.Tensor, float], torch.Tensor]:
        """Return what takes time under the name ``timed::<name>``: it sleeps, or computes where settings say so."""
        return computed(name) if self.get("computes") else timed(name)

    def factor(self, step: int) -> float:
        """Return by what this rank's operators are multiplied in a step: `slow` ranks, `spread` from step to step."""
        every = self.get("slow_every", 1)
        factor = self.own("slow", 1.0) if step % every == 0 else 1.0
        if self.get("spread"):
            factor *= 1 + self["spread"] * random.Random(1000 * step + self.rank).random()
        return factor

    def stall(self, step: int) -> None:
        """Sleep in Python, in no operator, as `stall_ms` says for this rank, each `stall_every` steps."""
        if self.own("stall_ms") and step % self.get("stall_every", 1) == 0:
            refresh_cache(self.own("stall_ms"))

    def profiler(self) -> Any:  # noqa: ANN401 - torch.profiler.profile, which publishes no types
        """Return the profiler of this rank, or a context of nothing where the rank is not recorded."""
        if self.rank in self.get("unrecorded", ()):
            return nullcontext()
        late, early = int(self.own("late")), int(self.own("early"))
        config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True) if self.get("all_threads") else None
        activities = [ProfilerActivity.CPU]
        if self.get("device") == "cuda":
            activities.append(ProfilerActivity.CUDA)
        return profile(
            activities=activities,
            schedule=schedule(wait=WARM_UP - 1 + late, warmup=1, active=RECORDED - late - early, repeat=1),
            on_trace_ready=lambda over: over.export_chrome_trace(str(self.folder / f"rank-{self.rank}.json")),
            record_shapes=True,
            with_stack=self.get("with_stack", False),
            experimental_config=config,
        )

    def steps(self) -> Iterator[int]:
        """Yield the number of each step, and record those after the warm-up."""
        if self.ranks > 1:
            dist.barrier()
        with self.profiler() as profiler:
            if profiler:
                profiler.preset_metadata_json(SETTINGS_KEY, json.dumps({"cores": sorted(os.sched_getaffinity(0))}))
            for step in range(WARM_UP + RECORDED):
                if self.get("align") and step == WARM_UP:  # profilers do not start at one time
                    dist.barrier()
                yield step
                if profiler:
                    profiler.step()
        if self.ranks > 1:
            dist.barrier()


def refresh_cache(ms: float) -> None:
    """Take `ms` in Python that calls no operator."""
    pause(ms)
