"""What every event shares, how its values are read, and the header: all in a file beside the arguments of what ran."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel

from htagraph.trace.columns import parse_ranks

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = [
    "CALL_TEXT", "COMPLETE", "INTEGER", "TEXT", "UNSIGNED", "ActivityArgs", "Address", "Args", "CollectiveArgs",
    "CollectiveComm", "CollectiveCommArgs", "CorrelatedArgs", "Counter", "DeviceArgs", "DeviceProperties",
    "DistributedInfo", "Event", "Flow", "Header", "Int", "IterationStart", "Kwarg", "Label", "Measure", "Metadata",
    "MetadataArgs", "MetricArgs", "Microseconds", "Model", "Number", "ProcessGroup", "Ranks", "RecordWindowEnd",
    "Stored", "TraceSpan", "TraceSpanArgs", "UnknownEvent", "arg", "event_model",
]  # fmt: skip

_MAX_US = Decimal(2**63 - 1) / 1000
"""µs: largest time whose ns an int64 can hold (292 years). Not a choice: beyond it nothing can be stored."""
_INTEGER = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|\d+))\s*(?:bytes|B)?\s*", re.ASCII)
_DECIMAL_INTEGER = re.compile(r"-?\d+", re.ASCII)


class Stored(NamedTuple):
    """The column in which bulk decoding stores an argument."""

    dtype: Literal["int64", "uint64", "float64", "str"]
    missing: int | float | str
    name: str = ""
    """Name of the column; that of the field if empty."""
    of_calls: bool = False
    """Whether the JSON text of the argument is stored, and for calls of host-side communication only.

    Such calls are the operators of c10d and what gloo, MPI or UCC record; all other operators have the argument too,
    and keeping it for them would cost time and memory for nothing."""

    def named(self, name: str) -> Stored:
        """Return a column of the same type under a name of its own."""
        return self._replace(name=name)


INTEGER, UNSIGNED, TEXT = Stored("int64", -1), Stored("uint64", 0), Stored("str", "")
CALL_TEXT = Stored("str", "", of_calls=True)


def _integer(value: object) -> object:
    """Read `"0x10"`, `"128"` and `"123 bytes"` as integers; anything else is left to pydantic."""
    match = _INTEGER.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    digits = match[1]
    return int(digits, 16 if "x" in digits.lower() else 10)


def _measure(value: object) -> object:
    """Read `"12%"` as 12 and `"N/A"` as nothing; anything else, `"inf"` too, is left to pydantic."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    return None if text in {"N/A", ""} else text.removesuffix("%")


def _label(value: object) -> object:
    """Read the ids that old files write as text, such as the thread `"4093687616"`, as integers."""
    if isinstance(value, str) and _DECIMAL_INTEGER.fullmatch(value):
        return int(value)
    return value


Int = Annotated[int, BeforeValidator(_integer)]
Address = Annotated[int | str, BeforeValidator(_integer)]
Label = Annotated[int | str, BeforeValidator(_label)]
Measure = Annotated[float | None, BeforeValidator(_measure)]
Number = int | float
Kwarg = int | float | str | list[Any]
Ranks = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, list) else value)]
Microseconds = Annotated[Decimal, Field(ge=-_MAX_US, le=_MAX_US)]


def arg(key: str, about: str, *legacy: str, store: Stored | None = None) -> Any:  # noqa: ANN401 - as pydantic's Field
    """Declare an optional argument of an event, and the column that it is stored in.

    The key is that of today's files, and what is written back; `legacy` are those of older files. `about` says what the
    argument is, with its unit.
    """
    field = cast("FieldInfo", Field(None, alias=key, validation_alias=AliasChoices(key, *legacy), description=about))
    if store is not None:
        field.metadata.append(store)
    return field


class Model(BaseModel):
    """Base of everything read from a trace file: frozen, and keeps the keys that it does not know."""

    model_config = ConfigDict(
        extra="allow", frozen=True, populate_by_name=True, defer_build=True, coerce_numbers_to_str=True,
        ser_json_inf_nan="strings",
    )  # fmt: skip


