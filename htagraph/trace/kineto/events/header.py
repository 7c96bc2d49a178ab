"""The header of a trace file: everything in the root object beside the events."""

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from htagraph.trace.columns import parse_ranks
from htagraph.trace.kineto.events.base import Int, Model, Number, arg

__all__ = ["DeviceProperties", "DistributedInfo", "Header", "ProcessGroup"]


class DeviceProperties(Model):
    """One device visible to the process; which fields are present depends on the vendor."""

    model_config = ConfigDict(alias_generator=to_camel)

    id: Int | None = Field(None, description="Local ordinal")
    name: str | None = Field(None, description="Product name; empty on some ROCm systems")
    total_global_mem: Int | None = Field(None, description="Device memory, B")
    compute_major: Int | None = Field(None, description="Major version of the compute capability")
    compute_minor: Int | None = Field(None, description="Minor version of the compute capability")
    max_threads_per_block: Int | None = Field(None, description="Threads per block, count")
    max_threads_per_multiprocessor: Int | None = Field(None, description="Threads per SM, count")
    regs_per_block: Int | None = Field(None, description="Registers per block, count")
    warp_size: Int | None = Field(None, description="Threads per warp, count")
    shared_mem_per_block: Int | None = Field(None, description="Shared memory per block, B")
    num_sms: Int | None = Field(None, description="Streaming multiprocessors or compute units, count")
    regs_per_multiprocessor: Int | None = Field(None, description="Registers per SM, count")
    shared_mem_per_block_optin: Int | None = Field(None, description="Shared memory per block on request, B")
    shared_mem_per_multiprocessor: Int | None = Field(None, description="Shared memory per SM, B")
    max_shared_memory_per_multi_processor: Int | None = Field(None, description="LDS per unit (ROCm), B")
    max_compute_units: Int | None = Field(None, description="Compute units (XPU), count")
    max_work_group_size: Int | None = Field(None, description="Work items per group (XPU), count")
    max_clock_frequency: Int | None = Field(None, description="Clock (XPU), MHz")
    max_mem_alloc_size: Int | None = Field(None, description="Largest allocation (XPU), B")
    local_mem_size: Int | None = Field(None, description="Local memory (XPU), B")
    vendor: str | None = Field(None, description="Vendor (XPU)")
    driver_version: str | None = Field(None, description="Driver (XPU)")
    runtime_major_version: Int | None = Field(None, description="Major version of the runtime (MTIA)")
    runtime_minor_version: Int | None = Field(None, description="Minor version of the runtime (MTIA)")
    max_grid_height: Int | None = Field(None, description="Height of the grid (MTIA), count")
    max_grid_width: Int | None = Field(None, description="Width of the grid (MTIA), count")


class ProcessGroup(Model):
    """One process group of the job, as its members know it."""

    pg_name: str | None = Field(None, description="Name: a counter, unique only within the job")
    pg_desc: str | None = Field(None, description="Purpose, such as default_pg")
    backend_config: str | None = Field(None, description="Backend per device type, such as cpu:gloo,cuda:nccl")
    pg_size: Int | None = Field(None, description="Members, count")
    uid: Int | None = Field(None, description="Number of the group (2024-04 and before)")
    ranks: list[int] | str | None = Field(None, description="Global ranks; text, maybe cut short, if on demand")

    @property
    def members(self) -> list[int] | None:
        """The global ranks, or nothing where they are absent or cut short beyond rebuilding."""
        return parse_ranks(self.ranks, size=self.pg_size)


class DistributedInfo(Model):
    """The process's place in a distributed job."""

    backend: str | None = Field(None, description="Backend of the default group")
    rank: Int | None = Field(None, description="Global rank; not unique in some inference servers")
    world_size: Int | None = Field(None, description="Ranks of the job, count")
    pg_count: Int | None = Field(None, description="Process groups, count")
    pg_config: list[ProcessGroup] = Field(default_factory=list, description="The process groups")
    nccl_version: str | None = Field(None, description="Version of NCCL, or unknown")


class Header(Model):
    """The root object of a trace file without its events; the keys that jobs add themselves are extras.

    Example:
        >>> header = Header.model_validate({"schemaVersion": 1, "distributedInfo": {"rank": 3}, "job": "a"})
        >>> header.distributed_info.rank, header.model_extra
        (3, {'job': 'a'})
    """

    schema_version: Int | None = arg("schemaVersion", "Always 1")
    device_properties: list[DeviceProperties] = Field(
        default_factory=list, alias="deviceProperties", description="All visible devices"
    )
    trace_name: str | None = arg("traceName", "Path the trace was exported to")
    display_time_unit: str | None = arg("displayTimeUnit", "Hint for viewers, ms or ns; times in the file are µs")
    base_time_nanoseconds: Int | None = arg(
        "baseTimeNanoseconds", "Time of ts 0 since 1970, ns; absent: ts is since 1970"
    )
    distributed_info: DistributedInfo | None = arg("distributedInfo", "Rank and process groups")
    record_shapes: bool | None = Field(None, description="Whether operators have the shapes of their inputs")
    with_stack: bool | None = Field(None, description="Whether Python functions were recorded")
    profile_memory: bool | None = Field(None, description="Whether allocations were recorded")
    with_modules: bool | None = Field(None, description="Whether the module hierarchy was recorded")
    with_flops: bool | None = Field(None, description="Whether FLOPs were estimated")
    trace_id: str | None = Field(None, description="Id of the trace")
    group_trace_id: str | None = Field(None, description="Id shared by the traces of one request")
    cupti_version: Int | None = Field(None, description="Version of CUPTI")
    cuda_runtime_version: Int | None = Field(None, description="Version of the CUDA runtime, such as 12090")
    cuda_driver_version: Int | None = Field(None, description="Version of CUDA the driver supports")
    hip_runtime_version: Int | None = Field(None, description="Version of the HIP runtime")
    hip_driver_version: Int | None = Field(None, description="Version of the HIP driver")
    roctracer_version: Number | str | None = Field(None, description="Version of roctracer")
    rocprofiler_sdk_version: Number | str | None = arg("rocprofiler-sdk_version", "Version of the rocprofiler SDK")
    host_name: str | None = Field(None, description="Host the process ran on")
    job_name: str | None = arg("PT_PROFILER_JOB_NAME", "Name of the job")
    job_version: str | None = arg("PT_PROFILER_JOB_VERSION", "Version of the job")
    job_attempt_index: str | None = arg("PT_PROFILER_JOB_ATTEMPT_INDEX", "Attempt of the job")
    disable_cupti_lazy_reinit: bool | None = arg(
        "DISABLE_CUPTI_LAZY_REINIT", "Whether CUDA graphs kept CUPTI from restarting"
    )
    info: list[str] = Field(default_factory=list, alias="INFO", description="The profiler's messages")
    warning: list[str] = Field(default_factory=list, alias="WARNING", description="The profiler's warnings")
    error: list[str] = Field(default_factory=list, alias="ERROR", description="The profiler's errors")
