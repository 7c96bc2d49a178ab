"""What reads each format of traces; and many files at once.

A format is a folder beside this module, and a row of `READERS`. Nothing outside of that folder knows the format.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from htagraph.core.arrays import Array
from htagraph.core.computing import Threads, processors
from htagraph.core.errors import IssueLog
from htagraph.core.naming import is_of_pytorch
from htagraph.trace import kineto, nsys, pftrace
from htagraph.trace.columns import Facts, Trace
from htagraph.trace.kept import Frames, Sieve
from htagraph.trace.remote import TracePath

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.trace.discover import RankedFile

__all__ = [
    "READERS", "SUFFIXES", "Read", "Reader", "Recorder", "format_of", "in_parallel", "json_bytes", "read_trace",
    "reader_for", "reader_of", "recorder_of", "setting_for", "shows_pytorch",
]  # fmt: skip

T = TypeVar("T", covariant=True)

_GZIP_RATIO = 15
"""Bytes of JSON per byte of a gzipped trace. Chosen: real traces shrink 10 to 20 times. Doubled, the compiled scan is
used for smaller jobs; no result depends on it."""
_LARGE_BYTES = 16 << 20
"""Bytes of JSON from which the compiled scan is used, and threads: loading the compiled code takes as long as decoding
so much without it (measured: 0.1 s). Doubled, jobs of 16 to 32 MiB load up to 0.2 s slower; no result depends on it."""


class Reader(Protocol):
    """Reads the files of one format."""

    SUFFIXES: tuple[str, ...]
    """How names of its files end."""
    CATEGORIES: Collection[str]
    """The categories of events that it knows."""
    SETTINGS: Mapping[str, str]
    """What to record with, by what it gives: ``device``, ``steps``, ``ranks``, ``shapes``, ``modules``, ``memory``,
    ``records`` (of events), ``regions``, ``step``, ``host`` and ``operators`` as parts of sentences. `Recorder` gives
    them to whoever words a sentence. ``no_steps`` says what a file without steps lacks, ``lost_device`` where the
    profiler says that it cannot record a device."""
    WITHOUT_PYTORCH: Mapping[str, str]
    """Settings in place of `SETTINGS` for a program without PyTorch; empty where PyTorch writes all files."""

    def recognizes(self, path: TracePath) -> bool:
        """Return whether a file has this format, by its name."""

    def survey(self, path: TracePath, *, and_tail: bool) -> Facts:
        """Return what a file says of its recording: quickly, or with `and_tail` after looking at all of it."""

    def columns(  # noqa: PLR0913 - one argument per choice
        self, path: TracePath, rank_in: Callable[[Facts, IssueLog], int],
        progress: Callable[[int], None] | None = None, *, compiled: bool = True, frames: Frames | None = None,
        sieve: Sieve | None = None, part: int | None = None,
    ) -> Trace:  # fmt: skip
        """Return the events of a file; see `read_trace`."""

    def event(self, trace: Trace, index: int) -> Any:  # noqa: ANN401 - a model of the format
        """Return the event at a position of a file that was read, with all that the file says of it."""

    def arguments(self, path: TracePath, names: Sequence[str], events: Array, *, as_text: bool) -> dict[str, Array]:
        """Return some arguments of the events at some positions; as JSON texts (bytes) if asked for."""

    def category_arguments(self, path: TracePath, category: str | None = None) -> pd.DataFrame:
        """Return every argument of the events of a category, or of all: one row per event."""

    def samples(self, trace: Trace) -> pd.DataFrame:
        """Return the samples of counters in a trace's file, as `htagraph.trace.columns.SAMPLES` has them."""

    def check_arguments(self, path: TracePath) -> pd.DataFrame:
        """Return how every argument of every event fits what the format says of it; see `htagraph.check_arguments`."""

    def metadata(self, facts: Facts) -> dict[str, Any]:
        """Return what a file says of its recording, by its own keys."""


READERS: Final[Mapping[str, Reader]] = {"kineto": kineto, "nsys": nsys, "pftrace": pftrace}
"""What reads each format; `Trace.format` is the name."""
SUFFIXES: Final = tuple(suffix for reader in READERS.values() for suffix in reader.SUFFIXES)
"""How names of traces end in folders."""


def format_of(path: TracePath) -> str:
    """Return the name of a file's format, as `READERS` has it."""
    return next(name for name, reader in READERS.items() if reader is reader_for(path))


def reader_of(trace: Trace) -> Reader:
    """Return what read a trace."""
    return READERS[trace.format]


def reader_for(path: TracePath) -> Reader:
    """Return what reads a file; Kineto's reader says what is wrong with a file that is no trace."""
    return next((reader for reader in READERS.values() if reader.recognizes(path)), kineto)


def read_trace(  # noqa: PLR0913 - one argument per choice
    path: TracePath, rank_in: Callable[[Facts, IssueLog], int], progress: Callable[[int], None] | None = None, *,
    compiled: bool = True, frames: Frames | None = None, sieve: Sieve | None = None, part: int | None = None,
) -> Trace:  # fmt: skip
    """Return one file's events as columns, whatever its format.

    `rank_in` returns the rank of the file, given its facts and the log of its issues, to which it may add; `progress`
    is called with the bytes of the file consumed so far; `compiled` code is many times faster once it is loaded, and
    gives the same columns; `frames` and `sieve` decide which events are kept; `part` is one of `Facts.processes` where
    the file holds several ranks.
    """
    columns = reader_for(path).columns
    return columns(path, rank_in, progress, compiled=compiled, frames=frames, sieve=sieve, part=part)


