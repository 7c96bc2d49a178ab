r"""The meaning of the names of events: with `names`, `kernels` and `flops`, the place of literal names and patterns.

`Naming` holds the patterns that decide an event's kind; extend them for in-house kernels with `Naming.extend`:

    graph = hg.load("traces/", naming=DEFAULT_NAMING.extend(communication=r"acme_ring_\w+"))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Final

import numpy as np

from htagraph.core.arrays import Array, Mask
from htagraph.core.kinds import ActivityKind
from htagraph.core.names import (
    LONGEST_READ,
    outlined,
    selecting_name,
    short_name,
    sibling_names,
    stable_name,
    step_number,
    without_address,
)

__all__ = [
    "ANY_STEP", "BARE_COPY", "BETWEEN_OPERATORS", "BORROWED_CATEGORIES", "COPY", "COUNTER_RANGE", "DEFAULT_NAMING",
    "DEVICE_ANNOTATION", "DEVICE_CATEGORIES", "FRAME", "GRAPH_NODE_CATEGORIES", "HOST_CATEGORIES", "LINEAR",
    "MEMORY_OF_DEVICE", "NODE_ANNOTATIONS", "RUNTIME_CATEGORIES", "Naming", "activity_kind", "call_name",
    "collective_kernel", "collective_op", "computes", "copy_kind", "exact_glob", "has_loader_workers",
    "inference_phase", "is_allocation", "is_asking", "is_autograd_node", "is_backward", "is_backward_region",
    "is_batched_product", "is_capture_begin", "is_capture_end", "is_collective_call", "is_compiled_region",
    "is_compiling", "is_condition", "is_conversion", "is_copy_to_device", "is_data_loader", "is_device_wait",
    "is_dispatch", "is_enqueuing", "is_fused_optimizer", "is_giving", "is_gradient_ready", "is_graph_launch",
    "is_kernel_launch", "is_library_frame", "is_memory_call", "is_memory_label", "is_memory_of_device",
    "is_memset_call", "is_module_frame", "is_nccl_kernel", "is_of_ddp", "is_of_graphs", "is_of_old_pytorch",
    "is_of_pytorch", "is_of_pytorch_2", "is_on_scores", "is_optimizer", "is_poll", "is_product", "is_product_label",
    "is_random", "is_release", "is_softmax", "is_source_frame", "is_taking", "is_timing", "is_triton_kernel",
    "is_tunable_convolution", "is_tuning", "is_wait", "is_warm_up", "is_whole_graph", "literal_glob", "matches",
    "names_like", "names_that", "needs_device", "operator_of_frame", "optimizer_class", "parameter_positions",
    "short_name", "sibling_names", "stable_name", "step_number", "takes_sizes", "transfer_direction",
    "without_address",
]  # fmt: skip


def exact_glob(name: str) -> str:
    r"""Return a glob that fits a name, in a single line: any character stands for one that cannot be printed.

    A glob of a name that the linker mangled has the readable name, which selects the same events.

    Example:
        >>> exact_glob("copy[2]"), exact_glob("two\nlines"), exact_glob("_Z4gemmPf")
        ('copy[[]2]', 'two?lines', 'gemm(float[*])')
    """
    return literal_glob(selecting_name(name))


def literal_glob(text: str) -> str:
    """Return a glob that fits one text only.

    Example:
        >>> literal_glob("copy[2]")
        'copy[[]2]'
    """
    exact = re.sub(r"[*?[]", r"[\g<0>]", text)  # these mean something in a glob
    return exact if exact.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in exact)


@lru_cache(maxsize=1 << 15)  # ranks of a job share their names: a few thousand, and some 20 patterns that ask for few
def matches(pattern: str, name: str) -> bool:
    """Return True if a pattern matches anywhere in a name; case is ignored."""
    return _compiled(pattern).search(name, 0, LONGEST_READ) is not None


def names_like(pattern: str, names: Sequence[str], codes: Array) -> Mask:
    """Return a mask of the codes (indices into `names`) whose name a pattern matches."""
    return np.isin(codes, [code for code in np.unique(codes).tolist() if matches(pattern, names[code])])


def names_that(fits: Callable[[str], object], names: Sequence[str]) -> Mask:
    """Return a mask of the names for which a predicate returns something true.

    Example:
        >>> names_that(str.isupper, ("a", "B")).tolist()
        [False, True]
    """
    return np.fromiter(map(fits, names), np.bool_, len(names))


@lru_cache(maxsize=64)  # patterns: there are about 20, and those of users; twice as many would save nothing
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


GRAPH_NODE_CATEGORIES = frozenset({"graph_event_node", "graph_host_node"})
"""Categories of nodes of CUDA graphs that compute nothing: they record an event, or run a callback on the host."""
DEVICE_CATEGORIES = GRAPH_NODE_CATEGORIES | {"kernel", "gpu_memcpy", "gpu_memset", "cuda_graph", "mtia_ccp_events"}
"""Categories whose events are work on a device stream."""
RUNTIME_CATEGORIES = frozenset({
    "cuda_runtime", "cuda_driver", "mtia_runtime", "xpu_runtime", "xpu_driver",
    "privateuse1_runtime", "privateuse1_driver", "glow_runtime",
})  # fmt: skip
"""Categories whose events are runtime or driver calls on a host thread."""
FRAME = "python_function"
"""The category of calls of Python functions."""
HOST_CATEGORIES = RUNTIME_CATEGORIES | {"cpu_op", "user_annotation", "hpu_op", "os_runtime", FRAME}
"""Categories whose events run on host threads and nest."""
COUNTER_RANGE = "cuda_profiler_range"
"""The category of CUPTI's profiler ranges: one per kernel, with the kernel's hardware counters as arguments."""
DEVICE_ANNOTATION = "gpu_user_annotation"
"""The category of user annotations on a stream: each covers the device work launched under the annotation."""


_OF_EXPERTS = (
    r"\b(deep_?ep|dpsk::ep|uccl)::(?!layout::)|\b(internode(_ll)?|intranode)::|\bhybrid_ep::(dispatch|combine)"
    r"|a2a_?(dispatch|combine)|Ep(Dispatch|Combine)\w*?(Intra|Inter)Node"
)
"""Kernels that send tokens to experts on other ranks and back, by the namespace of their library. The kernels in the
namespace ``layout`` only count tokens."""


@dataclass(frozen=True)
class Naming:
    """Patterns (regular expressions, searched anywhere in the name, case-insensitive) that decide an event's kind."""

    communication: str = (
        r"(?=[acdehimnorsux])"  # the first letters of all that follow: long names are searched twice as fast
        r"(?:nccl|rccl|hccl|xccl|oneccl|msccl|nvshmem|rocshmem|ishmem|userbuffers_|multimem_|cross_device_"
        rf"|(symmetric_memory|intra_node_comm)::|{_OF_EXPERTS}"
        r"|all_?reduce|all_?gather|reduce_?scatter_?(kernel|tensor|v\b|base)|all_?to_?all|all2all)"
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
    not_work: str = r"^event_(record|wait)$|^(job_exe|packet|cpum_exe_subgraph)|^metrics: "

    def __repr__(self) -> str:
        pairs = ((field, getattr(self, field.name)) for field in fields(self))
        changed = {field.name: pattern for field, pattern in pairs if pattern != field.default}
        return f"Naming({', '.join(f'{name}={pattern!r}' for name, pattern in changed.items())})"

    def extend(self, **patterns: str) -> Naming:
        r"""Return patterns in which each given pattern matches in addition to the present pattern of the same name.

        Example:
            >>> rules = DEFAULT_NAMING.extend(communication=r"acme_ring_\w+")
            >>> activity_kind("kernel", "acme_ring_push", rules).label
            'communication'
        """
        return replace(self, **{name: f"{getattr(self, name)}|{more}" for name, more in patterns.items()})


DEFAULT_NAMING = Naming()

_BY_CATEGORY = {"gpu_memcpy": ActivityKind.MEMORY, "gpu_memset": ActivityKind.MEMORY} | dict.fromkeys(
    GRAPH_NODE_CATEGORIES, ActivityKind.DEVICE_OTHER
)
_FIXED = {
    "cpu_op": ActivityKind.OP, "hpu_op": ActivityKind.OP, "os_runtime": ActivityKind.RUNTIME,
    "python_function": ActivityKind.PYTHON,
}  # fmt: skip


def activity_kind(category: str, name: str, naming: Naming = DEFAULT_NAMING) -> ActivityKind:
    """Return the kind of an event, from its canonical category and its name.

    Example:
        >>> activity_kind("kernel", "ncclDevKernel_AllReduce_Sum_f16_RING_LL").label
        'communication'
        >>> activity_kind("cuda_runtime", "cudaLaunchKernel").label
        'launch'
    """
    if category in _BY_CATEGORY:
        return _BY_CATEGORY[category]
    if category in DEVICE_CATEGORIES:
        return _kind(_DEVICE_KINDS, outlined(name), naming, ActivityKind.COMPUTATION)
    if category in RUNTIME_CATEGORIES:
        return _kind(_RUNTIME_KINDS, name, naming, ActivityKind.RUNTIME)
    if matches(naming.host_communication, name):
        return ActivityKind.HOST_COMMUNICATION
    if category in ("user_annotation", "cpu_op") and step_number(name) is not None:
        return ActivityKind.STEP  # profilers of 2020 wrote steps as cpu_op
    return _FIXED.get(category, ActivityKind.ANNOTATION)


_DEVICE_KINDS = {
    "not_work": ActivityKind.DEVICE_OTHER, "communication": ActivityKind.COMMUNICATION, "memory": ActivityKind.MEMORY,
}  # fmt: skip
_RUNTIME_KINDS = {
    "wait": ActivityKind.WAIT, "record": ActivityKind.RECORD, "sync": ActivityKind.SYNC, "launch": ActivityKind.LAUNCH,
}  # fmt: skip


def _kind(kinds: dict[str, ActivityKind], name: str, naming: Naming, otherwise: ActivityKind) -> ActivityKind:
    """Return the kind of the first pattern that a name matches."""
    return next((kind for field, kind in kinds.items() if matches(getattr(naming, field), name)), otherwise)


_COLLECTIVE_OPS = (
    (r"reduce_?scatter", "reduce_scatter"),
    (r"all_?reduce|cross_device_reduce", "all_reduce"),
    (r"all_?gather", "all_gather"),
    (rf"all_?to_?all|all2all|{_OF_EXPERTS}", "all_to_all"),
    (r"broadcast|bcast", "broadcast"),
    (r"send_?recv|(^|[:_])i?(send|recv(_?any_?source)?)(?![a-z])", "send_recv"),
    (r"barrier", "barrier"),
    (r"gather", "gather"),
    (r"scatter", "scatter"),
    (r"reduce", "reduce"),
)
"""The collective that a name stands for: that of the first pattern which the name matches."""
_LIBRARY = r"^(\w*ccl|gloo|mpi|c10d|symm_mem):"
_SEND_OR_RECV = re.compile(r"(?:^|[:_])i?(send|recv)(?:_?any_?source)?(?!_?recv|[a-z])", re.IGNORECASE)


@lru_cache(maxsize=4096)
def collective_op(name: str, naming: Naming = DEFAULT_NAMING, *, host: bool = False) -> str:
    """Return the collective that a name stands for, such as ``"all_reduce"``, or ``""`` if it names none.

    On the `host` (operators, annotations), only names behind a library's prefix (``nccl:``, ``c10d::``) count:
    ``aten::scatter`` and others communicate nothing.

    Example:
        >>> collective_op("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)")
        'all_reduce'
        >>> collective_op("c10d::alltoall_base_", host=True), collective_op("aten::scatter", host=True)
        ('all_to_all', '')
    """
    if host and not matches(_LIBRARY, name) and not matches(naming.host_communication, name):
        return ""
    text = outlined(name)
    return next((word for pattern, word in _COLLECTIVE_OPS if matches(pattern, text)), "")


def collective_kernel(name: str) -> str:
    """Return the short name of a kernel of collectives, the same for all versions of NCCL.

    Example:
        >>> collective_kernel("ncclKernel_SendRecv(ncclWorkElem)")
        'ncclDevKernel_SendRecv'
    """
    return short_name(name).replace("ncclKernel_", "ncclDevKernel_")


def transfer_direction(name: str) -> int:
    """Return 1 for the name of a send, -1 for a receive, 0 for anything else.

    Example:
        >>> transfer_direction("nccl:send 0->1"), transfer_direction("c10d::recv_"), transfer_direction("nccl:barrier")
        (1, -1, 0)
    """
    match = _SEND_OR_RECV.search(name, 0, LONGEST_READ)
    return 0 if match is None else 1 if match[1].lower() == "send" else -1


def _named(pattern: str, of: str) -> Callable[[str], bool]:
    """Return a function that says whether a name matches a pattern; `of` says what such names belong to."""

    def fits(name: str) -> bool:
        return _compiled(pattern).search(name, 0, LONGEST_READ) is not None

    fits.__doc__ = f"Return True for the name of {of}."
    return fits


# operators and annotations; (?-i:…) is a part in which case counts
is_autograd_node = _named(
    r"^[A-Za-z_]+Backward\d*$",
    "the operator of an autograd node: what the engine runs for a forward operator. Old versions of PyTorch record it "
    "without the engine's operator around it",
)
is_backward = _named(r"^(?-i:autograd::engine::)", "the autograd engine's operator around a backward operator")
is_backward_region = _named(
    r"(^|[^a-z])(backward|bwd|run_backward)([^a-z]|\Z)",
    "an annotation or Python frame in which a thread asks the autograd engine for gradients, and waits for them",
)
is_gradient_ready = _named(r"(?-i:AccumulateGrad)\Z", "the operator after which a parameter's gradient is complete")
is_nccl_kernel = _named(r"^nccl(Dev)?Kernel", "a kernel of NCCL or RCCL, for which NCCL_DEBUG=INFO names transports")
is_of_ddp = _named(
    r"^(?-i:DistributedDataParallel\.forward\Z|torch(::|\.)distributed(::|\.)(ddp\.)?reducer)",
    "an operator or annotation of DistributedDataParallel, which reduces gradients in buckets",
)
computes = _named(r"^(?-i:aten::)", "an operator of ATen, PyTorch's library of tensors, which never communicates")
is_collective_call = _named(r"^(?-i:c10d::)", "an operator that enqueues a collective")
is_data_loader = _named(
    r"^enumerate\(DataLoader\)|DataLoaderIter\.__next__",
    "the annotation or operator in which a process waits for the data loader's next batch",
)
has_loader_workers = _named(
    r"MultiProcessingDataLoaderIter", "a data loader's annotation or operator, if worker processes make its batches"
)
is_compiled_region = _named(
    r"^Torch-Compiled Region|^CompiledFunction|\bCompiledFxGraph\b",
    "an operator or annotation that runs code compiled by torch.compile",
)
is_compiling = _named(
    r"\(dynamo_timed\)$|torch/_dynamo/convert_frame\.py\(|triton/compiler/compiler\.py\(|"
    r"^(cu|cuda|hip)(Module|Library)Load",
    "an operator, annotation or Python frame that compiles code, such as torch.compile or Triton do",
)
is_tuning = _named(
    r"\bautotun\w*\.py\(\d+\): (_bench|benchmark)|\b(_?benchmark_all_configs|autotune_to_one_config|do_bench)\b|"
    r"^autotune\b|select_algorithm_autotune|\bcudnnFind\w*Algorithm",
    "an operator, annotation, call or Python frame that runs kernels only to choose the fastest",
)
is_warm_up = _named(r"(?<![a-z])warm[-_ ]?up", "a region in which a job warms up")
is_timing = _named(
    r"^(cu|cuda|hip)EventElapsedTime", "a call that asks how much time of a device passed between two events"
)
is_condition = _named(r"^(?-i:aten::is_nonzero)$", "the operator by which Python takes the truth of a tensor")
takes_sizes = _named(
    r"^(?-i:aten::(slice|narrow|split|split_with_sizes|arange|zeros|empty|full|expand|repeat_interleave))$",
    "an operator that is often called with a size that was computed on the device",
)
is_dispatch = _named(
    r"^(?-i:PythonSubclass|PythonDispatchMode)$",
    "an operator of PyTorch's dispatcher around code of a tensor's class, which nobody wrote under that name",
)
is_optimizer = _named(r"^(?-i:Optimizer\.step#)", "the annotation or operator of a step of an optimizer")
_OPTIMIZER_CLASS = re.compile(r"^Optimizer\.step#(\w+)")


def optimizer_class(name: str) -> str:
    """Return the class of the optimizer whose step a region is; empty for any other name.

    Example:
        >>> optimizer_class("Optimizer.step#AdamW.step"), optimizer_class("aten::mm")
        ('AdamW', '')
    """
    found = _OPTIMIZER_CLASS.match(name)
    return found[1] if found else ""


is_fused_optimizer = _named(
    r"^aten::_fused_(adam|adamw|sgd|adagrad)_|Fused(Adam|SGD|Adagrad)|fused_(adam|sgd|adagrad)",
    "an operator or kernel that updates all parameters at once",
)
is_batched_product = _named(
    r"^aten::(bmm|baddbmm)$", "the operator that multiplies a batch of matrices, each by its own"
)
is_product = _named(r"^aten::(_scaled_)?(add)?mm$", "the operator that multiplies two matrices")
needs_device = _named(
    r"^(nccl|rccl|xccl):|^aten::(_?(cudnn|miopen)_(?!is_)|(record_stream|_?pin_memory)$)",
    "an operator or annotation that only jobs with a device have",
)
is_native = _named(r"^(aten|c10d|prim)::|Backward\d+$", "an operator of PyTorch itself, which runs no Python")
is_softmax = _named(r"^aten::_(safe_)?softmax$", "the operator that computes a softmax")
is_device_wait = _named(r"^event_wait$", "a device's record of how long a stream of it waited for an event")
is_on_scores = _named(
    r"^aten::(_?(safe_)?softmax|(native_)?dropout|mul|div|add|sub|neg|(masked_)?fill|where|bernoulli|clone|contiguous"
    r"|to|type_as|float|half|ones|full|zeros|(ones|full|zeros)_like|tri[ul]|logical_not|[gl][te]|eq)_?$",
    "an operator that scales, masks, normalizes or drops elements, or makes a mask, as attention does with its scores",
)
is_of_old_pytorch = _named(
    r"^aten::(cudnn|miopen|mkldnn|thnn|slow)_conv\w*_backward$"
    r"|^(Addmm|Mm|Bmm|Mul|Add|View|T|Transpose|CudnnConvolution|NativeBatchNorm|ThnnConv2D)Backward$",
    "an operator that PyTorch has had another name for since version 1.11",
)
is_of_pytorch_2 = _named(
    r"^aten::_scaled_dot_product_\w*attention|^Torch-Compiled Region|^aten::_fused_(adam|sgd|adagrad)w?_$",
    "an operator or annotation that came with PyTorch 2",
)
is_tunable_convolution = _named(
    r"^aten::(cudnn|miopen)_convolution(_transpose|_relu|_add_relu)?$",
    "the operator of a convolution for which a library chooses among kernels",
)
is_random = _named(
    r"^aten::(uniform|normal|random|bernoulli|exponential)_$", "the operator that fills a tensor with random numbers"
)
is_conversion = _named(
    r"^aten::(to|_to_copy|cuda|copy_)$", "the operator that copies a tensor to a device, or to another type"
)
is_wait = _named(
    r"::wait_tensor$|^<built-in method (wait|synchronize) of (PyCapsule|torch\._C\._distributed)",
    "an operator or Python frame that waits for a collective",
)

# Python frames
is_asking = _named(
    r"^(multiprocessing/(connection|queues|synchronize)|concurrent/futures/_base|queue|selectors|socket|threading)"
    r"\.py\(\d+\): (acquire|get|poll|recv|recv_bytes|result|select|wait)$",
    "the Python frame that waits until another thread or process has something for it",
)
_LOCK = r"of _(thread\.R?lock|queue\.SimpleQueue) object"
is_taking = _named(rf"^<built-in method (acquire|__enter__|get) {_LOCK}", "a Python frame that takes a lock or an item")
is_giving = _named(
    rf"^<built-in method (release|__exit__|put) {_LOCK}", "a Python frame that gives back a lock or an item"
)
is_module_frame = _named(r"^(?-i:nn\.Module: )", "the Python frame of a module's forward")
is_source_frame = _named(
    r"\(\d+\): ", "the Python frame of a function in a source file, as opposed to a built-in one or a module"
)
is_library_frame = _named(
    r"(^|/)(?-i:(torch|site-packages|dist-packages)/|python\d[^/]*/)|^<", "the Python frame of an installed library"
)

# runtime and driver calls, and kernels
is_whole_graph = _named(r"^(?-i:CUDA graph\b)", "a whole CUDA graph on a stream, whose kernels were not recorded")
is_graph_launch = _named(r"GraphLaunch", "a runtime call that launches a whole CUDA graph")
is_of_graphs = _named(r"^(?-i:cuda|hip|cu)[A-Z]", "a runtime or driver call of CUDA or HIP, whose work graphs can hold")
is_enqueuing = _named(
    r"^(?-i:cuda|hip|cu)\w*(Launch(Cooperative)?Kernel|Mem(cpy|set)\w*Async)",
    "a runtime or driver call that starts a kernel, a copy or a memset",
)
is_of_pytorch = _named(
    r"(^|[^\w])(?-i:at|aten|c10|c10d|torch)(::|\.\w)|(?-i:^triton_[a-z]+_fused)",
    "PyTorch: an operator, a kernel of its library or its compiler, or a frame of its Python code",
)
is_copy_to_device = _named(r"^Memcpy HtoD", "a copy from memory of the host to a device")
is_memset_call = _named(
    r"^(?-i:cuda|hip|cu)\w*Mem[Ss]et", "a runtime or driver call that fills memory; of no bytes, it enqueues nothing"
)
is_capture_begin = _named(r"StreamBeginCapture", "a call from which on a thread's work becomes a CUDA graph")
is_capture_end = _named(r"StreamEndCapture", "the call that ends a capture")
BORROWED_CATEGORIES: Final = {
    "operator": "cpu_op", "annotation": "user_annotation", "module": "python_function", "function": "python_function",
}  # fmt: skip
"""Categories of what a capture lends to the kernels of a CUDA graph, by sort."""
NODE_ANNOTATIONS: Final = ("annotation", "str", "name")
"""Arguments of kernels under which PyTorch's ``torch.cuda._annotate_cuda_graph_trace`` writes marks of nodes."""
is_kernel_launch = _named(
    r"^(?-i:(cuda|hip|cu)(Ext)?(Module)?(Cooperative)?LaunchKernel|(cuda|cu)LaunchCooperativeKernel)",
    "a runtime or driver call that launches one kernel",
)
_MAKER = re.compile(r"^(cuda|hip|cu)(?=[A-Z][a-z])|(_v\d|_pt[ds]z?)+$")


def call_name(name: str) -> str:
    """Return what a runtime or driver call does, without who made the device; any other name is returned unchanged.

    Example:
        >>> call_name("hipMemcpyAsync"), call_name("cuLaunchKernelEx"), call_name("aten::mm")
        ('MemcpyAsync', 'LaunchKernel', 'aten::mm')
    """
    return "LaunchKernel" if is_kernel_launch(name) else _MAKER.sub("", name) if _MAKER.match(name) else name


is_memory_call = _named(r"^(cuda|hip|cu)Mem(cpy|set)", "a runtime or driver call that copies or sets memory")
is_allocation = _named(r"^(cuda|hip)(Malloc|Free)$", "a runtime call by which PyTorch's allocator gets or frees memory")
MEMORY_OF_DEVICE: Final = (
    "^(cuda|hip)(Malloc|Free|Host(Alloc|Malloc|Free))|^cuMem(Alloc|Free|HostAlloc|Create|Release|Map|Unmap|SetAccess)"
)
"""A regular expression of the names of calls that `is_memory_of_device` finds."""
is_memory_of_device = _named(
    MEMORY_OF_DEVICE,
    "a runtime or driver call that gets, maps or frees memory of a device, or pinned memory of its host",
)
is_release = _named(r"^(cuda|hip)Free$", "a runtime call by which PyTorch's allocator frees memory of a device")
is_poll = _named(
    r"^(cuda|hip|cu)(Event|Stream)Query$",
    "a runtime or driver call that only asks whether work is over, and never waits or starts any",
)
is_triton_kernel = _named(r"^(?-i:triton_)", "a Triton kernel that inductor generated")

is_product_label = _named(
    r"\b(method|function) ((add|b|badd)?mm|matmul|linear|einsum|conv\d?d?)\b|(^|[._:/ ])(query|key|value|[qkvo]|qkv"
    r"|dense|proj|fc\d*|c_attn|c_fc|w[qkvio]\d?|head|linear\d*|decoder|classifier|seq_relationship|(add|b|badd)?mm"
    r"|matmul|einsum|conv\d*d?)(_\d+)?([\W_]+(fw|bw|forward|backward|bwd|fwd))?\W*$",
    "a user's name of a product of matrices: that of a function, or of a module by its last word",
)
is_memory_label = _named(
    r"(^|[._:/ ])(add|sub|mul|(true)?div|pow|tanh|exp|r?sqrt|where|masked_fill_?|max|min|to|type(?! object)|float|bool"
    r"|contiguous|clone|ln(_\w+)?|wte|wpe|embed\w*|drop|\w*dropout|activation(_fn)?|act|getitem|getattr|view|permute"
    r"|transpose|reshape|expand|split|size|dim|eq|lt|ones|zeros|full|arange|finfo|(un)?squeeze)(?![a-z])",
    "a user's name of work that memory bounds: that of a function, or of a module by its last word",
)

_PARAMETERS = (
    (r"^aten::linear$", (1, 2)),
    (r"^aten::addmm$", (0, 2)),
    (r"^aten::(_|cudnn_|mkldnn_|miopen_)?convolution(_overrideable)?$|^aten::conv\dd$", (1, 2)),
    (r"^aten::embedding(_bag)?$", (0,)),
    (r"^aten::(native_)?layer_norm$", (2, 3)),
    (
        r"^aten::(native_|cudnn_|miopen_|_)*batch_norm(_impl_index|_with_update)?$|^aten::(native_)?group_norm$",
        (1, 2, 3, 4),
    ),
    (r"AccumulateGrad$", (0,)),
)


def parameter_positions(name: str) -> tuple[int, ...]:
    """Return at which positions an operator's inputs are parameters of a model.

    Example:
        >>> parameter_positions("aten::linear"), parameter_positions("aten::add")
        ((1, 2), ())
    """
    return next((places for pattern, places in _PARAMETERS if matches(pattern, name)), ())


ANY_STEP = "ProfilerStep#*"
"""Glob of the names of steps."""
LINEAR = "aten::linear"
"""The operator of linear layers."""
BARE_COPY = "Memcpy"
"""The name of copies whose direction is not in the file."""
COPY = "aten::copy_"
"""The operator that copies its second input into its first one."""
_BATCH = re.compile(r"^execute_(?:\d+_)?context_(\d+)\((?:sq)?(\d*)[^)]*\)_generation_(\d+)\((?:sq)?(\d*)[^)]*\)")
_TOKENS = re.compile(r"\b(?:num_)?tok(?:en)?s?[=:] ?(\d{1,15})", re.IGNORECASE)


def inference_phase(name: str) -> tuple[str, int]:
    """Return (inference phase that an annotation names, number of tokens processed, -1 if the name does not say).

    vLLM's batches are ``prefill``, ``decode`` or ``mixed``. In other names, numbers after ``=`` or ``:`` become ``*``,
    so that batches of different sizes count as one phase.

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
    tokens = _TOKENS.search(name, 0, LONGEST_READ)
    return re.sub(r"([=:] ?)\d+", r"\1*", name), int(tokens[1]) if tokens else -1


def operator_of_frame(name: str) -> str:
    """Return the operator (with overload) that a C++ frame dispatches, or ``""`` for any other frame.

    Example:
        >>> operator_of_frame("at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)")
        'mul_Tensor'
        >>> operator_of_frame("torch::unwind::unwind()")
        ''
    """
    match = re.match(r"at::_ops::(\w+)::(?:call|redispatch)\b", name)
    return match[1] if match else ""


def copy_kind(name: str) -> str:
    """Return the direction of a copy, such as ``Memcpy HtoD``, or ``Memset``; ``other`` for any other activity.

    Example:
        >>> copy_kind("Memcpy HtoD (Pinned -> Device)"), copy_kind("Memset (Device)")
        ('Memcpy HtoD', 'Memset')
    """
    match = re.match(r"Memset|Memcpy \w+", name)
    return match[0] if match else "other"


BETWEEN_OPERATORS = "Python between operators"
"""What the host's time is called that no event covers, or only a step."""
