"""HTA's helpers for names and frames."""

from __future__ import annotations

import functools
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import activity_kind
from htagraph.hta.configs.config import HtaConfig
from htagraph.hta.shapes.names import memory_type, shorten

if TYPE_CHECKING:
    from htagraph.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = [
    "IdleTimeType", "KernelType", "OperationOutcome", "data_provider", "flatten_column_names", "get_kernel_type",
    "get_memory_kernel_type", "get_symbol_column_names", "get_test_data_dir", "get_value_from_dict", "is_comm_kernel",
    "is_compute_kernel", "is_computer_kernel", "is_memory_kernel", "is_valid_directory", "merge_kernel_intervals",
    "names_of", "normalize_gpu_stream_numbers", "normalize_path", "require", "shorten_name",
]  # fmt: skip

KernelType = Enum("KernelType", ["COMMUNICATION", "MEMORY", "COMPUTATION", "OTHER"], start=0)
"""What a kernel does."""
IdleTimeType = Enum("IdleTimeType", ["HOST_WAIT", "KERNEL_WAIT", "OTHER"], start=0)
"""Why a stream was idle."""

_NO_KERNEL = re.compile(
    r"(cuda|cu|hip(?!Mem(cpy|set))|ze|ur)[A-Z]|runFunction|(Event|Context|Stream) Sync|Stream Wait E"
)
_TYPES = {
    ActivityKind.COMMUNICATION: KernelType.COMMUNICATION, ActivityKind.MEMORY: KernelType.MEMORY,
    ActivityKind.COMPUTATION: KernelType.COMPUTATION,
}  # fmt: skip


shorten_name, get_memory_kernel_type = shorten, memory_type


def flatten_column_names(df: pd.DataFrame) -> None:
    """Join the levels of a frame's columns with underscores, in place; columns of one level stay as they are.

    Example:
        >>> frame = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("dur", "sum"), ("name", "")]))
        >>> flatten_column_names(frame)
        >>> frame.columns.tolist()
        ['dur_sum', 'name']
    """
    if isinstance(df.columns, pd.MultiIndex):
        df.columns = pd.Index(["_".join(map(str, levels)).rstrip("_") for levels in df.columns])


def get_kernel_type(name: str) -> str:
    """Return ``"COMMUNICATION"``, ``"MEMORY"``, ``"COMPUTATION"`` or ``"OTHER"``, by a kernel's name alone.

    A call of a runtime or a driver is no kernel: such names have the prefix of their interface and go on with a capital
    letter.

    Example:
        >>> [get_kernel_type(name) for name in ("ncclDevKernel_AllReduce", "Memset (Device)", "cudaDeviceSynchronize")]
        ['COMMUNICATION', 'MEMORY', 'OTHER']
    """
    kind = KernelType.OTHER if _NO_KERNEL.match(name) else _TYPES.get(activity_kind("kernel", name), KernelType.OTHER)
    return kind.name


def is_comm_kernel(name: str) -> bool:
    """Return True if a kernel of this name communicates."""
    return get_kernel_type(name) == KernelType.COMMUNICATION.name


def is_memory_kernel(name: str) -> bool:
    """Return True if a device event of this name is a copy or a set."""
    return get_kernel_type(name) == KernelType.MEMORY.name


def is_compute_kernel(name: str) -> bool:
    """Return True if a kernel of this name computes."""
    return get_kernel_type(name) == KernelType.COMPUTATION.name


is_computer_kernel = is_compute_kernel


def merge_kernel_intervals(kernel_df: pd.DataFrame) -> pd.DataFrame:
    """Return the intervals in which at least one event ran; intervals that touch are one.

    Args:
        kernel_df: with ``ts`` and ``dur``; it is left as it is.

    Returns:
        ``ts`` and ``end``, in the order of time.

    Example:
        >>> merge_kernel_intervals(pd.DataFrame({"ts": [0, 5, 20], "dur": [10, 2, 1]})).to_numpy().tolist()
        [[0, 10], [20, 21]]
    """
    events = kernel_df[["ts"]].assign(end=kernel_df["ts"] + kernel_df["dur"]).sort_values("ts", kind="stable")
    reached = events["end"].cummax().shift()
    merged = events.groupby((events["ts"] > reached).cumsum().to_numpy()).agg({"ts": "min", "end": "max"})
    return merged.reset_index(drop=True)


class OperationOutcome(NamedTuple):
    """Whether something is so, and if not, why."""

    success: bool
    reason: str


