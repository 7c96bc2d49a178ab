"""A picture of one step, with the cause of the first change marked: the first that a reader of the page sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import time_text
from htagraph.core.intervals import Intervals, clip, union
from htagraph.core.kinds import COMMUNICATION, ActivityKind, of_kinds
from htagraph.findings.finding import Place
from htagraph.findings.results import Results
from htagraph.output.html.charts import legend
from htagraph.output.html.page import NOTHING, Html, element, join

__all__ = ["step_picture"]

_WIDE: Final = 1000
"""Units of width of the picture; the browser stretches it. Chosen: a unit is a pixel of most screens or less."""
_LEFT: Final = 130
"""Units left of the rows, for their names. Chosen: "rank 1,024 host" fits."""
_BAR: Final = 14
"""Height of a row, pixels. Chosen: eight rows of devices fit above the fold."""
_PITCH: Final = 20
"""From row to row, pixels: the height, and a space for the line of the critical path."""
_MOST_RANKS: Final = 6
"""Ranks that are shown. Chosen: with the host of one of them, they fit above the fold. Doubled, the reasons do not."""


class _Layer(NamedTuple):
    """The activities of some kinds, in one color."""

    color: str
    word: str
    kinds: tuple[ActivityKind, ...]


_LAYERS: Final = (
    _Layer("host", "host code", (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.PYTHON)),
    _Layer("launch", "launch calls", (ActivityKind.LAUNCH,)),
    _Layer("sync", "blocking calls", (ActivityKind.SYNC,)),
    _Layer("communication", "collectives", COMMUNICATION),
    _Layer("memory", "memory copies", (ActivityKind.MEMORY,)),
    _Layer("computation", "computation", (ActivityKind.COMPUTATION,)),
)
"""The layers of a row; each lies on those before it."""


class _Row(NamedTuple):
    """A row of the picture: the device of a rank, or a host."""

    rank: int
    is_device: bool

    @property
    def name(self) -> str:
        """The name beside the row."""
        return f"rank {self.rank} {'device' if self.is_device else 'host'}"


class _Window(NamedTuple):
    """The time that is shown, ns on the common clock."""

    begin: int
    end: int
    step: int
    """The number of the step; -1 for a job without steps."""

    def left(self, moment: float) -> float:
        """Return where a moment lies from the left."""
        return _LEFT + (_WIDE - _LEFT) * (moment - self.begin) / (self.end - self.begin)


def step_picture(results: Results, place: Place | None, href: str = "") -> Html:
    """Return a picture of the step with a place, which is marked: the work of devices and hosts by rank.

    Args:
        results: the results of the job.
        place: the activity or the stretch to mark; None for a job without a first change, of which nothing is shown.
        href: the address that the picture leads to.
    """
    if place is None or place.activity < 0:
        return NOTHING
    window = _window(results, place)
    if window.end <= window.begin:
        return NOTHING
    rows = _rows(results, place)
    height = _PITCH * len(rows) + 4
    marks = [
        mark
        for number, row in enumerate(rows)
        for mark in (_name(row, number), *_work(results, row, window, number), *_path(results, row, window, number))
    ]
    marks += _marked(results, place, window, rows)
    step = f"Step {window.step}" if window.step >= 0 else "The recording"
    length = time_text((window.end - window.begin) / 1000)
    caption = f"{step}, {length}. The line below the rows is the critical path; the frame marks where to look first."
    picture = element(
        "svg",
        join(marks),
        viewBox=f"0 0 {_WIDE} {height}",
        role="img",
        aria_label=caption,
        class_="step",
    )
    linked = element("a", picture, href=href) if href else picture
    colors = legend([(layer.word, layer.color) for layer in _LAYERS])
    return element("figure", linked, colors, element("figcaption", caption), class_="step-picture chart")


def _window(results: Results, place: Place) -> _Window:
    """Return the step that a place lies in, over all ranks; the whole recording for a job without steps."""
    graph = results.graph
    spans = graph.step_spans
    step = int(graph.activities.step[place.activity])
    of_step = spans.step == step
    if step < 0 or not of_step.any():
        begin, end = results.path.window
        return _Window(int(begin), int(end), -1)
    begin = int(graph.time[spans.start[of_step]].min())
    return _Window(begin, int(graph.time[spans.end[of_step]].max()), step)


def _rows(results: Results, place: Place) -> list[_Row]:
    """Return the rows: the devices of a few ranks, hosts of ranks without a device, and the host of the marked rank."""
    graph = results.graph
    acts = graph.activities
    marked = int(acts.rank[place.activity])
    chosen = sorted([marked, *[rank for rank in graph.ranks if rank != marked][: _MOST_RANKS - 1]])
    with_device = set(np.unique(acts.rank[acts.on_device]).tolist())
    rows = []
    for rank in chosen:
        if rank in with_device:
            rows.append(_Row(rank, is_device=True))
        if rank not in with_device or rank == marked:
            rows.append(_Row(rank, is_device=False))
    return rows


def _activities(results: Results, row: _Row, window: _Window) -> Array:
    """Return the activities of a row that lie in the window."""
    graph = results.graph
    acts = graph.activities
    of_rank = acts.of_rank(row.rank)
    activities = np.arange(of_rank.start, of_rank.stop)
    start = graph.time[2 * activities]
    end = graph.time[2 * activities + 1]
    is_inside = (end > window.begin) & (start < window.end) & (acts.on_device[activities] == row.is_device)
    return activities[is_inside]


def _work(results: Results, row: _Row, window: _Window, number: int) -> Iterator[Html]:
    """Yield the work of a row by color."""
    graph = results.graph
    activities = _activities(results, row, window)
    kinds = graph.activities.kind[activities]
    for layer in _LAYERS:
        chosen = activities[of_kinds(kinds, layer.kinds)]
        time = union(graph.time[2 * chosen], graph.time[2 * chosen + 1])
        inside = clip(time, window.begin, window.end)
        yield from _bars(_visible(inside, window), window, number, layer.color)


def _visible(time: Intervals, window: _Window) -> Intervals:
    """Return intervals without gaps between them that are too short to be seen."""
    unit_ns = (window.end - window.begin) / (_WIDE - _LEFT)
    start, end = time
    reach = union(start, (end + unit_ns / 2).astype(np.int64))
    return reach[0], np.minimum(reach[1], window.end)


def _bars(time: Intervals, window: _Window, number: int, color: str) -> Iterator[Html]:
    """Yield intervals as bars of a row."""
    for start, end in zip(time[0].tolist(), time[1].tolist(), strict=True):
        left = window.left(start)
        width = window.left(end) - left
        yield _rect(left, number * _PITCH, width, _BAR, f"c-{color}")


def _path(results: Results, row: _Row, window: _Window, number: int) -> Iterator[Html]:
    """Yield the critical path where it runs over a row, as a line below."""
    segments = results.path.segments
    acts = results.graph.activities
    shown_devices = acts.on_device[segments.place] == row.is_device
    is_of_row = (acts.rank[segments.place] == row.rank) & shown_devices
    start = segments.start[is_of_row]
    time = union(start, start + segments.length[is_of_row])
    inside = _visible(clip(time, window.begin, window.end), window)
    for begin, end in zip(inside[0].tolist(), inside[1].tolist(), strict=True):
        left = window.left(begin)
        yield _rect(left, number * _PITCH + _BAR + 1, window.left(end) - left, 2, "path")


def _marked(results: Results, place: Place, window: _Window, rows: list[_Row]) -> list[Html]:
    """Return the frame around a place; none where its row is not shown."""
    graph = results.graph
    acts = graph.activities
    row = _Row(int(acts.rank[place.activity]), is_device=bool(acts.on_device[place.activity]))
    if row not in rows:
        return []
    start, end = graph.time[2 * place.activity : 2 * place.activity + 2].tolist()
    if place.start_us is not None:
        start = round(1000 * place.start_us) + graph.origin_ns
        end = round(1000 * place.end_us) + graph.origin_ns
    left = window.left(max(start, window.begin))
    width = max(window.left(min(end, window.end)) - left, 4.0)
    return [_rect(left - 1, rows.index(row) * _PITCH, width + 2, _BAR, "cause")]


def _name(row: _Row, number: int) -> Html:
    """Return the name of a row."""
    return element("text", row.name, x=_LEFT - 8, y=number * _PITCH + _BAR - 3, text_anchor="end")


def _rect(left: float, top: float, width: float, height: float, kind: str) -> Html:
    """Return a rectangle of a class."""
    return element(
        "rect",
        x=f"{left:.1f}",
        y=f"{top:.1f}",
        width=f"{max(width, 0.5):.1f}",
        height=f"{height:.1f}",
        class_=kind,
    )
