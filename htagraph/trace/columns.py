"""One file as columns: its events and what it says of its recording; read-only, and while the columns grow."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.errors import Issue, TraceError
from htagraph.core.tables import Col, Table
from htagraph.trace.remote import TracePath, fingerprint

__all__ = [
    "CHECKED", "MAX_RANKS", "SAMPLES", "TEXTS", "TYPECODES", "ArgumentColumn", "Device", "Events", "Facts", "Flows",
    "Group", "GrowingTable", "Interner", "LaneInterner", "NodeDependencies", "SparseColumn", "Trace", "as_array",
    "extend", "label", "parse_ranks",
]  # fmt: skip

Lane: TypeAlias = tuple[int | str, int | str]
TEXTS: Final = frozenset((
    "collective_name", "concrete_inputs", "copy_direction", "device_name", "dtype", "filled_memory", "input_dims",
    "input_type", "pg_desc", "pg_name", "pg_ranks", "source_memory", "target_memory",
))  # fmt: skip
"""Arguments whose values are texts, by column name: indices into `Trace.names`."""
CHECKED: Final = Table(
    "Event arguments, and those whose values have an unexpected type",
    Col("category", "str", "current name of the events' category; the phase of events without a category"),
    Col("argument", "str", "key of the argument"),
    Col("known", "bool", "True if the format has the argument; unknown arguments are kept all the same"),
    Col("events", "int64", "number of events that have the argument"),
    Col("converted", "int64", 'number of values of another type that can be converted, such as "7", and of nulls'),
    Col("wrong", "int64", "number of values that cannot be converted"),
    Col("example", "str", "the first wrong value, else the first converted one"),
)
"""The table that `check_arguments` of every format returns."""
SAMPLES: Final = Table(
    "Samples of counters in one file",
    Col("device", "int64", "number of the device, where the file says that it is one; else -1"),
    Col("process", "int64", "number of the process, where it has no other name: maybe that of a device; else -1"),
    Col("counter", "str", "name of the counter, as a rule with its unit"),
    Col("start", "int64", "ns since 1970 on the rank's own clock, as `Events.start`"),
    Col("value", doc="in the counter's unit; NaN if it is no number"),
)
"""The table that `samples` of every format returns."""


@dataclass(frozen=True)
class ArgumentColumn:
    """An argument of events that is an array, one value per event that has it."""

    name: str
    dtype: Literal["int64", "uint64", "float64", "str"]
    missing: int | float | str
    """Value of the events without the argument."""


@dataclass(frozen=True, eq=False)
class SparseColumn:
    """An argument that only some rows have: row numbers (in any order), and one value per row number."""

    rows: npt.NDArray[np.int32]
    values: Array
    missing: int

    def dense(self, count: int) -> Array:
        """Return one value per row of a table of `count` rows; `missing` for rows without the argument."""
        out = np.full(count, self.missing, dtype=self.values.dtype)
        out[self.rows] = self.values
        return out


@dataclass(frozen=True, eq=False)
class Events:
    """Events of one phase as columns."""

    index: npt.NDArray[np.int32]
    """Position in the file's ``traceEvents``."""
    name: npt.NDArray[np.int32]
    """Index into `Trace.names`."""
    category: npt.NDArray[np.int32]
    """Index into `Trace.categories`."""
    lane: npt.NDArray[np.int32]
    """Index into `Trace.lanes`."""
    start: Ints
    """ns since 1970 on the rank's own clock; since an unknown moment if the file has no base time."""
    duration: Ints
    """ns, never negative."""
    args: Mapping[str, SparseColumn]
    """Arguments by column name ; those in `TEXTS` are indices into `Trace.names`."""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def end(self) -> Ints:
        """When each event ended, ns on the clock of `start`."""
        return self.start + self.duration

    def arg(self, column: str) -> Array:
        """Return an argument's value for every row: the column's `missing` for rows without it, -1 if no row has it."""
        sparse = self.args.get(column)
        return np.full(len(self), -1, dtype=np.int64) if sparse is None else sparse.dense(len(self))

    def take(self, keep: Mask) -> Events:
        """Return the table of the rows where `keep` is True."""
        position = np.cumsum(keep, dtype=np.int64) - 1
        args = {}
        for name, column in self.args.items():
            stays = keep[column.rows]
            rows = position[column.rows[stays]].astype(np.int32)
            args[name] = SparseColumn(rows, column.values[stays], column.missing)
        return Events(
            index=self.index[keep], name=self.name[keep], category=self.category[keep], lane=self.lane[keep],
            start=self.start[keep], duration=self.duration[keep], args=args,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Flows:
    """Ends of arrows between events, such as from forward to backward operators; one row per end."""

    id: Ints
    """Id that joins the two ends of an arrow; negative where the file has no number from 0 to 2⁶³ - 1."""
    is_start: Mask
    """True for a start (``ph: s``), False for an end (``ph: f``)."""
    lane: npt.NDArray[np.int32]
    """Index into `Trace.lanes`: the lane of the event at this end."""
    time: Ints
    """ns, on the clock of `Events.start`."""

    def shifted(self, base: int) -> Flows:
        """Return the flows with `base` ns added to their times."""
        return Flows(self.id, self.is_start, self.lane, self.time + base)

    def whole(self) -> tuple[Ints, Ints]:
        """Return (rows of starts, rows of ends) of the arrows that have both ends."""
        starts = np.flatnonzero(self.is_start)
        ends = np.flatnonzero(~self.is_start)
        _, from_start, from_end = np.intersect1d(self.id[starts], self.id[ends], return_indices=True)
        return starts[from_start], ends[from_end]


def _no_events() -> npt.NDArray[np.int32]:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class NodeDependencies:
    """Which nodes of CUDA graphs waited for which, as ids in the file say; one row per dependency of one replay."""

    source: npt.NDArray[np.int32] = field(default_factory=_no_events)
    """The event that was waited for, as in `Events.index`."""
    target: npt.NDArray[np.int32] = field(default_factory=_no_events)
    """The event that waited, as in `Events.index`."""

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, eq=False)
class Trace:
    """One rank's recording."""

    rank: int
    path: TracePath
    facts: Facts
    names: tuple[str, ...]
    categories: tuple[str, ...]
    lanes: tuple[Lane, ...]
    """(process or device, thread or stream) of each lane, as in the file."""
    thread_names: Mapping[Lane, str]
    events: Events
    """Complete events (``ph: X``)."""
    instants: Events
    """Instant events with a category (``ph: i``): memory allocations and frees."""
    flows: Flows
    counts: Mapping[str, int]
    """Number of events in the file by phase, including those that have no row here."""
    issues: tuple[Issue, ...]
    fingerprint: tuple[int, int]
    """Size (bytes) and modification time (ns) of the file, or a number for its tag: whether it was changed later."""
    bookmarks: Mapping[str, Array]
    """What the reader of the file's format needs to find an event again; nothing else looks into it."""
    format: str = "kineto"
    """Name of the format in `htagraph.trace.readers.READERS`."""
    dependencies: NodeDependencies = field(default_factory=NodeDependencies)
    """Dependencies between nodes of CUDA graphs, where the profiler recorded the graphs' topology."""
    recorded_until: int | None = None
    """When the profiler stopped, ns on the clock of `Events.start`; None where the file does not say."""

    def in_categories(self, *wanted: str) -> Mask:
        """Return a mask of the complete events whose category is one of those given."""
        return np.isin(self.events.category, [code for code, name in enumerate(self.categories) if name in wanted])

    def unchanged_path(self) -> TracePath:
        """Return the file's path."""
        try:
            now = fingerprint(self.path)
        except OSError as error:
            why = error.strerror or error
            msg = f"{self.path}: cannot be read again ({why}); most arguments of events are not kept in memory"
            raise TraceError(msg) from error
        if now != self.fingerprint:
            msg = f"{self.path}: was changed since it was loaded; load it again"
            raise TraceError(msg)
        return self.path


