"""The description of a training job: everything the simulator needs to know, with units; and changes to it.

Running the changed job gives the truth for a what-if. Changes scale durations, not the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

Ranks = Annotated[tuple[int, ...] | None, Field(description="the ranks it applies to; None means every rank")]
Steps = Annotated[tuple[int, ...] | None, Field(description="the steps, counted from 0, it applies to; None means all")]
Factor = Annotated[float, Field(ge=0.0, description="multiplies the durations")]


class _Change(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScaleKernels(_Change):
    """Device work (kernels, copies, memsets; never collectives) with a matching name takes `factor` times as long."""

    change: Literal["scale_kernels"] = "scale_kernels"
    name: str = Field("*", description="glob on the name of the device work")
    what: Literal["any", "compute", "memcpy", "memset"] = Field("any", description="kind of device work")
    factor: Factor
    ranks: Ranks = None
    steps: Steps = None


class RemoveKernels(_Change):
    """Device work with a matching name takes no time; its launch stays."""

    change: Literal["remove_kernels"] = "remove_kernels"
    name: str = Field(description="glob on the name of the device work")
    ranks: Ranks = None
    steps: Steps = None


class ScaleHost(_Change):
    """Self time of matching ops takes `factor` times as long, and if `op` is `*`, so does Python between ops.

    Runtime calls have their own change (`ScaleLaunches`), and so has the data loader (`ScaleLoader`).
    """

    change: Literal["scale_host"] = "scale_host"
    op: str = Field("*", description="glob on the name of the innermost op; Python between ops has the name ''")
    factor: Factor
    ranks: Ranks = None
    steps: Steps = None


class ScaleLaunches(_Change):
    """A launch's own host cost and its latency are multiplied; factor 0 is no launch overhead."""

    change: Literal["scale_launches"] = "scale_launches"
    factor: Factor
    latency_factor: Factor = 1.0
    ranks: Ranks = None
    steps: Steps = None


class ScaleNetwork(_Change):
    """The bytes of a collective take `factor` times as long, and its latency `latency_factor` times; the waits follow.

    A network of another bandwidth keeps its latency. With both factors alike, every transfer takes so many times as
    long; with both 0, no transfer takes time.
    """

    change: Literal["scale_network"] = "scale_network"
    factor: Factor
    latency_factor: Factor = 1.0
    steps: Steps = None


class SetNetwork(_Change):
    """The network has another latency or bandwidth."""

    change: Literal["set_network"] = "set_network"
    latency_us: float | None = Field(None, ge=0.0, description="latency of a collective, µs; None keeps the job's")
    gb_s: float | None = Field(None, gt=0.0, description="bandwidth of a rank, 10^9 bytes/s; None keeps the job's")


class ScaleLoader(_Change):
    """The data loader takes `factor` times as long; 0 is a free data loader."""

    change: Literal["scale_loader"] = "scale_loader"
    factor: Factor
    ranks: Ranks = None
    steps: Steps = None


class ScaleOptimizer(_Change):
    """Everything inside `Optimizer.step` (kernels, host time and launches) takes `factor` times as long."""

    change: Literal["scale_optimizer"] = "scale_optimizer"
    factor: Factor
    ranks: Ranks = None


class RemoveSync(_Change):
    """Blocking calls with a matching name wait for nothing, except for copies of pageable memory to the device."""

    change: Literal["remove_sync"] = "remove_sync"
    name: str = Field("*", description="glob on the name of the call, such as cudaStreamSynchronize")
    op: str = Field("*", description="glob on the name of the op around it, such as aten::_local_scalar_dense")
    ranks: Ranks = None
    steps: Steps = None


class SlowRank(_Change):
    """A straggler: one rank whose kernels, host or data loader is slower than its peers'."""

    change: Literal["slow_rank"] = "slow_rank"
    rank: int = Field(ge=0, description="which rank")
    what: Literal["kernels", "host", "loader"] = Field(
        "kernels", description="kernels: compute kernels; host: ops, Python and calls' own cost; loader: data loader"
    )
    name: str = Field("*", description="glob on kernel names (kernels) or op names (host)")
    factor: float = Field(ge=1.0, description="multiplies the durations")
    steps: Steps = None


Change = Annotated[
    ScaleKernels | RemoveKernels | ScaleHost | ScaleLaunches | ScaleNetwork | SetNetwork | ScaleLoader | ScaleOptimizer
    | RemoveSync | SlowRank,
    Field(discriminator="change"),
]  # fmt: skip

Era = Literal["2021", "2022", "2024-03", "2024-04", "2024", "2026"]


