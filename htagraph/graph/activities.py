"""The parts of a graph as columns: the activities of all ranks, the edges between them, the lanes they ran on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, marked
from htagraph.core.computing import in_parts
from htagraph.core.kinds import DEVICE, DEVICE_WORK, ActivityKind, EdgeKind, Provenance, of_kinds
from htagraph.core.naming import is_graph_launch, names_that
from htagraph.trace.columns import SparseColumn

if TYPE_CHECKING:
    from htagraph.graph.clocks import Clock

__all__ = [
    "BETWEEN", "CUT", "OPEN", "Activities", "Edges", "Lane", "blocked_since", "common_time", "frozen", "lane_moments",
    "replayed", "worked_until",
]  # fmt: skip

CUT = "cut"
"""The argument of activities whose impossible duration was cut at the start of the next one: an upper bound."""
OPEN = "open_at_end"
"""The argument of regions that were open when the profiler stopped, and end at that moment."""


def frozen(array: Array) -> Array:
    """Return the array after making it read-only."""
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class Lane:
    """A serial executor: a host thread or a device stream of one rank."""

    rank: int
    pid: int | str
    tid: int | str
    device: int = -1
    """Local device ordinal; -1 for host threads."""
    stream: int = -1
    """Stream id; -1 for host threads."""
    thread: str = ""
    """The thread's name where the trace has it."""

    @property
    def label(self) -> str:
        """Return a short name for tables: ``stream 7`` or ``thread 123 (python)``."""
        if self.stream >= 0:
            return f"stream {self.stream}" if self.device <= 0 else f"device {self.device} stream {self.stream}"
        return self.thread or f"thread {self.tid}"


BETWEEN = Lane(-1, "", "", thread="between ranks")
"""The lane of JOINs, whose lane number is -1."""