K = TypeVar("K")
# type codes of the standard library's array, by dtype and by column
TYPECODES = {"int64": "q", "uint64": "Q", "float64": "d", "str": "i"}
_COLUMN_CODES = {"index": "i", "name": "i", "category": "i", "lane": "i", "start": "q", "duration": "q"}
_MAX_DIGITS = len(str(np.iinfo(np.uint64).max))
"""Digits of an id: those of the largest 64-bit number, so that a longer text is a name."""


class Interner(dict[K, int]):
    """Numbers keys in the order in which they are first asked for."""

    def __missing__(self, key: K) -> int:
        self[key] = number = len(self)
        return number


class LaneInterner(Interner[tuple[Any, Any]]):
    """Numbers (pid, tid) pairs; ids written as text are the same lane as those written as numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes = Interner[Lane]()

    def __missing__(self, key: tuple[Any, Any]) -> int:
        self[key] = number = self.lanes[label(key[0]), label(key[1])]
        return number


def label(value: object) -> int | str:
    """Return a pid, tid or id as an integer if it is one, written as text or not, else as text."""
    if isinstance(value, int):
        return value
    text = str(value)
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS else text


class GrowingTable:
    """Columns of a table while it grows.

    The arrays grow in place. Keeping one small chunk per block instead would fragment the memory that the next blocks'
    objects need: files of gigabytes then take a third longer to decode.
    """

    def __init__(self) -> None:
        self.columns = {name: array(code) for name, code in _COLUMN_CODES.items()}
        self.args: dict[str, tuple[array[int], array[Any]]] = {}
        self.slips: list[tuple[str, int, Array]] = []

    @property
    def count(self) -> int:
        """Number of rows so far."""
        return len(self.columns["index"])

    def add_rows(self, columns: Sequence[Array], starts: tuple[Array, Array], durations: tuple[Array, Array]) -> int:
        """Append rows (index, name, category, lane; both readings of times) and return the number of the first."""
        first = self.count
        for name, values in zip(_COLUMN_CODES, columns, strict=False):
            extend(self.columns[name], values)
        self.add_times("start", *starts)
        self.add_times("duration", *durations)
        return first

    def add_times(self, column: str, padded: Array, unpadded: Array) -> None:
        """Append times (ns); if the unpadded reading of their fractions differs, remember the difference."""
        if padded is not unpadded and (slip := padded - unpadded).any():
            self.slips.append((column, len(self.columns[column]), slip))
        extend(self.columns[column], padded)

    def add_args(self, column: ArgumentColumn, rows: Array, values: Array) -> None:
        """Append one argument's values for some rows; a column that no row has is not made."""
        if not len(rows):
            return
        if column.name not in self.args:
            self.args[column.name] = array("i"), array(TYPECODES[column.dtype])
        for grown, chunk in zip(self.args[column.name], (rows, values), strict=True):
            extend(grown, chunk)

    def keep(self, rows: Array) -> None:
        """Keep the rows where `rows` is True only."""
        position = np.cumsum(rows, dtype=np.int64) - rows
        for name, grown in self.columns.items():
            self.columns[name] = _array(grown.typecode, as_array(grown)[rows])
        for name, (of, values) in self.args.items():
            stays = rows[as_array(of)]
            moved = position[as_array(of)[stays]].astype(np.int32)
            self.args[name] = _array("i", moved), _array(values.typecode, as_array(values)[stays])
        self.slips = [
            (column, int(position[first]), slip[rows[first : first + len(slip)]]) for column, first, slip in self.slips
        ]

    def column(self, name: str, *, unpadded: bool = False) -> Array:
        """Return a column; with `unpadded`, its times are those of the unpadded reading."""
        values = as_array(self.columns[name])
        for column, first, slip in self.slips if unpadded else ():
            if column == name:
                values[first : first + len(slip)] -= slip
        return values