@dataclass(frozen=True)
class Recorder:
    """The program that recorded a job, for the words of advice.

    Example:
        >>> Recorder().setting("modules"), Recorder("nsys").setting("host")
        ('with_stack=True', 'nsys profile -t cuda,nvtx')
    """

    format: str = "kineto"
    """The name of the format, as `READERS` has it."""
    has_pytorch: bool = True
    """Whether the job runs PyTorch."""

    def setting(self, gives: str) -> str:
        """Return the setting that records something, see `Reader.SETTINGS`; empty for none."""
        reader = READERS[self.format]
        if self.has_pytorch:
            return reader.SETTINGS[gives]
        return {**reader.SETTINGS, **reader.WITHOUT_PYTORCH}[gives]

    def to_see(self, gives: str, seen: str) -> str:
        """Return the advice to record with a setting, and the reason; empty without a setting.

        Example:
            >>> Recorder().to_see("modules", "what the host does")
            'Record with with_stack=True, to see what the host does.'
            >>> Recorder("nsys", has_pytorch=False).to_see("modules", "what the host does")
            ''
        """
        setting = self.setting(gives)
        return f"Record with {setting}, to see {seen}." if setting else ""

    def of_pytorch(self, text: str, otherwise: str = "") -> str:
        """Return a text that names an interface of PyTorch; of a job without PyTorch, the other text.

        Example:
            >>> Recorder("nsys", has_pytorch=False).of_pytorch(" (torch.compile)")
            ''
        """
        return text if self.has_pytorch else otherwise


def recorder_of(traces: Iterable[Trace]) -> Recorder:
    """Return the recorder of some traces of one job; of no traces, PyTorch's profiler.

    Example:
        >>> recorder_of([])
        Recorder(format='kineto', has_pytorch=True)
    """
    trace = next(iter(traces), None)
    return Recorder() if trace is None else Recorder(trace.format, shows_pytorch(trace))


def setting_for(traces: Iterable[Trace], gives: str) -> str:
    """Return the setting that records something, in the words of the traces' format; see `Reader.SETTINGS`."""
    return recorder_of(traces).setting(gives)


def shows_pytorch(trace: Trace) -> bool:
    """Return whether PyTorch wrote a file, or a name in the file is PyTorch's."""
    return not reader_of(trace).WITHOUT_PYTORCH or any(map(is_of_pytorch, trace.names))


class Read(Protocol[T]):
    """Reads one file."""

    def __call__(self, file: RankedFile, *, progress: Callable[[int], None], compiled: bool) -> T:
        """Return what the file holds; see `read_trace` for `progress` and `compiled`."""


def in_parallel(
    files: Sequence[RankedFile], read: Read[T], progress: Callable[[float], None] | None = None
) -> Iterator[tuple[RankedFile, T]]:
    """Yield each file with the result of reading it, in any order; a thread per processor reads large jobs.

    `progress` is called with the share done, 0 to 1.
    """
    sizes = [file.path.stat().st_size for file in files]
    large = sum(json_bytes(file.path) for file in files) >= _LARGE_BYTES
    report = _Report(sizes, progress)

    def result(number: int) -> T:
        return read(files[number], progress=lambda at: report.advance(number, at), compiled=large)

    workers = min(len(files), processors())
    if workers < 2 or not large:
        for number, file in enumerate(files):
            yield file, result(number)
            report.advance(number, sizes[number])
        return
    pool = Threads(workers, "htagraph-read")
    try:
        jobs = {pool.submit(result, number): number for number in range(len(files))}
        for job in as_completed(jobs):
            report.advance(jobs[job], sizes[jobs[job]])
            yield files[jobs[job]], job.result()
    finally:  # also where the caller stops early, or is interrupted
        report.stop()
        pool.shutdown(cancel_futures=True)


class _Report:
    """Adds up what several threads have read."""

    def __init__(self, sizes: list[int], progress: Callable[[float], None] | None) -> None:
        self._read, self._total, self._progress = [0] * len(sizes), max(1, sum(sizes)), progress
        self._lock, self._stopped = threading.Lock(), False

    def advance(self, number: int, at: int) -> None:
        """Note that a file was read up to byte `at`; ends a thread whose result nobody waits for."""
        if self._stopped:
            raise CancelledError
        if self._progress is not None:
            with self._lock:
                self._read[number] = max(self._read[number], at)  # a file may be read twice
                self._progress(min(1.0, sum(self._read) / self._total))

    def stop(self) -> None:
        """End the threads that still read, at their next piece."""
        self._stopped = True


def json_bytes(path: TracePath) -> int:
    """Return about how many bytes of JSON a file holds."""
    return path.stat().st_size * (_GZIP_RATIO if path.suffix in (".gz", ".zst") else 1)
