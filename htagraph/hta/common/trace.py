"""HtaTrace: what HTA's users find as ``TraceAnalysis.t``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htagraph.hta.common.trace_symbol_table import TraceSymbolTable
from htagraph.hta.shapes.device import device_type
from htagraph.hta.shapes.job import HtaJob, TraceFiles, open_job
from htagraph.hta.shapes.names import shorten

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HtaTrace", "Trace"]


class HtaTrace:
    """The frames of a job's ranks and what belongs to them, with the names of HTA's `Trace`."""

    def __init__(self, job: HtaJob) -> None:
        self.job = job

    @property
    def is_parsed(self) -> bool:
        """Always True: a job that cannot be read raises."""
        return True

    @property
    def trace_files(self) -> dict[int, str]:
        """The file of each rank."""
        return self.job.files

    @property
    def symbol_table(self) -> TraceSymbolTable:
        """The numbers that stand for names and categories in the frames."""
        return self.job.symbols

    @property
    def min_ts(self) -> int | float:
        """The earliest start of any event, µs in its file's own time: 0 of the frames' ``ts``."""
        traces = self.job.traces.values()
        starts = [int(trace.events.start.min()) - self.job.base_ns(trace.rank) for trace in traces if len(trace.events)]
        us, rest = divmod(min(starts, default=0), 1000)
        return us + rest / 1000 if rest else us

    @property
    def traces(self) -> dict[int, pd.DataFrame]:
        """The frame of each rank."""
        return self.get_all_traces()

    @property
    def meta_data(self) -> dict[int, dict[str, Any]]:
        """What each file says beside its events."""
        traces = self.job.traces.items()
        return {rank: trace.header.model_dump(by_alias=True, exclude_none=True) for rank, trace in traces}

    def get_ranks(self) -> list[int]:
        """Return the ranks, ascending."""
        return sorted(self.job.traces)

    def get_trace(self, rank: int) -> pd.DataFrame:
        """Return a rank's frame, a copy for the caller.

        Raises:
            ValueError: the rank was not read.
        """
        self._require(rank)
        return self.job.frame(rank).copy()

    def get_all_traces(self) -> dict[int, pd.DataFrame]:
        """Return every rank's frame."""
        return {rank: self.get_trace(rank) for rank in self.get_ranks()}

    def get_iterations(self, rank: int | None = None) -> list[int]:
        """Return the profiler steps that a rank's events lie in; of the lowest rank if none is named."""
        steps = self.job.frame(self._rank(rank))["iteration"].unique()
        return sorted(int(step) for step in steps if step >= 0)

    def get_trace_duration(self, rank: int | None = None) -> int | float:
        """Return the µs from the first to the last start of a rank's events."""
        starts = self.job.frame(self._rank(rank))["ts"]
        return (starts.max() - starts.min()).item() if len(starts) else 0

    def get_device_type(self) -> str:
        """Return ``"NVIDIA GPU"``, ``"AMD GPU"``, ``"MTIA"`` or ``"UNKNOWN GPU"``."""
        return device_type(self.job)

    def get_raw_trace_for_one_rank(self, rank: int = 0) -> dict[str, Any]:
        """Return a rank's file as JSON.

        Raises:
            ValueError: the rank was not read.
        """
        import gzip
        import json
        from pathlib import Path

        self._require(rank)
        data = Path(self.trace_files[rank]).read_bytes()
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        found = json.loads(text)
        return found if isinstance(found, dict) else {"traceEvents": found}

    def get_trace_start_unixtime_ns(self, rank: int) -> int:
        """Return when the earliest event of any rank began, ns since 1970.

        Raises:
            ValueError: the rank was not read.
            KeyError: its file does not say what its times count from.
        """
        self._require(rank)
        if self.job.traces[rank].header.base_time_nanoseconds is None:
            msg = f"{self.trace_files[rank]}: has no baseTimeNanoseconds: its times count from an unknown moment"
            raise KeyError(msg)
        return self.job.first_ns

    def decode_symbol_ids(self, use_shorten_name: bool = True) -> None:  # noqa: FBT001, FBT002 - HTA's signature
        """Add the columns ``s_name`` and ``s_cat``, the texts behind ``name`` and ``cat``, to all frames."""
        table = self.symbol_table.sym_table
        words = [shorten(name) for name in table] if use_shorten_name else table
        for rank in self.get_ranks():
            frame = self.job.frame(rank)
            frame["s_name"] = [words[i] for i in frame["name"]]
            frame["s_cat"] = [words[i] for i in frame["cat"]]

    def _rank(self, rank: int | None) -> int:
        chosen = self.get_ranks()[0] if rank is None else rank
        self._require(chosen)
        return chosen

    def _require(self, rank: int) -> None:
        if rank not in self.job.traces:
            msg = f"rank {rank} was not read; there are ranks {', '.join(map(str, self.get_ranks()))}"
            raise ValueError(msg)


class Trace(HtaTrace):
    """HTA's own way in: files first, then `parse_traces` or `load_traces`."""

    def __init__(self, trace_files: TraceFiles = None, trace_dir: str = "") -> None:
        self._given = trace_files, trace_dir

    def parse_traces(self) -> None:
        """Read every event, with the files' own times."""
        self.job = open_job(*self._given, whole=True)

    def align_and_filter_trace(self, include_last_profiler_step: bool | None = False) -> None:  # noqa: FBT001, FBT002 - HTA's signature
        """Make times count from the first event of any rank, and leave out the last profiler step unless asked for."""
        self.job = open_job(*self._given, include_last_profiler_step=include_last_profiler_step)

    load_traces = align_and_filter_trace
