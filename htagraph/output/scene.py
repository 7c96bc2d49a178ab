"""What pictures of a job show: slices on lanes, values of counters, and one colour for each kind of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array, inverse_of
from htagraph.core.compiled import njit
from htagraph.graph.activities import BETWEEN, Lane
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.paths import CriticalPath

__all__ = [
    "BYTES", "COLORS", "COUNT", "GB_S", "KIND_COLORS", "NO_NUMBER", "Scene", "Slices", "Values", "nesting_tracks",
    "path_scene", "rows_below", "scene_of", "threads_first", "tint", "tracks_of",
]  # fmt: skip

COLORS = {
    "blue": "#0072B2", "orange": "#E69F00", "green": "#009E73", "vermillion": "#D55E00", "sky": "#56B4E9",
    "purple": "#CC79A7", "yellow": "#F0E442", "brown": "#8C6D31", "grey": "#999999", "light": "#C4C4C4",
    "dark": "#4D4D4D", "wine": "#882255", "teal": "#44AA99",
}  # fmt: skip
"""Okabe and Ito's colours, which readers of all kinds of colour vision tell apart; brown, wine red, teal, greys."""
KIND_COLORS: Mapping[str, str] = {
    "computation": COLORS["blue"], "communication": COLORS["vermillion"], "memory": COLORS["purple"],
    "host": COLORS["orange"], "launch": COLORS["yellow"], "sync": COLORS["green"], "waiting": COLORS["sky"],
    "data_loading": COLORS["brown"], "gap": COLORS["grey"], "head": COLORS["light"], "idle": COLORS["light"],
    "other_work": COLORS["dark"], "outside": COLORS["wine"], "allocator": COLORS["teal"],
    "op": COLORS["orange"], "host_communication": COLORS["vermillion"], "device_other": COLORS["sky"],
    "module": COLORS["sky"], "annotation": COLORS["green"], "step": COLORS["brown"], "": COLORS["grey"],
}  # fmt: skip
"""Kinds of activity and categories of time: each has one colour in all figures."""
COUNT, GB_S, BYTES = "count", "GB/s", "bytes"
"""Units of counters."""
NO_NUMBER: Final = -(2**63)
"""The duration of what has none, such as an instant."""

Order: TypeAlias = Callable[[Lane, int], Any]
"""What lanes are sorted by, from a lane and how many slices it has; equal ones stay in the order of their numbers."""


class Scene(NamedTuple):
    """Slices on lanes: what a picture of time shows."""

    lanes: list[Lane]
    """The lanes that have slices, from top to bottom."""
    lane: Array
    """The position in `lanes` of each slice."""
    row: Array
    """The row of its lane that each slice is on, from 0."""
    start: Array
    """ns on the common clock."""
    duration: Array
    """ns."""
    activity: Array
    """The activity that each slice shows."""

    def chosen(self, slices: Array) -> Scene:
        """Return some of the slices, in that order, on the same lanes."""
        return Scene(self.lanes, *(column[slices] for column in self[1:]))


def threads_first(lane: Lane, _slices: int) -> tuple[Any, ...]:
    """Order lanes by rank: what is between ranks first, of each rank the main thread, then threads, then streams."""
    return lane.rank, lane.device, lane.stream, lane.pid != lane.tid


def scene_of(
    graph: DependencyGraph, activities: Array, order: Order = threads_first, rows: Callable[..., Array] | None = None
) -> Scene:
    """Return activities as slices on their lanes; `rows` is `rows_below`, `nesting_tracks`, or None for one row.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo", ranks=[0])
        >>> [lane.label for lane in scene_of(graph, graph.select(kind="device").activities, threads_first).lanes]
        ['stream 7', 'stream 20']
    """
    start, end = graph.time[2 * activities], graph.time[2 * activities + 1]
    scene = _placed(graph.lanes, graph.activities.lane[activities], order, (start, end - start, activities))
    return scene if rows is None else scene._replace(row=rows(scene.lane, start, end - start))


def path_scene(path: CriticalPath, order: Order | None = None) -> Scene:
    """Return the segments of a critical path as slices on their lanes; without an order, on their ranks."""
    parts, acts = path.segments, path.graph.activities
    columns = parts.start, parts.length, parts.activity
    if order is not None:
        return _placed(path.graph.lanes, acts.lane[parts.place], order, columns)
    ranks = [Lane(rank, "", "", thread=f"rank {rank}") for rank in range(max(path.graph.ranks, default=-1) + 1)]
    return _placed(ranks, acts.rank[parts.place], lambda lane, _: lane.rank, columns)


def _placed(lanes: Sequence[Lane], number: Array, order: Order, columns: tuple[Array, Array, Array]) -> Scene:
    """Return slices, given the number of each one's lane (-1: between ranks), on their lanes, all in one row."""
    count = np.bincount(number + 1)
    used = np.flatnonzero(count).tolist()
    lane_of = {at: lanes[at - 1] if at else BETWEEN for at in used}
    used.sort(key=lambda at: order(lane_of[at], int(count[at])))
    place = inverse_of(used, len(count))
    return Scene([lane_of[at] for at in used], place[number + 1], np.zeros(len(number), np.int32), *columns)


