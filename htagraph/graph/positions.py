"""What lies under, before or behind the n-th occurrence of an operator."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ADDED
from htagraph.graph.criteria import Mask, named

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Place", "placed"]

Array: TypeAlias = npt.NDArray[Any]


class Place(Enum):
    """Where an activity lies, seen from an operator."""

    UNDER = "under"
    BEFORE = "before"
    AFTER = "after"


def placed(graph: DependencyGraph, among: Array, occurrence: tuple[str, int], place: Place, *, device: bool) -> Mask:
    """Return which activities lie so, seen from the n-th activity of a name of each rank; see `Selection.under`.

    Args:
        graph: the job.
        among: the activities that are counted.
        occurrence: name or glob, and which of them by start.
        place: where to look.
        device: whether device work lies where its launch does; else it lies nowhere, unless the operator is such work.

    Raises:
        SelectionError: no rank has so many.
    """
    acts = graph.activities
    mask = np.zeros(len(acts), np.bool_)
    for row in _occurrences(graph, among, *occurrence):
        mine = acts.of_rank(int(acts.rank[row]))
        if place is Place.UNDER:
            fits = (acts.start[mine] >= acts.start[row]) & (acts.end[mine] <= acts.end[row])
        elif place is Place.BEFORE:
            fits = acts.end[mine] <= acts.start[row]
        else:
            fits = acts.start[mine] >= acts.end[row]
        same = acts.lane[mine] == acts.lane[row] if acts.on_device[row] else ~acts.on_device[mine]
        mask[mine] |= fits & same
    if device:
        launched = np.flatnonzero(acts.on_device & (acts.cause >= 0))
        mask[launched] |= mask[acts.cause[launched]]
    return mask


def _occurrences(graph: DependencyGraph, among: Array, op: str, position: int) -> list[int]:
    """Return the n-th activity of a name of each rank that has so many."""
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
    found = [int(each[position]) for each in by_rank if -len(each) <= position < len(each)]
    if not found:
        most = max(map(len, by_rank), default=0)
        msg = f"{op!r} at position {position}: no rank has so many here; the most is {most}"
        raise SelectionError(msg)
    return found