def extend(grown: array[Any], chunk: Array) -> None:
    """Append a numpy array of the same type."""
    grown.frombytes(chunk.view(np.uint8).data)


def _array(code: str, values: Array) -> array[Any]:
    out = array(code)
    extend(out, values)
    return out


def as_array(grown: array[Any]) -> Array:
    """Return an array as a numpy array that shares its memory."""
    return np.frombuffer(grown, dtype=grown.typecode) if len(grown) else np.zeros(0, dtype=grown.typecode)


_INTEGER = re.compile(r"-?\d+", re.ASCII)
MAX_RANKS = 1_000_000
"""Ranks of the largest job, and of the largest group that is rebuilt. Chosen: 10 times the largest jobs known; a larger
size is a damaged number that would only fill memory. Doubling it doubles that memory (8 MB)."""


@dataclass(frozen=True)
class Device:
    """A device that a process could use."""

    id: int | None
    """Number on its host."""
    name: str
    """Product name, or a description of a device without a name; empty if the file says nothing."""
    memory: int = 0
    """Bytes of its memory; 0 if the file does not say."""


@dataclass(frozen=True)
class Group:
    """A process group that a process knows."""

    name: str
    purpose: str
    size: int | None
    """Number of ranks, if the file says it."""
    listed: tuple[int, ...] | str | None
    """The ranks as the file lists them; a text may be cut short, see `parse_ranks`."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """The global ranks in group order; none where they are absent, or cut short beyond rebuilding."""
        return tuple(parse_ranks(self.listed, size=self.size) or ())


@dataclass(frozen=True)
class Facts:
    """What a file says of its recording, in one vocabulary for all formats; what it does not say is empty.

    Example:
        >>> import htagraph as hg
        >>> facts = hg.load("data/demo").traces[0].facts
        >>> facts.rank, facts.world_size, facts.devices[0].name
        (0, 4, 'NVIDIA A100-SXM4-80GB')
    """

    rank: int | None = None
    """The global rank, as the file says it."""
    world_size: int = 0
    """Ranks of the job; 0 if the file does not say."""
    backend: str = ""
    """Backend of the default process group."""
    groups: tuple[Group, ...] = ()
    devices: tuple[Device, ...] = ()
    host: str = ""
    job: str = ""
    run: str = ""
    """World size and job as a text: equal on all ranks of a run, and usually not on other runs."""
    base_ns: int | None = None
    """ns since 1970 that times in the file count from; None if they count from 1970 or from an unknown moment."""
    has_shapes: bool = False
    """Whether shapes of operators' inputs were recorded."""
    has_stacks: bool = False
    """Whether calls of Python functions were recorded."""
    on_cuda: bool = False
    """Whether CUPTI recorded the device."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """How `htagraph.profile` made the recording; empty if it did not."""
    processes: tuple[int, ...] = ()
    """What tells apart the processes that are ranks, in the order of their ranks; empty where a file is one rank."""
    names_records: bool = True
    """Whether waits for events name the record that they wait for, where it is in the file."""
    lacks: tuple[tuple[str, str, str], ...] = ()
    """(question, why it has no full answer, what to record with) for what the profiler could have recorded."""
    exported: bool = False
    """Whether htagraph exported the file from recordings."""
    written: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """All that the file says beside its events, in its own words; graphs do not keep it."""

    @property
    def cores(self) -> frozenset[int]:
        """The cores that the process could use, by the numbers of its host; none if the file does not say."""
        numbers = self.settings.get("cores")
        if isinstance(numbers, list) and all(type(number) is int for number in numbers):
            return frozenset(numbers)
        return frozenset()

    @property
    def origin_ns(self) -> int:
        """What is added to times as in the file, ns."""
        return self.base_ns or 0


def parse_ranks(
    text: str | Sequence[int] | None, *, start: int | None = None, stride: int | None = None, size: int | None = None
) -> list[int] | None:
    """Return the ranks of a process group, rebuilding a list that the profiler cut short.

    Start, stride and size of the group are used where the text is cut short (`...` stands for ranks left out). None if
    the ranks are absent or unreadable, or are no arithmetic progression that agrees with those shown.

    Example:
        >>> parse_ranks("[0, 2, ..., 14]", start=0, stride=2, size=8)
        [0, 2, 4, 6, 8, 10, 12, 14]
    """
    if text is None:
        return _progression([], [], start=start, stride=stride, size=size)
    if not isinstance(text, str):
        return list(text)
    items = [item.strip() for item in text.strip().strip("[]").split(",") if item.strip()]
    if not all(item == "..." or _INTEGER.fullmatch(item) for item in items):
        return None
    if "..." not in items:
        return [int(item) for item in items]
    cut = items.index("...")
    head, tail = ([int(item) for item in part if item != "..."] for part in (items[:cut], items[cut:]))
    if start is None or start < 0 or not stride or stride < 0:
        start, stride = (head[0], head[1] - head[0]) if len(head) > 1 else (None, None)  # as the first ranks suggest
    return _progression(head, tail, start=start, stride=stride, size=size)


def _progression(
    head: list[int], tail: list[int], *, start: int | None, stride: int | None, size: int | None
) -> list[int] | None:
    """Return the arithmetic progression of ranks, or None if it is undefined or contradicts the ranks shown."""
    if start is None or start < 0 or not stride or stride < 0 or not size or size < len(head) + len(tail):
        return None
    ranks = range(start, start + stride * size, stride)
    if size > MAX_RANKS or [*ranks[: len(head)], *ranks[size - len(tail) :]] != [*head, *tail]:
        return None
    return list(ranks)
