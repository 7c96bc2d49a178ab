"""One file → its part of the graph: all of it, or some steps or a window of time, then in memory for these alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import HOST_CATEGORIES, RUNTIME_CATEGORIES, Naming, activity_kind, names_like, step_number
from htagraph.graph.construction.activities import RankPart, prepare
from htagraph.graph.tolerances import LIMITS
from htagraph.trace.columns import Trace
from htagraph.trace.kept import Extent, Frames, Survey, Windows, merged, overlaps

__all__ = ["ReadTrace", "Surveyed", "Wanted", "part_of", "survey", "thin_part_of"]


class ReadTrace(Protocol):
    """Reads a file."""

    def __call__(self, *, frames: Frames, sieve: Survey | Windows | None = None) -> Trace:
        """Return what it holds; see `read_trace`."""


@dataclass(frozen=True)
class Wanted:
    """What of each file is wanted."""

    steps: tuple[int, ...] | None = None
    """Numbers of steps; None for all."""
    span: tuple[int, int] | None = None
    """A window, ns on the clock of the file's trace; None for all."""
    python: bool | None = None
    """Whether calls of Python functions are; None if they are not too many, see `MOST_FRAMES`."""


@dataclass(frozen=True, eq=False)
class Surveyed:
    """What is known of a file before its events are kept."""

    marks: Trace
    """The file with the annotations of steps alone."""
    extent: Extent
    """Times of its events, ns as in the file."""
    first: int
    """When its first activity starts, ns on the clock of the trace."""
    last: int
    """When its last activity starts, as `first`."""

    @property
    def base(self) -> int:
        """What is added to times as in the file, ns."""
        return self.marks.facts.origin_ns


def survey(read: ReadTrace, wanted: Wanted) -> Surveyed:
    """Return a file's steps and times; reads it once, and keeps little in memory."""
    sieve = Survey()
    marks = read(frames=Frames(asked=False), sieve=sieve)
    frames, base = Frames(asked=wanted.python), marks.facts.origin_ns
    return Surveyed(marks, sieve.extent, sieve.first(frames) + base, sieve.last(frames) + base)


def part_of(read: ReadTrace, wanted: Wanted, naming: Naming) -> RankPart:
    """Return what is wanted of a file, all of which is in memory at first."""
    return prepare(read(frames=Frames(asked=wanted.python)), naming, wanted.steps, wanted.span)


def thin_part_of(read: ReadTrace, wanted: Wanted, naming: Naming, surveyed: Surveyed) -> RankPart:
    """Return what `part_of` returns; but what is not wanted is dropped while the file is read.

    Which step an activity is in depends on what encloses it. So all is kept that overlaps a window around each step,
    and the windows are right if they hold all of what begins in a step. Else the file is read again with longer ones.
    """
    marks = _marks(surveyed.marks, naming, wanted.steps)
    if wanted.steps is None:
        windows = np.array([wanted.span], np.int64).reshape(-1, 2)
    else:  # with a margin
        more = (marks[:, 1] - marks[:, 0]) // LIMITS.margin
        windows = merged(np.stack([marks[:, 0], marks[:, 1] + more], axis=1))
    for _ in range(LIMITS.readings):
        sieve = Windows(windows - surveyed.base, surveyed.extent, surveyed.marks.events.index)
        trace = read(frames=Frames(asked=wanted.python, windows=sieve.windows), sieve=sieve)
        needed = _needed(trace, naming, marks) if wanted.steps is not None else windows
        longer = merged(np.concatenate([windows, needed]))
        if np.array_equal(longer, windows):
            return prepare(trace, naming, wanted.steps, wanted.span, sieve.launches)
        windows = longer
        del trace
    return part_of(read, wanted, naming)


def _marks(trace: Trace, naming: Naming, steps: tuple[int, ...] | None) -> Array:
    """Return start and end of the annotations of some steps."""
    table = trace.events
    chosen = [
        activity_kind(trace.categories[category], trace.names[name], naming) == ActivityKind.STEP
        and step_number(trace.names[name]) in (steps or ())
        for category, name in zip(table.category.tolist(), table.name.tolist(), strict=True)
    ]
    return np.stack([table.start, table.end], axis=1)[np.array(chosen, np.bool_)]


def _needed(trace: Trace, naming: Naming, marks: Array) -> Array:
    """Return the windows that must be known as a whole to tell what is in some steps.

    These are: each step up to the end of what begins in it; and communication on host threads that is under way then,
    since what it encloses depends on what runs in it.
    """
    host = trace.events.take(trace.in_categories(*HOST_CATEGORIES))
    order = np.argsort(host.start, kind="stable")
    start, end = host.start[order], host.end[order]
    first, behind = np.searchsorted(start, marks[:, 0]), np.searchsorted(start, marks[:, 1])
    ends = [int(end[i:j].max(initial=mark)) for i, j, mark in zip(first, behind, marks[:, 1], strict=True)]
    needed = merged(np.stack([marks[:, 0], np.array(ends, np.int64)], axis=1))
    calls = trace.events.take(trace.in_categories(*(HOST_CATEGORIES - RUNTIME_CATEGORIES)))
    calls = calls.take(names_like(naming.host_communication, trace.names, calls.name))
    beside = overlaps(calls.start, calls.duration, needed)
    return merged(np.concatenate([needed, np.stack([calls.start, calls.end], axis=1)[beside]]))
