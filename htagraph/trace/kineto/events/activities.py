"""What ran: on the host operators, annotations, Python functions, runtime calls; on a device kernels, copies, waits."""

from __future__ import annotations

from decimal import Decimal

from htagraph.trace.kineto.events.base import (
    CALL_TEXT,
    INTEGER,
    TEXT,
    UNSIGNED,
    ActivityArgs,
    Address,
    Args,
    CollectiveArgs,
    CorrelatedArgs,
    DeviceArgs,
    Int,
    Kwarg,
    Measure,
    MetricArgs,
    Number,
    Stored,
    arg,
    event_model,
)

__all__ = [
    "CpuOp", "CpuOpArgs", "CudaEvent", "CudaEventArgs", "CudaSync", "CudaSyncArgs", "DriverCall", "GlowRuntime",
    "GpuMemcpy", "GpuMemset", "GpuUserAnnotation", "GpuWorkArgs", "GraphEventNode", "GraphHostNode", "GraphNodeArgs",
    "HpuOp", "Kernel", "KernelArgs", "MemoryArgs",
    "MemoryEvent", "MtiaCcpArgs", "MtiaCcpEvent", "MtiaInsight", "MtiaRuntime", "MtiaRuntimeArgs", "Occupancy",
    "OpArgs", "OutOfMemory", "Overhead", "OverheadArgs", "PrivateUse1Driver", "PrivateUse1Runtime",
    "PythonFunction", "PythonFunctionArgs", "RangeProfiler", "RecordArgs", "RuntimeArgs", "RuntimeCall",
    "TransferArgs", "UserAnnotation", "XpuDriver", "XpuRuntime", "XpuSync", "XpuSyncArgs",
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


CpuOp = event_model(
    "CpuOp", CpuOpArgs, "An operator on the host, or any function that PyTorch records as one.", "cpu_op"
)
UserAnnotation = event_model(
    "UserAnnotation",
    OpArgs,
    "A range that the program named, such as a step, an optimizer's step or a collective.",
    "user_annotation",
)


class PythonFunctionArgs(RecordArgs):
    """Arguments of `PythonFunction`."""

    python_id: Int | None = arg("Python id", "Id of the call, per process")
    python_parent_id: Int | None = arg("Python parent id", "Id of the calling call; null at the top")
    python_module_id: Int | None = arg("Python module id", "Counter of the nn.Module among those of its class")
    python_thread: Int | None = arg("Python thread", "Id of the Python thread")
    call_from: str | None = arg("CallFrom", "File and line of the call")


PythonFunction = event_model(
    "PythonFunction", PythonFunctionArgs, "A call of a Python function, builtin or nn.Module.", "python_function"
)


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


RuntimeCall = event_model("RuntimeCall", RuntimeArgs, "A call of the CUDA or HIP runtime.", "cuda_runtime")
DriverCall = event_model(
    "DriverCall", RuntimeArgs, "A call of the CUDA driver that the runtime did not make.", "cuda_driver"
)
XpuRuntime = event_model("XpuRuntime", CorrelatedArgs, "A call of the SYCL runtime (XPU).", "xpu_runtime")
XpuDriver = event_model("XpuDriver", CorrelatedArgs, "A call of the Level Zero driver (XPU).", "xpu_driver")
PrivateUse1Runtime = event_model(
    "PrivateUse1Runtime", CorrelatedArgs, "A runtime call of an out-of-tree device.", "privateuse1_runtime"
)
PrivateUse1Driver = event_model(
    "PrivateUse1Driver", CorrelatedArgs, "A driver call of an out-of-tree device.", "privateuse1_driver"
)


class MtiaRuntimeArgs(CorrelatedArgs):
    """Arguments of `MtiaRuntime`."""

    device: Int | None = arg("device", "Ordinal of the device", store=INTEGER)
    stream_id: Int | None = arg("stream_id", "Id of the stream the call concerns", store=INTEGER.named("stream"))
    cmd_name: str | None = arg("cmd_name", "Command, such as Event#4146851")
    mem_size: Int | None = arg("mem size", "Size of the copy or allocation, B")
    executable_name: str | None = arg("executable_name", "Name of the compiled program")


MtiaRuntime = event_model("MtiaRuntime", MtiaRuntimeArgs, "A call of the MTIA runtime.", "mtia_runtime")
GlowRuntime = event_model("GlowRuntime", ActivityArgs, "A call of the Glow runtime.", "glow_runtime")
HpuOp = event_model("HpuOp", CorrelatedArgs, "An operation on a Gaudi device (HPU).", "hpu_op")


class OverheadArgs(ActivityArgs):
    """Arguments of `Overhead`."""

    overhead_cost: Int | None = arg("overhead cost", "Time spent (XPU), ns")
    overhead_occupancy: Measure = arg("overhead occupancy", "Share of the interval (XPU), %")
    overhead_count: Int | None = arg("overhead count", "Occurrences (XPU), count")


Overhead = event_model(
    "Overhead", OverheadArgs, "Time that profiling itself or the driver's loading of code cost.", "overhead"
)


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


MemoryEvent = event_model("MemoryEvent", MemoryArgs, "An allocation or a free by PyTorch's allocator.")
OutOfMemory = event_model("OutOfMemory", MemoryArgs, "An allocation that failed.")


class GpuWorkArgs(DeviceArgs):
    """Arguments of anything that a stream executes."""

    graph_id: Int | None = arg("graph id", "Id of the CUDA graph; 0 if launched outside one", store=INTEGER)
    graph_node_id: Int | None = arg(
        "graph node id", "Id of the node in the CUDA graph; 0 if launched outside one", store=INTEGER
    )
    original_stream: Int | None = arg(
        "original_stream",
        "Stream that ran a node of a CUDA graph, where `stream` is the logical lane that the node is shown on",
        store=INTEGER,
    )
    channel: Int | None = arg("channel", "Hardware channel")
    channel_type: Int | None = arg("channel_type", "CUPTI's type of the hardware channel")
    kind: str | None = arg("kind", "Kind of work (ROCm), such as Dispatch Kernel or HtoD")
    hsa_queue: Int | None = arg("hsa_queue", "Id of the HSA queue (ROCm)")
    sycl_queue: Int | None = arg("sycl queue", "Id of the SYCL queue (XPU)")
    l0_queue: Address | None = arg("l0 queue", "Address of the Level Zero queue (XPU)")
    appended: Decimal | None = arg("appended", "When appended to a command list (XPU), µs")
    appended_rel_to_start: Decimal | None = arg("appended_rel_to_start", "The same after the start, µs")
    submitted: Decimal | None = arg("submitted", "When submitted to the queue (XPU), µs")
    submitted_rel_to_start: Decimal | None = arg("submitted_rel_to_start", "The same after the start, µs")


class Occupancy(Args):
    """What limits how many blocks of a kernel fit on one SM."""

    active_blocks_per_multiprocessor: Int | None = arg("activeBlocksPerMultiprocessor", "Resident blocks per SM, count")
    limiting_factors: str | None = arg("limitingFactors", "Limits reached, joined by |, or none")
    block_limit_regs: Int | None = arg("blockLimitRegs", "Blocks that the registers allow, count")
    block_limit_shared_mem: Int | None = arg("blockLimitSharedMem", "Blocks by shared memory, count")
    block_limit_warps: Int | None = arg("blockLimitWarps", "Blocks that the warps allow, count")
    block_limit_blocks: Int | None = arg("blockLimitBlocks", "Blocks that an SM can hold, count")
    block_limit_barriers: Int | None = arg("blockLimitBarriers", "Blocks by barriers, count")
    allocated_registers_per_block: Int | None = arg(
        "allocatedRegistersPerBlock", "Registers allocated per block, count"
    )
    allocated_shared_mem_per_block: Int | None = arg(
        "allocatedSharedMemPerBlock", "Shared memory allocated per block, B"
    )


class KernelArgs(GpuWorkArgs, CollectiveArgs):
    """Arguments of `Kernel`; user annotations merged into graph kernels are extras."""

    queued: Int | None = arg("queued", "When queued, always 0")
    registers_per_thread: Int | None = arg("registers per thread", "Registers, count")
    shared_memory: Int | None = arg("shared memory", "Static and dynamic shared memory per block, B")
    blocks_per_sm: Measure = arg("blocks per SM", "Blocks of the grid per SM, count")
    warps_per_sm: Measure = arg("warps per SM", "Warps of the grid per SM, count")
    grid: list[int] | None = arg("grid", "Grid, blocks")
    block: list[int] | None = arg("block", "Block, threads")
    achieved_occupancy: Measure = arg(
        "est. achieved occupancy %", "Estimated share of warp slots used, %", "theoretical occupancy %"
    )
    occupancy: Occupancy | None = arg("occupancy", "What limits the occupancy")
    priority: Int | None = arg("priority", "Priority of the stream; lower is more urgent")
    record_function_id: Int | None = arg("Record function id", "Id of the operator in the execution trace; 0 is none")
    kernel_flop: Number | None = arg("kernel_flop", "Work, FLOP; added by inductor's analysis")
    kernel_num_gb: Number | None = arg("kernel_num_gb", "Memory moved, GB; added by inductor's analysis")
    sycl_task_begin: Decimal | None = arg("sycl_task_begin", "When the SYCL task began (XPU), µs")
    sycl_task_begin_rel_to_start: Decimal | None = arg("sycl_task_begin_rel_to_start", "The same after the start, µs")
    sycl_enqk_begin: Decimal | None = arg("sycl_enqk_begin", "When its enqueuing began (XPU), µs")
    sycl_enqk_begin_rel_to_start: Decimal | None = arg("sycl_enqk_begin_rel_to_start", "The same after the start, µs")
    source_file_name: str | None = arg("source_file_name", "Source of the kernel (XPU)")
    source_line_number: Int | None = arg("source_line_number", "Line in the source (XPU)")
    kernel_id: Int | None = arg("kernel_id", "Id of the launch (XPU)")
    sycl_node_id: Int | None = arg("sycl_node_id", "Id of the SYCL node (XPU)")
    sycl_invocation_id: Int | None = arg("sycl_invocation_id", "Id of the SYCL invocation (XPU)")


Kernel = event_model("Kernel", KernelArgs, "A kernel on a stream.", "kernel")


class TransferArgs(GpuWorkArgs):
    """Arguments of `GpuMemcpy` and `GpuMemset`."""

    bytes: Int | None = arg("bytes", "Memory written, B", store=INTEGER)
    memory_bandwidth: Measure = arg(
        "memory bandwidth (GB/s)",
        "Bytes over duration, GB/s; wrong in files before 2024-09",
        store=Stored("float64", -1.0, "bandwidth_gb_s"),
    )
    from_device: Int | None = arg("fromDevice", "Device a peer copy reads")
    in_device: Int | None = arg("inDevice", "Device that executes a peer copy")
    to_device: Int | None = arg("toDevice", "Device a peer copy writes")
    from_context: Int | None = arg("fromContext", "Context a peer copy reads")
    in_context: Int | None = arg("inContext", "Context that executes a peer copy")
    to_context: Int | None = arg("toContext", "Context a peer copy writes")
    l0_call: str | None = arg("l0 call", "Function of Level Zero (XPU)")
    memory_operation_id: Int | None = arg("memory opration id", "Id of the operation (XPU)")
    copy_direction: str | None = arg(
        "copy kind", "Direction of a copy (CUPTI backend of PyTorch 2.14), such as HtoD, or CUPTI's number", store=TEXT
    )
    source_memory: str | None = arg(
        "src kind", "Kind of memory that a copy reads (the same), such as pinned, or CUPTI's number", store=TEXT
    )
    target_memory: str | None = arg(
        "dst kind", "Kind of memory that a copy writes (the same), such as device, or CUPTI's number", store=TEXT
    )
    filled_memory: str | None = arg(
        "memory kind", "Kind of memory that a memset writes (the same): CUPTI's number", store=TEXT
    )
    flags: Int | None = arg("flags", "CUPTI's flags of the copy or memset; 1 is asynchronous")
    value: Int | None = arg("value", "Value that a memset writes")


GpuMemcpy = event_model(
    "GpuMemcpy", TransferArgs, "A copy on a stream, such as `Memcpy HtoD (Pageable -> Device)`.", "gpu_memcpy"
)
GpuMemset = event_model("GpuMemset", TransferArgs, "A fill of device memory on a stream.", "gpu_memset")


class GraphNodeArgs(GpuWorkArgs):
    """Arguments of `GraphEventNode` and `GraphHostNode`."""

    cuda_event: str | None = arg("cuda event", "Handle of the event that the node records, as hexadecimal text")
    host_process: Int | None = arg("host process", "Process that ran the callback")
    host_thread: Int | None = arg("host thread", "Thread that ran the callback")
    host_function: str | None = arg("host fn", "Name of the callback")
    host_function_address: str | None = arg("host fn addr", "Address of the callback, as hexadecimal text")


GraphEventNode = event_model(
    "GraphEventNode",
    GraphNodeArgs,
    "A node of a CUDA graph that records an event; it takes no time.",
    "graph_event_node",
)
GraphHostNode = event_model(
    "GraphHostNode", GraphNodeArgs, "A node of a CUDA graph that runs a callback on the host.", "graph_host_node"
)
GpuUserAnnotation = event_model(
    "GpuUserAnnotation",
    DeviceArgs,
    "The span on one stream from the first to the last kernel or copy launched under a user annotation.",
    "gpu_user_annotation",
)


class CudaSyncArgs(DeviceArgs):
    """Arguments of `CudaSync`."""

    cuda_sync_kind: str | None = arg("cuda_sync_kind", "Kind, the same as the event's name")
    wait_on_stream: Int | None = arg(
        "wait_on_stream", "Stream on which the awaited event was recorded; -1 if unknown", store=INTEGER
    )
    wait_on_record: Int | None = arg(
        "wait_on_cuda_event_record_corr_id", "Correlation of the awaited cudaEventRecord; -1 if unknown", store=INTEGER
    )
    wait_on_event_id: Int | None = arg("wait_on_cuda_event_id", "Id of the awaited event; ids are reused")


CudaSync = event_model(
    "CudaSync", CudaSyncArgs, "A wait of the host or of a stream for an event, a stream or the device.", "cuda_sync"
)


class CudaEventArgs(DeviceArgs):
    """Arguments of `CudaEvent`."""

    event_id: Int | None = arg("event_id", "Id of the event; ids are reused")


CudaEvent = event_model("CudaEvent", CudaEventArgs, "The recording of a CUDA event on a stream.", "cuda_event")


class MtiaCcpArgs(DeviceArgs, CollectiveArgs):
    """Arguments of `MtiaCcpEvent`."""

    wait_on_stream: Int | None = arg("wait_on_stream", "Stream that is waited for", store=INTEGER)
    packet_ptr: Int | None = arg("packet_ptr", "Position of the packet in its queue")
    sqid: Int | None = arg("sqid", "Id of the submission queue")
    direction: str | None = arg("direction", "Direction of a copy, such as DEVICE_TO_HOST")
    size: Int | None = arg("size", "Size of a copy, B")
    k_work_ptr: Int | None = arg("k_work_ptr", "Address of the work item")
    row: Int | None = arg("row", "Row of the processing element")
    column: Int | None = arg("column", "Column of the processing element")
    seq_num: Int | None = arg("seq_num", "Sequence number of the command")
    host_ctx: Int | None = arg("host_ctx", "Id of the host's context")


MtiaCcpEvent = event_model(
    "MtiaCcpEvent",
    MtiaCcpArgs,
    "Work of an MTIA device's control processor: a program, a copy, a wait or an `hccl::` collective.",
    "mtia_ccp_events",
)
MtiaInsight = event_model("MtiaInsight", DeviceArgs, "An insight of the MTIA profiler.", "mtia_insight")


class XpuSyncArgs(CorrelatedArgs):
    """Arguments of `XpuSync`."""

    type: str | None = arg("Type", "Kind, such as HOST_FENCE")
    context_handle: Address | None = arg("Context_handle", "Address of the context")
    queue_handle: Address | None = arg("Queue_handle", "Address of the queue")
    event_handle: Address | None = arg("Event_handle", "Address of the event")
    number_wait_events: Int | None = arg("Number_wait_events", "Awaited events, count")
    return_code: Int | None = arg("Return_code", "Level Zero's result; 0 is success")


XpuSync = event_model("XpuSync", XpuSyncArgs, "A synchronization with an XPU.", "xpu_sync")
RangeProfiler = event_model(
    "RangeProfiler",
    MetricArgs,
    "A range under CUPTI's range profiler: the metrics of the kernels in it.",
    "cuda_profiler_range",
)
