"""The activities that run during, before or after the n-th occurrence of an operator."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ADDED
from htagraph.core.words import nearest_words
from htagraph.graph.criteria import Mask, named

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Place", "placed"]


class Place(Enum):
    """When an activity runs, relative to an operator."""

    UNDER = "under"
    BEFORE = "before"
    AFTER = "after"


def placed(graph: DependencyGraph, among: Array, occurrence: tuple[str, int], place: Place, *, device: bool) -> Mask:
    """Return which activities run at a place relative to an occurrence of an operator; see `Selection.under`.

    Args:
        graph: the job.
        among: the activities whose occurrences are counted.
        occurrence: name or glob, and the position of the occurrence on each rank, by start.
        place: during, before or after it.
        device: whether device work counts as its launch does; if not, it counts only if the operator is device work.

    Raises:
        SelectionError: no rank has an occurrence at that position.
    """
    acts = graph.activities
    mask = np.zeros(len(acts), np.bool_)
    for row in _occurrences(graph, among, *occurrence):
        of_rank = acts.of_rank(int(acts.rank[row]))
        if place is Place.UNDER:
            fits = (acts.start[of_rank] >= acts.start[row]) & (acts.end[of_rank] <= acts.end[row])
        elif place is Place.BEFORE:
            fits = acts.end[of_rank] <= acts.start[row]
        else:
            fits = acts.start[of_rank] >= acts.end[row]
        same = acts.lane[of_rank] == acts.lane[row] if acts.on_device[row] else ~acts.on_device[of_rank]
        mask[of_rank] |= fits & same
    if device:
        launched = np.flatnonzero(acts.on_device & (acts.cause >= 0))
        mask[launched] |= mask[acts.cause[launched]]
    return mask


def _occurrences(graph: DependencyGraph, among: Array, op: str, position: int) -> list[int]:
    """Return the activity of a name at a position on each rank that has so many."""
    if not isinstance(position, int | np.integer) or isinstance(position, bool):
        msg = f"position {position!r}: give a whole number, 0 for the first, -1 for the last"
        raise SelectionError(msg)
    acts = graph.activities
    matches = np.array([name == op for name in graph.names], np.bool_)
    if not matches.any():
        matches = named(graph.names, op)
    added = np.isin(acts.kind[among], ADDED)  # named after what they belong to
    rows = among[matches[acts.name[among]] & ~added]
    rows = rows[np.lexsort((acts.start[rows], acts.rank[rows]))]
    by_rank = np.split(rows, np.flatnonzero(np.diff(acts.rank[rows])) + 1) if len(rows) else []
    occurrences = [int(of_rank[position]) for of_rank in by_rank if -len(of_rank) <= position < len(of_rank)]
    if not occurrences:
        most = max(map(len, by_rank), default=0)
        near = "" if most else nearest_words(op, {graph.names[name] for name in acts.name[among]})
        msg = f"{op!r} at position {position}: no rank has so many here; the most is {most}{near}"
        raise SelectionError(msg)
    return occurrences
