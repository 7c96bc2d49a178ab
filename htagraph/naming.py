r"""Raw names → kinds. The only place with name literals and patterns of events.

`Naming` holds the patterns; extend them for in-house kernels with `Naming.extend`:

    graph = hg.load("traces/", naming=DEFAULT_NAMING.extend(communication=r"acme_ring_\w+"))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from htagraph.kinds import ActivityKind

__all__ = [
    "DEFAULT_NAMING",
    "DEVICE_CATEGORIES",
    "HOST_CATEGORIES",
    "RUNTIME_CATEGORIES",
    "Naming",
    "activity_kind",
    "collective_op",
    "is_backward",
    "is_collective_call",
    "is_data_loader",
    "is_graph_launch",
    "is_module_frame",
    "names_like",
    "short_name",
    "step_number",
    "transfer_direction",
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
    device_sync: str = r"(device|ctx|context)Synchronize|^synchronize$"
    event_sync: str = r"event_?Synchronize|^(event sync|stream wait event)$"
    # copies whose call returns when the copy is over, through whatever memory
    blocking_copy: str = r"^(cuda|hip)Memcpy(2D|3D|(To|From)(Array|Symbol))?(_ptds)?$|^(cuda|hip)MemcpyWithStream$"
    pageable: str = r"^memcpy.*pageable"
    to_host: str = r"DtoH|DeviceToHost"
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


_COLLECTIVE_OPS = tuple(
    (re.compile(pattern, re.IGNORECASE), word)
    for pattern, word in (
        (r"reduce_?scatter", "reduce_scatter"),
        (r"all_?reduce|cross_device_reduce", "all_reduce"),
        (r"all_?gather", "all_gather"),
        (r"all_?to_?all|all2all|deep_?ep::", "all_to_all"),
        (r"broadcast|bcast", "broadcast"),
        (r"send_?recv|(^|[:_])i?(send|recv)(?![a-z])", "send_recv"),
        (r"barrier", "barrier"),
        (r"gather", "gather"),
        (r"scatter", "scatter"),
        (r"reduce", "reduce"),
    )
)
_SEND_OR_RECV = re.compile(r"(?:^|[:_])i?(send|recv)(?!_?recv|[a-z])", re.IGNORECASE)
_COLLECTIVE_CALL = re.compile(r"^(\w*ccl|gloo|mpi|c10d|symm_mem):", re.IGNORECASE)


@lru_cache(maxsize=4096)
def collective_op(name: str, naming: Naming = DEFAULT_NAMING, *, host: bool = False) -> str:
    """Return which collective a name stands for, ``""`` where it does not say.

    Args:
        name: of a communication kernel, of an operator or annotation, or a ``Collective name`` argument.
        naming: what the names of events mean; a kernel that it does not count as communication has no collective.
        host: the name is an operator's or annotation's, which is a collective only behind a library's prefix.

    Example:
        >>> collective_op("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)")
        'all_reduce'
        >>> collective_op("c10d::alltoall_base_", host=True), collective_op("aten::scatter", host=True)
        ('all_to_all', '')
    """
    if host and not _COLLECTIVE_CALL.search(name) and not _matches(naming.host_communication, name):
        return ""
    return next((word for pattern, word in _COLLECTIVE_OPS if pattern.search(name)), "")


def transfer_direction(name: str) -> int:
    """Return 1 if a call or argument names a send, -1 for a receive, 0 for anything else.

    Example:
        >>> transfer_direction("nccl:send 0->1"), transfer_direction("c10d::recv_"), transfer_direction("nccl:barrier")
        (1, -1, 0)
    """
    found = _SEND_OR_RECV.search(name)
    return 0 if found is None else 1 if found[1].lower() == "send" else -1


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
        >>> short_name("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
        'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__'
    """
    if name.startswith(("Memcpy", "Memset")) or not _SIGNATURE.search(name) or is_data_loader(name):
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


def names_like(pattern: str, names: Sequence[str], codes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which codes, as indices into names, are of a name in which a pattern of `Naming` is found."""
    return np.isin(codes, [code for code in np.unique(codes).tolist() if _matches(pattern, names[code])])


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


def is_graph_launch(name: str) -> bool:
    """Return whether a runtime call replays a whole graph of works.

    Example:
        >>> is_graph_launch("cudaGraphLaunch"), is_graph_launch("cudaLaunchKernel")
        (True, False)
    """
    return _matches(r"GraphLaunch", name)


def is_data_loader(name: str) -> bool:
    """Return whether an annotation or operator is the wait for a batch of a data loader.

    Example:
        >>> is_data_loader("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
        True
    """
    return _matches(r"^enumerate\(DataLoader\)|DataLoaderIter\.__next__", name)


def is_backward(name: str) -> bool:
    """Return whether an operator is the autograd engine's frame around a backward operator.

    Example:
        >>> is_backward("autograd::engine::evaluate_function: MmBackward0")
        True
    """
    return name.startswith("autograd::engine::")


def is_module_frame(name: str) -> bool:
    """Return whether a Python frame is the forward of a module.

    Example:
        >>> is_module_frame("nn.Module: Linear_0")
        True
    """
    return name.startswith("nn.Module: ")


def is_collective_call(name: str) -> bool:
    """Return whether an operator enqueues a collective.

    Example:
        >>> is_collective_call("c10d::allreduce_")
        True
    """
    return name.startswith("c10d::")


def _matches(pattern: str, name: str) -> bool:
    return _compiled(pattern).search(name) is not None


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
