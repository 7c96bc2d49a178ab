"""HTA's trace filters: objects that choose rows of its frames. On graphs, `DependencyGraph.select` does the same.

A filter is called with a frame and, where names are numbers in it, a symbol table. A frame that lacks what a filter
looks at is returned whole, as HTA does, with a warning.
"""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from htagraph.core.errors import SelectionError
from htagraph.core.naming import RUNTIME_CATEGORIES
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable
from htagraph.hta.shapes.names import DEVICE_SYNCS, memory_type
from htagraph.hta.utils.utils import get_symbol_column_names, names_of, require

__all__ = [
    "AfterOperatorFilter", "BeforeOperatorFilter", "CPUOperatorFilter", "CombinedOperatorFilter", "CompositeFilter",
    "Filter", "FirstIterationFilter", "GPUKernelFilter", "IterationFilter", "IterationIndexFilter",
    "MemCopyEventFilter", "NameFilter", "NameIdColumnFilter", "NameStringColumnFilter", "OperatorFilter",
    "OperatorFilterMethod", "QueryFilter", "RankFilter", "TimeRangeFilter", "UnderOperatorFilter",
    "ZeroDurationFilter", "find_events_by_name_patterns_using_decoded_names",
    "find_events_by_name_patterns_using_symbol_table", "find_op_occurrence", "get_iterations", "get_matching_kernels",
]  # fmt: skip

Some: TypeAlias = Any
"""A number or a list of numbers; a filter holds the list."""
_NUMBERS = (int, float, np.integer)
Symbols: TypeAlias = "TraceSymbolTable | None"
Choice: TypeAlias = Callable[[pd.DataFrame, Symbols], pd.DataFrame]


class Filter(ABC):
    """The base of all filters; make your own by writing ``__call__``.

    Example:
        >>> class LongEvents(Filter):
        ...     def __call__(self, df, symbol_table=None):
        ...         return df[df["dur"] > 100]
        >>> LongEvents()(pd.DataFrame({"dur": [50, 150]}))["dur"].tolist()
        [150]
    """

    @abstractmethod
    def __call__(self, df: pd.DataFrame, symbol_table: Symbols = None) -> pd.DataFrame:
        """Return the rows of a frame that the filter keeps.

        Args:
            df: a frame of HTA's shape.
            symbol_table: what the numbers in its columns ``name`` and ``cat`` stand for.
        """


class _ColumnFilter(Filter):
    """A filter that looks at columns which a frame may lack; every row is then kept, with a warning."""

    def __call__(self, df: pd.DataFrame, symbol_table: Symbols = None) -> pd.DataFrame:
        """Return the rows that the filter keeps; all where the frame lacks what it looks at."""
        try:
            return df[self._keeps(df, symbol_table)]
        except SelectionError as error:
            warnings.warn(f"{type(self).__name__}: {error}; every row is kept", stacklevel=2)
            return df

    @abstractmethod
    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        """Return which rows the filter keeps.

        Raises:
            SelectionError: the frame lacks what the filter looks at.
        """


def _take_numbers(choice: Filter) -> None:
    """Make a filter's one field a list of numbers; a single number is a list of one."""
    ((field, value),) = vars(choice).items()
    several = [value] if isinstance(value, int | np.integer) else value
    if not isinstance(several, list | tuple | range) or not all(isinstance(each, int | np.integer) for each in several):
        shown = "Iterations" if field == "iterations" else field
        msg = f"{shown} must be an integer or a list of integers, not {value!r}"
        raise TypeError(msg)
    object.__setattr__(choice, field, list(several))


@dataclass(frozen=True)
class IterationFilter(_ColumnFilter):
    """The events of one or several profiler steps, by number."""

    iterations: Some

    def __post_init__(self) -> None:
        _take_numbers(self)

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        return _column(df, "iteration").isin(self.iterations)


@dataclass(frozen=True)
class IterationIndexFilter(_ColumnFilter):
    """The events of some profiler steps, by position among the frame's steps; all events of a frame without steps."""

    iteration_index: Some

    def __post_init__(self) -> None:
        _take_numbers(self)

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        numbers = _column(df, "iteration")
        steps = sorted(step for step in numbers.unique() if step >= 0)
        chosen = [steps[i] for i in self.iteration_index if 0 <= i < len(steps)]
        return numbers.isin(chosen if steps else numbers)


@dataclass(frozen=True)
class FirstIterationFilter(IterationIndexFilter):
    """The events of the first profiler step."""

    iteration_index: Some = 0


@dataclass(frozen=True)
class RankFilter(_ColumnFilter):
    """The events of one or several ranks, in a frame with a column ``rank``."""

    ranks: Some

    def __post_init__(self) -> None:
        _take_numbers(self)

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        return _column(df, "rank").isin(self.ranks)