class Args(Model):
    """Arguments of an event: all optional, unknown ones kept as extras."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - each category has arguments of its own
            """Return an argument."""


class ActivityArgs(Args):
    """Arguments that any complete event may have."""

    external_id: Int | None = arg(
        "External id",
        "Id of the enclosing CPU operator; on GPU and runtime events before 2024-02, their correlation",
        "external id",
        store=INTEGER,
    )


class CorrelatedArgs(ActivityArgs):
    """Arguments of an event that is one end of a launch."""

    correlation: Int | None = arg(
        "correlation", "Id shared by a runtime call and the GPU work it launched", store=INTEGER
    )


class DeviceArgs(CorrelatedArgs):
    """Arguments of an event on a device."""

    device: Int | None = arg("device", "Local ordinal of the device", store=INTEGER)
    context: Int | None = arg("context", "Id of the device context (CUDA) or its address (XPU)")
    stream: Int | None = arg(
        "stream", "Id of the stream; -1 or 4294967295 where a synchronization has none", store=INTEGER
    )


class MetricArgs(Args):
    """Arguments whose keys are names of metrics, each with a number."""

    __pydantic_extra__: dict[str, Number] = Field(init=False)

    @property
    def series(self) -> dict[str, Number]:
        """The number of each metric, in the metric's own unit."""
        return self.__pydantic_extra__


class Event(Model):
    """Any event of a trace file: what all phases and categories have in common."""

    ph: str = Field(description="Phase: X complete, i instant, s and f flow, C counter, M metadata")
    name: str = Field("", description="Name of the activity")
    cat: str | None = Field(None, description="Category as written in the file")
    pid: Label | None = Field(None, description="Process id (CPU), device ordinal (GPU) or the name of a group")
    tid: Label | None = Field(None, description="Thread id (CPU), stream id (GPU) or the name of a row")
    ts: Microseconds | None = Field(None, description="Start, µs: since the header's base, or since 1970")
    dur: Microseconds | None = Field(None, description="Duration, µs")
    id: Label | None = Field(None, description="Id that joins the two ends of a flow")
    bp: str | None = Field(None, description="Binding point of a flow's end; e is the enclosing event")
    s: str | None = Field(None, description="Scope of an instant: t thread, p process, g global")
    args: Args = Field(default_factory=Args, description="Arguments of the category")

    @property
    def ts_ns(self) -> int | None:
        """Start in ns on the clock of `ts`, rounded half to even."""
        return None if self.ts is None else round(self.ts * 1000)

    @property
    def dur_ns(self) -> int | None:
        """Duration in ns, rounded half to even."""
        return None if self.dur is None else round(self.dur * 1000)


COMPLETE: dict[str, type[Event]] = {}
"""The model of the complete events of each category; `event_model` fills it."""


def event_model(name: str, args: type[Args], about: str, category: str = "") -> type[Event]:
    """Return the model of a kind of event, given its arguments, what it is, and the category of complete events."""
    field: Any = (args, Field(default_factory=args))
    module = "htagraph.trace.kineto.events"
    model = create_model(name, __base__=Event, __doc__=about, __module__=module, args=field)
    if category:
        COMPLETE[category] = model
    return model


class TraceSpanArgs(Args):
    """Arguments of `TraceSpan`."""

    op_count: Int | None = arg("Op count", "Operators in the span, count")


TraceSpan = event_model("TraceSpan", TraceSpanArgs, "The whole recorded window.", "Trace")
IterationStart = event_model("IterationStart", Args, "The marker at the start of the recorded window.")
RecordWindowEnd = event_model(
    "RecordWindowEnd", Args, "The last event of a complete file: where it is missing, the file was cut short."
)
Counter = event_model("Counter", MetricArgs, "The values of one or more metrics from this time on.")
Flow = event_model(
    "Flow", Args, "One end of an arrow: from a launch to its work (`ac2g`), or from forward to backward (`fwdbwd`)."
)


