"""Trace: the frames of a job's ranks, HTA's way in, ``TraceAnalysis.t``; the execution traces beside them."""

from __future__ import annotations

import gzip
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from htagraph.core.errors import HtagraphError, SelectionError
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable, decode_symbol_id_to_symbol_name
from htagraph.hta.configs.parser_config import ParserBackend, ParserConfig, ValueType
from htagraph.hta.shapes import frame as frames
from htagraph.hta.shapes.job import HtaJob, TraceFiles, files_of, open_job
from htagraph.hta.shapes.names import is_mtia
from htagraph.hta.utils.utils import get_value_from_dict
from htagraph.queries.arguments import link_execution_trace
from htagraph.trace.profiler_files.files import LISTS, read_execution_trace
from htagraph.trace.readers import reader_of

__all__ = [
    "EXECUTION_TRACE_SUPPORTED_EVENTS", "ExecutionTrace", "MetaData", "Node", "Trace", "TraceSymbolTable",
    "add_et_column", "add_iteration", "correlate_execution_trace", "create_rank_to_trace_dict",
    "create_rank_to_trace_dict_from_dir", "get_cpu_gpu_correlation", "get_default_trace_parsing_backend",
    "get_trace_files", "infer_gpu_type", "load_execution_trace", "parse_trace_dataframe", "parse_trace_dict",
    "parse_trace_file", "read_trace", "set_default_trace_parsing_backend", "trace_event_timestamp_to_unixtime_ns",
    "transform_correlation_to_index", "update_trace_rank", "validate_trace_format", "write_trace",
]  # fmt: skip

MetaData: TypeAlias = dict[str, Any]
_BY_LAUNCH = {"cudaLaunchKernel": "NVIDIA GPU", "hipLaunchKernel": "AMD GPU", "runFunction": "MTIA"}


