"""TraceSymbolTable: the numbers for names and categories in HTA's frames; kinds of lanes; groups of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.hta.shapes.names import DEVICE_CATEGORIES, HOST_CATEGORIES, is_step, shorten

__all__ = [
    "MEMCPY_TYPE_TO_STR", "DeviceType", "GroupingPattern", "MemcpyType", "TraceSymbolTable",
    "decode_symbol_id_to_symbol_name", "infer_device_type", "is_device_lane", "to_grouping_pattern",
]  # fmt: skip

MemcpyType = Enum("MemcpyType", ["DTOD", "DTOH", "HTOD", "UNKNOWN"], start=0)
"""Which way a copy goes."""
MEMCPY_TYPE_TO_STR = dict(
    zip(MemcpyType, ("memcpy_dtod", "memcpy_dtoh", "memcpy_htod", "memcpy_type_unknown"), strict=True)
)


class DeviceType(Enum):
    """Host, device, both, or neither for certain."""

    UNKNOWN = 0
    CPU = 1
    GPU = 2
    ALL = 3


@dataclass(unsafe_hash=True)
class GroupingPattern:
    """A group of names: those whose beginning a regular expression matches, or all others."""

    pattern: re.Pattern[str]
    inverse_match: bool = False
    group_name: str = field(default="", hash=False)

    def match(self, name: str) -> bool:
        """Return whether a name belongs to the group."""
        return (self.pattern.match(name) is not None) != self.inverse_match


def to_grouping_pattern(
    pattern: object, group_name: str | None = None, inverse_match: bool | None = None
) -> GroupingPattern:
    """Return a group of names from a regular expression, a text or a list of texts; a group stays as it is.

    Raises:
        ValueError: the pattern is none of these.
    """
    if isinstance(pattern, GroupingPattern):
        return pattern
    if isinstance(pattern, list):
        pattern = "|".join(f"({each})" for each in pattern)
    if isinstance(pattern, str | re.Pattern):
        return GroupingPattern(re.compile(pattern), bool(inverse_match), group_name or "")
    msg = f"Unsupported pattern type: {type(pattern).__name__}; give a text, a list of texts or a regular expression"
    raise ValueError(msg)


_HOST, _DEVICE = "(cpu_op)|(user_annotation)", "(.*kernel)|(^gpu_mem)|(^mtia_ccp_events)|(^cuda_sync)"
(
    ProfilerStepGroupingPattern, MemoryKernelGroupingPattern, MTIAMemoryKernelGroupingPattern,
    CommunicateKernelGroupingPattern, ComputeKernelGroupingPattern, KERNEL_CATEGORY_PATTERN,
    KERNEL_LAUNCH_CATEGORY_PATTERN, CPU_OP_CATEGORY_PATTERN, DEVICE_RUNTIME_CATEGORY_PATTERN, MEMORY_CATEGORY_PATTERN,
    GPU_EVENT_CATEGORY_PATTERN, CPU_EVENTS_CATEGORY_PATTERN, CPU_AND_GPU_EVENTS_CATEGORY_PATTERN,
    PYTHON_FUNCTION_PATTERN, ALL_CATEGORY_PATTERN, CUDA_SYNC_PATTERN,
) = (to_grouping_pattern(pattern, name, inverse_match=name == "Compute") for pattern, name in (
    (r"^ProfilerStep#(\d+)", "Profiler Step"), ("(^(hip)?Memcpy)|(^(hip)?Memset)|(^dma)", "Memory"),
    ("(^dma)", "MTIA Memory"), ("(^nccl.*)|(^hip)|(^hccl)|(.*ncclKernel.*)", "Communicate"),
    ("(^nccl)|(.*Memcpy)|(.*Memset)|(.*dma)|(^.*Sync)|(^Stream Wait Event)|(cuda.*LaunchKernel)|(^runFunction)|(^hip)|"
     "(^job_exe)|(^packet)|(^pe_exe)|(^cpum_exe_subgraph)|(^hccl)|(^collective_subgraph_execution)", "Compute"),
    ("(kernel)|(gpu_mem.+)|(mtia_ccp_events)", "GPU Kernels"),
    ("(cuda.*LaunchKernel)|(cuLaunchKernel)|(^runFunction)", "Kernel Launch"), (_HOST, "CPU Ops"),
    ("(cuda_runtime)|(mtia_runtime)", "Device Runtimes"), ("(gpu_mem.+)|(mtia_ccp_events)", "Memory"),
    (_DEVICE, "GPU Events"), (f"{_HOST}|(^(.+)_runtime)", "CPU Events"),
    (f"{_HOST}|(cuda_runtime)|{_DEVICE}", "CPU/GPU Events"), ("(python_function)", "Python Functions"), (".*", "All"),
    ("(cuda_sync)", "CUDA Sync"),
))  # fmt: skip
"""HTA's groups of names (D10) and categories; analyses go by categories first."""


