"""What ran on the host: operators, annotations, Python functions, runtime calls, the allocator."""

from typing import Annotated

from pydantic import Field

from htagraph.trace.columns import Column
from htagraph.trace.kineto.events.base import (
    ActivityArgs,
    Address,
    CallText,
    CollectiveArgs,
    CorrelatedArgs,
    Event,
    Int,
    Kwarg,
    Measure,
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

    ev_idx: Int | None = arg("Ev Idx", "Profiler Event Index", about="Position in the profiler's list of events")
    finished: bool | None = arg("finished", about="False where the end of the trace closed the event")
    record_function_id: Int | None = arg("Record function id", about="Id shared with the execution trace; 0 is none")
    trace_name: str | None = arg("Trace name", about="Name of the trace span (2022 and before)")
    trace_iteration: Int | None = arg("Trace iteration", about="Iteration of the span (2022 and before)")


class OpArgs(RecordArgs):
    """Arguments of an operator or annotation."""

    sequence_number: Annotated[Int | None, Column("sequence_number", "int64", -1)] = arg(
        "Sequence number", about="Autograd's counter, equal on a forward operator and its backward"
    )
    fwd_thread_id: Annotated[Int | None, Column("fwd_thread_id", "int64", -1)] = arg(
        "Fwd thread id", about="Thread of the forward operator; 0 on forward operators"
    )
    input_dims: Annotated[Shapes | None, CallText("input_dims")] = arg(
        "Input Dims", "Input dims", about="Shape of each input, elements; a list of shapes for a tensor list"
    )
    input_strides: Shapes | None = arg("Input Strides", about="Strides of each input, elements")
    input_type: Annotated[list[str] | None, CallText("input_type")] = arg(
        "Input type", about="Type of each input; empty if unknown"
    )
    concrete_inputs: Annotated[list[str] | None, CallText("concrete_inputs")] = arg(
        "Concrete Inputs", about="Value of each scalar input, as text; empty for tensors"
    )
    call_stack: str | None = arg("Call stack", about="TorchScript's frames, joined by ;")
    module_hierarchy: str | None = arg("Module Hierarchy", about="TorchScript's modules")
    backend: str | None = arg("Backend", about="Name of the delegate that ran the operator")
    scope: Kwarg | None = arg("scope", about="Kind of record function, such as user_scope")
    input_names: list[str] | None = arg("Input names", about="Names of the inputs (2021 and before)")
    output_dims: Shapes | None = arg("Output dims", about="Shape of each output, elements (2021 and before)")
    output_type: list[str] | None = arg("Output type", about="Type of each output (2021 and before)")
    output_names: list[str] | None = arg("Output names", about="Names of the outputs (2021 and before)")
    extra_arguments: list[Kwarg] | None = arg("Extra arguments", about="Other inputs (2021 and before)")
    device_ordinal: Int | None = arg("Device", about="Device of the process (2021 and before)")


class CpuOpArgs(OpArgs, CollectiveArgs):
    """Arguments of `CpuOp`; the operator's own keyword arguments are extras."""

    kernel_backend: Kwarg | None = arg("kernel_backend", about="What generated the kernel, such as triton")
    kernel_file: Kwarg | None = arg("kernel_file", about="Path of the generated source")
    kernel_name: Kwarg | None = arg("kernel_name", about="Name of the generated kernel")
    kernel_hash: Kwarg | None = arg("kernel_hash", about="Hash of the generated source")
    kernel_kwargs: Kwarg | None = arg("kernel_kwargs", about="Constants of the kernel, such as XBLOCK=16")
    kernel_grid: Kwarg | None = arg("grid", about="Launch grid as text, blocks")
    num_warps: Kwarg | None = arg("num_warps", about="Warps per block of the kernel, count")
    num_stages: Kwarg | None = arg("num_stages", about="Pipeline stages of the kernel, count")
    stream_handle: Kwarg | None = arg("stream", about="Address of the stream; not a stream id")


class CpuOp(Event):
    """An operator on the host, or any function that PyTorch records as one."""

    args: CpuOpArgs = Field(default_factory=CpuOpArgs)


class UserAnnotation(Event):
    """A range that the program named, such as a step, an optimizer's step or a collective."""

    args: OpArgs = Field(default_factory=OpArgs)


class PythonFunctionArgs(RecordArgs):
    """Arguments of `PythonFunction`."""

    python_id: Int | None = arg("Python id", about="Id of the call, per process")
    python_parent_id: Int | None = arg("Python parent id", about="Id of the calling call; null at the top")
    python_module_id: Int | None = arg("Python module id", about="Counter of the nn.Module among those of its class")
    python_thread: Int | None = arg("Python thread", about="Id of the Python thread")
    call_from: str | None = arg("CallFrom", about="File and line of the call")


class PythonFunction(Event):
    """A call of a Python function, builtin or nn.Module."""

    args: PythonFunctionArgs = Field(default_factory=PythonFunctionArgs)


class RuntimeArgs(CorrelatedArgs):
    """Arguments of `RuntimeCall` and `DriverCall`."""

    cbid: Int | None = arg("cbid", about="CUPTI's number of the function")
    cid: Int | None = arg("cid", about="HIP's number of the function")
    external_ts: Int | None = arg("external ts", about="Start of the enclosing operator, µs (2021 and before)")
    kernel: str | None = arg("kernel", about="Name of the launched kernel (HIP)")
    grid: list[int] | None = arg("grid", about="Launch grid (HIP), blocks")
    block: list[int] | None = arg("block", about="Block (HIP), threads")
    shared_memory: Int | None = arg("shared memory", about="Dynamic shared memory (HIP), B")
    stream_handle: Address | None = arg("stream", about="Address of the stream (HIP); not a stream id")
    src: Address | None = arg("src", about="Address copied from (HIP)")
    dst: Address | None = arg("dst", about="Address copied to (HIP)")
    ptr: Address | None = arg("ptr", about="Address allocated or freed (HIP)")
    bytes: Annotated[Int | None, Column("bytes", "int64", -1)] = arg("bytes", about="Size of the copy (HIP), B")
    size: Int | None = arg("size", about="Size of the allocation (HIP), B")
    kind: str | None = arg("kind", about="Direction of the copy: the number of hipMemcpyKind")


class RuntimeCall(Event):
    """A call of the CUDA or HIP runtime."""

    args: RuntimeArgs = Field(default_factory=RuntimeArgs)


class DriverCall(Event):
    """A call of the CUDA driver that the runtime did not make."""

    args: RuntimeArgs = Field(default_factory=RuntimeArgs)


class XpuRuntime(Event):
    """A call of the SYCL runtime (XPU)."""

    args: CorrelatedArgs = Field(default_factory=CorrelatedArgs)


class XpuDriver(Event):
    """A call of the Level Zero driver (XPU)."""

    args: CorrelatedArgs = Field(default_factory=CorrelatedArgs)


class PrivateUse1Runtime(Event):
    """A runtime call of an out-of-tree device."""

    args: CorrelatedArgs = Field(default_factory=CorrelatedArgs)


class PrivateUse1Driver(Event):
    """A driver call of an out-of-tree device."""

    args: CorrelatedArgs = Field(default_factory=CorrelatedArgs)


class MtiaRuntimeArgs(CorrelatedArgs):
    """Arguments of `MtiaRuntime`."""

    device: Annotated[Int | None, Column("device", "int64", -1)] = arg("device", about="Ordinal of the device")
    stream_id: Annotated[Int | None, Column("stream", "int64", -1)] = arg(
        "stream_id", about="Id of the stream the call concerns"
    )
    cmd_name: str | None = arg("cmd_name", about="Command, such as Event#4146851")
    mem_size: Int | None = arg("mem size", about="Size of the copy or allocation, B")
    executable_name: str | None = arg("executable_name", about="Name of the compiled program")


class MtiaRuntime(Event):
    """A call of the MTIA runtime."""

    args: MtiaRuntimeArgs = Field(default_factory=MtiaRuntimeArgs)


class GlowRuntime(Event):
    """A call of the Glow runtime."""

    args: ActivityArgs = Field(default_factory=ActivityArgs)


class HpuOp(Event):
    """An operation on a Gaudi device (HPU)."""

    args: CorrelatedArgs = Field(default_factory=CorrelatedArgs)


class OverheadArgs(ActivityArgs):
    """Arguments of `Overhead`."""

    overhead_cost: Int | None = arg("overhead cost", about="Time spent (XPU), ns")
    overhead_occupancy: Measure = arg("overhead occupancy", about="Share of the interval (XPU), %")
    overhead_count: Int | None = arg("overhead count", about="Occurrences (XPU), count")


class Overhead(Event):
    """Time that profiling itself or the driver's loading of code cost."""

    args: OverheadArgs = Field(default_factory=OverheadArgs)


class MemoryArgs(RecordArgs):
    """Arguments of `MemoryEvent` and `OutOfMemory`."""

    device_type: Annotated[Int | None, Column("device_type", "int64", -1)] = arg(
        "Device Type", about="c10 device type: 0 CPU, 1 CUDA, 6 HIP"
    )
    device_id: Annotated[Int | None, Column("device_id", "int64", -1)] = arg(
        "Device Id", about="Ordinal of the device; -1 for CPU"
    )
    addr: Annotated[Int | None, Column("addr", "uint64", 0)] = arg("Addr", about="Address of the block")
    bytes: Annotated[Int | None, Column("alloc_bytes", "int64", 0)] = arg(
        "Bytes", about="Size allocated, or minus the size freed, B"
    )
    total_allocated: Annotated[Int | None, Column("total_allocated", "int64", -1)] = arg(
        "Total Allocated", about="In use on the device after the event, B"
    )
    total_reserved: Annotated[Int | None, Column("total_reserved", "int64", -1)] = arg(
        "Total Reserved", about="Held by the allocator after the event, B"
    )


class MemoryEvent(Event):
    """An allocation or a free by PyTorch's allocator."""

    args: MemoryArgs = Field(default_factory=MemoryArgs)


class OutOfMemory(Event):
    """An allocation that failed."""

    args: MemoryArgs = Field(default_factory=MemoryArgs)
