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
from typing import TypeAlias

import pandas as pd

from htagraph.core.errors import SelectionError
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable
from htagraph.hta.shapes.names import DEVICE_SYNCS, memory_type

__all__ = [
    "CPUOperatorFilter", "CompositeFilter", "Filter", "FirstIterationFilter", "GPUKernelFilter", "IterationFilter",
    "IterationIndexFilter", "MemCopyEventFilter", "NameFilter", "NameIdColumnFilter", "NameStringColumnFilter",
    "QueryFilter", "RankFilter", "TimeRangeFilter", "ZeroDurationFilter",
]  # fmt: skip

Some: TypeAlias = int | Sequence[int]
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

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        return _column(df, "iteration").isin(_several(self.iterations))


@dataclass(frozen=True)
class IterationIndexFilter(_ColumnFilter):
    """The events of some profiler steps, by position among the frame's steps; all events of a frame without steps."""

    iteration_index: Some

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        numbers = _column(df, "iteration")
        steps = sorted(step for step in numbers.unique() if step >= 0)
        chosen = [steps[i] for i in _several(self.iteration_index) if 0 <= i < len(steps)]
        return numbers.isin(chosen if steps else numbers)


@dataclass(frozen=True)
class FirstIterationFilter(IterationIndexFilter):
    """The events of the first profiler step."""

    iteration_index: Some = 0


@dataclass(frozen=True)
class RankFilter(_ColumnFilter):
    """The events of one or several ranks, in a frame with a column ``rank``."""

    ranks: Some

    def _keeps(self, df: pd.DataFrame, symbols: Symbols) -> pd.Series:
        return _column(df, "rank").isin(_several(self.ranks))


@dataclass(frozen=True)
class TimeRangeFilter(_ColumnFilter):
    """The events that lie within (start, end), in the units of ``ts``."""

    time_range: tuple[float, float]

    def __post_init__(self) -> None:
        start, end = self.time_range
        if start > end:
            msg = f"the time range begins at {start}, after its end {end}"
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
        names = _names(df, self.symbol_table or symbols, self.name_column)
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
        waits = [symbols.sym_index[name] for name in DEVICE_SYNCS if name in symbols.sym_index] if symbols else []
        return on_stream | df["name"].isin(waits)


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
        names = _names(df, self.symbol_table or symbols, None)
        return names.isin({name for name in names.unique() if memory_type(name) == self.memory_copy_type})


@dataclass(frozen=True)
class CompositeFilter(Filter):
    """Several filters, one after the other."""

    filters: Sequence[Choice]

    def __call__(self, df: pd.DataFrame, symbol_table: Symbols = None) -> pd.DataFrame:
        """Return the rows that all filters leave."""
        for choice in self.filters:
            df = choice(df, symbol_table)
        return df


def _column(df: pd.DataFrame, name: str) -> pd.Series:
    if name not in df:
        msg = f"the frame has no column {name!r}; it has {', '.join(map(str, df.columns))}"
        raise SelectionError(msg)
    return df[name]


def _several(value: Some) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def _names(df: pd.DataFrame, symbols: Symbols, column: str | None) -> pd.Series:
    """Return the names as texts: of the column that is named, of the numbers in ``name``, or of ``s_name``."""
    names = _column(df, column or ("name" if symbols or "s_name" not in df else "s_name"))
    if names.dtype.kind != "i":
        return names
    if symbols is None:
        msg = "names are numbers in this frame: pass its symbol table, or decode it"
        raise SelectionError(msg)
    return names.map(dict(enumerate(symbols.sym_table)))
