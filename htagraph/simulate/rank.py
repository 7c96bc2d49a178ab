"""What the functions that compile one rank's step share: its place, its builder, and how it launches.

Host costs of launches are multiples of `Job.launch_us`; the factors are chosen, since copies take longer to launch than
kernels, and memsets less long.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

from htagraph.simulate.catalogue import Kernel, LayerOp
from htagraph.simulate.codes import Category, DeviceWork, Op
from htagraph.simulate.job import Job, RankPlace
from htagraph.simulate.template import Builder, Instruction, TemplateEvent

_COPY_START_NS, _MEMSET_START_NS = 1.2e3, 1.1e3
"""ns that a copy or a memset takes without its bytes. Chosen: the shortest ones of A100 traces take about 1 µs;
doubling them delays small copies."""
_MEMSET_B_PER_NS = 1000
"""Bandwidth of a memset, B/ns (TB/s): about that of A100 memory."""

_GRAPH_LATENCY = 2.0
"""How many times as long a CUDA graph takes to start as a kernel. Chosen: 10 µs on an A100, where a kernel takes 5;
doubling it delays each graph that finds the device idle by another 10 µs."""

STREAMS = {  # stream ids: 7 is the default stream of CUDA traces; the rest are chosen
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
    place: RankPlace
    build: Builder

    @property
    def host_ns(self) -> float:
        """Host work of an op, ns."""
        return self.job.host_us_per_op * 1e3

    def python(self, share: float = 1.0) -> None:
        """Spend host time in Python, between ops."""
        self.build.work(self.job.python_us * 1e3 * share)

    def graph(self, part: str) -> AbstractContextManager[None]:
        """Return what launches a part of the step as one CUDA graph, if the job does that with this part."""
        if self.job.cuda_graph != part:
            return nullcontext()
        return self.build.graph(self.job.launch_latency_us * 1e3 * _GRAPH_LATENCY)

    def kernel(self, kernel: Kernel, us: float, api: str = "cudaLaunchKernel") -> None:
        """Launch a compute kernel that lasts `us` microseconds."""
        event = TemplateEvent(Category.KERNEL, kernel.name, 0, kernel=kernel)
        self._launch(event, self.job.launch_us * 1e3, DeviceWork.COMPUTE, us * 1e3, api)

    def copy(self, name: str, size: int) -> None:
        """Launch a copy between host and device."""
        event = TemplateEvent(Category.GPU_MEMCPY, f"Memcpy {name}", 0, size=size)
        device_ns = _COPY_START_NS + size / self.job.pcie_gb_s
        self._launch(event, self.job.launch_us * 1.4e3, DeviceWork.MEMCPY, device_ns, "cudaMemcpyAsync")

    def memset(self, size: int) -> None:
        """Launch a memset."""
        event = TemplateEvent(Category.GPU_MEMSET, "Memset (Device)", 0, size=size)
        device_ns = _MEMSET_START_NS + size / _MEMSET_B_PER_NS
        self._launch(event, self.job.launch_us * 0.8e3, DeviceWork.MEMSET, device_ns, "cudaMemsetAsync")

    def _launch(self, event: TemplateEvent, host_ns: float, device: DeviceWork, device_ns: float, api: str) -> None:
        latency_ns = self.job.launch_latency_us * 1e3
        one = Instruction(Op.LAUNCH, host_ns=host_ns, latency_ns=latency_ns, device=device, device_ns=device_ns)
        self.build.launch(event, one, api)
