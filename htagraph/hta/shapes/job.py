"""HtaJob: a job read as HTA reads it, without the last profiler step unless asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pandas as pd

from htagraph.core.arrays import Ints
from htagraph.core.errors import HtagraphError, OtherFileError, RankError, TraceError
from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.construction.activities import prepare
from htagraph.graph.construction.build import build
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.tree import called_by
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable
from htagraph.hta.shapes.names import in_window, is_analysed, step_names
from htagraph.trace.columns import Trace
from htagraph.trace.discover import RankedFile, rank_files
from htagraph.trace.readers import in_parallel, read_trace
from htagraph.trace.remote import TracePath

__all__ = ["HasJob", "HtaJob", "Ranks", "TraceFiles", "analyzer", "files_of", "open_job"]

TraceFiles: TypeAlias = Mapping[int, str] | Sequence[str] | None
Ranks: TypeAlias = Sequence[int] | None
"""The ranks that a method is asked about; HTA's default if None."""


class HasJob(Protocol):
    """What HTA's methods belong to: `TraceAnalysis`, or ``TraceAnalysis.t``."""

    @property
    def job(self) -> HtaJob:
        """The job."""


@dataclass(frozen=True, eq=False)
class HtaJob:
    """What HTA keeps of a job: the graph and the events of its window."""

    graph: DependencyGraph
    traces: Mapping[int, Trace]
    """The complete events of the window by rank, of all categories, including events that are no activity."""
    files: dict[int, str]
    """The trace file of each rank."""
    windowed: bool
    """Whether events outside the window were left out; HTA then lists device events before host events."""
    aligned: bool = True
    """Whether times count from the first event of any rank; if not, they are as in the files."""
    _frames: dict[int, pd.DataFrame] = field(default_factory=dict, init=False)

    @cached_property
    def first_ns(self) -> int:
        """The earliest start of any event of any rank: what HTA's times count from once ranks are aligned."""
        starts = [int(trace.events.start.min()) for trace in self.traces.values() if len(trace.events)]
        return min(starts, default=0)

    def base_ns(self, rank: int) -> int:
        """Return the base time of a rank's file, ns since 1970, which its times count from; HTA never adds it."""
        return self.of_rank(rank).facts.origin_ns

    def zero_ns(self, rank: int) -> int:
        """Return the moment from which a rank's times in HTA's frame count, ns."""
        return self.first_ns if self.aligned else self.base_ns(rank)

    @cached_property
    def symbols(self) -> TraceSymbolTable:
        """The numbers that stand for names and categories in HTA's frames."""
        table = TraceSymbolTable()
        for trace in self.traces.values():
            table.add_symbols(trace.names)
            table.add_symbols(trace.categories)
        return table

    @cached_property
    def tree_parents(self) -> Ints:
        """The parent of each activity, -1 for none; as in HTA, a step encloses nothing on other threads."""
        return called_by(self.graph.activities, self.graph.names)

    def frame(self, rank: int) -> pd.DataFrame:
        """Return a rank's events as HTA's frame; callers copy it before they change it."""
        if rank not in self._frames:
            from htagraph.hta.shapes.frame import frame_of

            self._frames[rank] = frame_of(self, rank)
        return self._frames[rank]

    def ranks(self, chosen: Sequence[int] | None = None) -> list[int]:
        """Return the chosen ranks; if none are given, HTA's default: rank 0, or the lowest if there is no rank 0."""
        if chosen is None or not len(chosen):
            return [0] if 0 in self.traces else sorted(self.traces)[:1]
        for rank in chosen:
            self.of_rank(rank)
        return list(chosen)

    def warn(self, what: str, ranks: Ranks = None, stacklevel: int = 3) -> None:
        """Warn of what is missing in the traces of some ranks, or of all, and name a file."""
        named = sorted(self.traces if ranks is None else ranks)
        more = f" and {len(named) - 1} more" if len(named) > 1 else ""
        where = f"rank {named[0]} ({self.files[named[0]]}){more}" if named else "no rank"
        warnings.warn(f"{where}: {what}", stacklevel=stacklevel)

    def of_rank(self, rank: int) -> Trace:
        """Return one rank's events."""
        if rank not in self.traces:
            msg = f"rank {rank} was not read; there are ranks {', '.join(map(str, sorted(self.traces))) or 'none'}"
            raise RankError(msg)
        return self.traces[rank]


