"""What ran on a device: kernels, copies, annotations, synchronization."""

from decimal import Decimal

from pydantic import Field

from htagraph.trace.kineto.events.base import (
    INTEGER,
    Address,
    Args,
    CollectiveArgs,
    CorrelatedArgs,
    DeviceArgs,
    Event,
    Int,
    Measure,
    MetricArgs,
    Number,
    Stored,
    arg,
)

__all__ = [
    "CudaEvent", "CudaEventArgs", "CudaSync", "CudaSyncArgs", "GpuMemcpy", "GpuMemset", "GpuUserAnnotation",
    "GpuWorkArgs", "Kernel", "KernelArgs", "MtiaCcpArgs", "MtiaCcpEvent", "MtiaInsight", "Occupancy", "RangeProfiler",
    "TransferArgs", "XpuSync", "XpuSyncArgs",
]  # fmt: skip


class GpuWorkArgs(DeviceArgs):
    """Arguments of anything that a stream executes."""

    graph_id: Int | None = arg("graph id", "Id of the CUDA graph; 0 if launched outside one", store=INTEGER)
    graph_node_id: Int | None = arg(
        "graph node id", "Id of the node in the CUDA graph; 0 if launched outside one", store=INTEGER
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


class Kernel(Event):
    """A kernel on a stream."""

    args: KernelArgs = Field(default_factory=KernelArgs)


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


class GpuMemcpy(Event):
    """A copy on a stream, such as `Memcpy HtoD (Pageable -> Device)`."""

    args: TransferArgs = Field(default_factory=TransferArgs)


class GpuMemset(Event):
    """A fill of device memory on a stream."""

    args: TransferArgs = Field(default_factory=TransferArgs)


class GpuUserAnnotation(Event):
    """The span on one stream from the first to the last kernel or copy launched under a user annotation."""

    args: DeviceArgs = Field(default_factory=DeviceArgs)


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


class CudaSync(Event):
    """A wait of the host or of a stream for an event, a stream or the device."""

    args: CudaSyncArgs = Field(default_factory=CudaSyncArgs)


class CudaEventArgs(DeviceArgs):
    """Arguments of `CudaEvent`."""

    event_id: Int | None = arg("event_id", "Id of the event; ids are reused")


class CudaEvent(Event):
    """The recording of a CUDA event on a stream."""

    args: CudaEventArgs = Field(default_factory=CudaEventArgs)


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


class MtiaCcpEvent(Event):
    """Work of an MTIA device's control processor: a program, a copy, a wait or an `hccl::` collective."""

    args: MtiaCcpArgs = Field(default_factory=MtiaCcpArgs)


class MtiaInsight(Event):
    """An insight of the MTIA profiler."""

    args: DeviceArgs = Field(default_factory=DeviceArgs)


class XpuSyncArgs(CorrelatedArgs):
    """Arguments of `XpuSync`."""

    type: str | None = arg("Type", "Kind, such as HOST_FENCE")
    context_handle: Address | None = arg("Context_handle", "Address of the context")
    queue_handle: Address | None = arg("Queue_handle", "Address of the queue")
    event_handle: Address | None = arg("Event_handle", "Address of the event")
    number_wait_events: Int | None = arg("Number_wait_events", "Awaited events, count")
    return_code: Int | None = arg("Return_code", "Level Zero's result; 0 is success")


class XpuSync(Event):
    """A synchronization with an XPU."""

    args: XpuSyncArgs = Field(default_factory=XpuSyncArgs)


class RangeProfiler(Event):
    """A range under CUPTI's range profiler: the metrics of the kernels in it."""

    args: MetricArgs = Field(default_factory=MetricArgs)