class MetadataArgs(Args):
    """Arguments of `Metadata`."""

    name: str | None = arg("name", "Name of the process or thread")
    labels: str | None = arg("labels", "Label of the process, such as CPU or GPU 0")
    sort_index: Int | None = arg("sort_index", "Where viewers show the process or thread")


Metadata = event_model("Metadata", MetadataArgs, "The name, label or position of a process or thread.")
UnknownEvent = event_model(
    "UnknownEvent", Args, "An event of a phase or category that these models do not know; everything in it is kept."
)


class CollectiveArgs(Args):
    """Arguments of one rank's part in a collective: on `record_param_comms`, and copied to its kernel."""

    collective_name: str | None = arg("Collective name", "Operation, such as allreduce; wait moves no data", store=TEXT)
    in_msg_nelems: Int | None = arg("In msg nelems", "Elements sent by this rank, count", store=INTEGER)
    out_msg_nelems: Int | None = arg("Out msg nelems", "Elements received by this rank, count", store=INTEGER)
    group_size: Int | None = arg("Group size", "Ranks of the process group, count", store=INTEGER)
    dtype: str | None = arg("dtype", "Type of an element as c10 names it, such as BFloat16", store=TEXT)
    in_split_size: str | None = arg("In split size", "Elements sent to each rank, as text; count")
    out_split_size: str | None = arg("Out split size", "Elements received from each rank, as text; count")
    process_group_name: str | None = arg(
        "Process Group Name", "Name of the group: a counter, unique only within the job", store=TEXT.named("pg_name")
    )
    process_group_description: str | None = arg(
        "Process Group Description", "Purpose of the group, such as default_pg", store=TEXT.named("pg_desc")
    )
    process_group_id: Int | None = arg("Process Group ID", "Number of the group, before 2024-04")
    process_group_ranks: Ranks | None = arg(
        "Process Group Ranks",
        "Global ranks as text, maybe cut short; see the property ranks",
        store=TEXT.named("pg_ranks"),
    )
    global_rank_start: Int | None = arg("Global rank start", "First global rank; -1 if unknown")
    global_rank_stride: Int | None = arg("Global rank stride", "Distance between ranks; 0 if irregular")
    rank: Int | None = arg("Rank", "Rank within the group; of the peer for send and recv")
    src_rank: Int | None = arg("Src Rank", "Global rank that sends, point to point only", store=INTEGER)
    dst_rank: Int | None = arg("Dst Rank", "Global rank that receives, point to point only", store=INTEGER)
    seq: Int | None = arg("Seq", "Counter of the group's collectives; the same on all ranks", store=INTEGER)
    comms_id: Int | None = arg("Comms Id", "Hash of group and Seq, up to 2^64-1; the same on all ranks", store=UNSIGNED)
    is_async: bool | None = arg("Is asynchronized op", "Whether the caller did not wait")
    input_tensors_start: str | None = arg("Input Tensors start", "Addresses of the inputs, as text")
    output_tensors_start: str | None = arg("Output Tensors start", "Addresses of the outputs, as text")

    @property
    def ranks(self) -> list[int] | None:
        """The group's global ranks, or nothing where they are absent or cut short beyond rebuilding."""
        return parse_ranks(
            self.process_group_ranks, start=self.global_rank_start, stride=self.global_rank_stride, size=self.group_size
        )


class CollectiveCommArgs(ActivityArgs, CollectiveArgs):
    """Arguments of `CollectiveComm`."""

    communicator_id: Int | None = arg("Communicator_id", "Id of the oneCCL communicator")


CollectiveComm = event_model(
    "CollectiveComm",
    CollectiveCommArgs,
    "A collective as the communication library recorded it on the host (XPU, `xccl::...`).",
    "collective_comm",
)


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
