"""Evidence of a finding as data: a chart, rows with places in the timeline, what to try. `output/html` draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import GapKind
from htagraph.findings.phrases import time_text

if TYPE_CHECKING:
    from htagraph.findings.results import Results

__all__ = [
    "MOST_ROWS", "NO_CHART", "NO_ROWS", "Bar", "Chart", "Evidence", "Part", "Place", "Rows", "gap_words",
    "of_activities", "stretches",
]  # fmt: skip

MOST_ROWS = 5
"""Rows that a finding shows, and findings that a summary shows, with what makes them uncertain as one. Chosen: enough
to see whether it is one thing or many, and about ten lines. Doubled, a screen is full of them."""


class Place(NamedTuple):
    """A place in the timeline: an activity, or a stretch of time with an activity in it."""

    activity: int = -1
    start_us: float | None = None
    """The start of the stretch, on the common clock; None for the activity itself."""
    end_us: float = 0.0

    @classmethod
    def lasting(cls, start_us: float, duration_us: float, activity: int) -> Place:
        """Return the stretch that begins at a time and lasts so long."""
        return cls(activity, start_us, start_us + duration_us)


class Part(NamedTuple):
    """A part of a bar."""

    word: str
    color: str
    """The name of a color of the page, such as ``computation``."""
    value: float


class Bar(NamedTuple):
    """A bar, with a whisker where its value is not known exactly."""

    word: str
    value: float
    """µs."""
    interval: tuple[float, float] | None = None
    place: Place | None = None
    color: str = ""
    """The name of a color of the page; empty for that of the chart."""
    text: str = ""
    """The value in words; empty for µs."""


@dataclass(frozen=True)
class Chart:
    """A chart of bars of µs, or of bars that consist of parts."""

    title: str
    bars: Sequence[Bar] = ()
    color: str = "computation"
    """The color of bars."""
    stacks: Sequence[tuple[str, Sequence[Part]]] = ()
    """What each bar of parts is of, and its parts from left to right; a chart has bars or these."""
    text: Callable[[float], str] = time_text
    """A value in words."""


@dataclass(frozen=True)
class Rows:
    """A table, with the place of each row in the timeline; none where there are no places."""

    frame: pd.DataFrame
    caption: str
    places: Sequence[Place | None] = ()
    headings: Mapping[str, str] = field(default_factory=dict)

    @property
    def first(self) -> Place | None:
        """The place of the first row."""
        return self.places[0] if self.places else None


NO_CHART = Chart("")
"""A chart that shows nothing."""
NO_ROWS = Rows(pd.DataFrame(), "")
"""A table that shows nothing."""


@dataclass(frozen=True)
class Evidence:
    """What stands under the sentence of a finding."""

    chart: Chart = NO_CHART
    rows: Rows = NO_ROWS
    notes: Sequence[str] = ()
    """Sentences below the rows."""
    place: Place | None = None
    look: str = ""
    """What is to be seen at the place."""
    command: tuple[str, ...] = ()
    """What to try: a verb and its options; empty for nothing."""
    trial: tuple[str, ...] = ()
    """The options of a ``what-if`` among it, which a slider may have too."""
    meaning: Callable[..., Any] | property | None = None
    """The function, or property, whose docstring says what the numbers mean."""


def of_activities(results: Results, activities: Sequence[int] | Array, caption: str) -> Rows:
    """Return rows about activities, each with its place."""
    rows = np.asarray(activities, np.int64)
    return Rows(results.rows(rows), caption, [Place(row) for row in rows.tolist()])


def stretches(results: Results, chosen: Array) -> Rows:
    """Return the longest stretches of the critical path among the chosen segments, the longest first."""
    graph, parts = results.graph, results.path.segments
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(-parts.length[rows], kind="stable")][:MOST_ROWS]
    if not len(rows):
        return NO_ROWS
    start = (parts.start[rows] - graph.origin_ns) / 1000
    frame = results.rows(parts.activity[rows]).assign(
        start_us=start, duration_us=parts.length[rows] / 1000, rank=graph.activities.rank[parts.place[rows]]
    )
    frame.insert(4, "gap", [gap_words(gap) for gap in parts.gap[rows].tolist()])
    frame = frame if frame["gap"].any() else frame.drop(columns="gap")
    places = [
        Place.lasting(begin, lasted, int(place))
        for begin, lasted, place in zip(start, frame["duration_us"], parts.place[rows], strict=True)
    ]
    headings = {"duration_us": "on the path_us", "gap": "pause"}
    return Rows(frame, "The longest of these on the critical path", places, headings)


def gap_words(gap: int) -> str:
    """Return what a kind of pause is called; empty for none."""
    return "" if gap == GapKind.NONE else GapKind(gap).label.replace("_", " ")