_LARGEST = 1_000_000_000
"""The largest number of a job but its seed. Chosen: a thousand seconds. Doubled, more jobs last longer than the
nanoseconds of int64 count."""


def _numbers(described: object) -> Iterator[float]:
    """Yield the numbers in nested descriptions."""
    if isinstance(described, Mapping):
        described = tuple(described.values())
    if isinstance(described, (tuple, list)):
        for entry in described:
            yield from _numbers(entry)
    elif isinstance(described, (int, float)):
        yield described


class Job(BaseModel):
    """A training job on simulated GPUs.

    Example:
        >>> Job(ranks=4, parallelism="tensor").sizes
        (1, 4, 1)
        >>> Job(ranks=8, tp=2, pp=2).sizes
        (2, 2, 2)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # shape of the job
    ranks: int = Field(8, ge=1, description="processes, one GPU each")
    steps: int = Field(4, ge=1, description="training steps recorded")
    first_step: int = Field(5, ge=0, description="number in the first ProfilerStep#N")
    layers: int = Field(4, ge=1, description="transformer layers in the whole model")
    parallelism: Literal["data", "tensor", "pipeline"] = Field(
        "data", description="what all ranks do together, unless tp or pp is given"
    )
    tp: int | None = Field(None, ge=1, description="ranks that share each layer")
    pp: int | None = Field(None, ge=1, description="pipeline stages")
    data_strategy: Literal["ddp", "fsdp"] = Field(
        "ddp", description="ddp: bucketed all-reduce; fsdp: all-gather before each layer, reduce-scatter after it"
    )
    buckets: int = Field(4, ge=1, description="gradient buckets of ddp; at most one per layer is used")
    microbatches: int = Field(4, ge=1, description="micro-batches per step of a pipeline (schedule 1F1B)")
    all_to_all: bool = Field(
        default=False, description="exchange embeddings by all-to-all before forward and after backward"
    )
    broadcast_buffers: bool = Field(
        default=False, description="broadcast the model's buffers from rank 0 before forward"
    )
    optimizer: Literal["foreach", "loop", "fused"] = Field(
        "foreach", description="how AdamW launches: many tensors per kernel; a kernel per tensor and op; one for all"
    )
    clip_grad: bool = Field(default=False, description="clip the gradients' norm, on the device")
    triton: bool = Field(default=False, description="the activation is a Triton kernel, launched by cuLaunchKernel")

    cuda_graph: Literal["none", "forward", "optimizer"] = Field(
        "none", description="what is launched as a CUDA graph: the layers' forward, or the optimizer"
    )

    # what things cost
    kernel_us: float = Field(
        120.0, gt=0, description="duration of a layer's large matrix product, µs; others are shares"
    )
    host_us_per_op: float = Field(7.0, ge=0, description="host work of one op that launches, µs")
    python_us: float = Field(5.0, ge=0, description="Python between two ops, µs")
    launch_us: float = Field(4.5, ge=0, description="own cost of a launch, µs")
    load_us: float = Field(
        0.0, ge=0, description="time that the first launch of each kernel takes to load its code, µs"
    )
    call_us: float = Field(1.0, ge=0, description="own cost of an event record, stream wait and the like, µs")
    sync_us: float = Field(2.5, ge=0, description="own cost of a blocking call with nothing pending, µs")
    launch_latency_us: float = Field(5.5, ge=0, description="start of a launch to the earliest start of its kernel, µs")
    kernel_gap_us: float = Field(0.9, ge=0, description="end of a kernel to the start of the next on its stream, µs")
    event_latency_us: float = Field(
        0.8, ge=0, description="end of an awaited kernel to the start of the waiting one, µs"
    )
    sync_return_us: float = Field(
        4.0, ge=0, description="end of the awaited kernel to the return of the blocking call, µs"
    )
    thread_wake_us: float = Field(12.0, ge=0, description="hand-over between main and backward thread, µs")
    loader_us: float = Field(150.0, ge=0, description="wait for the data loader per step, µs")
    batch_mb: float = Field(2.0, gt=0, description="input copied to the device per step, 10^6 bytes")
    input_memory: Literal["pinned", "pageable"] = Field(
        "pinned", description="host memory of the input; pageable blocks"
    )
    synchronize: Literal["never", "step"] = Field(
        "never", description="step: torch.cuda.synchronize() at the end of each step, as timing loops do"
    )
    gathers_ahead: int = Field(
        2, ge=1, description="fsdp: layers gathered and not yet freed when the host blocks (limit_all_gathers)"
    )
    free_gathers: bool = Field(
        default=False,
        description="fsdp: gathers wait for no computation, and backward gathers a layer ahead, as PyTorch's FSDP does",
    )
    item: Literal["none", "pinned", "pageable"] = Field(
        "pageable", description="loss.item() at the end of a step: absent, or through which host memory"
    )
    pcie_gb_s: float = Field(20.0, gt=0, description="bandwidth between host and device, 10^9 bytes/s")
    network_latency_us: float = Field(18.0, ge=0, description="latency of a collective, µs")
    network_gb_s: float = Field(120.0, gt=0, description="bandwidth of each rank, 10^9 bytes/s")
    layer_mb: float = Field(25.0, gt=0, description="gradients (or parameters) of one layer, 10^6 bytes")
    activation_mb: float = Field(
        8.0, gt=0, description="activations sent between ranks by tensor or pipeline, 10^6 bytes"
    )
    contention: float = Field(
        0.0, ge=0, description="by how much longer a kernel takes that runs beside collectives, 0.3 for 30 %"
    )
    end_spread_us: float = Field(1.5, ge=0, description="spread of the members' ends of one collective, µs")
    queue_depth: int = Field(1024, ge=1, description="queue length of a stream at which a launch blocks")
    cores_per_host: int | None = Field(
        None, ge=1, description="cores of a host for the host threads of its ranks; None: as many as needed"
    )
    fair_cores: bool = Field(
        default=False,
        description="threads that outnumber the cores take short turns, instead of each running until it blocks",
    )
    jitter: float = Field(0.03, ge=0, le=0.25, description="relative standard deviation of every duration")
    start_skew_us: float = Field(30.0, ge=0, description="largest difference of the ranks' first moments, µs")
    seed: int = Field(0, ge=0, description="seed of every draw")
    slow_ranks: tuple[SlowRank, ...] = Field((), description="the stragglers of the job as it was recorded")
    changes: tuple[Change, ...] = Field((), description="changes applied on top, left to right")

    # how it is recorded
    era: Era = Field("2026", description="which Kineto wrote the files")
    backend: Literal["kineto", "cupti"] = Field(
        "kineto", description="which of PyTorch's profilers of devices wrote them: cupti is that of 2.14, with samples"
    )
    device: Literal["cuda", "rocm"] = Field("cuda", description="whose names and arguments")
    cuda_sync: bool = Field(default=True, description="write cuda_sync events (never by rocm, nor before 2024)")
    group_args: bool = Field(default=True, description="write process-group arguments on collectives")
    flows: bool = Field(default=True, description="write launch and forward-backward flows")
    record_shapes: bool = Field(default=False, description="write input shapes")
    with_stack: bool = Field(default=False, description="write python_function events")
    gpus_per_node: int = Field(8, ge=1, description="ranks per host")
    clock_offsets_us: tuple[float, ...] = Field(
        (), description="added to every timestamp of rank i, µs; missing ones are 0"
    )
    clock_drift_ppm: tuple[float, ...] = Field(
        (), description="speed error of rank i's clock, 10^-6; missing ones are 0"
    )

    @model_validator(mode="after")
    def _check(self) -> Job:
        described = self.model_dump(exclude={"seed"})
        if not all(abs(number) <= _LARGEST for number in _numbers(described)):
            message = f"a number of a job is at most {_LARGEST:,}"
            raise ValueError(message)
        data, tensor, stages = self.sizes
        if data * tensor * stages != self.ranks:
            message = f"ranks={self.ranks} is not divisible by tp={tensor} times pp={stages}"
            raise ValueError(message)
        if stages > self.layers:
            message = f"layers={self.layers} cannot fill pp={stages} stages; give at least {stages} layers"
            raise ValueError(message)
        if self.cuda_graph == "forward" and (tensor > 1 or self.data_strategy != "ddp"):
            message = "cuda_graph='forward': no collective is in a graph; give tp=1 and data_strategy='ddp'"
            raise ValueError(message)
        if any(slow.rank >= self.ranks for slow in self.slow_ranks):
            message = f"slow_ranks names a rank beyond the last one, {self.ranks - 1}"
            raise ValueError(message)
        return self

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Ranks in the data, tensor and pipeline direction."""
        given = self.tp is not None or self.pp is not None
        tensor = self.tp or (self.ranks if self.parallelism == "tensor" and not given else 1)
        stages = self.pp or (self.ranks if self.parallelism == "pipeline" and not given else 1)
        return self.ranks // (tensor * stages) or 1, tensor, stages

    def stage_layers(self, stage: int) -> range:
        """Return the layers of a pipeline stage; the first stages take what does not divide."""
        stages = self.sizes[2]
        share, rest = divmod(self.layers, stages)
        first = stage * share + min(stage, rest)
        return range(first, first + share + (stage < rest))

    def offset_ns(self, rank: int) -> int:
        """Return the constant error of a rank's clock, ns."""
        return round(self.clock_offsets_us[rank] * 1000) if rank < len(self.clock_offsets_us) else 0

    def drift(self, rank: int) -> float:
        """Return the relative speed error of a rank's clock."""
        return self.clock_drift_ppm[rank] * 1e-6 if rank < len(self.clock_drift_ppm) else 0.0


