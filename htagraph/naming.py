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
    "COUNTER_RANGE",
    "DEFAULT_NAMING",
    "DEVICE_CATEGORIES",
    "HOST_CATEGORIES",
    "LINEAR",
    "RUNTIME_CATEGORIES",
    "Naming",
    "activity_kind",
    "collective_op",
    "copy_kind",
    "element_bytes",
    "flop_formula",
    "flop_per_count",
    "inference_phase",
    "is_backward",
    "is_collective_call",
    "is_compiled_region",
    "is_data_loader",
    "is_device_annotation",
    "is_dram_bytes",
    "is_dram_part",
    "is_graph_launch",
    "is_kernel_launch",
    "is_module_frame",
    "is_tf32_kernel",
    "is_triton_kernel",
    "names_like",
    "operator_of_frame",
    "short_name",
    "stable_name",
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


def is_device_annotation(category: str) -> bool:
    """Return whether events of a category are user annotations as devices saw them.

    Example:
        >>> is_device_annotation("gpu_user_annotation"), is_device_annotation("user_annotation")
        (True, False)
    """
    return category == "gpu_user_annotation"


def stable_name(name: str) -> str:
    """Return a name without what changes between runs: the number of a step, line numbers, addresses.

    Example:
        >>> stable_name("ProfilerStep#12"), stable_name("model.py(37): forward")
        ('ProfilerStep', 'model.py: forward')
        >>> stable_name("<built-in method mm of Tensor object at 0x7f2a>")
        '<built-in method mm of Tensor object>'
    """
    if _STEP.match(name):
        return name.partition("#")[0]
    return _UNSTABLE.sub("", name) if "(" in name or " at 0x" in name else name


_UNSTABLE = re.compile(r"(?<=\.py)\(\d+\)| at 0x[0-9a-f]+")


LINEAR = "aten::linear"
"""The operator of linear layers: the most frequent one that launches several kernels."""


def copy_kind(name: str) -> str:
    """Return which kind of copy or set of memory a device activity is, without the kinds of memory.

    Example:
        >>> copy_kind("Memcpy HtoD (Pinned -> Device)"), copy_kind("Memset (Device)")
        ('Memcpy HtoD', 'Memset')
    """
    found = re.match(r"Memset|Memcpy \w+", name)
    return found[0] if found else "other"


def is_compiled_region(name: str) -> bool:
    """Return whether an operator or annotation runs code that torch.compile made.

    Example:
        >>> is_compiled_region("Torch-Compiled Region: 0/0"), is_compiled_region("CompiledFunctionBackward")
        (True, True)
    """
    return _matches(r"^Torch-Compiled Region|^CompiledFunction|\bCompiledFxGraph\b", name)


def is_triton_kernel(name: str) -> bool:
    """Return whether a kernel is one that inductor generated with Triton.

    Example:
        >>> is_triton_kernel("triton_poi_fused_add_cos_sin_0"), is_triton_kernel("ampere_sgemm_128x64_nn")
        (True, False)
    """
    return name.startswith("triton_")


_BATCH = re.compile(r"^execute_(?:\d+_)?context_(\d+)\((?:sq)?(\d*)[^)]*\)_generation_(\d+)\((?:sq)?(\d*)[^)]*\)")
_TOKENS = re.compile(r"\b(?:num_)?tok(?:en)?s?[=:] ?(\d{1,15})", re.IGNORECASE)


def inference_phase(name: str) -> tuple[str, int]:
    """Return (the phase of inference that an annotation names, the tokens that it says were processed or -1).

    vLLM's batches are ``prefill``, ``decode`` or ``mixed``; of other names numbers behind ``=`` or ``:`` are left out,
    so that the same phase with other sizes is one.

    Example:
        >>> inference_phase("execute_context_1(512)_generation_31(31)")
        ('mixed', 543)
        >>> inference_phase("execute_32_context_0(sq0sk0)_generation_32(sq32sk55086)")
        ('decode', 32)
        >>> inference_phase("step[EXTEND bs=2 toks=96]"), inference_phase("forward")
        (('step[EXTEND bs=* toks=*]', 96), ('forward', -1))
    """
    batch = _BATCH.match(name)
    if batch:
        prefills, decodes = int(batch[1]) > 0, int(batch[3]) > 0
        word = "mixed" if prefills and decodes else "prefill" if prefills else "decode"
        return word, int(batch[2] or 0) + int(batch[4] or 0)
    tokens = _TOKENS.search(name)
    return re.sub(r"([=:] ?)\d+", r"\1*", name), int(tokens[1]) if tokens else -1


COUNTER_RANGE = "cuda_profiler_range"
"""The category of CUPTI's ranges: one per kernel, with the counters of it as arguments."""

