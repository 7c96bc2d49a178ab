"""Changes to a job; running the changed job gives the truth for a what-if. Changes scale durations, not the draws."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

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
    """The transfer of every collective takes `factor` times as long; the waits follow."""

    change: Literal["scale_network"] = "scale_network"
    factor: Factor
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
    ScaleKernels
    | RemoveKernels
    | ScaleHost
    | ScaleLaunches
    | ScaleNetwork
    | SetNetwork
    | ScaleLoader
    | ScaleOptimizer
    | RemoveSync
    | SlowRank,
    Field(discriminator="change"),
]
