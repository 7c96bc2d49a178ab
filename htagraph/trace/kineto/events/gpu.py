"""What ran on a device: kernels, copies, annotations, synchronization."""

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from htagraph.trace.columns import Column
from htagraph.trace.kineto.events.base import (
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
    arg,
)

__all__ = [
    "CudaEvent", "CudaEventArgs", "CudaSync", "CudaSyncArgs", "GpuMemcpy", "GpuMemset", "GpuUserAnnotation",
    "GpuWorkArgs", "Kernel", "KernelArgs", "MtiaCcpArgs", "MtiaCcpEvent", "MtiaInsight", "Occupancy", "RangeProfiler",
    "TransferArgs", "XpuSync", "XpuSyncArgs",
]  # fmt: skip


class GpuWorkArgs(DeviceArgs):
    """Arguments of anything that a stream executes."""

    graph_id: Annotated[Int | None, Column("graph_id", "int64", -1)] = arg(
        "graph id", about="Id of the CUDA graph; 0 if launched outside one"
    )
    graph_node_id: Annotated[Int | None, Column("graph_node_id", "int64", -1)] = arg(
        "graph node id", about="Id of the node in the CUDA graph; 0 if launched outside one"
    )
    channel: Int | None = arg("channel", about="Hardware channel")
    channel_type: Int | None = arg("channel_type", about="CUPTI's type of the hardware channel")
    kind: str | None = arg("kind", about="Kind of work (ROCm), such as Dispatch Kernel or HtoD")
    hsa_queue: Int | None = arg("hsa_queue", about="Id of the HSA queue (ROCm)")
    sycl_queue: Int | None = arg("sycl queue", about="Id of the SYCL queue (XPU)")
    l0_queue: Address | None = arg("l0 queue", about="Address of the Level Zero queue (XPU)")
    appended: Decimal | None = arg("appended", about="When appended to a command list (XPU), µs")
    appended_rel_to_start: Decimal | None = arg("appended_rel_to_start", about="The same after the start, µs")
    submitted: Decimal | None = arg("submitted", about="When submitted to the queue (XPU), µs")
    submitted_rel_to_start: Decimal | None = arg("submitted_rel_to_start", about="The same after the start, µs")


class Occupancy(Args):
    """What limits how many blocks of a kernel fit on one SM."""

    active_blocks_per_multiprocessor: Int | None = arg(
        "activeBlocksPerMultiprocessor", about="Resident blocks per SM, count"
    )
    limiting_factors: str | None = arg("limitingFactors", about="Limits reached, joined by |, or none")
    block_limit_regs: Int | None = arg("blockLimitRegs", about="Blocks that the registers allow, count")
    block_limit_shared_mem: Int | None = arg("blockLimitSharedMem", about="Blocks by shared memory, count")
    block_limit_warps: Int | None = arg("blockLimitWarps", about="Blocks that the warps allow, count")
    block_limit_blocks: Int | None = arg("blockLimitBlocks", about="Blocks that an SM can hold, count")
    block_limit_barriers: Int | None = arg("blockLimitBarriers", about="Blocks by barriers, count")
    allocated_registers_per_block: Int | None = arg(
        "allocatedRegistersPerBlock", about="Registers allocated per block, count"
    )
    allocated_shared_mem_per_block: Int | None = arg(
        "allocatedSharedMemPerBlock", about="Shared memory allocated per block, B"
    )


class KernelArgs(GpuWorkArgs, CollectiveArgs):
    """Arguments of `Kernel`; user annotations merged into graph kernels are extras."""

    queued: Int | None = arg("queued", about="When queued, always 0")
    registers_per_thread: Int | None = arg("registers per thread", about="Registers, count")
    shared_memory: Int | None = arg("shared memory", about="Static and dynamic shared memory per block, B")
    blocks_per_sm: Measure = arg("blocks per SM", about="Blocks of the grid per SM, count")
    warps_per_sm: Measure = arg("warps per SM", about="Warps of the grid per SM, count")
    grid: list[int] | None = arg("grid", about="Grid, blocks")
    block: list[int] | None = arg("block", about="Block, threads")
    achieved_occupancy: Measure = arg(
        "est. achieved occupancy %", "theoretical occupancy %", about="Estimated share of warp slots used, %"
    )
    occupancy: Occupancy | None = arg("occupancy", about="What limits the occupancy")
    priority: Int | None = arg("priority", about="Priority of the stream; lower is more urgent")
    record_function_id: Int | None = arg(
        "Record function id", about="Id of the operator in the execution trace; 0 is none"
    )
    kernel_flop: Number | None = arg("kernel_flop", about="Work, FLOP; added by inductor's analysis")
    kernel_num_gb: Number | None = arg("kernel_num_gb", about="Memory moved, GB; added by inductor's analysis")
    sycl_task_begin: Decimal | None = arg("sycl_task_begin", about="When the SYCL task began (XPU), µs")
    sycl_task_begin_rel_to_start: Decimal | None = arg(
        "sycl_task_begin_rel_to_start", about="The same after the start, µs"
    )
    sycl_enqk_begin: Decimal | None = arg("sycl_enqk_begin", about="When its enqueuing began (XPU), µs")
    sycl_enqk_begin_rel_to_start: Decimal | None = arg(
        "sycl_enqk_begin_rel_to_start", about="The same after the start, µs"
    )
    source_file_name: str | None = arg("source_file_name", about="Source of the kernel (XPU)")
    source_line_number: Int | None = arg("source_line_number", about="Line in the source (XPU)")
    kernel_id: Int | None = arg("kernel_id", about="Id of the launch (XPU)")
    sycl_node_id: Int | None = arg("sycl_node_id", about="Id of the SYCL node (XPU)")
    sycl_invocation_id: Int | None = arg("sycl_invocation_id", about="Id of the SYCL invocation (XPU)")