_KERNEL_LAUNCH = re.compile(r"(cuda|hip|cu)(Ext)?(Module)?(Cooperative)?LaunchKernel|(cuda|cu)LaunchCooperativeKernel")
_FLOP_COUNTER = re.compile(r"smsp__sass_thread_inst_executed_op_([hfd])(fma|mul|add)_pred_on\.sum")


def is_kernel_launch(name: str) -> bool:
    """Return whether a runtime or driver call launches one kernel.

    Example:
        >>> is_kernel_launch("cudaLaunchKernelExC"), is_kernel_launch("cudaMemcpyAsync")
        (True, False)
    """
    return _KERNEL_LAUNCH.match(name) is not None


def flop_per_count(counter: str) -> int:
    """Return how many floating-point operations one count of a device counter is, 0 of other counters.

    Example:
        >>> flop_per_count("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"), flop_per_count("dram__bytes.sum")
        (2, 0)
    """
    found = _FLOP_COUNTER.fullmatch(counter)
    return 0 if found is None else 2 if found[2] == "fma" else 1


def is_dram_bytes(counter: str) -> bool:
    """Return whether a device counter counts the bytes that a kernel moved to or from the device's memory.

    Example:
        >>> is_dram_bytes("dram__bytes.sum"), is_dram_bytes("dram__bytes_read.sum"), is_dram_bytes("dram__cycles.sum")
        (True, False, False)
    """
    return counter == "dram__bytes.sum"


def is_dram_part(counter: str) -> bool:
    """Return whether a device counter counts the bytes that a kernel read from the device's memory, or those written.

    Example:
        >>> is_dram_part("dram__bytes_read.sum"), is_dram_part("dram__bytes.sum")
        (True, False)
    """
    return counter in ("dram__bytes_read.sum", "dram__bytes_write.sum")


def operator_of_frame(name: str) -> str:
    """Return the operator and overload whose dispatch a C++ frame is, ``""`` for any other frame.

    Example:
        >>> operator_of_frame("at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)")
        'mul_Tensor'
        >>> operator_of_frame("torch::unwind::unwind()")
        ''
    """
    found = _OPERATOR_FRAME.match(name)
    return found[1] if found else ""


_OPERATOR_FRAME = re.compile(r"^at::_ops::(\w+)::(?:call|redispatch)\b")


_FLOP_FORMULAS = (
    (re.compile(r"aten::(mm|_scaled_mm|_int_mm)"), "mm"),
    (re.compile(r"aten::(addmm|_addmm_activation)"), "addmm"),
    (re.compile(r"aten::bmm"), "bmm"),
    (re.compile(r"aten::baddbmm_?"), "baddbmm"),
    (re.compile(LINEAR), "linear"),
    (re.compile(r"aten::_?convolution"), "convolution"),
    (re.compile(r"aten::convolution_backward"), "convolution_backward"),
    (re.compile(r"aten::_scaled_dot_product_\w*attention\w*_backward"), "attention_backward"),
    (re.compile(r"aten::(_scaled_dot_product_\w*attention\w*|scaled_dot_product_attention)"), "attention"),
)
_ELEMENT_BYTES = {
    "double": 8, "float": 4, "c10::half": 2, "c10::bfloat16": 2, "long int": 8, "long": 8, "int": 4, "short int": 2,
    "signed char": 1, "unsigned char": 1, "bool": 1, "c10::complex<float>": 8, "c10::complex<double>": 16,
}  # fmt: skip


def flop_formula(name: str) -> str:
    """Return which formula gives an operator's floating-point operations from its shapes, empty if none does.

    Example:
        >>> flop_formula("aten::addmm"), flop_formula("aten::relu")
        ('addmm', '')
    """
    return next((formula for pattern, formula in _FLOP_FORMULAS if pattern.fullmatch(name)), "")


def element_bytes(type_name: str) -> int:
    """Return the bytes of one element of a tensor whose type the trace names so, 0 if it is unknown.

    Example:
        >>> element_bytes("c10::BFloat16"), element_bytes("float"), element_bytes("c10::Float8_e4m3fn")
        (2, 4, 1)
    """
    return 1 if type_name.startswith("c10::Float8") else _ELEMENT_BYTES.get(type_name.lower(), 0)


def is_tf32_kernel(name: str) -> bool:
    """Return whether a kernel multiplies 32-bit elements as TF32, on matrix units; only asked where they are 32-bit.

    Example:
        >>> is_tf32_kernel("cutlass_80_tensorop_s1688gemm_256x128"), is_tf32_kernel("ampere_sgemm_128x64_tn")
        (True, False)
    """
    return _matches(r"tf32|xf32|s1688|s16816gemm_f32", name)
