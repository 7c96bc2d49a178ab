"""How Kineto of each era writes traces: keys, order, timestamps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from htagraph.simulate.catalogue import COLLECTIVES
from htagraph.simulate.job import Era, Job, JobGroup, RankPlace
from htagraph.simulate.program import STREAMS
from htagraph.simulate.template import TemplateEvent

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
    1_661_203_462,
    nanoseconds=False,
    relative=False,
    linked=False,
    flow=("async_cpu_to_gpu", "async_gpu"),
    op_args="2022",
    groups="no",
    sync=False,
    annotation_ns=1000,
)
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
    sent, received = {"all_gather": (count // size, count), "reduce_scatter": (count, count // size)}.get(
        event.kind, (count, count)
    )
    parts = [
        f'"Collective name": "{COLLECTIVES[event.kind].recorded}"',
        f'"In msg nelems": {sent}',
        f'"Out msg nelems": {received}',
        f'"Group size": {size}',
        '"dtype": "BFloat16"',
    ]
    if mode != "id":
        parts += ['"In split size": "[]"', '"Out split size": "[]"']
    if mode == "id":
        parts.append(f'"Process Group ID": {group.index}')
    else:
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
