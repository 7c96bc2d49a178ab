"""What ran on the host: operators, annotations, Python functions, runtime calls, the allocator."""

from pydantic import Field

from htagraph.trace.kineto.events.base import (
    CALL_TEXT,
    INTEGER,
    UNSIGNED,
    ActivityArgs,
    Address,
    CollectiveArgs,
    CorrelatedArgs,
    Event,
    Int,
    Kwarg,
    Measure,
    Stored,
    arg,
)

__all__ = [
    "CpuOp", "CpuOpArgs", "DriverCall", "GlowRuntime", "HpuOp", "MemoryArgs", "MemoryEvent", "MtiaRuntime",
    "MtiaRuntimeArgs", "OpArgs", "OutOfMemory", "Overhead", "OverheadArgs", "PrivateUse1Driver", "PrivateUse1Runtime",
    "PythonFunction", "PythonFunctionArgs", "RecordArgs", "RuntimeArgs", "RuntimeCall", "UserAnnotation", "XpuDriver",
    "XpuRuntime",
]  # fmt: skip

Shapes = list[list[int | list[int]]]


class RecordArgs(ActivityArgs):
    """Arguments of what PyTorch itself recorded."""

    ev_idx: Int | None = arg("Ev Idx", "Position in the profiler's list of events", "Profiler Event Index")
    finished: bool | None = arg("finished", "False where the end of the trace closed the event")
    record_function_id: Int | None = arg("Record function id", "Id shared with the execution trace; 0 is none")
    trace_name: str | None = arg("Trace name", "Name of the trace span (2022 and before)")
    trace_iteration: Int | None = arg("Trace iteration", "Iteration of the span (2022 and before)")


class OpArgs(RecordArgs):
    """Arguments of an operator or annotation."""

    sequence_number: Int | None = arg(
        "Sequence number", "Autograd's counter, equal on a forward operator and its backward", store=INTEGER
    )
    fwd_thread_id: Int | None = arg(
        "Fwd thread id", "Thread of the forward operator; 0 on forward operators", store=INTEGER
    )
    input_dims: Shapes | None = arg(
        "Input Dims", "Shape of each input, elements; a list of shapes for a tensor list", "Input dims", store=CALL_TEXT
    )
    input_strides: Shapes | None = arg("Input Strides", "Strides of each input, elements")
    input_type: list[str] | None = arg("Input type", "Type of each input; empty if unknown", store=CALL_TEXT)
    concrete_inputs: list[str] | None = arg(
        "Concrete Inputs", "Value of each scalar input, as text; empty for tensors", store=CALL_TEXT
    )
    call_stack: str | None = arg("Call stack", "TorchScript's frames, joined by ;")
    module_hierarchy: str | None = arg("Module Hierarchy", "TorchScript's modules")
    backend: str | None = arg("Backend", "Name of the delegate that ran the operator")
    scope: Kwarg | None = arg("scope", "Kind of record function, such as user_scope")
    input_names: list[str] | None = arg("Input names", "Names of the inputs (2021 and before)")
    output_dims: Shapes | None = arg("Output dims", "Shape of each output, elements (2021 and before)")
    output_type: list[str] | None = arg("Output type", "Type of each output (2021 and before)")
    output_names: list[str] | None = arg("Output names", "Names of the outputs (2021 and before)")
    extra_arguments: list[Kwarg] | None = arg("Extra arguments", "Other inputs (2021 and before)")
    device_ordinal: Int | None = arg("Device", "Device of the process (2021 and before)")


class CpuOpArgs(OpArgs, CollectiveArgs):
    """Arguments of `CpuOp`; the operator's own keyword arguments are extras."""

    kernel_backend: Kwarg | None = arg("kernel_backend", "What generated the kernel, such as triton")
    kernel_file: Kwarg | None = arg("kernel_file", "Path of the generated source")
    kernel_name: Kwarg | None = arg("kernel_name", "Name of the generated kernel")
    kernel_hash: Kwarg | None = arg("kernel_hash", "Hash of the generated source")
    kernel_kwargs: Kwarg | None = arg("kernel_kwargs", "Constants of the kernel, such as XBLOCK=16")
    kernel_grid: Kwarg | None = arg("grid", "Launch grid as text, blocks")
    num_warps: Kwarg | None = arg("num_warps", "Warps per block of the kernel, count")
    num_stages: Kwarg | None = arg("num_stages", "Pipeline stages of the kernel, count")
    stream_handle: Kwarg | None = arg("stream", "Address of the stream; not a stream id")


class CpuOp(Event):
    """An operator on the host, or any function that PyTorch records as one."""

    args: CpuOpArgs = Field(default_factory=CpuOpArgs)


class UserAnnotation(Event):
    """A range that the program named, such as a step, an optimizer's step or a collective."""

    args: OpArgs = Field(default_factory=OpArgs)


class PythonFunctionArgs(RecordArgs):
    """Arguments of `PythonFunction`."""

    python_id: Int | None = arg("Python id", "Id of the call, per process")
    python_parent_id: Int | None = arg("Python parent id", "Id of the calling call; null at the top")
    python_module_id: Int | None = arg("Python module id", "Counter of the nn.Module among those of its class")
    python_thread: Int | None = arg("Python thread", "Id of the Python thread")
    call_from: str | None = arg("CallFrom", "File and line of the call")


