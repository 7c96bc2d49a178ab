"""The simulated jobs of the corpus: every regime, with and without a straggler, recorded in several ways."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from htagraph.simulate import REGIMES, Job, ScaleHost, ScaleKernels, ScaleLaunches, ScaleLoader, ScaleNetwork, SlowRank

__all__ = ["CHANGES", "SHAPES", "Planted", "planted_changes", "recorded", "shrunk", "simulated_jobs"]

SHAPES: dict[str, Job] = {
    **{name: make() for name, make in REGIMES.items() if name not in ("straggler", "pipeline")},
    "pipeline": Job(ranks=4, parallelism="pipeline", layers=4, microbatches=3),
    "tensor x data": Job(ranks=4, tp=2, kernel_us=80.0),
    "tensor x pipeline x data": Job(ranks=8, tp=2, pp=2, layers=2, microbatches=2, kernel_us=80.0),
    "fsdp": Job(ranks=4, data_strategy="fsdp"),
    "fsdp, slow network": Job(ranks=4, data_strategy="fsdp", network_gb_s=15.0),
    "all-to-all": Job(ranks=4, all_to_all=True, broadcast_buffers=True),
    "loader-bound": Job(ranks=4, loader_us=6000.0, kernel_us=60.0),
    "host-bound, stacks": Job(ranks=2, kernel_us=6.0, host_us_per_op=14.0, python_us=20.0, with_stack=True),
    "launch-bound": Job(ranks=2, kernel_us=4.0, host_us_per_op=1.0, python_us=0.5, launch_us=12.0, optimizer="loop"),
    "synchronized": Job(ranks=4, synchronize="step", input_memory="pageable", kernel_us=60.0),
    "one rank": Job(ranks=1),
    "noisy, 8 ranks": Job(ranks=8, jitter=0.1),
    "rocm": Job(ranks=2, device="rocm", cuda_sync=False),
}
"""Jobs by regime; their numbers make the regime clear, and fit no machine."""
RECORDINGS = ("complete", "no cuda_sync", "no group args", "neither", "skewed clocks", "old era")
SLOW = (("kernels", 1.03), ("kernels", 1.1), ("kernels", 1.4), ("host", 1.3), ("host", 2.0), ("loader", 20.0))


class Planted(NamedTuple):
    """A change between two jobs, and globs on what a diff must name first."""

    change: tuple[Any, ...]
    """Changes of the simulator."""
    other: dict[str, Any]
    """Fields of the job that differ."""
    names: str
    """Globs, joined by ``|``."""
    rank: int = -1
    """The rank that a diff must name; -1 for any."""


def recorded(job: Job, how: str, draw: random.Random) -> Job:
    """Return a job as it is recorded in one of the `RECORDINGS`."""
    offsets = tuple(round(draw.uniform(-3000, 3000), 3) for _ in range(job.ranks))
    options: dict[str, dict[str, Any]] = {
        "complete": {}, "no cuda_sync": {"cuda_sync": False}, "no group args": {"group_args": False},
        "neither": {"cuda_sync": False, "group_args": False},
        "skewed clocks": {"clock_offsets_us": offsets},
        "old era": {"era": draw.choice(("2021", "2022", "2024-03")), "cuda_sync": False, "group_args": False},
    }  # fmt: skip
    return job.model_copy(update=options[how])


def simulated_jobs(count: int, first: int = 0) -> dict[str, Job]:
    """Return jobs by name: shapes in turn, each second one with a slow rank, drawn from fixed seeds."""
    jobs = {}
    for seed in range(first, first + count):
        draw = random.Random(seed)
        shape = [*SHAPES][seed % len(SHAPES)]
        job = SHAPES[shape].model_copy(update={"seed": seed, "steps": draw.choice((3, 4))})
        job = job if job.sizes[2] > 1 else job.model_copy(update={"layers": 2})
        slow: tuple[SlowRank, ...] = ()
        word = ""
        if job.ranks > 1 and draw.random() < 0.5:
            what, factor = draw.choice(SLOW)
            slow = (SlowRank(rank=draw.randrange(job.ranks), what=what, factor=factor),)
            word = f", {what} of rank {slow[0].rank} x {factor:g}"
        how = draw.choice(RECORDINGS)
        job = recorded(job.model_copy(update={"slow_ranks": slow}), how, draw)
        jobs[f"sim {seed} {shape}, {how}{word}"] = job
    return jobs


def shrunk(job: Job) -> Job:
    """Return a job of three steps and as few layers as its pipeline allows, for tests that must be quick."""
    return job.model_copy(update={"steps": 3, "layers": job.sizes[2]})


CHANGES = (
    "gemm slower", "gemm faster", "network slower", "loader slower", "host operator slower", "launches slower",
    "straggler", "kernel replaced", "optimizer replaced", "sync removed", "none",
)  # fmt: skip


def planted_changes(job: Job, what: str, draw: random.Random) -> Planted:
    """Return a change between two jobs by its word in `CHANGES`."""
    kernel = draw.choice(("*gemm*", "*flash*", "*layer_norm*"))
    gemm = kernel if job.device == "cuda" else "*"
    rank = draw.randrange(job.ranks)
    slow = draw.choice(("kernels", "host"))
    operator = draw.choice(("aten::addmm", "aten::mm", "aten::native_layer_norm", "aten::copy_"))
    return {
        "gemm slower": Planted((ScaleKernels(name=gemm, factor=1.6),), {}, gemm),
        "gemm faster": Planted((ScaleKernels(name=gemm, factor=0.5),), {}, gemm),
        "network slower": Planted((ScaleNetwork(factor=2.5),), {}, "nccl*|rccl*"),
        "loader slower": Planted((ScaleLoader(factor=12.0),), {}, "enumerate(DataLoader)*"),
        "host operator slower": Planted((ScaleHost(op=operator, factor=10.0),), {}, operator),
        "launches slower": Planted((ScaleLaunches(factor=4.0),), {}, "*LaunchKernel*|hipExtModuleLaunch*"),
        "straggler": Planted((SlowRank(rank=rank, what=slow, factor=1.8),), {}, "*", rank),
        "kernel replaced": Planted((), {"triton": True}, "*triton*|*elementwise*|*gelu*"),
        "optimizer replaced": Planted(
            (), {"optimizer": "loop"}, "*multi_tensor*|*[Oo]ptim*|aten::*|*elementwise*|*Launch*"
        ),
        "sync removed": Planted((), {"item": "none"}, "aten::*|*Memcpy*|*Synchronize*|*"),
        "none": Planted((), {"seed": job.seed + 1}, ""),
    }[what]  # fmt: skip