@dataclass(frozen=True, eq=False)
class Activities:
    """One row per activity of all ranks, ordered by rank and then as in the file; JOINs (no rank) come last."""

    rank: npt.NDArray[np.int32]
    """The rank; -1 for JOINs, which are between ranks."""
    kind: npt.NDArray[np.int8]
    """ActivityKind."""
    name: npt.NDArray[np.int32]
    """Index into `DependencyGraph.names`."""
    category: npt.NDArray[np.int32]
    """Index into `DependencyGraph.names`: the category in the file."""
    lane: npt.NDArray[np.int32]
    """Index into `DependencyGraph.lanes`."""
    start: Ints
    """ns on the rank's own clock; for JOINs, on the common clock."""
    duration: Ints
    """ns."""
    step: npt.NDArray[np.int32]
    """N of the enclosing ProfilerStep#N, for device work that of its launch; -1 outside of steps."""
    parent: npt.NDArray[np.int32]
    """The innermost activity that encloses this one on its thread; for work of a replayed CUDA graph the innermost
    frame that a capture has around it (`construction.borrowing`); -1 for none and for other device work."""
    cause: npt.NDArray[np.int32]
    """For device work: the launch that enqueued it, or, where that is missing, the operator with its External id; -1 if
    unknown and for host activities."""
    event: npt.NDArray[np.int32]
    """Position among the file's events; -1 for activities that the graph adds."""
    args: Mapping[str, SparseColumn] = field(default_factory=dict)
    """Arguments by column name; texts are indices into `DependencyGraph.names`."""

    def __len__(self) -> int:
        return len(self.rank)

    @cached_property
    def end(self) -> Ints:
        """The moment each activity ended, ns."""
        return frozen(self.start + self.duration)

    def moment(self, vertex: Array) -> Ints:
        """Return when vertices were recorded, ns: 2i is the start of activity i, 2i + 1 its end."""
        out = np.empty(len(vertex), np.int64)
        for part in in_parts(len(vertex)):
            row = vertex[part] >> 1
            out[part] = self.start[row] + (vertex[part] & 1) * self.duration[row]
        return out

    @cached_property
    def ranked(self) -> int:
        """How many activities belong to a rank: all but the JOINs, which come last."""
        return int((self.kind != ActivityKind.JOIN).sum())

    @cached_property
    def origin(self) -> int:
        """The earliest start of any activity, ns; 0 without activities."""
        return int(self.start[: self.ranked].min()) if self.ranked else 0

    @cached_property
    def last(self) -> int:
        """The latest end of any activity, ns; 0 without activities."""
        return int(self.end[: self.ranked].max()) if self.ranked else 0

    @cached_property
    def on_device(self) -> Mask:
        """Which activities ran on a device stream."""
        return frozen(of_kinds(self.kind, DEVICE))

    @cached_property
    def borrowed(self) -> Mask:
        """Which activities are frames that a capture lent to the kernels of a CUDA graph."""
        lent = self.args.get("captured_event")
        return frozen(marked(np.zeros(0, np.int32) if lent is None else lent.rows, len(self)))

    def of_rank(self, rank: int) -> slice:
        """Return the rows of a rank's activities as a slice; empty for a rank without activities."""
        key = np.int32(rank)  # of the column's type: any other would make numpy convert the whole column
        ranks = self.rank[: self.ranked]
        return slice(int(np.searchsorted(ranks, key)), int(np.searchsorted(ranks, key, side="right")))

    def rank_and_step(self, rows: Array) -> Ints:
        """Return a number for the rank and step of each activity."""
        return self.rank[rows].astype(np.int64) << 32 | self.step[rows].astype(np.int64)

    def by_stream(self) -> list[Ints]:
        """Return the device activities of each stream that has any, in the order of their starts, ties as in the file.

        Streams come in the order of their lanes.
        """
        rows = np.flatnonzero(self.on_device)
        order = rows[np.lexsort((self.start[rows], self.lane[rows]))]
        return np.split(order, np.flatnonzero(np.diff(self.lane[order])) + 1) if len(order) else []

    def arg(self, column: str) -> Array:
        """Return an argument's value for every activity, -1 where absent."""
        sparse = self.args.get(column)
        return np.full(len(self), -1, dtype=np.int64) if sparse is None else sparse.dense(len(self))

    def take(self, kept: Mask) -> Activities:
        """Return the activities that are kept; the parents and causes of those that are left out are unknown."""
        number = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        columns = {name: getattr(self, name)[kept] for name in Activities.__dataclass_fields__ if name != "args"}
        for name in ("parent", "cause"):
            columns[name] = np.where(columns[name] >= 0, number[columns[name]], -1).astype(np.int32)
        args = {}
        for name, column in self.args.items():
            stays = kept[column.rows]
            args[name] = SparseColumn(number[column.rows[stays]], column.values[stays], column.missing)
        return Activities(**columns, args=args)

    def followed_by(self, **columns: Any) -> Activities:  # noqa: ANN401 - an array, or one value for all
        """Return these activities, then some that the graph adds: -1 in columns that are not given, and no duration."""
        longer: dict[str, Any] = {}
        for name in Activities.__dataclass_fields__.keys() - {"args"}:
            column = getattr(self, name)
            added = np.broadcast_to(columns.get(name, 0 if name == "duration" else -1), len(columns["start"]))
            longer[name] = np.concatenate([column, added.astype(column.dtype)])
        return replace(self, **longer)

    @staticmethod
    def concatenate(parts: Iterable[Activities]) -> Activities:
        """Return the activities of all parts, one part after the other; what they refer to keeps its numbers."""
        columns = [vars(part).copy() for part in parts]  # each of which is freed once it is copied
        of_parts = [dict(each.pop("args")) for each in columns]
        args = {}
        for column in dict.fromkeys(name for each in of_parts for name in each):
            own = [each.pop(column) for each in of_parts if column in each]
            rows, values = (np.concatenate([getattr(each, name) for each in own]) for name in ("rows", "values"))
            args[column] = SparseColumn(rows, values, own[0].missing)
        dense = [name for name in Activities.__dataclass_fields__ if name != "args"]
        return Activities(**{name: np.concatenate([each.pop(name) for each in columns]) for name in dense}, args=args)


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges as columns, sorted by (source, target) once they are in a graph."""

    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    lag: Ints
    """ns."""
    kind: npt.NDArray[np.int8]
    """EdgeKind."""
    provenance: npt.NDArray[np.int8]
    """Provenance."""
    activity: npt.NDArray[np.int32]
    """The activity that the edge's lag counts for (for HOST_ORDER, the gap at its target); -1 for none."""
    confidence: npt.NDArray[np.int8]
    """How sure the edge is, percent; 100 for every edge that is not inferred."""

    def __len__(self) -> int:
        return len(self.source)

    def take(self, which: Array) -> Edges:
        """Return the edges of a mask or index array, in its order."""
        return Edges(*(getattr(self, name)[which] for name in Edges.__dataclass_fields__))

    @staticmethod
    def concatenate(parts: Iterable[Edges]) -> Edges:
        """Return the edges of all parts, one part after the other."""
        columns = [vars(part).copy() for part in parts]
        return Edges(*(np.concatenate([each.pop(name) for each in columns]) for name in Edges.__dataclass_fields__))

    @staticmethod
    def of(  # noqa: PLR0913 - a keyword per column
        source: Array, target: Array, lag: Array | int, kind: EdgeKind, provenance: Array | Provenance, *,
        activity: Array | int = -1, confidence: Array | int = 100,
    ) -> Edges:  # fmt: skip
        """Return edges of one kind."""
        count = len(source)
        return Edges(
            source.astype(np.int32, copy=False), target.astype(np.int32, copy=False),
            np.broadcast_to(np.asarray(lag, np.int64), count), np.broadcast_to(np.int8(kind), count),
            np.broadcast_to(np.asarray(provenance, np.int8), count),
            np.broadcast_to(np.asarray(activity, np.int32), count),
            np.broadcast_to(np.asarray(confidence, np.int8), count),
        )  # fmt: skip


