r"""Raw names → kinds. The only place with name literals and patterns of events.

`Naming` holds the patterns; extend them for in-house kernels with `Naming.extend`:

    graph = hg.load("traces/", naming=DEFAULT_NAMING.extend(communication=r"acme_ring_\w+"))
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from htagraph.kinds import ActivityKind

__all__ = [
    "DEFAULT_NAMING",
    "DEVICE_CATEGORIES",
    "HOST_CATEGORIES",
    "RUNTIME_CATEGORIES",
    "Naming",
    "activity_kind",
    "short_name",
    "step_number",
]

DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events"})
"""Categories whose events are work on a device stream."""

RUNTIME_CATEGORIES = frozenset({
    "cuda_runtime", "cuda_driver", "mtia_runtime", "xpu_runtime", "xpu_driver",
    "privateuse1_runtime", "privateuse1_driver", "glow_runtime",
})  # fmt: skip
"""Categories whose events are runtime or driver calls on a host thread."""

HOST_CATEGORIES = RUNTIME_CATEGORIES | {"cpu_op", "user_annotation", "python_function", "hpu_op"}
"""Categories whose events lie on host threads and nest."""


@dataclass(frozen=True)
class Naming:
    """Patterns (regular expressions, searched anywhere in the name, case-insensitive) that decide an event's kind."""

    communication: str = (
        r"nccl|rccl|hccl|xccl|oneccl|msccl|nvshmem|rocshmem|deep_?ep::|cross_device_reduce"
        r"|all_?reduce|all_?gather|reduce_?scatter_?(kernel|tensor|v\b|base)|all_?to_?all|all2all"
    )
    memory: str = r"^(hip|cuda)?mem(cpy|set)|^__amd_rocclr_(copy|fill)Buffer|^dma"
    host_communication: str = r"^(gloo|mpi|ucc):"
    launch: str = r"launch|mem(cpy|set)|^runFunction|enqueue(Command|Kernel|Mem|Usm)|^ur_?enqueue"
    sync: str = r"synchronize"
    record: str = r"EventRecord|recordEvent"
    wait: str = r"StreamWaitEvent|waitOnEvent"
    # device events of MTIA that frame work or wait for it, and metric copies of XPU kernels
    not_work: str = r"^event_(record|wait)$|^(job_exe|packet|pe_exe|cpum_exe_subgraph)|^metrics: "

    def __repr__(self) -> str:
        own = {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name) != each.default}
        return f"Naming({', '.join(f'{name}={pattern!r}' for name, pattern in own.items())})"

    def extend(self, **patterns: str) -> Naming:
        r"""Return rules where each given pattern is matched in addition to the one of the same name.

        Example:
            >>> rules = DEFAULT_NAMING.extend(communication=r"acme_ring_\w+")
            >>> activity_kind("kernel", "acme_ring_push", rules).label
            'communication'
        """
        return replace(self, **{name: f"{getattr(self, name)}|{more}" for name, more in patterns.items()})


DEFAULT_NAMING = Naming()

_STEP = re.compile(r"^ProfilerStep#(\d{1,9})(?!\d)")  # a step is an int32
_SIGNATURE = re.compile(r"^void |[(<]")
_CALL, _CALL_KEPT = "operator()", "operator\0"  # parentheses of the name, not of parameters
_FIXED = {"cpu_op": ActivityKind.OP, "hpu_op": ActivityKind.OP, "python_function": ActivityKind.PYTHON}


def activity_kind(category: str, name: str, naming: Naming = DEFAULT_NAMING) -> ActivityKind:
    """Return what an event of a canonical category is.

    Example:
        >>> activity_kind("kernel", "ncclDevKernel_AllReduce_Sum_f16_RING_LL").label
        'communication'
        >>> activity_kind("cuda_runtime", "cudaLaunchKernel").label
        'launch'
    """
    if category in ("gpu_memcpy", "gpu_memset"):
        return ActivityKind.MEMORY
    if category in DEVICE_CATEGORIES:
        return _device_kind(name, naming)
    if category in RUNTIME_CATEGORIES:
        return _runtime_kind(name, naming)
    if _matches(naming.host_communication, name):
        return ActivityKind.HOST_COMMUNICATION
    if category in ("user_annotation", "cpu_op") and step_number(name) is not None:
        return ActivityKind.STEP  # profilers of 2020 wrote steps as cpu_op
    return _FIXED.get(category, ActivityKind.ANNOTATION)


def step_number(name: str) -> int | None:
    """Return N of ``ProfilerStep#N``, else None.

    Example:
        >>> step_number("ProfilerStep#12")
        12
    """
    found = _STEP.match(name)
    return int(found[1]) if found else None


def short_name(name: str) -> str:
    """Return a kernel's name without template arguments, parameters and return type, for tables.

    Names that are no C++ signature are returned whole.

    Example:
        >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int, int)")
        'at::native::vectorized_elementwise_kernel'
    """
    if name.startswith(("Memcpy", "Memset")) or not _SIGNATURE.search(name):
        return name
    plain, depth = [], 0
    signature = name.replace("(anonymous namespace)::", "").replace("->", "").removesuffix(" const")
    for letter in signature.replace(_CALL, _CALL_KEPT):
        if letter in "<(":
            depth += 1
        if not depth:
            plain.append(letter)
        if letter in ">)":
            depth = max(0, depth - 1)
    words = "".join(plain).replace(_CALL_KEPT, _CALL).split()
    return words[-1] if words else name


def _device_kind(name: str, naming: Naming) -> ActivityKind:
    if _matches(naming.not_work, name):
        return ActivityKind.DEVICE_OTHER
    if _matches(naming.communication, name):
        return ActivityKind.COMMUNICATION
    return ActivityKind.MEMORY if _matches(naming.memory, name) else ActivityKind.COMPUTATION


def _runtime_kind(name: str, naming: Naming) -> ActivityKind:
    for pattern, kind in (
        (naming.wait, ActivityKind.WAIT),
        (naming.record, ActivityKind.RECORD),
        (naming.sync, ActivityKind.SYNC),
        (naming.launch, ActivityKind.LAUNCH),
    ):
        if _matches(pattern, name):
            return kind
    return ActivityKind.RUNTIME


def _matches(pattern: str, name: str) -> bool:
    return _compiled(pattern).search(name) is not None


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
