"""The patterns that decide an event's kind (users may extend them), and the kind that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming.categories import DEVICE_CATEGORIES, RUNTIME_CATEGORIES
from htagraph.core.naming.patterns import matches
from htagraph.core.naming.regions import step_number

__all__ = ["DEFAULT_NAMING", "Naming", "activity_kind"]


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
    # calls documented to wait for the device: to free what its work may still use (CUDA's and HIP's memory management)
    implicit_sync: str = (
        r"^(cuda|hip)Free(Host|Array|MipmappedArray)?$|^hipHostFree$|^cuMemFree(Host)?(_v2)?$|^cuArrayDestroy$"
        r"|^(cuda|hip)DeviceReset$|^(cu|hip)(ModuleUnload|CtxDestroy)(_v2)?$"
    )
    # copies that block the host until they are done, pinned memory or not
    blocking_copy: str = r"^(cuda|hip)Memcpy(2D|3D|(To|From)(Array|Symbol))?(_ptds)?$|^(cuda|hip)MemcpyWithStream$"
    pageable: str = r"^memcpy.*pageable"
    to_host: str = r"DtoH|DeviceToHost"
    to_device: str = r"HtoD|HostToDevice"
    # MTIA events that enclose device work or wait for it, and XPU events that copy a kernel's metrics
    not_work: str = r"^event_(record|wait)$|^(job_exe|packet|pe_exe|cpum_exe_subgraph)|^metrics: "

    def __repr__(self) -> str:
        pairs = ((field, getattr(self, field.name)) for field in fields(self))
        changed = {field.name: pattern for field, pattern in pairs if pattern != field.default}
        return f"Naming({', '.join(f'{name}={pattern!r}' for name, pattern in changed.items())})"

    def extend(self, **patterns: str) -> Naming:
        r"""Return patterns where each given one matches in addition to the present one of the same name.

        Example:
            >>> rules = DEFAULT_NAMING.extend(communication=r"acme_ring_\w+")
            >>> activity_kind("kernel", "acme_ring_push", rules).label
            'communication'
        """
        return replace(self, **{name: f"{getattr(self, name)}|{more}" for name, more in patterns.items()})


DEFAULT_NAMING = Naming()


_FIXED = {"cpu_op": ActivityKind.OP, "hpu_op": ActivityKind.OP, "python_function": ActivityKind.PYTHON}


def activity_kind(category: str, name: str, naming: Naming = DEFAULT_NAMING) -> ActivityKind:
    """Return the kind of an event, from its canonical category and its name.

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
    if matches(naming.host_communication, name):
        return ActivityKind.HOST_COMMUNICATION
    if category in ("user_annotation", "cpu_op") and step_number(name) is not None:
        return ActivityKind.STEP  # profilers of 2020 wrote steps as cpu_op
    return _FIXED.get(category, ActivityKind.ANNOTATION)


def _device_kind(name: str, naming: Naming) -> ActivityKind:
    if matches(naming.not_work, name):
        return ActivityKind.DEVICE_OTHER
    if matches(naming.communication, name):
        return ActivityKind.COMMUNICATION
    return ActivityKind.MEMORY if matches(naming.memory, name) else ActivityKind.COMPUTATION


def _runtime_kind(name: str, naming: Naming) -> ActivityKind:
    for pattern, kind in (
        (naming.wait, ActivityKind.WAIT),
        (naming.record, ActivityKind.RECORD),
        (naming.sync, ActivityKind.SYNC),
        (naming.launch, ActivityKind.LAUNCH),
    ):
        if matches(pattern, name):
            return kind
    return ActivityKind.RUNTIME