def analyzer(name: str, *functions: Callable[..., Any], **renamed: Callable[..., Any]) -> Any:  # noqa: ANN401 - a class whose methods are given
    """Return one of HTA's analyzers: a class of functions that take the trace first."""
    methods = {function.__name__: function for function in functions} | renamed
    return type(name, (), {method: staticmethod(function) for method, function in methods.items()})


def open_job(
    trace_files: TraceFiles = None, trace_dir: str = "", *, include_last_profiler_step: bool | None = False,
    whole: bool = False,
) -> HtaJob:  # fmt: skip
    """Return a job from what HTA's constructors take.

    Args:
        trace_files: a map from rank to file, or files whose ranks their headers say; relative to `trace_dir` where
            they are not there.
        trace_dir: the folder to read where no files are given.
        include_last_profiler_step: keep the events of the last ProfilerStep.
        whole: keep every event and its own times, as HTA does before it aligns and filters ranks.

    Raises:
        HtagraphError: a file or folder is absent or no trace, or two files claim one rank.
    """
    if trace_files is not None and not len(trace_files):
        msg = "trace_files is empty: name at least one file, or a folder in trace_dir"
        raise TraceError(msg)
    files = _files(trace_files, trace_dir)
    read = [trace for _, trace in in_parallel(files, _trace)]
    if len(read) == 1 and files[0].source == "only file" and read[0].facts.rank is None:
        warnings.warn(f"{read[0].path}: says no rank; read as rank 0", stacklevel=4)
    named = {name for trace in read for name in step_names(trace)}
    windowed = not whole and len(named) > 1
    last = bool(include_last_profiler_step)
    kept = [in_window(trace, include_last=last) if windowed else is_analysed(trace) for trace in read]
    read = [
        trace if keep.all() else replace(trace, events=trace.events.take(keep))
        for trace, keep in zip(read, kept, strict=True)
    ]
    traces = {trace.rank: trace for trace in sorted(read, key=lambda trace: trace.rank)}
    graph = build([prepare(trace, DEFAULT_NAMING) for trace in traces.values()], DEFAULT_NAMING)
    return HtaJob(graph, traces, {rank: str(trace.path) for rank, trace in traces.items()}, windowed, not whole)


def files_of(trace_files: TraceFiles = None, trace_dir: str = "") -> dict[int, str]:
    """Return the file of each rank, of which only the rank was read; it takes the arguments of `open_job`."""
    return {file.rank: str(file.path) for file in _files(trace_files, trace_dir)}


def _files(trace_files: TraceFiles, trace_dir: str) -> list[RankedFile]:
    if trace_files is None:
        return rank_files(trace_dir, left_out=_warn_of_other_json)
    if isinstance(trace_files, Mapping):
        return rank_files({rank: _placed(path, trace_dir) for rank, path in trace_files.items()})
    return rank_files([_placed(path, trace_dir) for path in trace_files])


def _warn_of_other_json(path: TracePath, why: HtagraphError) -> None:
    if isinstance(why, OtherFileError):
        warnings.warn(f"{why}; left out", stacklevel=6)


def _placed(path: str, trace_dir: str) -> Path:
    inside = Path(trace_dir).expanduser() / path  # is the path itself where that is absolute
    return inside if trace_dir and inside.exists() else Path(path)


def _trace(file: RankedFile, *, progress: Callable[[int], None], compiled: bool) -> Trace:
    return read_trace(file.path, file.rank_in, progress, compiled=compiled, part=file.part)