@dataclass(frozen=True)
class TimeRangeFilter(_ColumnFilter):
    """The events that lie within (start, end), in the units of ``ts``."""

    time_range: tuple[float, float]

    def __post_init__(self) -> None:
        given: object = self.time_range
        if not (isinstance(given, tuple) and len(given) == 2 and all(isinstance(each, _NUMBERS) for each in given)):
            msg = f"time_range must be a tuple of two numbers (start, end), not {given!r}"
            raise ValueError(msg)
        if given[0] > given[1]:
            msg = (
                f"a time range begins at or before its end (less than or equal): {given[0]} is after its end {given[1]}"
            )
            raise ValueError(msg)

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        start, end = self.time_range
        return (_column(df, "ts") >= start) & (df["ts"] + _column(df, "dur") <= end)


@dataclass(frozen=True)
class NameFilter(_ColumnFilter):
    """The events whose names begin with what a regular expression matches."""

    name_pattern: str
    symbol_table: TraceSymbolTable | None = None
    name_column: str | None = None

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        pattern = re.compile(self.name_pattern)
        names = names_of(df, self.symbol_table or symbols, self.name_column)
        return names.isin({name for name in names.unique() if pattern.match(name)})


@dataclass(frozen=True)
class NameStringColumnFilter(_ColumnFilter):
    """As `NameFilter`, for frames whose names are texts."""

    name_pattern: str

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        return NameFilter(self.name_pattern)._keeps(df, None)


@dataclass(frozen=True)
class NameIdColumnFilter(_ColumnFilter):
    """As `NameFilter`, for frames whose names are numbers."""

    name_pattern: str

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        return NameFilter(self.name_pattern, name_column="name")._keeps(df, symbols)


@dataclass(frozen=True)
class QueryFilter(Filter):
    """The events for which an expression on columns is true."""

    query_str: str

    def __call__(self, df: pd.DataFrame, symbol_table: Symbols = None) -> pd.DataFrame:
        """Return the rows for which it is true."""
        return df.query(self.query_str)


ZeroDurationFilter = QueryFilter("dur > 0")


@dataclass(frozen=True)
class GPUKernelFilter(_ColumnFilter):
    """The device's events: on a stream and correlated, or, with a symbol table, waits for the device."""

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        on_stream = (_column(df, "stream") >= 0) & (_column(df, "correlation") >= 0)
        if symbols is None:
            return on_stream
        return on_stream | _column(df, "name").isin([symbols.sym_index.get(name) for name in DEVICE_SYNCS])


@dataclass(frozen=True)
class CPUOperatorFilter(_ColumnFilter):
    """The host's events: all that are not the device's; without a symbol table, events on no stream."""

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        return ~GPUKernelFilter()._keeps(df, symbols) if symbols else _column(df, "stream") == -1


@dataclass(frozen=True)
class MemCopyEventFilter(_ColumnFilter):
    """The copies of one kind, such as ``"Memcpy DtoH"``."""

    memory_copy_type: str
    symbol_table: TraceSymbolTable | None = None

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        names = names_of(df, self.symbol_table or symbols)
        return names.isin({name for name in names.unique() if memory_type(name) == self.memory_copy_type})


@dataclass(frozen=True)
class CompositeFilter(Filter):
    """Several filters, one after the other."""

    filters: Sequence[Choice]

    def __post_init__(self) -> None:
        if any(not callable(choice) or choice is self for choice in self.filters):
            msg = f"filters must be instances of Filter, not {self.filters!r}"
            raise TypeError(msg)

    def __call__(self, df: pd.DataFrame, symbol_table: Symbols = None) -> pd.DataFrame:
        """Return the rows that all filters leave."""
        for choice in self.filters:
            df = choice(df, symbol_table)
        return df


def get_iterations(df: pd.DataFrame) -> list[int]:
    """Return the profiler steps of a frame, ascending.

    Raises:
        TypeError: the frame has no column ``iteration`` of integers.
    """
    require(df, ["iteration"], ": pass a frame of Trace.get_trace", TypeError)
    if df["iteration"].dtype.kind != "i":
        msg = f"the column iteration holds {df['iteration'].dtype}, not integers"
        raise TypeError(msg)
    return sorted(step for step in df["iteration"].unique().tolist() if step != -1)


def find_op_occurrence(
    df: pd.DataFrame, op_name: str, position: int, name_column: str = "s_name"
) -> tuple[bool, pd.Series]:
    """Return whether an operator occurs at a position (of its occurrences, by time; -1 is the last), and its row."""
    known = not df.empty and "ts" in df and name_column in df
    found = df[df[name_column].eq(op_name)].sort_values("ts", kind="stable") if known else df.iloc[:0]
    inside = -len(found) <= position < len(found)
    return inside, found.iloc[position] if inside else pd.Series(dtype=object)


def find_events_by_name_patterns_using_symbol_table(
    df: pd.DataFrame, list_name_patterns: Sequence[str], symbol_table: TraceSymbolTable
) -> pd.Series:
    """Return ``index`` of the rows whose names begin with what one of some regular expressions matches."""
    return NameIdColumnFilter("|".join(f"(?:{each})" for each in list_name_patterns))(df, symbol_table)["index"]