def tracks_of(lane: Array, row: Array) -> tuple[list[tuple[int, int]], Array]:
    """Return the rows of lanes that have slices, ascending, as (lane, row), and which of them each slice is on.

    Example:
        >>> tracks, track = tracks_of(np.array([1, 0, 1]), np.array([2, 0, 2]))
        >>> tracks, track.tolist()
        ([(0, 0), (1, 2)], [1, 0, 1])
    """
    width = int(row.max(initial=0)) + 1
    track, codes = pd.factorize(lane.astype(np.int64) * width + row, sort=True)
    return [divmod(code, width) for code in codes.tolist()], track


def nesting_tracks(lane: Array, start: Array, duration: Array) -> npt.NDArray[np.int32]:
    """Return for each slice which of its lane's tracks it goes to, so that the slices of each track nest.

    The first track of a lane is 0; a slice goes to the first on which it is inside everything that is under way.

    Example:
        >>> nesting_tracks(np.array([1, 1, 1]), np.array([0, 3, 4]), np.array([5, 5, 1])).tolist()
        [0, 1, 0]
    """
    return _assigned(_assign_tracks, lane, start, duration)


def rows_below(lane: Array, start: Array, duration: Array) -> npt.NDArray[np.int32]:
    """Return for each slice the row of its lane, from 0, that is below all slices that are under way when it starts.

    Example:
        >>> rows_below(np.array([1, 1, 1]), np.array([0, 3, 9]), np.array([5, 5, 1])).tolist()
        [0, 1, 0]
    """
    return _assigned(_assign_rows, lane, start, duration)


def _assigned(assign: Any, lane: Array, start: Array, duration: Array) -> npt.NDArray[np.int32]:  # noqa: ANN401 - compiled
    """Return what a pass over the slices by lane and start, the longer ones first, assigns to each."""
    found = np.zeros(len(lane), np.int32)
    if len(lane):
        order = np.lexsort((-duration, start, lane))
        assign(order, np.stack((lane[order], start[order], (start + duration)[order])), found)
    return found


@njit(cache=True, nogil=True)
def _assign_tracks(order: Array, columns: Array, level: Array) -> None:
    """Put each slice, in order, on the first track of its lane where it is inside everything that is under way."""
    lane, start, end = columns
    innermost, around = [-1], np.empty(len(order), np.int64)  # by track, by slice: a slice, -1 for none
    for at in range(len(order)):
        if at and lane[at] != lane[at - 1]:
            innermost = [-1]
        track = 0
        while True:
            inner = innermost[track]
            while inner >= 0 and end[inner] <= start[at]:
                inner = around[inner]
            innermost[track] = inner
            if inner < 0 or end[at] <= end[inner]:
                break
            track += 1
            if track == len(innermost):
                innermost.append(-1)
        around[at], innermost[track] = innermost[track], at
        level[order[at]] = track


@njit(cache=True, nogil=True)
def _assign_rows(order: Array, columns: Array, row: Array) -> None:
    """Put each slice, in order, below the slices of its lane that are under way."""
    lane, start, end = columns
    under_way = np.empty(len(order), np.int64)
    count = 0
    for at in range(len(order)):
        if at and lane[at] != lane[at - 1]:
            count = 0
        while count and end[under_way[count - 1]] <= start[at]:
            count -= 1
        row[order[at]] = count
        under_way[count] = at
        count += 1


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices and instants of some tracks, as columns of numbers."""

    places: Sequence[tuple[int, int]]
    """Processes and tracks in them, by number."""
    texts: Sequence[str]
    """Names and categories, by number."""
    place: Array
    start: Array
    """ns since the base of what is written, ≥ 0."""
    duration: Array
    """ns; `NO_NUMBER` for instants."""
    name: Array
    category: Array
    """Position in `texts`, -1 for none."""
    args: Array
    """Arguments as JSON: spans of `source` (start · 2³² + length), 0 for none."""
    source: Array
    """Bytes of JSON."""
    more: Array | None = None
    """Other keys and values of each slice as JSON, with a comma before: spans of `source`; None for none at all."""

    def __len__(self) -> int:
        return len(self.place)

    def rows(self, which: Array) -> Slices:
        """Return some of the slices, in that order."""
        shared = ("places", "texts", "source")
        columns = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in shared}
        return replace(self, **{name: column[which] for name, column in columns.items() if column is not None})


@dataclass(frozen=True, eq=False)
class Values:
    """Values of one counter of a process."""

    pid: int
    name: str
    series: str
    unit: str
    moment: Array
    """ns since the base of what is written, ≥ 0."""
    value: Array
    """Integers, or floats of which six decimals are written."""

    def __len__(self) -> int:
        return len(self.moment)


def tint(color: str, share: float = 0.45) -> str:
    """Return a colour, as ``#RRGGBB``, of which a share is left and the rest is white, so that black letters show.

    Example:
        >>> tint("#0072B2", 1.0), tint("#0072B2", 0.5), tint("#0072B2", 0.0)
        ('#0072b2', '#80b8d8', '#ffffff')
    """
    parts = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 - share * (255 - part)):02x}" for part in parts)
