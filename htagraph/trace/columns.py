"""Trace: what one file recorded, as read-only columns. One row per event, one array per property."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import TraceError
from htagraph.core.issues import Issue
from htagraph.trace.events import Header

__all__ = ["Flows", "SparseColumn", "Table", "Trace"]

Array: TypeAlias = npt.NDArray[Any]
Lane: TypeAlias = tuple[int | str, int | str]


@dataclass(frozen=True, eq=False)
class SparseColumn:
    """An argument that only some rows have: their row numbers, in no order, and their values."""

    rows: npt.NDArray[np.int32]
    values: Array
    missing: int

    def dense(self, count: int) -> Array:
        """Return one value per row of a table of `count` rows, `missing` where the argument is absent."""
        out = np.full(count, self.missing, dtype=self.values.dtype)
        out[self.rows] = self.values
        return out


@dataclass(frozen=True, eq=False)
class Table:
    """Events of one phase as columns."""

    index: npt.NDArray[np.int32]
    """Position in the file's ``traceEvents``."""
    name: npt.NDArray[np.int32]
    """Index into `Trace.names`."""
    category: npt.NDArray[np.int32]
    """Index into `Trace.categories`."""
    lane: npt.NDArray[np.int32]
    """Index into `Trace.lanes`."""
    start: npt.NDArray[np.int64]
    """ns since the epoch on the rank's own clock (since the file's unknown base where it names none)."""
    duration: npt.NDArray[np.int64]
    """ns, never negative."""
    args: Mapping[str, SparseColumn]
    """Arguments by column name (see htagraph.events); texts are indices into `Trace.names`."""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def end(self) -> npt.NDArray[np.int64]:
        """The moment each event ended, ns."""
        return self.start + self.duration

    def arg(self, column: str) -> Array:
        """Return an argument's value for every row, the column's `missing` where absent; -1 if no row has it."""
        found = self.args.get(column)
        return np.full(len(self), -1, dtype=np.int64) if found is None else found.dense(len(self))

    def take(self, keep: npt.NDArray[np.bool_]) -> Table:
        """Return the rows where `keep` is true."""
        position = np.cumsum(keep, dtype=np.int64) - 1
        args = {}
        for name, column in self.args.items():
            stays = keep[column.rows]
            rows = position[column.rows[stays]].astype(np.int32)
            args[name] = SparseColumn(rows, column.values[stays], column.missing)
        return Table(
            index=self.index[keep], name=self.name[keep], category=self.category[keep], lane=self.lane[keep],
            start=self.start[keep], duration=self.duration[keep], args=args,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Flows:
    """Forward-to-backward arrows: each start (``s``) or end (``f``) lies on the lane and moment of its op."""

    id: npt.NDArray[np.int64]
    is_start: npt.NDArray[np.bool_]
    lane: npt.NDArray[np.int32]
    time: npt.NDArray[np.int64]

    def shifted(self, base: int) -> Flows:
        """Return the flows with `base` ns added to their times."""
        return Flows(self.id, self.is_start, self.lane, self.time + base)


@dataclass(frozen=True, eq=False)
class Trace:
    """One rank's recording."""

    rank: int
    path: Path
    header: Header
    names: tuple[str, ...]
    categories: tuple[str, ...]
    lanes: tuple[Lane, ...]
    """(pid, tid) as the file has them."""
    thread_names: Mapping[Lane, str]
    events: Table
    """Complete events (``ph: X``)."""
    instants: Table
    """Instant events with a category (``ph: i``): memory allocations and frees."""
    flows: Flows
    counts: Mapping[str, int]
    """Events in the file by phase or category, those without a column here included."""
    issues: tuple[Issue, ...]
    fingerprint: tuple[int, int]
    """Size and modification time (ns) of the file, to notice that it changed."""
    unpadded: bool = False
    """Whether the file's fractions of µs lack the zeros at their start; the columns are right all the same."""

    def in_categories(self, *wanted: str) -> npt.NDArray[np.bool_]:
        """Return which complete events are of one of some categories."""
        return np.isin(self.events.category, [code for code, name in enumerate(self.categories) if name in wanted])

    def unchanged_path(self) -> Path:
        """Return the file's path.

        Raises:
            TraceError: the file is gone or was changed since it was read.
        """
        try:
            stat = self.path.stat()
        except OSError as error:
            msg = f"{self.path}: cannot be read again ({error.strerror or error}); arguments are not kept in memory"
            raise TraceError(msg) from error
        if (stat.st_size, stat.st_mtime_ns) != self.fingerprint:
            msg = f"{self.path}: was changed since it was loaded; load it again"
            raise TraceError(msg)
        return self.path