class Trace:
    """The frames of a job's ranks and what belongs to them.

    Files come first, then `parse_traces` and `align_and_filter_trace`, or `load_traces` for both. ``TraceAnalysis.t``
    has read its files. The frames are the caller's: `get_trace` returns the same one each time, and what is written
    into it stays there. No analysis reads them, so that results do not depend on what was written.

    Args:
        trace_files: a map from rank to file, or files whose ranks their headers name.
        trace_dir: the folder to read where no files are given.
        parser_config: which arguments of events become columns; the default configuration if not given.

    Example:
        >>> trace = Trace(trace_dir="data/demo")
        >>> trace.parse_traces(max_ranks=1)
        >>> list(trace.traces)
        [0]
    """

    def __init__(
        self, trace_files: TraceFiles = None, trace_dir: str = "", parser_config: ParserConfig | None = None
    ) -> None:
        self.trace_path = str(Path(trace_dir).expanduser()) if trace_dir else ""
        self.parser_config = parser_config or ParserConfig.get_default_cfg()
        self._given: TraceFiles = trace_files
        self._job: HtaJob | None = None
        self._frames: dict[int, pd.DataFrame] = {}

    @classmethod
    def of(cls, job: HtaJob) -> Trace:
        """Return the frames of a job whose files were read."""
        trace = cls(job.files)
        trace._take(job)
        return trace

    @property
    def job(self) -> HtaJob:
        """The job behind the frames.

        Raises:
            ValueError: its files were not read yet.
        """
        if self._job is None:
            msg = "no file was read yet: call parse_traces or load_traces first"
            raise ValueError(msg)
        return self._job

    @property
    def is_parsed(self) -> bool:
        """Whether the files were read."""
        return self._job is not None

    @property
    def trace_files(self) -> dict[int, str]:
        """The file of each rank, of ranks that were not read as well."""
        return self._job.files if self._job is not None else files_of(self._given, self.trace_path)

    @property
    def symbol_table(self) -> TraceSymbolTable:
        """The numbers that stand for names and categories in the frames; empty before files are read."""
        return self._job.symbols if self._job is not None else TraceSymbolTable()

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
    def meta_data(self) -> dict[int, MetaData]:
        """What each file has beside its events."""
        traces = [(rank, self.job.of_rank(rank)) for rank in self.get_ranks()]
        return {rank: reader_of(trace).metadata(trace.facts) for rank, trace in traces}

    def get_ranks(self) -> list[int]:
        """Return the ranks, ascending."""
        return sorted(self._job.traces) if self._job is not None else []

    def get_trace(self, rank: int) -> pd.DataFrame:
        """Return a rank's frame, with the columns that the parser configuration asks for.

        Raises:
            ValueError: the rank was not read.
        """
        self._require(rank)
        if rank not in self._frames:
            self._frames[rank] = frames.parsed_frame(self.job, rank, self.parser_config)
        return self._frames[rank]

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
        traces = self.job.traces.values()
        names = {name for trace in traces for name in trace.names}
        return "MTIA" if any(is_mtia(trace) for trace in traces) else infer_gpu_type(None, names)

    def get_raw_trace_for_one_rank(self, rank: int = 0) -> dict[str, Any]:
        """Return a rank's file as JSON.

        Raises:
            ValueError: the rank was not read.
        """
        self._require(rank)
        return _json_of(self.trace_files[rank])

    def write_raw_trace(self, output_file: str, trace_contents: Mapping[str, Any]) -> None:
        """Write JSON to a file, gzipped if its name ends in ``.gz``; HTA compresses under any name.

        Args:
            output_file: where to.
            trace_contents: such as `get_raw_trace_for_one_rank` returns.
        """
        write_trace(trace_contents, output_file)

    def get_trace_start_unixtime_ns(self, rank: int) -> int:
        """Return when the earliest event of any rank began, ns since 1970.

        Raises:
            ValueError: the rank was not read.
            KeyError: its file does not name the moment that its times count from.
        """
        self._require(rank)
        if self.job.traces[rank].facts.base_ns is None:
            msg = f"{self.trace_files[rank]}: has no baseTimeNanoseconds: its times count from an unknown moment"
            raise KeyError(msg)
        return self.job.first_ns

    def convert_time_series_to_events(
        self, series: pd.DataFrame, counter_name: str, counter_col: str
    ) -> list[dict[str, Any]]:
        """Return a series as counters of a trace file (``"ph": "C"``), which can be appended to its events.

        Args:
            series: has the columns ``pid``, ``ts`` (µs, as in the frames) and `counter_col`; ``name`` and ``id`` are
                used where they are there.
            counter_name: what the value is called, and the counter where the series has no ``name``.
            counter_col: the column of the values.

        Raises:
            ValueError: a column is absent; HTA then returns nothing.
        """
        absent = [column for column in ("pid", "ts", counter_col) if column not in series]
        if absent:
            msg = f"the series has no column {', '.join(absent)}; it has {', '.join(map(str, series.columns))}"
            raise ValueError(msg)
        columns = ["pid", *(column for column in ("name", "id") if column in series)]
        rows = (dict(zip(columns, row, strict=True)) for row in series[columns].itertuples(index=False))
        moments, values = (series["ts"] + self.min_ts).tolist(), series[counter_col].tolist()
        return [
            {"name": counter_name, **row, "ts": ts, "ph": "C", "args": {counter_name: value}}
            for row, ts, value in zip(rows, moments, values, strict=True)
        ]

    @staticmethod
    def flow_event(
        id: int, pid: int, tid: int, ts: float, is_start: bool, name: str, cat: str, args: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return one end of an arrow for a trace file.

        Args:
            id: equal at both ends.
            pid: process of the slice at this end.
            tid: thread of that slice.
            ts: a moment in that slice, µs, in the file's own time.
            is_start: whether the arrow begins here.
            name: of the arrow.
            cat: category.
            args: further arguments.
        """
        end = {"ph": "s" if is_start else "f", "id": id, "pid": pid, "tid": tid, "ts": ts, "cat": cat, "name": name}
        return end | ({} if args is None else {"args": args}) | ({} if is_start else {"bp": "e"})

    def decode_symbol_ids(self, use_shorten_name: bool = True) -> None:
        """Add the columns ``s_name`` and ``s_cat``, the texts behind ``name`` and ``cat``, to all frames.

        Args:
            use_shorten_name: without template arguments, parameters and return types.
        """
        for rank in self.get_ranks():
            decode_symbol_id_to_symbol_name(self.get_trace(rank), self.symbol_table, use_shorten_name)

    def _rank(self, rank: int | None) -> int:
        chosen = self.get_ranks()[0] if rank is None else rank
        self._require(chosen)
        return chosen

    def _require(self, rank: int) -> None:
        if rank not in self.job.traces:
            msg = f"rank {rank} was not read; there are ranks {', '.join(map(str, self.get_ranks()))}"
            raise ValueError(msg)

    def parse_traces(
        self, max_ranks: int = -1, use_multiprocessing: bool = True, use_memory_profiling: bool = True
    ) -> None:
        """Read every event, with the files' own times.

        Args:
            max_ranks: how many ranks to read, the lowest ones; all if -1.
            use_multiprocessing: HTA's; ranks are read in parallel in any case, and results do not depend on it.
            use_memory_profiling: HTA's; nothing is measured.

        Raises:
            HtagraphError: a file or folder is absent or no trace, or two files claim one rank.
        """
        del use_multiprocessing, use_memory_profiling
        if max_ranks >= 0:
            files = files_of(self._given, self.trace_path)
            self._given = {rank: files[rank] for rank in sorted(files)[:max_ranks]}
        self._take(open_job(self._given, self.trace_path, whole=True))

    def parse_single_rank(self, rank: int) -> None:
        """Read every event of one more rank, with the file's own times; see `parse_multiple_ranks`."""
        self.parse_multiple_ranks([rank])

    def parse_multiple_ranks(
        self, ranks: Sequence[int], use_multiprocessing: bool = True, use_memory_profiling: bool = True
    ) -> None:
        """Read every event of some more ranks, with the files' own times; ranks read before stay.

        Args:
            ranks: which ranks.
            use_multiprocessing: HTA's; ranks are read in parallel in any case, and results do not depend on it.
            use_memory_profiling: HTA's; nothing is measured.

        Raises:
            ValueError: there is no file of a rank.
            HtagraphError: a file is absent or no trace.
        """
        del use_multiprocessing, use_memory_profiling
        files = files_of(self._given, self.trace_path)
        absent = [rank for rank in ranks if rank not in files]
        if absent:
            msg = f"there is no file of rank {', '.join(map(str, absent))}; ranks: {', '.join(map(str, sorted(files)))}"
            raise ValueError(msg)
        self._take(open_job({rank: files[rank] for rank in sorted({*self.get_ranks(), *ranks})}, whole=True))

    def align_and_filter_trace(self, include_last_profiler_step: bool | None = False) -> None:
        """Make times count from the first event of any rank, and leave out the last profiler step unless asked for.

        The frames are new ones: columns that were added to the frames of `parse_traces` are not in them.

        Args:
            include_last_profiler_step: keep it.
        """
        self._take(open_job(self._given, self.trace_path, include_last_profiler_step=include_last_profiler_step))

    def load_traces(
        self,
        include_last_profiler_step: bool | None = False,
        use_multiprocessing: bool = True,
        use_memory_profiling: bool = True,
    ) -> None:
        """Read, align and filter in one, with the arguments of `align_and_filter_trace` and `parse_traces`."""
        del use_multiprocessing, use_memory_profiling
        self.align_and_filter_trace(include_last_profiler_step)

    def _take(self, job: HtaJob) -> None:
        self._job, self._frames = job, {}


def parse_trace_file(
    trace_file_path: str, cfg: ParserConfig | None = None
) -> tuple[MetaData, pd.DataFrame, TraceSymbolTable]:
    """Return (what a file has beside its events, its frame, the symbols of the frame), as rank 0.

    Args:
        trace_file_path: the file.
        cfg: which arguments of events become columns; the default configuration if not given.

    Raises:
        HtagraphError: the file is absent or no trace.
    """
    trace = Trace({0: trace_file_path}, parser_config=cfg)
    trace.parse_traces()
    return trace.meta_data[0], trace.get_trace(0), trace.symbol_table


parse_trace_dataframe = parse_trace_file
add_iteration, get_cpu_gpu_correlation = frames.add_iteration, frames.get_cpu_gpu_correlation
transform_correlation_to_index = frames.transform_correlation_to_index


def trace_event_timestamp_to_unixtime_ns(trace_event_ts_us: float, trace_metadata: MetaData) -> int:
    """Return a moment of a file (µs) in ns since 1970; a KeyError where ``Trace.meta_data`` does not say since when."""
    return int(trace_event_ts_us * 1000) + int(trace_metadata["baseTimeNanoseconds"])


def infer_gpu_type(metadata: MetaData | None = None, name_set: Iterable[str] | None = None) -> str:
    """Return the device's type as `Trace.get_device_type` does, from what a file says and the names of its events."""
    if "mtia:hccl" in str(get_value_from_dict(metadata, "distributedInfo.backend", "")):
        return "MTIA"
    names = list(name_set or ())
    kinds = (kind for prefix, kind in _BY_LAUNCH.items() if any(name.startswith(prefix) for name in names))
    return next(kinds, "UNKNOWN GPU")


def set_default_trace_parsing_backend(parser_backend: ParserBackend) -> None:
    """Keep HTA's choice of a reader in the default configuration; htagraph has one reader."""
    ParserConfig._default.set_parser_backend(parser_backend)


def get_default_trace_parsing_backend() -> ParserBackend:
    """Return the reader that was kept, JSON if none was."""
    return ParserConfig._default.parser_backend or ParserBackend.JSON


def create_rank_to_trace_dict(file_list: Sequence[str]) -> tuple[bool, dict[int, str]]:
    """Return True and the file of each rank, which the files' headers name.

    Raises:
        HtagraphError: a file is absent or no trace, or two files claim one rank (HTA keeps the last).
    """
    return True, files_of(file_list)


def create_rank_to_trace_dict_from_dir(trace_dir: str) -> tuple[bool, dict[int, str]]:
    """Return True and the file of each rank in a folder; False and nothing, with a warning, where there is none."""
    try:
        return True, files_of(None, trace_dir)
    except HtagraphError as error:
        warnings.warn(str(error), stacklevel=2)
        return False, {}


def get_trace_files(trace_path: str) -> dict[int, str]:
    """Return the file of each rank in a folder; nothing, with a warning, where there is none."""
    return create_rank_to_trace_dict_from_dir(trace_path)[1]


def read_trace(file_path: str) -> MetaData:
    """Return a trace file as JSON.

    Raises:
        ValueError: its name ends neither in ``.gz`` nor in ``.json``.
    """
    if not file_path.endswith((".gz", ".json")):
        msg = f"{file_path}: the name of a trace file ends in .gz or .json"
        raise ValueError(msg)
    return _json_of(file_path)


parse_trace_dict = read_trace


def _json_of(path: str) -> MetaData:
    data = Path(path).read_bytes()
    root = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    return root if isinstance(root, dict) else {"traceEvents": root}


def write_trace(trace_data: Mapping[str, Any], file_path: str) -> None:
    """Write JSON to a file, whose folder is made, gzipped if its name ends in ``.gz``."""
    text = json.dumps(trace_data, indent=2).encode()
    Path(file_path).parent.mkdir(parents=True, exist_ok=True)
    Path(file_path).write_bytes(gzip.compress(text) if file_path.endswith(".gz") else text)


def update_trace_rank(file_path: str, rank: int) -> None:
    """Write a rank into the header of a trace file."""
    trace = read_trace(file_path)
    info = {**trace.pop("distributedInfo", {}), "rank": rank}
    write_trace({"distributedInfo": info, **trace}, file_path)  # in front, where it is found at once


def validate_trace_format(
    trace_file_path: str, level: str = "standard", ignore_missing_arguments: bool = True
) -> tuple[bool, MetaData]:
    """Return whether a file's arguments have the types that HTA expects, and what is wrong by kind of error.

    Args:
        trace_file_path: the file.
        level: which arguments are known: ``"minimal"``, ``"standard"`` or ``"complete"``.
        ignore_missing_arguments: do not count the arguments that are not known.
    """
    groups = {"minimal": "ARGS_MINIMUM", "standard": "ARGS_DEFAULT", "complete": "ARGS_COMPLETE"}
    known = {spec.raw_name: spec for spec in getattr(ParserConfig, groups[level])}
    try:
        events = read_trace(trace_file_path).get("traceEvents")
    except (OSError, ValueError) as error:
        return False, {"trace_read_error": error}
    if events is None:
        return False, {"trace_data_error": "'traceEvents' section not found"}
    unknown, wrong, errors = Counter[str](), dict[str, str](), MetaData()
    for args in (event["args"] for event in events if "args" in event):
        if not isinstance(args, dict):
            errors["args_data_type"] = f"args is not a dict: {args}"
            continue
        unknown.update(key for key in args if key not in known)
        for key in args.keys() & known.keys():
            spec, value = known[key], args[key]
            kinds = (int, float) if spec.value_type is ValueType.Float else type(spec.default_value)
            if spec.value_type is not ValueType.Object and not isinstance(value, kinds):
                wrong[key] = f"key={key}: value={value} type={type(value)}; expect_type='{spec.value_type.name}'"
    errors |= {"skipped_arguments": dict(unknown)} if unknown and not ignore_missing_arguments else {}
    errors |= {"type_violations": wrong} if wrong else {}
    return not errors, errors


EXECUTION_TRACE_SUPPORTED_EVENTS = ["cpu_op", "user_annotation"]
"""The categories of events that have nodes."""

_COLUMNS = {"et_node_name": "name", "op_schema": "op_schema", **{name: name for name in LISTS}}
"""What `add_et_column` adds, and what a node calls it."""


@dataclass(frozen=True)
class Node:
    """One node of an execution trace."""

    id: int
    name: str
    parent: int
    rf_id: int
    """The record-function id, the ``External id`` of the event; 0 of what is no operator."""
    op_schema: str
    input_shapes: Sequence[Any]
    input_types: Sequence[Any]
    output_shapes: Sequence[Any]
    output_types: Sequence[Any]


class ExecutionTrace:
    """The nodes of an execution trace.

    Args:
        frame: what `read_execution_trace` returned.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """The nodes by id."""
        columns = self.frame[["name", "parent", "rf_id", "op_schema", *LISTS]]
        return {row[0]: Node(*row) for row in columns.itertuples(name=None)}


def load_execution_trace(et_file: str) -> ExecutionTrace:
    """Return the execution trace in a file, as ``torch.profiler.ExecutionTraceObserver`` writes it.

    Args:
        et_file: the JSON file, gzipped or not.

    Raises:
        TraceError: the file cannot be read or is no execution trace.
    """
    return ExecutionTrace(read_execution_trace(Path(et_file).expanduser()))


def correlate_execution_trace(trace: Trace, rank: int, et: ExecutionTrace) -> None:
    """Add a column ``et_node`` to a rank's frame: the node behind each operator and annotation, NaN for none.

    A node is behind an event if its record-function id is the event's ``External id`` and the names are the same.

    Args:
        trace: a job that was read.
        rank: whose execution trace it is.
        et: what `load_execution_trace` returned.

    Raises:
        ValueError: the rank was not read.
        TraceError: ids are shared but most names differ: the two were not recorded in one run.
    """
    frame = trace.get_trace(rank)
    links = link_execution_trace(trace.job.graph, et.frame, rank)
    event = trace.job.graph.activities.event[links.index.to_numpy()]
    node = pd.Series(links["et_node"].to_numpy(np.float64), index=event)
    frame["et_node"] = frame["index"].map(node)


def add_et_column(trace_df: pd.DataFrame, et: ExecutionTrace, column: str) -> None:
    """Add what the nodes hold to a frame with a column ``et_node``.

    Args:
        trace_df: a frame that went through `correlate_execution_trace`.
        et: the same execution trace.
        column: ``op_schema``, ``input_shapes``, ``input_types``, ``output_shapes``, ``output_types`` or
            ``et_node_name``; it is NaN for events without a node.

    Raises:
        SelectionError: there is no such column of nodes, or the frame has no ``et_node``.
    """
    if column not in _COLUMNS:
        msg = f"column {column!r}: choose one of {', '.join(_COLUMNS)}"
        raise SelectionError(msg)
    if "et_node" not in trace_df:
        msg = "the frame has no column 'et_node': call correlate_execution_trace first"
        raise SelectionError(msg)
    trace_df[column] = trace_df["et_node"].map(et.frame[_COLUMNS[column]].astype(object))