class PythonFunction(Event):
    """A call of a Python function, builtin or nn.Module."""

    args: PythonFunctionArgs = Field(default_factory=PythonFunctionArgs)


class RuntimeArgs(CorrelatedArgs):
    """Arguments of `RuntimeCall` and `DriverCall`."""

    cbid: Int | None = arg("cbid", "CUPTI's number of the function")
    cid: Int | None = arg("cid", "HIP's number of the function")
    external_ts: Int | None = arg("external ts", "Start of the enclosing operator, µs (2021 and before)")
    kernel: str | None = arg("kernel", "Name of the launched kernel (HIP)")
    grid: list[int] | None = arg("grid", "Launch grid (HIP), blocks")
    block: list[int] | None = arg("block", "Block (HIP), threads")
    shared_memory: Int | None = arg("shared memory", "Dynamic shared memory (HIP), B")
    stream_handle: Address | None = arg("stream", "Address of the stream (HIP); not a stream id")
    src: Address | None = arg("src", "Address copied from (HIP)")
    dst: Address | None = arg("dst", "Address copied to (HIP)")
    ptr: Address | None = arg("ptr", "Address allocated or freed (HIP)")
    bytes: Int | None = arg("bytes", "Size of the copy (HIP), B", store=INTEGER)
    size: Int | None = arg("size", "Size of the allocation (HIP), B")
    kind: str | None = arg("kind", "Direction of the copy: the number of hipMemcpyKind")


class RuntimeCall(Event):
    """A call of the CUDA or HIP runtime."""

    args: RuntimeArgs = Field(default_factory=RuntimeArgs)


class DriverCall(Event):
    """A call of the CUDA driver that the runtime did not make."""

    args: RuntimeArgs = Field(default_factory=RuntimeArgs)


class _Linked(Event):
    """A call or an operation that is one end of a launch."""

    args: CorrelatedArgs = Field(default_factory=CorrelatedArgs)


class XpuRuntime(_Linked):
    """A call of the SYCL runtime (XPU)."""


class XpuDriver(_Linked):
    """A call of the Level Zero driver (XPU)."""


class PrivateUse1Runtime(_Linked):
    """A runtime call of an out-of-tree device."""


class PrivateUse1Driver(_Linked):
    """A driver call of an out-of-tree device."""


class MtiaRuntimeArgs(CorrelatedArgs):
    """Arguments of `MtiaRuntime`."""

    device: Int | None = arg("device", "Ordinal of the device", store=INTEGER)
    stream_id: Int | None = arg("stream_id", "Id of the stream the call concerns", store=INTEGER.named("stream"))
    cmd_name: str | None = arg("cmd_name", "Command, such as Event#4146851")
    mem_size: Int | None = arg("mem size", "Size of the copy or allocation, B")
    executable_name: str | None = arg("executable_name", "Name of the compiled program")


class MtiaRuntime(Event):
    """A call of the MTIA runtime."""

    args: MtiaRuntimeArgs = Field(default_factory=MtiaRuntimeArgs)


class GlowRuntime(Event):
    """A call of the Glow runtime."""

    args: ActivityArgs = Field(default_factory=ActivityArgs)


class HpuOp(_Linked):
    """An operation on a Gaudi device (HPU)."""


class OverheadArgs(ActivityArgs):
    """Arguments of `Overhead`."""

    overhead_cost: Int | None = arg("overhead cost", "Time spent (XPU), ns")
    overhead_occupancy: Measure = arg("overhead occupancy", "Share of the interval (XPU), %")
    overhead_count: Int | None = arg("overhead count", "Occurrences (XPU), count")


class Overhead(Event):
    """Time that profiling itself or the driver's loading of code cost."""

    args: OverheadArgs = Field(default_factory=OverheadArgs)


class MemoryArgs(RecordArgs):
    """Arguments of `MemoryEvent` and `OutOfMemory`."""

    device_type: Int | None = arg("Device Type", "c10 device type: 0 CPU, 1 CUDA, 6 HIP", store=INTEGER)
    device_id: Int | None = arg("Device Id", "Ordinal of the device; -1 for CPU", store=INTEGER)
    addr: Int | None = arg("Addr", "Address of the block", store=UNSIGNED)
    bytes: Int | None = arg(
        "Bytes", "Size allocated, or minus the size freed, B", store=Stored("int64", 0, "alloc_bytes")
    )
    total_allocated: Int | None = arg("Total Allocated", "In use on the device after the event, B", store=INTEGER)
    total_reserved: Int | None = arg("Total Reserved", "Held by the allocator after the event, B", store=INTEGER)


class MemoryEvent(Event):
    """An allocation or a free by PyTorch's allocator."""

    args: MemoryArgs = Field(default_factory=MemoryArgs)


class OutOfMemory(Event):
    """An allocation that failed."""

    args: MemoryArgs = Field(default_factory=MemoryArgs)
