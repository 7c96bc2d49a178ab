"""What there is in a job's traces, as far as it decides which of HTA's defects can show."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import DEVICE_CATEGORIES, activity_kind

__all__ = ["Facts", "facts_of"]

LAUNCHES = re.compile(r"cuda\w*LaunchKernel|cuLaunchKernel|runFunction")
"""What HTA takes for launches of kernels."""
LISTED = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync", "runFunction")
_OLD_CATEGORIES = {"Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset"}
_TYPES = {
    ActivityKind.COMPUTATION: "COMPUTATION", ActivityKind.COMMUNICATION: "COMMUNICATION",
    ActivityKind.MEMORY: "MEMORY", ActivityKind.DEVICE_OTHER: "OTHER",
}  # fmt: skip


_CALLS = ("cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime")
"""Categories of runtime and driver calls."""


@dataclass
class Facts:
    """What there is in a job's traces."""

    ranks: int = 0
    fractions: bool = False
    """A time is no whole µs: HTA rounds (D2)."""
    empty_kernels: bool = False
    device_events: int = 0
    synchronizations: int = 0
    operators_with_stream: int = 0
    stream_zero: int = 0
    unlisted_launches: int = 0
    """Calls that launched something and that HTA's launch statistics do not know (D8)."""
    unlisted: set[int] = field(default_factory=set)
    """Their correlations."""
    kernel_launches: int = 0
    """Calls that HTA takes for launches of kernels."""
    launches_without_work: int = 0
    launches_of_many: int = 0
    """Calls that launched several events: graph launches (D13)."""
    works_without_launch: int = 0
    """Device events whose launch is not in the file: HTA takes event 0 for it (D13)."""
    steps: set[str] = field(default_factory=set)
    bare_list: bool = False
    many_kernels: bool = False
    types: dict[str, str] = field(default_factory=dict)
    """Device event's name → type by category, where HTA's type by name alone is another (D10)."""

    def can_show(self) -> list[str]:
        """Return the defects that can be cured and can show in such traces."""
        found = {
            "D1": self.empty_kernels, "D2": self.fractions, "D4": self.many_kernels,
            "D5": self.synchronizations or self.operators_with_stream, "D6": self.device_events, "D7": self.ranks > 1,
            "D8": self.unlisted_launches, "D9": self.stream_zero, "D10": self.types,
            "D13": self.works_without_launch, "D19": self.device_events, "D24": self.device_events,
        }  # fmt: skip
        return [defect for defect, there in found.items() if there]


def facts_of(files: Iterable[str]) -> Facts:
    """Read a job's files once more, and say what there is."""
    facts = Facts()
    for path in files:
        data = Path(path).read_bytes()
        root = msgspec.json.decode(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        facts.ranks += 1
        facts.bare_list |= isinstance(root, list)
        _of_events(facts, root["traceEvents"] if isinstance(root, dict) else root)
    return facts


def _of_events(facts: Facts, events: list[Mapping[str, Any]]) -> None:
    arguments = [event.get("args") or {} for event in events]
    device = {
        id(event)
        for event in events
        if _OLD_CATEGORIES.get(event.get("cat", ""), event.get("cat")) in DEVICE_CATEGORIES
    }
    launched: dict[Any, int] = {}
    for event, own in zip(events, arguments, strict=True):
        if id(event) in device and "correlation" in own:
            launched[own.get("correlation")] = launched.get(own.get("correlation"), 0) + 1
    calls = {own.get("correlation") for event, own in zip(events, arguments, strict=True) if event.get("cat") in _CALLS}
    facts.works_without_launch += sum(count for call, count in launched.items() if call not in calls)
    names = {event.get("name", "") for event in events if id(event) in device}
    facts.many_kernels |= len(names) > 10
    facts.device_events += len(device)
    for event, own in zip(events, arguments, strict=True):
        _of_event(facts, event, own, id(event) in device)
        category, name = str(event.get("cat", "")), str(event.get("name", ""))
        if category in _CALLS:
            many = launched.get(own.get("correlation"), 0)
            if many and not name.startswith(LISTED):
                facts.unlisted_launches += 1
                facts.unlisted.add(int(own["correlation"]))
            facts.kernel_launches += bool(LAUNCHES.match(name))
            facts.launches_without_work += not many and bool(LAUNCHES.match(name))
            facts.launches_of_many += many > 1


def _of_event(facts: Facts, event: Mapping[str, Any], own: Mapping[str, Any], on_device: bool) -> None:  # noqa: FBT001
    if "dur" in event and isinstance(event.get("ts"), float):
        facts.fractions = True
    category, name = str(event.get("cat", "")), str(event.get("name", ""))
    if name.startswith("ProfilerStep"):
        facts.steps.add(name)
    if on_device:
        facts.empty_kernels |= event.get("dur") == 0
        facts.stream_zero += str(own.get("stream")) == "0"
        ours = _TYPES[activity_kind(_OLD_CATEGORIES.get(category, category), name)]
        if ours != type_by_name(name):
            facts.types[name] = ours
    elif category == "cuda_sync":
        facts.synchronizations += 1
    elif "stream" in own and "dur" in event:
        facts.operators_with_stream += 1


_COMMUNICATION = re.compile(r"(^nccl.*)|(^hip)|(^hccl)|(.*ncclKernel.*)")
_MEMORY = re.compile(r"(^(hip)?Memcpy)|(^(hip)?Memset)|(^dma)")
_NO_COMPUTATION = re.compile(
    r"(^nccl)|(.*Memcpy)|(.*Memset)|(.*dma)|(^.*Sync)|(^Stream Wait Event)|(cuda.*LaunchKernel)|(^runFunction)|(^hip)"
    r"|(^job_exe)|(^packet)|(^pe_exe)|(^cpum_exe_subgraph)|(^hccl)|(^collective_subgraph_execution)"
)


def type_by_name(name: str) -> str:
    """Return HTA's type of a kernel (HTA.md, section 0)."""
    if _COMMUNICATION.match(name):
        return "COMMUNICATION"
    if _MEMORY.match(name):
        return "MEMORY"
    return "OTHER" if _NO_COMPUTATION.match(name) else "COMPUTATION"
