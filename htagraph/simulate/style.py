"""How Kineto of each era writes traces: keys, order, timestamps."""

from dataclasses import dataclass
from typing import Final

from htagraph.simulate.job import Era, Job

_GRID_SECONDS: Final = 7_889_238  # three months: Kineto's base time is a multiple of it (ChromeTraceBaseTime)


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


STYLES: Final[dict[Era, Style]] = {
    "2021": Style(
        1_625_140_800,
        nanoseconds=False,
        relative=False,
        old_categories=True,
        linked=False,
        flow=("async_cpu_to_gpu", "async_gpu"),
        op_args="2021",
        groups="no",
        sync=False,
        annotation_ns=1000,
    ),
    "2022": Style(
        1_661_203_462,
        nanoseconds=False,
        relative=False,
        linked=False,
        flow=("async_cpu_to_gpu", "async_gpu"),
        op_args="2022",
        groups="no",
        sync=False,
        annotation_ns=1000,
    ),
    "2024-03": Style(1_711_000_000, padded=False, relative=False, groups="id", annotation_ns=1000),
    "2024-04": Style(1_712_195_495, relative=False, groups="id", annotation_ns=1000),
    "2024": Style(1_720_000_000),
    "2026": Style(1_780_300_000, base_first=True, metadata_first=True, groups="seq", absolute_stream=True, graphs=True),
}


def style(job: Job) -> Style:
    """Return the style of a job's era."""
    return STYLES[job.era]
