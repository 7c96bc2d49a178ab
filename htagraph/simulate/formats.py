"""Kineto of each era in writing: one `%` format per event, all known before the run as text, eight numbers open.

The numbers, in this order: a flow's id; start, µs and its fraction; duration, µs and its fraction; and three
that the event's kind decides (`Slot.numbers`). Where one is not wanted, `%.0s` swallows it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from htagraph.simulate.catalogue import COLLECTIVES
from htagraph.simulate.codes import Category
from htagraph.simulate.job import Era, Job, JobGroup, RankPlace
from htagraph.simulate.program import STREAMS
from htagraph.simulate.template import NONE, Template, TemplateEvent

_GRID_SECONDS: Final = 7_889_238
"""Three months: Kineto's base time is a multiple of it (ChromeTraceBaseTime)."""

A100: Final = {
    "totalGlobalMem": 85_100_068_864, "computeMajor": 8, "computeMinor": 0, "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152,
    "numSms": 108,
}  # fmt: skip
"""What Kineto says of a device; the figures are those of NVIDIA's data sheet."""
MI300X: Final = A100 | {"computeMajor": 9, "computeMinor": 4, "warpSize": 64, "numSms": 304}


@dataclass(frozen=True, slots=True)
class Style:
    """The format of one era."""

    start_s: int  # when the job was recorded, seconds since 1970
    nanoseconds: bool = True  # timestamps have a fraction
    padded: bool = True  # of three digits
    relative: bool = True  # timestamps count from baseTimeNanoseconds
    base_first: bool = False  # it is written before the events
    metadata_first: bool = False  # M events come first
    old_categories: bool = False  # Kernel, Runtime, Operator, Memcpy
    linked: bool = True  # External id of a device event is its op's, not its correlation
    flow: tuple[str, str] = ("ac2g", "ac2g")  # category and name
    op_args: str = "new"
    groups: str = "name"  # how a process group is named: no, id, name or seq
    sync: bool = True  # knows cuda_sync
    absolute_stream: bool = False  # stream -1 becomes tid 1, Stream Sync rows move
    graphs: bool = False  # kernels have graph ids
    annotation_ns: int = 1  # a gpu_user_annotation starts that much early

    @property
    def base_ns(self) -> int:
        """What Kineto subtracts from every timestamp, ns."""
        return self.start_s // _GRID_SECONDS * _GRID_SECONDS * 1_000_000_000 if self.relative else 0

    @property
    def start_ns(self) -> int:
        """When the true clock stands at 0, as the file counts, ns."""
        return self.start_s * 1_000_000_000 - self.base_ns


_OF_2022: Final = Style(
    1_661_203_462, nanoseconds=False, relative=False, linked=False, flow=("async_cpu_to_gpu", "async_gpu"),
    op_args="2022", groups="no", sync=False, annotation_ns=1000,
)  # fmt: skip
STYLES: Final[dict[Era, Style]] = {
    "2021": replace(_OF_2022, start_s=1_625_140_800, old_categories=True, op_args="2021"),
    "2022": _OF_2022,
    "2024-03": Style(1_711_000_000, padded=False, relative=False, groups="id", annotation_ns=1000),
    "2024-04": Style(1_712_195_495, relative=False, groups="id", annotation_ns=1000),
    "2024": Style(1_720_000_000),
    "2026": Style(1_780_300_000, base_first=True, metadata_first=True, groups="seq", absolute_stream=True, graphs=True),
}

_STREAM_IDS = tuple(STREAMS.values())
_FIRST_PID, _PID_STRIDE, _TID_STRIDE = 41_000, 173, 137  # chosen: look like a host's ids; no analysis depends on them
_MAX_RANKS_SHOWN = 30
"""PyTorch cuts longer lists of ranks (kTruncatLength in torch/csrc/profiler/util.h)."""


@dataclass(frozen=True, slots=True)
class Writer:
    """What every format of one rank needs."""

    job: Job
    style: Style
    place: RankPlace

    @property
    def pid(self) -> int:
        """The rank's process."""
        return _FIRST_PID + _PID_STRIDE * self.place.rank

    @property
    def device(self) -> int:
        """The rank's GPU on its host."""
        return self.place.rank % self.job.gpus_per_node

    def thread(self, lane: int) -> int:
        """Return a host thread's id."""
        return self.pid + lane * _TID_STRIDE

    def stream(self, lane: int) -> int:
        """Return a stream's id."""
        number = _STREAM_IDS[lane]
        return number - STREAMS["compute"] if self.job.device == "rocm" else number