class Kernel(Event):
    """A kernel on a stream."""

    args: KernelArgs = Field(default_factory=KernelArgs)


class TransferArgs(GpuWorkArgs):
    """Arguments of `GpuMemcpy` and `GpuMemset`."""

    bytes: Annotated[Int | None, Column("bytes", "int64", -1)] = arg("bytes", about="Memory written, B")
    memory_bandwidth: Annotated[Measure, Column("bandwidth_gb_s", "float64", -1.0)] = arg(
        "memory bandwidth (GB/s)", about="Bytes over duration, GB/s; wrong in files before 2024-09"
    )
    from_device: Int | None = arg("fromDevice", about="Device a peer copy reads")
    in_device: Int | None = arg("inDevice", about="Device that executes a peer copy")
    to_device: Int | None = arg("toDevice", about="Device a peer copy writes")
    from_context: Int | None = arg("fromContext", about="Context a peer copy reads")
    in_context: Int | None = arg("inContext", about="Context that executes a peer copy")
    to_context: Int | None = arg("toContext", about="Context a peer copy writes")
    l0_call: str | None = arg("l0 call", about="Function of Level Zero (XPU)")
    memory_operation_id: Int | None = arg("memory opration id", about="Id of the operation (XPU)")


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

    cuda_sync_kind: str | None = arg("cuda_sync_kind", about="Kind, the same as the event's name")
    wait_on_stream: Annotated[Int | None, Column("wait_on_stream", "int64", -1)] = arg(
        "wait_on_stream", about="Stream on which the awaited event was recorded; -1 if unknown"
    )
    wait_on_record: Annotated[Int | None, Column("wait_on_record", "int64", -1)] = arg(
        "wait_on_cuda_event_record_corr_id", about="Correlation of the awaited cudaEventRecord; -1 if unknown"
    )
    wait_on_event_id: Int | None = arg("wait_on_cuda_event_id", about="Id of the awaited event; ids are reused")


class CudaSync(Event):
    """A wait of the host or of a stream for an event, a stream or the device."""

    args: CudaSyncArgs = Field(default_factory=CudaSyncArgs)


class CudaEventArgs(DeviceArgs):
    """Arguments of `CudaEvent`."""

    event_id: Int | None = arg("event_id", about="Id of the event; ids are reused")


class CudaEvent(Event):
    """The recording of a CUDA event on a stream."""

    args: CudaEventArgs = Field(default_factory=CudaEventArgs)


class MtiaCcpArgs(DeviceArgs, CollectiveArgs):
    """Arguments of `MtiaCcpEvent`."""

    wait_on_stream: Annotated[Int | None, Column("wait_on_stream", "int64", -1)] = arg(
        "wait_on_stream", about="Stream that is waited for"
    )
    packet_ptr: Int | None = arg("packet_ptr", about="Position of the packet in its queue")
    sqid: Int | None = arg("sqid", about="Id of the submission queue")
    direction: str | None = arg("direction", about="Direction of a copy, such as DEVICE_TO_HOST")
    size: Int | None = arg("size", about="Size of a copy, B")
    k_work_ptr: Int | None = arg("k_work_ptr", about="Address of the work item")
    row: Int | None = arg("row", about="Row of the processing element")
    column: Int | None = arg("column", about="Column of the processing element")
    seq_num: Int | None = arg("seq_num", about="Sequence number of the command")
    host_ctx: Int | None = arg("host_ctx", about="Id of the host's context")


class MtiaCcpEvent(Event):
    """Work of an MTIA device's control processor: a program, a copy, a wait or an `hccl::` collective."""

    args: MtiaCcpArgs = Field(default_factory=MtiaCcpArgs)


class MtiaInsight(Event):
    """An insight of the MTIA profiler."""

    args: DeviceArgs = Field(default_factory=DeviceArgs)


class XpuSyncArgs(CorrelatedArgs):
    """Arguments of `XpuSync`."""

    type: str | None = arg("Type", about="Kind, such as HOST_FENCE")
    context_handle: Address | None = arg("Context_handle", about="Address of the context")
    queue_handle: Address | None = arg("Queue_handle", about="Address of the queue")
    event_handle: Address | None = arg("Event_handle", about="Address of the event")
    number_wait_events: Int | None = arg("Number_wait_events", about="Awaited events, count")
    return_code: Int | None = arg("Return_code", about="Level Zero's result; 0 is success")


class XpuSync(Event):
    """A synchronization with an XPU."""

    args: XpuSyncArgs = Field(default_factory=XpuSyncArgs)


class RangeProfiler(Event):
    """A range under CUPTI's range profiler: the metrics of the kernels in it."""

    args: MetricArgs = Field(default_factory=MetricArgs)