@dataclass(frozen=True, slots=True)
class JobGroup:
    """One process group, the same object for all its members."""

    index: int  # position in the job's list of groups
    name: str  # pg_name
    description: str  # pg_desc
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Where a rank stands in the job, and its group for each role."""

    rank: int
    stage: int
    roles: dict[str, JobGroup]


def places(job: Job) -> tuple[list[JobGroup], list[RankPlace]]:
    """Return the job's process groups and the place of every rank; tensor neighbours have adjacent ranks.

    The roles of a rank: `dp` and `tp`; and for a pipeline, one group per pair of neighbours and direction,
    `forward_in`, `forward_out`, `backward_in`, `backward_out`.
    """
    data, tensor, stages = job.sizes
    grid = np.arange(job.ranks).reshape(stages, data, tensor)
    groups = [JobGroup(0, "0", "default_pg", tuple(range(job.ranks)))]
    roles: list[dict[str, JobGroup]] = [{} for _ in range(job.ranks)]

    def group(description: str, ranks: list[int], names: Iterable[str]) -> None:
        """Give each of the ranks its role in a group, which is a new one unless it is the default one."""
        everybody = len(ranks) == job.ranks and not description.startswith("pp")
        if not everybody:
            groups.append(JobGroup(len(groups), str(len(groups)), description, tuple(ranks)))
        for rank, name in zip(ranks, names, strict=False):
            roles[rank][name] = groups[0 if everybody else -1]

    for stage in grid:
        for lines, role in ((stage.T, "dp"), (stage, "tp")):
            for line in lines.tolist():
                if len(line) > 1:
                    group(role, line, repeat(role))
    for pair in np.stack([grid[:-1].ravel(), grid[1:].ravel()], axis=1).tolist():
        group("pp_forward", pair, ("forward_out", "forward_in"))
        group("pp_backward", pair, ("backward_in", "backward_out"))
    return groups, [RankPlace(rank, rank // (tensor * data), roles[rank]) for rank in range(job.ranks)]


# named jobs: one per regime that an analysis must distinguish; the numbers are chosen so that it is unmistakable
REGIMES: Final[dict[str, Callable[[], Job]]] = {
    # large kernels, a fast host and network: the device is always busy
    "gpu_bound": partial(Job, ranks=4, kernel_us=300.0, host_us_per_op=4.0, python_us=2.0, network_gb_s=300.0),
    # small kernels, a slow host, an optimizer that loops over tensors: the device waits for launches
    "host_bound": partial(
        Job, ranks=4, kernel_us=6.0, host_us_per_op=12.0, python_us=15.0, layer_mb=1.0, optimizer="loop"
    ),
    # a slow network: most of the gradients' all-reduce is exposed
    "communication_bound": partial(Job, ranks=4, kernel_us=60.0, network_gb_s=12.0, layer_mb=40.0),
    # one rank's compute kernels take 1.4 times as long: all others wait in collectives
    "straggler": partial(Job, ranks=4, slow_ranks=(SlowRank(rank=2, factor=1.4),)),
    # no single resource dominates
    "balanced": partial(Job, ranks=4, kernel_us=70.0, network_gb_s=50.0),
    # four stages, 1F1B, with bubbles
    "pipeline": partial(Job, ranks=4, parallelism="pipeline", layers=8, microbatches=6),
    # every layer is shared by four ranks: many small all-reduces on the critical path
    "tensor": partial(Job, ranks=4, parallelism="tensor", kernel_us=60.0),
}


def demo_job() -> Job:
    """Return the job of the demo traces: a straggler, exposed communication and a host-bound phase (data loading)."""
    return Job(
        ranks=4, steps=3, layers=2, kernel_us=150.0, network_gb_s=30.0, buckets=2, optimizer="loop", loader_us=1200.0,
        slow_ranks=(SlowRank(rank=2, factor=1.3),), clock_offsets_us=(0.0, 140.0, -60.0, 35.0), seed=7,
    )  # fmt: skip