def find_events_by_name_patterns_using_decoded_names(
    df: pd.DataFrame, list_name_patterns: Sequence[str], name_column: str = "s_name"
) -> pd.Series:
    """Return ``index`` of the rows whose names begin with what one of some regular expressions matches."""
    return NameFilter("|".join(f"(?:{each})" for each in list_name_patterns), name_column=name_column)(df)["index"]


def get_matching_kernels(df_ops: pd.DataFrame, df_both: pd.DataFrame, cat_column: str) -> pd.DataFrame:
    """Return the rows of a frame that the calls among some of its rows launched."""
    calls = df_ops.loc[df_ops[cat_column].isin(RUNTIME_CATEGORIES), "index"]
    return df_both[df_both["index_correlation"].isin(calls)]


OperatorFilterMethod = Enum("OperatorFilterMethod", ["Under", "After", "Before", "Ancestors", "Stack"], start=0)
"""Which events an `OperatorFilter` keeps: those inside the operator, after it or before it."""


@dataclass(frozen=True)
class OperatorFilter(Filter):
    """The events of an operator's stream or of all threads that lie inside the operator, after it or before it.

    Names and categories are texts; a frame that has numbers is returned whole, with a warning. Without that operator,
    or at a position that it does not have, the result is empty.
    """

    op_name: str
    position: int
    method: OperatorFilterMethod
    include_gpu_kernels: bool = False
    name_column: str | None = None

    def __call__(self, df: pd.DataFrame, symbol_table: Symbols = None) -> pd.DataFrame:
        """Return the rows, and behind them, if asked for, those of the kernels that they launched."""
        name, category = get_symbol_column_names(df)
        if self.name_column:
            name, category = self.name_column, self.name_column.replace("name", "cat")
        if any(column not in df or df[column].dtype.kind in "iuf" for column in (name, category)):
            warnings.warn("OperatorFilter: the frame has no names and categories as texts; all are kept", stacklevel=2)
            return df
        found, op = find_op_occurrence(df, self.op_name, self.position, name)
        if not found:
            warnings.warn(f"there is no operator {self.op_name!r} at position {self.position}", stacklevel=2)
            return pd.DataFrame()
        inside = {
            OperatorFilterMethod.Under: df["ts"].ge(op["ts"]) & df["end"].le(op["end"]),
            OperatorFilterMethod.After: df["ts"].ge(op["end"]), OperatorFilterMethod.Before: df["end"].le(op["ts"]),
        }  # fmt: skip
        if self.method not in inside:
            msg = f"method={self.method}: choose Under, After or Before, as in HTA"
            raise NotImplementedError(msg)
        kept = df[inside[self.method] & df["stream"].eq(op["stream"])]
        return pd.concat([kept, get_matching_kernels(kept, df, category)]) if self.include_gpu_kernels else kept


class _OneMethod(OperatorFilter):
    """An operator's filter whose class says the method."""

    def __init__(
        self, op_name: str, position: int, include_gpu_kernels: bool = False, name_column: str | None = None
    ) -> None:
        method = OperatorFilterMethod[type(self).__name__.removesuffix("OperatorFilter")]
        super().__init__(op_name, position, method, include_gpu_kernels, name_column)


AfterOperatorFilter, BeforeOperatorFilter, UnderOperatorFilter = (
    type(f"{method}OperatorFilter", (_OneMethod,), {"__doc__": doc, "__module__": __name__})
    for method, doc in (
        ("After", "The events after an operator."), ("Before", "The events before an operator."),
        ("Under", "The events inside an operator."),
    )
)  # fmt: skip


@dataclass(frozen=True)
class CombinedOperatorFilter(Filter):
    """The first step's events inside one operator, after the last of another and before the first of a third."""

    root_op_name: str
    preceding_op_name: str
    following_op_name: str
    include_gpu_kernels: bool = False
    stack_depths: Sequence[int] | None = None

    def __call__(self, df: pd.DataFrame, symbol_table: Symbols = None) -> pd.DataFrame:
        """Return the rows; what asks for an operator that is absent is left out."""
        name, category = get_symbol_column_names(df)
        if not (name and category):
            warnings.warn("CombinedOperatorFilter: names and categories are no texts; every row is kept", stacklevel=2)
            return df
        found = FirstIterationFilter()(df)
        for op_name, position, chosen in (
            (self.root_op_name, 0, UnderOperatorFilter), (self.preceding_op_name, -1, AfterOperatorFilter),
            (self.following_op_name, 0, BeforeOperatorFilter),
        ):  # fmt: skip
            if find_op_occurrence(found, op_name, position, name)[0]:
                found = chosen(op_name, position, name_column=name)(found)
        if self.include_gpu_kernels and not found.empty:
            found = pd.concat([get_matching_kernels(found, df, category), found])
        if self.stack_depths and "depth" in found:
            found = found[found["stream"].gt(0) | found["depth"].isin(self.stack_depths)]
        return found


def _column(df: pd.DataFrame, name: str) -> pd.Series:
    require(df, [name], f"; it has {', '.join(map(str, df.columns))}")
    return df[name]
