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
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from htagraph.core.errors import SelectionError
from htagraph.hta.shapes.names import memory_type

if TYPE_CHECKING:
    from htagraph.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = [
    "CPUOperatorFilter", "CompositeFilter", "Filter", "FirstIterationFilter", "GPUKernelFilter", "IterationFilter",
    "IterationIndexFilter", "MemCopyEventFilter", "NameFilter", "NameIdColumnFilter", "NameStringColumnFilter",
    "QueryFilter", "RankFilter", "TimeRangeFilter", "ZeroDurationFilter",
]  # fmt: skip

Choice: TypeAlias = Callable[[pd.DataFrame, "TraceSymbolTable | None"], pd.DataFrame]
Some: TypeAlias = int | Sequence[int]
_SYNCS = ("Event Sync", "Context Sync")
"""Waits for the device: on no stream in the file, but the device's all the same."""


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
    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the rows of a frame that the filter keeps.

        Args:
            df: a frame of HTA's shape.
            symbol_table: what the numbers in its columns ``name`` and ``cat`` stand for.
        """


class _ColumnFilter(Filter):
    """A filter that looks at columns which a frame may lack; every row is then kept, with a warning."""

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the rows that the filter keeps; all where the frame lacks what it looks at."""
        try:
            return self._kept(df, symbol_table)
        except SelectionError as error:
            warnings.warn(f"{type(self).__name__}: {error}; every row is kept", stacklevel=2)
            return df

    @abstractmethod
    def _kept(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.DataFrame:
        """Return the rows that the filter keeps.

        Raises:
            SelectionError: the frame lacks what the filter looks at.
        """


@dataclass(frozen=True)
class IterationFilter(_ColumnFilter):
    """The events of one or several profiler steps, by number."""

    iterations: Some

    def _kept(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.DataFrame:
        """Return the rows of these steps."""
        return df[_column(df, "iteration").isin(_several(self.iterations))]


@dataclass(frozen=True)
class IterationIndexFilter(_ColumnFilter):
    """The events of one or several profiler steps, by position among those that the frame has."""

    iteration_index: Some

    def _kept(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.DataFrame:
        """Return the rows of these steps; all where the frame has no steps."""
        steps = sorted(step for step in _column(df, "iteration").unique() if step >= 0)
        chosen = [steps[i] for i in _several(self.iteration_index) if 0 <= i < len(steps)]
        return df[df["iteration"].isin(chosen)] if steps else df


@dataclass(frozen=True)
class FirstIterationFilter(IterationIndexFilter):
    """The events of the first profiler step."""

    iteration_index: Some = 0


@dataclass(frozen=True)
class RankFilter(_ColumnFilter):
    """The events of one or several ranks, in a frame with a column ``rank``."""

    ranks: Some

    def _kept(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.DataFrame:
        """Return the rows of these ranks."""
        return df[_column(df, "rank").isin(_several(self.ranks))]


@dataclass(frozen=True)
class TimeRangeFilter(_ColumnFilter):
    """The events that lie within (start, end), in the units of ``ts``."""

    time_range: tuple[float, float]

    def __post_init__(self) -> None:
        start, end = self.time_range
        if start > end:
            msg = f"the time range begins at {start}, after its end {end}"
            raise ValueError(msg)

    def _kept(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.DataFrame:
        """Return the rows that begin and end within the range."""
        start, end = self.time_range
        return df[(_column(df, "ts") >= start) & (df["ts"] + _column(df, "dur") <= end)]


@dataclass(frozen=True)
class NameFilter(_ColumnFilter):
    """The events whose names begin with what a regular expression matches."""

    name_pattern: str
    symbol_table: TraceSymbolTable | None = None
    name_column: str | None = None

    def _kept(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.DataFrame:
        """Return the rows with matching names."""
        names = _names(df, self.symbol_table or symbol_table, self.name_column)
        pattern = re.compile(self.name_pattern)
        matching = {name for name in names.unique() if pattern.match(name)}
        return df[names.isin(matching).to_numpy()]


@dataclass(frozen=True)
class NameStringColumnFilter(Filter):
    """As `NameFilter`, for frames whose names are texts."""

    name_pattern: str

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the rows with matching names."""
        return NameFilter(self.name_pattern)(df)


@dataclass(frozen=True)
class NameIdColumnFilter(Filter):
    """As `NameFilter`, for frames whose names are numbers."""

    name_pattern: str

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the rows with matching names."""
        return NameFilter(self.name_pattern, name_column="name")(df, symbol_table)


@dataclass(frozen=True)
class QueryFilter(Filter):
    """The events for which an expression on columns is true."""

    query_str: str

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the rows for which it is true."""
        return df.query(self.query_str)


ZeroDurationFilter = QueryFilter("dur > 0")


@dataclass(frozen=True)
class GPUKernelFilter(_ColumnFilter):
    """The device's events: on a stream and correlated, or, with a symbol table, waits for the device."""

    def _kept(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.DataFrame:
        """Return the device's rows."""
        return df[_on_device(df, symbol_table)]


@dataclass(frozen=True)
class CPUOperatorFilter(_ColumnFilter):
    """The host's events: all that are not the device's."""

    def _kept(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.DataFrame:
        """Return the host's rows; without a symbol table those on no stream."""
        return df[~_on_device(df, symbol_table)] if symbol_table else df[_column(df, "stream") == -1]


@dataclass(frozen=True)
class MemCopyEventFilter(_ColumnFilter):
    """The copies of one kind, such as ``"Memcpy DtoH"``."""

    memory_copy_type: str
    symbol_table: TraceSymbolTable | None = None

    def _kept(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.DataFrame:
        """Return the rows of these copies."""
        names = _names(df, self.symbol_table or symbol_table, None)
        matching = {name for name in names.unique() if memory_type(name) == self.memory_copy_type}
        return df[names.isin(matching).to_numpy()]


@dataclass(frozen=True)
class CompositeFilter(Filter):
    """Several filters, one after the other."""

    filters: Sequence[Choice]

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
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


def _names(df: pd.DataFrame, symbols: TraceSymbolTable | None, column: str | None) -> pd.Series:
    """Return the names as texts: of the column that is named, of the numbers in ``name``, or of ``s_name``."""
    names = _column(df, column or ("name" if symbols or "s_name" not in df else "s_name"))
    if names.dtype.kind != "i":
        return names
    if symbols is None:
        msg = "names are numbers in this frame: pass its symbol table, or decode it"
        raise SelectionError(msg)
    return names.map(dict(enumerate(symbols.sym_table)))


def _on_device(df: pd.DataFrame, symbols: TraceSymbolTable | None) -> pd.Series:
    on_stream = (_column(df, "stream") >= 0) & (_column(df, "correlation") >= 0)
    syncs = [symbols.sym_index[name] for name in _SYNCS if name in symbols.sym_index] if symbols else []
    return on_stream | df["name"].isin(syncs)