def infer_device_type(df: pd.DataFrame) -> DeviceType:
    """Return what the events of one thread or stream run on.

    Args:
        df: its rows, with ``stream``, and ``pid`` and ``tid`` where known.
    """
    streams = df["stream"].to_numpy() if "stream" in df else np.zeros(0)
    pid, tid = (df[column].iloc[0] if column in df and df[column].nunique() == 1 else None for column in ("pid", "tid"))
    if len(streams) and is_device_lane(pid, tid, streams):
        return DeviceType.GPU
    return DeviceType.CPU if len(streams) and (streams == -1).all() else DeviceType.UNKNOWN


def is_device_lane(pid: object, tid: object, streams: Array) -> bool:
    """Return whether a group of rows with one pid and tid is a stream or a device's track, and no thread."""
    return bool((streams > 0).all()) or pid == 0 or tid == 0


_LAUNCHES = (
    "cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync",
    "cudaMemsetAsync", "runFunction - job_prep_and_submit_for_execution", "hipLaunchKernel",
    "hipExtModuleLaunchKernel", "hipMemsetAsync", "hipMemcpyAsync", "hipMemcpyWithStream",
)  # fmt: skip
_ENCODED = ("name", "cat")
_TODAY = {
    "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Operator": "cpu_op", "Runtime": "cuda_runtime",
}  # fmt: skip
"""Today's name of the categories of 2021 and before, which frames have instead."""


class _Numbers(dict[str, int]):
    """The number of each symbol; the category of 2021 and before is found as today's, though it is no key."""

    def __missing__(self, symbol: str) -> int:
        if symbol not in _TODAY:
            raise KeyError(symbol)
        return self[_TODAY[symbol]]

    def get(self, symbol: str, default: Any = None) -> Any:  # noqa: ANN401 - as that of every dictionary
        """Return the number of a symbol; the default where it has none."""
        return self[symbol] if symbol in self or _TODAY.get(symbol) in self else default