def group_args(writer: Writer, event: TemplateEvent, *, on_host: bool) -> str:
    """Return the arguments of a collective, on its op or its kernel."""
    group = writer.place.roles[event.role]
    mode = writer.style.groups
    count = event.size // 2  # a BFloat16 has two bytes
    size = len(group.ranks)
    uneven = {"all_gather": (count // size, count), "reduce_scatter": (count, count // size)}
    sent, received = uneven.get(event.kind, (count, count))
    parts = [
        f'"Collective name": "{COLLECTIVES[event.kind].recorded}"',
        f'"In msg nelems": {sent}',
        f'"Out msg nelems": {received}',
        f'"Group size": {size}',
        '"dtype": "BFloat16"',
    ]
    if mode == "id":
        parts.append(f'"Process Group ID": {group.index}')
    else:
        parts += ['"In split size": "[]"', '"Out split size": "[]"']
        parts += [f'"Process Group Name": "{group.name}"', f'"Process Group Description": "{group.description}"']
    parts.append(f'"Process Group Ranks": "{ranks_text(group.ranks)}"')
    return ", ".join(parts + _more_group_args(writer, event, group, on_host=on_host))


def _more_group_args(writer: Writer, event: TemplateEvent, group: JobGroup, *, on_host: bool) -> list[str]:
    parts = []
    if event.kind in ("send", "recv"):
        other = next(rank for rank in group.ranks if rank != writer.place.rank)
        source, target = (writer.place.rank, other) if event.kind == "send" else (other, writer.place.rank)
        parts += [f'"Src Rank": {source}', f'"Dst Rank": {target}']
    if on_host:
        stride = group.ranks[1] - group.ranks[0] if len(group.ranks) > 1 else 1
        parts += [f'"Global rank start": {group.ranks[0]}', f'"Global rank stride": {stride}']
        parts += [f'"Rank": {group.ranks.index(writer.place.rank)}'] if writer.style.groups == "seq" else []
    if writer.style.groups == "seq":
        parts += [f'"Seq": @SEQ:{event.role}:{event.order}@', f'"Comms Id": @COMMS:{event.role}:{event.order}@']
        parts += ['"Is asynchronized op": 1'] if on_host else []
    return parts


def ranks_text(ranks: tuple[int, ...]) -> str:
    """Return a list of ranks as PyTorch writes it: cut after 29 of more than 30, then dots and the last rank."""
    if len(ranks) <= _MAX_RANKS_SHOWN:
        return str(list(ranks))
    return f"[{', '.join(map(str, ranks[: _MAX_RANKS_SHOWN - 1]))}, ..., {ranks[-1]}]"


_EVENT_IDS = 64
"""CUDA events before an id is reused. Chosen: twice as many would be reused less often."""
_SYNC_LANE = 1_000_000
"""Added to the tid of Stream Sync rows, as Kineto of 2026 does."""
_SKIP = "%.0s"  # takes a number and writes nothing
_OLD = {
    Category.CPU_OP: "Operator", Category.CUDA_RUNTIME: "Runtime", Category.KERNEL: "Kernel",
    Category.GPU_MEMCPY: "Memcpy", Category.GPU_MEMSET: "Memset",
}  # fmt: skip
_HIP = {
    "cudaLaunchKernel": "hipLaunchKernel", "cudaLaunchKernelExC": "hipExtLaunchKernel",
    "cuLaunchKernel": "hipModuleLaunchKernel", "cudaStreamIsCapturing": "hipStreamIsCapturing",
}  # fmt: skip


class Counter(IntEnum):
    """What a number counts; each step adds to it."""

    CONSTANT = 0
    EXTERNAL = 1
    CORRELATION = 2
    SEQUENCE = 3
    FLOW = 4
    FRAME = 5
    INDEX = 6


Number = tuple[Counter, int]
ZERO: Number = (Counter.CONSTANT, 0)


@dataclass(frozen=True, slots=True)
class Slot:
    """One line of the file: its format, which times it shows, and its numbers."""

    text: str
    time: int  # row of the times
    numbers: tuple[Number, Number, Number, Number]  # the flow's id, and the last three
    event: int = NONE  # the event it is
    dynamic: bool = False  # holds names that each step fills in


def quoted(text: str) -> str:
    """Return text as JSON, safe inside a `%` format."""
    return json.dumps(text).replace("%", "%%")


def clock(style: Style) -> str:
    """Return the format of one time, which takes µs and fraction."""
    if not style.nanoseconds:
        return f"%d{_SKIP}"
    return "%d.%03d" if style.padded else "%d.%d"


def envelope(writer: Writer, category: str, name: str, place: tuple[int | str, int | str], args: str) -> str:
    """Return the format of a complete event; `args` is the inside of its arguments."""
    time = clock(writer.style)
    pid, tid = (json.dumps(part) for part in place)
    body = f',\n    "args": {{\n      {args}\n    }}'
    return (
        f'  {{\n    "ph": "X", "cat": "{category}", "name": {quoted(name)}, '
        f'"pid": {pid}, "tid": {tid},{_SKIP}\n'
        f'    "ts": {time}, "dur": {time}{body}\n  }},\n'
    )


def category(writer: Writer, kind: Category) -> str:
    """Return a category's name."""
    return _OLD.get(kind, kind.name.lower()) if writer.style.old_categories else kind.name.lower()


# host events


def host_slot(writer: Writer, event: TemplateEvent, row: int, index: int) -> Slot:
    """Return the line of an op, annotation or Python frame; `index` is its place among the host's events."""
    lane = (writer.pid, writer.thread(event.lane))
    order: Number = (Counter.INDEX, index)
    name = category(writer, event.category)
    if event.category is Category.PYTHON_FUNCTION:
        parent = "%d" if event.frame_parent != NONE else f"{_SKIP}null"
        args = f'"Python id": %d, "Python parent id": {parent}, "Ev Idx": %d'
        above = (Counter.FRAME, max(event.frame_parent, 0))
        numbers = (ZERO, (Counter.FRAME, event.frame), above, order)
        return Slot(envelope(writer, name, event.name, lane, args), row, numbers, row)
    args = {"2021": _args_2021, "2022": _args_2022, "new": _args_new}[writer.style.op_args](writer, event)
    text = envelope(writer, name, event.name + ("@STEP@" if event.name.endswith("Step#") else ""), lane, args)
    numbers = (ZERO, (Counter.EXTERNAL, event.external), (Counter.SEQUENCE, max(event.sequence, 0)), order)
    return Slot(text, row, numbers, row, dynamic="@" in text)


def _sequence(event: TemplateEvent) -> str:
    if event.sequence == NONE:
        return _SKIP
    return f', "Sequence number": %d, "Fwd thread id": {int(event.forward != NONE)}'


def _shapes(writer: Writer, event: TemplateEvent, *, dims: str = "Input Dims", types: str = "Input type") -> str:
    if not writer.job.record_shapes:
        return ""
    shapes = f"[{event.shape}]" if event.shape else "[]"
    count = event.shape.count("]")
    kinds = json.dumps(["long int" if "512]" in event.shape and count == 1 else "c10::BFloat16"] * count)
    return f', "{types}": {kinds}, "{dims}": {shapes}'


def _args_new(writer: Writer, event: TemplateEvent) -> str:
    group = ""
    if event.role and writer.job.group_args and writer.style.groups != "no":
        group = ", " + group_args(writer, event, on_host=True)
    function = ', "Record function id": 0'
    return f'"External id": %d{function}{_sequence(event)}{group}{_shapes(writer, event)}, "Ev Idx": %d'


def _args_2022(writer: Writer, event: TemplateEvent) -> str:
    return (
        f'"Trace name": "PyTorch Profiler", "Trace iteration": 0,\n      '
        f'"External id": %d{_sequence(event)}, '
        f'"Profiler Event Index": %d{_shapes(writer, event)}, "Module Hierarchy": "", "Call stack": ""'
    )


def _args_2021(writer: Writer, event: TemplateEvent) -> str:
    shapes = f"[{event.shape}]" if writer.job.record_shapes else "[]"
    return (
        f'"Input dims": {shapes}, "Input type": [], "Input names": [],\n      '
        '"Output dims": [], "Output type": [], '
        f'"Output names": [],\n      "Device": 0, "External id": %d{_sequence(event)}, '
        f'"Extra arguments": [],{_SKIP}\n'
        '      "Trace name": "PyTorch Profiler", "Trace iteration": 0'
    )


def forward_backward(writer: Writer, event: TemplateEvent, row: int) -> Slot:
    """Return the flow line from a forward op, or to its backward op."""
    end = event.forward != NONE
    name = "fwdbwd" if writer.style.op_args == "new" else "fwd_bwd"
    kind = "fwdbwd" if writer.style.op_args == "new" else "forward_backward"
    text = _flow(writer, "f" if end else "s", (writer.pid, writer.thread(event.lane)), (kind, name))
    return Slot(text, row, ((Counter.FLOW, event.flow), ZERO, ZERO, ZERO))


def _flow(writer: Writer, phase: str, place: tuple[int, int], names: tuple[str, str]) -> str:
    bind = ', "bp": "e"' if phase == "f" or writer.style.op_args != "new" else ""
    time = clock(writer.style)
    return (
        f'  {{\n    "ph": "{phase}", "id": %d, "pid": {place[0]}, "tid": {place[1]}, '
        f'"ts": {time},{_SKIP * 5}\n'
        f'    "cat": "{names[0]}", "name": "{names[1]}"{bind}\n  }},\n'
    )


# calls and device work


def _linked(writer: Writer, template: Template, event: TemplateEvent) -> tuple[str, Number]:
    """Return the `External id` part of a call's or work's arguments, and its number."""
    if not writer.style.linked:
        return '"External id": %d, ', (Counter.CORRELATION, event.correlation)
    if event.parent == NONE:
        return _SKIP, ZERO
    return '"External id": %d, ', (Counter.EXTERNAL, template.events[event.parent].external)


def call_slot(writer: Writer, template: Template, row: int) -> Slot:
    """Return the line of a runtime or driver call."""
    event = template.events[row]
    linked, external = _linked(writer, template, event)
    code, kind, name = "cbid", event.category, event.name
    if writer.job.device == "rocm":
        code, kind, name = "cid", Category.CUDA_RUNTIME, _HIP.get(name, "hip" + name[4:])
    args = f'{linked}"{code}": {event.cbid}, "correlation": %d{_SKIP}'
    text = envelope(writer, category(writer, kind), name, (writer.pid, writer.thread(event.lane)), args)
    return Slot(text, row, (ZERO, external, (Counter.CORRELATION, event.correlation), ZERO), row)


def work_slot(writer: Writer, template: Template, row: int) -> Slot:
    """Return the line of a kernel, memcpy or memset."""
    event = template.events[row]
    linked, external = _linked(writer, template, event)
    stream = writer.stream(event.lane)
    if writer.job.device == "rocm":
        args = linked + _rocm_args(event, row, writer.device, stream)
    elif event.category is Category.KERNEL:
        args = linked + _kernel_args(writer, event, stream)
    else:
        args = (
            f'{linked}"device": {writer.device}, "context": 1,\n      '
            f'"stream": {stream}, "correlation": %d,\n'
            f'      "bytes": {event.size}, "memory bandwidth (GB/s)": @BANDWIDTH:{row}@{_SKIP}'
        )
    if event.role and writer.job.group_args and writer.style.groups in ("name", "seq"):
        args += ", " + group_args(writer, event, on_host=False)
    text = envelope(writer, category(writer, event.category), event.name, (writer.device, stream), args)
    numbers = (ZERO, external, (Counter.CORRELATION, event.correlation), ZERO)
    return Slot(text, row, numbers, row, dynamic="@" in text)


def _kernel_args(writer: Writer, event: TemplateEvent, stream: int) -> str:
    kernel = event.kernel
    assert kernel is not None
    warp = A100["warpSize"]
    blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2] / A100["numSms"]
    warps = blocks * ((kernel.block[0] * kernel.block[1] * kernel.block[2] + warp - 1) // warp)
    occupancy = min(round(warps / (A100["maxThreadsPerMultiprocessor"] // warp) * 100), 100)
    graphs = f', "graph id": {event.graph}, "graph node id": {event.node}' if writer.style.graphs else ""
    return (
        f'"queued": 0, "device": {writer.device}, "context": 1,\n      '
        f'"stream": {stream}, "correlation": %d,\n'
        f'      "registers per thread": {kernel.registers},\n      "shared memory": {kernel.shared},\n'
        f'      "blocks per SM": {blocks:.6f},\n      "warps per SM": {warps:.6f},\n'
        f'      "grid": {list(kernel.grid)},\n      "block": {list(kernel.block)},\n'
        f'      "est. achieved occupancy %%": {occupancy}{graphs}{_SKIP}'
    )


def _rocm_args(event: TemplateEvent, row: int, device: int, stream: int) -> str:
    if event.kernel is None:
        kind = event.name.split("(")[-1].split(" ")[0]
        return (
            f'"device": {device}, "stream": {stream}, "correlation": %d, "kind": "{kind}",\n'
            f'      "bytes": {event.size}, "memory bandwidth (GB/s)": @BANDWIDTH:{row}@{_SKIP}'
        )
    grid, block = list(event.kernel.grid), list(event.kernel.block)
    return (
        f'"device": {device}, "stream": {stream},\n      "correlation": %d, "kind": "Dispatch Kernel",\n'
        f'      "grid": {grid},\n      "block": {block}{_SKIP}'
    )


_STARTS = (
    "cudaLaunchKernel", "cudaLaunchKernelExC", "cudaGraphLaunch", "cuLaunchKernel", "cudaMemcpyAsync",
    "cudaMemsetAsync", "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaStreamWaitEvent",
)  # fmt: skip


def launch_flow(writer: Writer, event: TemplateEvent, row: int) -> Slot:
    """Return the flow line of a call or of device work; a call that launches nothing gets one end, as in Kineto."""
    if event.category.on_device:
        place, phase = (writer.device, writer.stream(event.lane)), "f"
    else:
        place, phase = (writer.pid, writer.thread(event.lane)), "s" if event.name in _STARTS else "f"
    numbers = ((Counter.CORRELATION, event.correlation), ZERO, ZERO, ZERO)
    return Slot(_flow(writer, phase, place, writer.style.flow), row, numbers)


def sync_slot(writer: Writer, template: Template, call: int, row: int) -> Slot:
    """Return the cuda_sync line of a waiting call, whose times are in `row`."""
    event = template.events[call]
    linked, external = _linked(writer, template, event)
    stream = writer.stream(event.stream) if event.stream != NONE else NONE
    args = f'{linked}"cuda_sync_kind": "{event.kind}", '
    record: Number = ZERO
    if event.record != NONE:
        recorded = template.events[event.record]
        record = (Counter.CORRELATION, recorded.correlation)
        args += (
            f'"wait_on_stream": {writer.stream(recorded.stream)}, "wait_on_cuda_event_record_corr_id": %d, '
            f'"wait_on_cuda_event_id": {8 + event.slot % _EVENT_IDS}, '
        )
    else:
        args += _SKIP
    args += f'"stream": {stream}, "correlation": %d, "device": {writer.device}, "context": 1'
    lane = stream
    if writer.style.absolute_stream:
        lane = stream + _SYNC_LANE if event.kind == "Stream Sync" else abs(stream)
    text = envelope(writer, "cuda_sync", event.kind, (writer.device, lane), args)
    return Slot(text, row, (ZERO, external, record, (Counter.CORRELATION, event.correlation)))


def annotation_slot(writer: Writer, template: Template, annotation: int, lane: int, row: int) -> Slot:
    """Return the gpu_user_annotation of an annotation on one stream."""
    event = template.events[annotation]
    name = event.name + ("@STEP@" if event.name.endswith("Step#") else "")
    args = f'"External id": %d{_SKIP * 2}'
    text = envelope(writer, "gpu_user_annotation", name, (writer.device, writer.stream(lane)), args)
    return Slot(text, row, (ZERO, (Counter.EXTERNAL, event.external), ZERO, ZERO), dynamic="@" in text)
