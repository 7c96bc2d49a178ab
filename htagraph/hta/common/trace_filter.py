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
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from htagraph.core.errors import SelectionError
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable
from htagraph.hta.shapes.names import DEVICE_SYNCS, memory_type
from htagraph.hta.utils.utils import names_of, require

__all__ = [
    "CPUOperatorFilter", "CompositeFilter", "Filter", "FirstIterationFilter", "GPUKernelFilter", "IterationFilter",
    "IterationIndexFilter", "MemCopyEventFilter", "NameFilter", "NameIdColumnFilter", "NameStringColumnFilter",
    "QueryFilter", "RankFilter", "TimeRangeFilter", "ZeroDurationFilter",
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


@dataclass(frozen=True)
class IterationFilter(_ColumnFilter):
    """The events of one or several profiler steps, by number."""

    iterations: Some

    def __post_init__(self) -> None:
        _take_numbers(self, "iterations", "Iterations")

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        return _column(df, "iteration").isin(self.iterations)


@dataclass(frozen=True)
class IterationIndexFilter(_ColumnFilter):
    """The events of some profiler steps, by position among the frame's steps; all events of a frame without steps."""

    iteration_index: Some

    def __post_init__(self) -> None:
        _take_numbers(self, "iteration_index")

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
        _take_numbers(self, "ranks")

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


def _column(df: pd.DataFrame, name: str) -> pd.Series:
    require(df, [name], f"; it has {', '.join(map(str, df.columns))}")
    return df[name]


def _take_numbers(choice: Filter, field: str, shown: str = "") -> None:
    """Make a filter's field a list of numbers; a single number is a list of one."""
    value = getattr(choice, field)
    several = [value] if isinstance(value, int | np.integer) else value
    if not isinstance(several, list | tuple | range) or not all(isinstance(each, int | np.integer) for each in several):
        msg = f"{shown or field} must be an integer or a list of integers, not {value!r}"
        raise TypeError(msg)
    object.__setattr__(choice, field, list(several))