def is_valid_directory(path_to_directory: str, must_be_writable: bool = False) -> OperationOutcome:  # noqa: FBT001, FBT002
    """Return whether a path is a folder that can be read, and written to if that is asked for."""
    path = Path(path_to_directory)
    tests = (
        (bool(path_to_directory), "`path_to_directory` must be a non-empty string"),
        (path.exists(), f"{path_to_directory} does not exist"),
        (path.is_dir(), f"{path_to_directory} is not a directory"),
        (os.access(path, os.R_OK), f"{path_to_directory} is not readable"),
        (not must_be_writable or os.access(path, os.W_OK), f"{path_to_directory} is not writable"),
    )  # fmt: skip
    why = next((reason for holds, reason in tests if not holds), "")
    return OperationOutcome(not why, why)


def normalize_path(path: str) -> str:
    """Return a path with the current folder for ``./`` and the home folder for ``~/``."""
    if path.startswith("./"):
        return str(Path.cwd() / path[2:])
    return str(Path(path).expanduser()) if path.startswith("~/") else path


def get_symbol_column_names(df: pd.DataFrame) -> tuple[str, str]:
    """Return the columns that hold names and categories as texts, each ``""`` if there is none."""
    name, category = (
        next((column for column in (plain, f"s_{plain}") if column in df and df[column].dtype.kind not in "iuf"), "")
        for plain in ("name", "cat")
    )
    return name, category


def require(events: pd.DataFrame, columns: Sequence[str], hint: str, error: type[Exception] = SelectionError) -> None:
    """Refuse a frame that lacks some columns.

    Raises:
        Exception: of the given class; the message ends with the hint.
    """
    absent = [column for column in columns if column not in events]
    if absent:
        msg = f"the frame has no column {', '.join(absent)}{hint}"
        raise error(msg)


def names_of(
    df: pd.DataFrame, symbols: TraceSymbolTable | None, column: str | None = None,
    error: type[Exception] = SelectionError,
) -> pd.Series:  # fmt: skip
    """Return the names as texts: of the column that is named, of the numbers in ``name``, or of ``s_name``.

    Raises:
        Exception: of the given class: there is no such column, or it holds numbers and no table was given.
    """
    wanted = column or ("name" if symbols or "s_name" not in df else "s_name")
    require(df, [wanted], f"; it has {', '.join(map(str, df.columns))}", error)
    if df[wanted].dtype.kind not in "iu":
        return df[wanted]
    if symbols is None:
        msg = "names are numbers in this frame: pass its symbol table, or decode it"
        raise error(msg)
    return df[wanted].map(dict(enumerate(symbols.sym_table)))


def normalize_gpu_stream_numbers(df: pd.DataFrame) -> None:
    """Make the column ``stream`` of the caller's frame integers; what is no number becomes -1."""
    if "stream" not in df:
        warnings.warn("the frame has no column stream: it stays as it is", stacklevel=2)
        return
    df["stream"] = pd.to_numeric(df["stream"], errors="coerce").fillna(-1).astype(np.int64)


def get_value_from_dict(d: Mapping[str, object] | object, key: str, default: object = None) -> object:
    """Return a value from dictionaries within one another.

    Args:
        d: the outermost.
        key: keys with points between them, such as ``"distributedInfo.rank"``.
        default: what to return where one is absent.
    """
    for part in key.split("."):
        if not isinstance(d, dict) or part not in d:
            return default
        d = d[part]
    return d


def get_test_data_dir(*subdirs: str) -> str:
    """Return a folder of HTA's test data, as `HtaConfig.get_test_data_path` finds it.

    Raises:
        FileNotFoundError: it is not there.
    """
    folder = HtaConfig.get_test_data_path(str(Path(*subdirs)))
    if not Path(folder).is_dir():
        msg = f"{folder} is no folder: set TEST_DATA_PREFIX_PATH to a checkout of Holistic Trace Analysis"
        raise FileNotFoundError(msg)
    return folder


def data_provider(data_function: Callable[[], Iterable[Any]]) -> Callable[..., Callable[..., None]]:
    """Return a decorator that runs a test method once for each value that a function gives.

    Args:
        data_function: returns dictionaries of keyword arguments, tuples of arguments, or single arguments.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(self: object, *args: object, **named: object) -> None:
            for data in data_function():
                if isinstance(data, dict):
                    test(self, *args, **named, **data)
                else:
                    test(self, *args, *(data if isinstance(data, tuple) else (data,)), **named)

        return run

    return decorate
