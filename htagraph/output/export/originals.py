"""The recorded slices and arrows of one rank: what a first pass over its file collects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.issues import Issue, IssueLog
from htagraph.graph.clocks import Clock
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.export.arrows import ArrowEnds, Arrows
from htagraph.output.export.tracks import Slices, nesting_tracks
from htagraph.trace.columns import Interner
from htagraph.trace.kineto.collecting import Columns
from htagraph.trace.kineto.decode import BlockDecoder
from htagraph.trace.kineto.from_blocks import BlockColumns
from htagraph.trace.kineto.from_events import add_durations, add_events
from htagraph.trace.kineto.source import ahead, iter_bytes
from htagraph.trace.kineto.split import split
from htagraph.trace.remote import TracePath

__all__ = ["Lane", "Original", "survey"]

Lane: TypeAlias = tuple[int | str, int | str]

_HOUR_NS = 3_600_000_000_000
"""ns; chosen: other events of a file begin before its first activity by less. Doubled, times are larger numbers."""
_OWN_TIDS = 2_000_000_000
"""Threads without a number that Perfetto reads, and tracks that are added, count from here."""
_MAX_TID = 2**31
"""Threads with larger numbers are numbered anew; chosen: the range of Linux's. Doubled, it reaches the added tracks."""


@dataclass(frozen=True, eq=False)
class Original:
    """The slices and arrows of a rank's file, and how its times are read."""

    rank: int
    path: TracePath
    clock: Clock
    base_ns: int
    """The moment that the file's times are relative to."""
    unpadded: bool
    lanes: tuple[Lane, ...]
    index: Array
    """The position of each slice in the file, ascending."""
    lane: Array
    start: Array
    """Of each slice, ns on the common clock."""
    duration: Array
    level: Array
    """The track of its lane that each slice is drawn on, see `nesting_tracks`."""
    tracks: list[tuple[int, int]]
    """Lane and level of each track that has slices, ascending."""
    track: Array
    """The track of each slice."""
    arrows: Arrows
    header: dict[str, Any]
    """The root keys of the file."""
    first_ns: int | None
    """The earliest moment of any event, on the common clock."""
    issues: tuple[Issue, ...]
    _tids: Interner[tuple[Lane, int]] = field(default_factory=Interner)

    @property
    def moved(self) -> int:
        """Slices that do not nest and went to tracks of their own."""
        return int(np.count_nonzero(self.level))

    def tid(self, lane: Lane, level: int = 0) -> int:
        """Return the number of a thread in what is written."""
        tid = lane[1]
        if level == 0 and isinstance(tid, int) and 0 < tid < _MAX_TID:
            return tid
        return _OWN_TIDS + self._tids[lane, level]

    def common(self, moments: Array) -> npt.NDArray[np.int64]:
        """Return moments since the file's base, ns, on the common clock."""
        return self.clock.common(moments + self.base_ns)


def survey(graph: DependencyGraph, rank: int) -> Original:
    """Return what a first pass over a rank's file collects.

    Raises:
        TraceError: the file is gone or was changed since the graph was made.
    """
    trace = graph.traces[rank]
    path, log = trace.unchanged_path(), IssueLog(str(trace.path))
    columns, decode, header = Columns(log), BlockDecoder(), dict[str, Any]()
    blocks, ends = BlockColumns(columns), ArrowEnds(columns)
    for position, events in split(ahead(iter_bytes(path, log)), decode, header, log, decode.scan):
        if isinstance(events, list):
            add_events(columns, position, events)
            ends.add(events, exact=decode.exact)
        else:
            blocks.add(position, events)
            ends.add_block(events, blocks)
        del events  # see split: before the next block
    add_durations(columns)
    table, unpadded = columns.table(), columns.style.unpadded
    clock = next((clock for clock in graph.clocks if clock.rank == rank), Clock(rank))
    base = trace.facts.origin_ns
    least = _least(graph, rank)
    own = table.start + base
    kept = np.flatnonzero(own >= least)
    kept = kept[np.argsort(table.index[kept], kind="stable")]  # durations of begins and ends come last in the table
    start = clock.common(own[kept])
    lane, duration = table.lane[kept], clock.common(own[kept] + table.duration[kept]) - start
    level = nesting_tracks(lane, start, duration)
    levels = int(level.max(initial=0)) + 1
    track, codes = pd.factorize(lane.astype(np.int64) * levels + level, sort=True)
    tracks = [(code // levels, code % levels) for code in codes.tolist()]
    others = ends.others(unpadded=unpadded) + base
    others = clock.common(others[others >= least])
    moments = [int(each.min()) for each in (start, others) if len(each)]
    arrows = ends.arrows(
        start, Slices(lane, start, duration, level).met, lambda since: clock.common(since + base), unpadded=unpadded
    )
    return Original(
        rank=rank, path=path, clock=clock, base_ns=base, unpadded=unpadded, lanes=tuple(columns.lanes.lanes),
        index=table.index[kept], lane=lane, start=start, duration=duration, level=level, tracks=tracks, track=track,
        arrows=arrows, header=header, first_ns=min(moments, default=None), issues=log.issues(rank),
    )  # fmt: skip


def _least(graph: DependencyGraph, rank: int) -> int:
    """Return the moment on the rank's clock, ns, before which an event's time is an error of the profiler."""
    of_rank = graph.activities.of_rank(rank)
    start = graph.activities.start[of_rank]
    return int(start.min()) - _HOUR_NS if len(start) else -(2**62)
