"""What compiling one rank's step shares: its place, its builder, and how it launches."""

from dataclasses import dataclass
from typing import NamedTuple

from htagraph.simulate.catalogue import Kernel, LayerOp
from htagraph.simulate.codes import Category, Device, Op
from htagraph.simulate.groups import Place
from htagraph.simulate.job import Job
from htagraph.simulate.template import Builder, Event, Instruction

STREAMS = {
    "compute": 7,
    "dp": 20,
    "tp": 24,
    "forward_in": 28,
    "forward_out": 32,
    "backward_in": 36,
    "backward_out": 40,
}
STREAM_INDEX = {name: index for index, name in enumerate(STREAMS)}


class Done(NamedTuple):
    """A forward op that backward must undo."""

    op: LayerOp
    sequence: int
    event: int  # innermost forward event
    flow: int
    reduce: bool


@dataclass
class Rank:
    """What the functions below share while they compile one rank's step."""

    job: Job
    place: Place
    build: Builder

    @property
    def host_ns(self) -> float:
        """Host work of an op, ns."""
        return self.job.host_us_per_op * 1e3

    def python(self, share: float = 1.0) -> None:
        """Spend Python between ops."""
        self.build.work(self.job.python_us * 1e3 * share)

    def kernel(self, kernel: Kernel, us: float, api: str = "cudaLaunchKernel") -> None:
        """Launch a compute kernel that lasts `us` microseconds."""
        job = self.job
        event = Event(Category.KERNEL, kernel.name, 0, kernel=kernel)
        self.build.launch(
            event,
            Instruction(
                Op.LAUNCH,
                host_ns=job.launch_us * 1e3,
                latency_ns=job.launch_latency_us * 1e3,
                device=Device.COMPUTE,
                device_ns=us * 1e3,
            ),
            api,
        )

    def copy(self, name: str, size: int) -> None:
        """Launch a copy between host and device."""
        job = self.job
        self.build.launch(
            Event(Category.GPU_MEMCPY, f"Memcpy {name}", 0, size=size),
            Instruction(
                Op.LAUNCH,
                host_ns=job.launch_us * 1.4e3,
                latency_ns=job.launch_latency_us * 1e3,
                device=Device.MEMCPY,
                device_ns=1.2e3 + size / job.pcie_gb_s,
            ),
            "cudaMemcpyAsync",
        )

    def memset(self, size: int) -> None:
        """Launch a memset."""
        job = self.job
        self.build.launch(
            Event(Category.GPU_MEMSET, "Memset (Device)", 0, size=size),
            Instruction(
                Op.LAUNCH,
                host_ns=job.launch_us * 0.8e3,
                latency_ns=job.launch_latency_us * 1e3,
                device=Device.MEMSET,
                device_ns=1.1e3 + size / 1000,
            ),
            "cudaMemsetAsync",
        )