def common_time(acts: Activities, clocks: Sequence[Clock]) -> Ints:
    """Return the time of each vertex on the common clock, ns: the recorded time minus the clock error of its rank."""
    time = np.empty(2 * len(acts), np.int64)
    time[0::2], time[1::2] = acts.start, acts.end
    for clock in clocks:
        if clock.offset_ns or clock.drift_ppm:
            of_rank = acts.of_rank(clock.rank)
            own = slice(2 * of_rank.start, 2 * of_rank.stop)
            time[own] = clock.common(time[own])
    return time


def blocked_since(acts: Activities, rows: Array) -> Ints:
    """Return since when the thread of each piece of communication did nothing but wait for it, ns on the rank's clock.

    That is the end of the last operator that the thread began meanwhile, or the end of the last other communication
    that it waited for, if that is later; it is its own end where an operator still runs then, and its start where
    there is neither, as on streams and on a backend's own threads.

    Example:
        >>> import htagraph as hg
        >>> acts = hg.load("data/demo").activities
        >>> kernels = np.flatnonzero(acts.kind == ActivityKind.COMMUNICATION)
        >>> bool((blocked_since(acts, kernels) == acts.start[kernels]).all())  # a stream does nothing else
        True
    """
    since = np.minimum(worked_until(acts, rows), acts.end[rows])
    every = _beside(acts, rows, ActivityKind.HOST_COMMUNICATION)
    if not len(every):
        return since
    ends = np.sort(lane_moments(acts, every, acts.end[every]))
    own = acts.kind[rows] == ActivityKind.HOST_COMMUNICATION
    before = np.searchsorted(ends, lane_moments(acts, rows, acts.end[rows])) - 1
    key = np.maximum(lane_moments(acts, rows, since), np.where(own & (before >= 0), ends[before], 0))
    return np.asarray(since + key - lane_moments(acts, rows, since))


def worked_until(acts: Activities, rows: Array) -> Ints:
    """Return when the last operator ended that the thread of each piece of communication began during it, ns.

    What a backend's own thread runs inside a piece of communication is part of that. Where there is no other operator,
    it is the start of the communication.

    Example:
        >>> import htagraph as hg
        >>> acts = hg.load("data/demo").activities
        >>> worked_until(acts, np.flatnonzero(acts.kind == ActivityKind.HOST_COMMUNICATION)).tolist()  # it has devices
        []
    """
    until = acts.start[rows].astype(np.int64)
    ops = _beside(acts, rows, ActivityKind.OP)
    own = np.flatnonzero((acts.kind[rows] == ActivityKind.HOST_COMMUNICATION) & ~np.isin(rows, acts.parent[ops]))
    if not len(own) or not len(ops):
        return until
    members = rows[own]
    ops = ops[np.isin(acts.lane[ops], acts.lane[members])]
    begins = lane_moments(acts, ops, acts.start[ops])
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], acts.end[ops[order]]
    first = np.searchsorted(begins, lane_moments(acts, members, acts.start[members]), side="right")
    last = np.searchsorted(begins, lane_moments(acts, members, acts.end[members]))
    some = last > first
    if some.any():
        spans = np.stack([first[some], last[some]], axis=1).ravel()
        until[own[some]] = np.maximum.reduceat(np.append(ends, 0), spans)[::2]
    return until


def _beside(acts: Activities, rows: Array, kind: ActivityKind) -> Ints:
    """Return the activities of a kind on the ranks of some activities, and on the ranks between."""
    if not len(rows):
        return np.zeros(0, np.int64)
    first, last = (acts.of_rank(int(find(acts.rank[rows]))) for find in (np.min, np.max))
    return first.start + np.flatnonzero(acts.kind[first.start : last.stop] == kind)


def replayed(acts: Activities, names: Sequence[str]) -> Mask:
    """Return which activities are kernels and copies that a launch of a CUDA graph started."""
    launch = (acts.kind == ActivityKind.LAUNCH) & names_that(is_graph_launch, names)[acts.name]
    if not launch.any():
        return launch
    return of_kinds(acts.kind, DEVICE_WORK) & (acts.cause >= 0) & launch[acts.cause]


def lane_moments(acts: Activities, rows: Array, time: Array) -> Ints:
    """Return numbers that order moments on some activities' lanes by lane, then by time (ns on the rank's clock)."""
    return np.asarray(acts.lane[rows].astype(np.int64) * (acts.last - acts.origin + 1) + time - acts.origin)