class TraceSymbolTable:
    """Names and categories, numbered from 0 in the order in which they were added.

    Example:
        >>> table = TraceSymbolTable()
        >>> table.add_symbols(["aten::mm", "cpu_op", "aten::mm"])
        >>> table.get_sym_table(), table.get_sym_id_map()["cpu_op"]
        (['aten::mm', 'cpu_op'], 1)
    """

    NULL: int = -128
    """HTA's number for a symbol that is not in the table; no symbol has a number below 0."""

    def __init__(self) -> None:
        self.sym_table: list[str] = []
        self.sym_index: dict[str, int] = _Numbers()

    def add_symbols(self, symbols: Iterable[str]) -> None:
        """Number the symbols that have no number yet."""
        for symbol in symbols:
            if symbol not in self.sym_index:
                self.sym_index[symbol] = len(self.sym_table)
                self.sym_table.append(symbol)

    def add_symbols_mp(self, symbols_list: Iterable[Iterable[str]]) -> None:
        """Number the symbols of several collections, in one process."""
        for symbols in symbols_list:
            self.add_symbols(symbols)

    def is_empty(self) -> bool:
        """Return True if no symbol has a number."""
        return not self.sym_table

    def get_sym_id_map(self) -> dict[str, int]:
        """Return the number of each symbol."""
        return self.sym_index

    get_sym_index = get_sym_id_map

    def get_sym_table(self) -> list[str]:
        """Return the symbols in the order of their numbers."""
        return self.sym_table

    def get_sym_index_series(self) -> pd.Series:
        """Return the number of each symbol, indexed by symbol."""
        return pd.Series(self.sym_index, dtype="int64")

    def get_sym_table_series(self) -> pd.Series:
        """Return the symbols, indexed by number."""
        return pd.Series(self.sym_table, dtype="str")

    def find_matches(self, patterns: Sequence[str]) -> list[int]:
        """Return the numbers of the symbols in which one of the regular expressions is found."""
        return [self.sym_index[symbol] for symbol in self.find_matched_symbols(patterns)]

    def find_matched_symbols(self, patterns: Sequence[str]) -> list[str]:
        """Return the symbols in which one of the regular expressions is found."""
        wanted = [re.compile(pattern) for pattern in patterns]
        return [symbol for symbol in self.sym_table if any(pattern.search(symbol) for pattern in wanted)]

    def get_symbol_names(self, symbol_ids: Iterable[int]) -> dict[int, str]:
        """Return the symbols of some numbers; numbers without a symbol are left out."""
        return {number: self.sym_table[number] for number in symbol_ids if 0 <= number < len(self.sym_table)}

    def get_symbol_ids(self, pattern: GroupingPattern) -> list[int]:
        """Return the numbers of the symbols of a group."""
        return [number for number, symbol in enumerate(self.sym_table) if pattern.match(symbol)]

    def get_profiler_step_ids(self) -> list[int]:
        """Return the numbers of the names of profiler steps."""
        return [number for symbol, number in self.sym_index.items() if is_step(symbol)]

    def get_cpu_event_cat_ids(self) -> list[int]:
        """Return the numbers of the categories of host events."""
        return self._numbers(HOST_CATEGORIES)

    def get_gpu_kernel_cat_ids(self) -> list[int]:
        """Return the numbers of the categories of kernels, copies and sets."""
        return self._numbers(DEVICE_CATEGORIES)

    def get_memory_name_ids(self) -> list[int]:
        """Return the numbers of the names of copies and sets."""
        return [self.sym_index[symbol] for symbol in self.sym_table if re.match(r"(hip)?Mem(cpy|set)|dma", symbol)]

    def get_kernel_launch_ids(self) -> list[int]:
        """Return the numbers of the names of calls that launch kernels, copies or sets."""
        return self._numbers(_LAUNCHES)

    def get_runtime_launch_events_mask(self, df: pd.DataFrame) -> pd.Series:
        """Return which rows of a frame are calls that launched device work that was recorded."""
        return df["name"].isin(self.get_kernel_launch_ids()) & df["index_correlation"].gt(0)

    def get_operator_or_cuda_runtime_mask(self, df: pd.DataFrame) -> pd.Series:
        """Return which rows of a frame are operators or calls of the CUDA runtime or driver."""
        return df["cat"].isin(self._numbers(("cpu_op", "cuda_runtime", "cuda_driver")))

    def get_events_mask(self, df: pd.DataFrame, events: Sequence[str] | None) -> pd.Series:
        """Return which rows of a frame have a name in which one of the regular expressions is found."""
        return df["name"].isin(self.find_matches(events or []))

    def add_symbols_to_trace_df(self, trace_df: pd.DataFrame, col: str) -> None:
        """Replace numbers by their symbols in a column of the caller's frame; a column of texts stays as it is."""
        if trace_df[col].dtype.kind in "iu":
            trace_df[col] = self._texts(trace_df[col])

    def encode_df(self, df: pd.DataFrame) -> None:
        """Replace the texts of ``name`` and ``cat`` by their numbers.

        Raises:
            KeyError: a text has no number.
        """
        for column in _ENCODED:
            if column in df and df[column].dtype.kind not in "iu":
                df[column] = [self.sym_index[text] for text in df[column]]

    def decode_df(self, df: pd.DataFrame, create_new_columns: bool = True) -> None:
        """Add ``s_name`` and ``s_cat``, the symbols behind ``name`` and ``cat``, or put them in their place."""
        for column in _ENCODED:
            if column in df and df[column].dtype.kind in "iu":
                df[f"s_{column}" if create_new_columns else column] = self._texts(df[column])

    def update_encoded_df(self, df: pd.DataFrame, old_symbol_table: TraceSymbolTable) -> None:
        """Replace the numbers of another table by this table's numbers."""
        for column in _ENCODED:
            df[column] = [self.sym_index[old_symbol_table.sym_table[number]] for number in df[column]]

    @staticmethod
    def create_from_df(df: pd.DataFrame) -> TraceSymbolTable:
        """Return a table of the texts in the columns ``cat`` and ``name``.

        Raises:
            ValueError: a column is absent, or holds numbers.
        """
        if any(column not in df or df[column].dtype.kind in "iuf" for column in _ENCODED):
            msg = "the frame needs columns 'name' and 'cat' that hold texts"
            raise ValueError(msg)
        table = TraceSymbolTable()
        for column in ("cat", "name"):
            table.add_symbols(df[column].unique())
        return table

    @staticmethod
    def create_from_symbol_id_map(symbol_id_map: Mapping[str, int]) -> TraceSymbolTable:
        """Return a table with given numbers; a number that no symbol has is called ``Undefined-<number>``."""
        by_number = {number: symbol for symbol, number in symbol_id_map.items()}
        table = TraceSymbolTable()
        table.add_symbols(by_number.get(i, f"Undefined-{i}") for i in range(max(by_number, default=-1) + 1))
        return table

    @staticmethod
    def combine_symbol_tables(tables: Iterable[TraceSymbolTable]) -> TraceSymbolTable:
        """Return one table of the symbols of several."""
        table = TraceSymbolTable()
        for each in tables:
            table.add_symbols(each.sym_table)
        return table

    @staticmethod
    def clone(symbol_table: TraceSymbolTable) -> TraceSymbolTable:
        """Return a copy of a table."""
        return TraceSymbolTable.combine_symbol_tables([symbol_table])

    @staticmethod
    def from_csv_file(file_path: str) -> TraceSymbolTable:
        """Return the table that a CSV file holds in its column ``symbol``.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file has no such column.
        """
        frame = pd.read_csv(file_path)
        if "symbol" not in frame:
            msg = f"{file_path}: has no column 'symbol', but {', '.join(map(str, frame.columns))}"
            raise ValueError(msg)
        table = TraceSymbolTable()
        table.add_symbols(frame["symbol"].astype(str))
        return table

    def _to_csv_file(self, file_path: str) -> None:
        Path(file_path).write_text(pd.DataFrame({"symbol": self.sym_table}).to_csv(), encoding="utf-8")

    def _texts(self, numbers: Iterable[int]) -> list[str]:
        """Return the symbols of some numbers, ``""`` for a number without one."""
        return [self.sym_table[number] if 0 <= number < len(self.sym_table) else "" for number in numbers]

    def _numbers(self, symbols: Iterable[str]) -> list[int]:
        return [self.sym_index[symbol] for symbol in symbols if symbol in self.sym_index]


def decode_symbol_id_to_symbol_name(
    df: pd.DataFrame, symbol_table: TraceSymbolTable, use_shorten_name: bool = True
) -> None:
    """Add ``s_name`` and ``s_cat`` (and ``s_user_annotation``), the texts behind the numbers, to the caller's frame.

    Args:
        df: a frame of HTA's shape.
        symbol_table: what its numbers stand for.
        use_shorten_name: without template arguments, parameters and return types.
    """
    texts = np.array([*symbol_table.sym_table, ""], dtype=object)  # -1, no symbol, is the empty text at the end
    for column in (*_ENCODED, "user_annotation"):
        if column in df and df[column].dtype.kind in "iu":
            codes = df[column].to_numpy()
            if use_shorten_name:  # only names in the frame: a table may have thousands
                for code in np.unique(codes[codes >= 0]).tolist():
                    texts[code] = shorten(symbol_table.sym_table[code])
            df[f"s_{column}"] = texts[codes]
