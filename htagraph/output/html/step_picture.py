"""A picture of one step, with the cause of the first change marked, at the top of the page."""

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
"""Units left of the tracks, for their names. Chosen: "rank 1,024 host" fits."""
_BAR: Final = 14
"""Height of a track, pixels. Chosen: eight tracks of devices fit above the fold."""
_PITCH: Final = 20
"""From track to track, pixels. Chosen: the height of a track, and a space for the line of the critical path."""
_MOST_RANKS: Final = 6
"""Ranks that are shown. Chosen: with the host of one of them, they fit above the fold. Doubled, the reasons do not."""

_HOST: Final = (
    ActivityKind.OP,
    ActivityKind.ANNOTATION,
    ActivityKind.PYTHON,
    ActivityKind.RUNTIME,
)
"""The kinds of host code."""


class _Layer(NamedTuple):
    """The activities of some kinds, in one color."""

    color: str
    word: str
    kinds: tuple[ActivityKind, ...]


_LAYERS: Final = (
    _Layer("host", "host code", _HOST),
    _Layer("launch", "launch calls", (ActivityKind.LAUNCH,)),
    _Layer("sync", "blocking calls", (ActivityKind.SYNC,)),
    _Layer("communication", "collectives", COMMUNICATION),
    _Layer("memory", "memory copies", (ActivityKind.MEMORY,)),
    _Layer("computation", "computation", (ActivityKind.COMPUTATION,)),
)
"""The layers of a track; each lies on the layers before."""


class _Track(NamedTuple):
    """A track of the picture: the device of a rank, or a host."""

    rank: int
    is_device: bool

    @property
    def name(self) -> str:
        """The name beside the track."""
        return f"rank {self.rank} {'device' if self.is_device else 'host'}"


class _Window(NamedTuple):
    """The time that is shown, ns on the common clock."""

    begin: int
    end: int
    step: int
    """The number of the step; -1 for a job without steps."""

    def left(self, moment: float) -> float:
        """Return where a moment lies from the left."""
        share = (moment - self.begin) / (self.end - self.begin)
        return _LEFT + (_WIDE - _LEFT) * share


def step_picture(results: Results, place: Place | None, href: str = "") -> Html:
    """Return a picture of the step with a place, which is marked: the work of devices and hosts by rank.

    Args:
        results: the results of the job.
        place: the activity or the stretch to mark; None for no picture.
        href: the address that the picture leads to.
    """
    if place is None or place.activity < 0:
        return NOTHING
    window = _window(results, place)
    if window.end <= window.begin:
        return NOTHING
    tracks = _rows(results, place)
    height = _PITCH * len(tracks) + 4
    marks = list[Html]()
    for number, track in enumerate(tracks):
        top = _PITCH * number
        marks.append(_name(track, top))
        marks += _work(results, track, window, top)
        has_host = _Track(track.rank, is_device=False) in tracks
        marks += _path(results, track, window, top, has_host=has_host)
    marks += _marked(results, place, window, tracks)
    step = f"Step {window.step}" if window.step >= 0 else "The recording"
    length_ns = window.end - window.begin
    length = time_text(length_ns / 1000)
    of_all = " from the begin on the first rank to the end on the last" if len(results.graph.ranks) > 1 else ""
    marks_say = "The line below the tracks is the critical path; the frame marks where to look first."
    caption = f"{step}, {length}{of_all}. {marks_say}"
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
    text = element("figcaption", caption)
    return element("figure", linked, colors, text, class_="step-picture chart")


def _window(results: Results, place: Place) -> _Window:
    """Return the step that a place lies in, over all ranks; the whole recording for a job without steps."""
    graph = results.graph
    spans = graph.step_spans
    step = int(graph.activities.step[place.activity])
    of_step = spans.step == step
    if step < 0 or not of_step.any():
        begin, end = results.path.window
        return _Window(int(begin), int(end), -1)
    starts = graph.time[spans.start[of_step]]
    ends = graph.time[spans.end[of_step]]
    return _Window(int(starts.min()), int(ends.max()), step)


def _rows(results: Results, place: Place) -> list[_Track]:
    """Return the tracks: devices of a few ranks, hosts of ranks without a device, and the host of the marked rank."""
    graph = results.graph
    acts = graph.activities
    marked = int(acts.rank[place.activity])
    other_ranks = [rank for rank in graph.ranks if rank != marked]
    chosen_ranks = sorted([marked, *other_ranks[: _MOST_RANKS - 1]])
    ranks_of_devices = acts.rank[acts.on_device]
    with_device = set(np.unique(ranks_of_devices).tolist())
    tracks = []
    for rank in chosen_ranks:
        if rank in with_device:
            tracks.append(_Track(rank, is_device=True))
        if rank not in with_device or rank == marked:
            tracks.append(_Track(rank, is_device=False))
    return tracks


def _activities(results: Results, track: _Track, window: _Window) -> Array:
    """Return the activities of a track that lie in the window."""
    graph = results.graph
    acts = graph.activities
    of_rank = acts.of_rank(track.rank)
    activities = np.arange(of_rank.start, of_rank.stop)
    starts = graph.time[2 * activities]
    ends = graph.time[2 * activities + 1]
    is_inside = (starts < window.end) & (ends > window.begin)
    is_of_track = acts.on_device[activities] == track.is_device
    return activities[is_inside & is_of_track]


def _work(results: Results, track: _Track, window: _Window, top: float) -> Iterator[Html]:
    """Yield the work of a track by color."""
    graph = results.graph
    activities = _activities(results, track, window)
    kinds = graph.activities.kind[activities]
    for layer in _LAYERS:
        of_layer = activities[of_kinds(kinds, layer.kinds)]
        starts = graph.time[2 * of_layer]
        ends = graph.time[2 * of_layer + 1]
        bar = _Bar(top, _BAR, f"c-{layer.color}")
        yield from _bars(union(starts, ends), window, bar)


def _path(
    results: Results,
    track: _Track,
    window: _Window,
    top: float,
    *,
    has_host: bool,
) -> Iterator[Html]:
    """Yield the critical path where it runs over a track, as a line below; over a rank whose host has no track, all."""
    segments = results.path.segments
    acts = results.graph.activities
    is_of_rank = acts.rank[segments.place] == track.rank
    is_of_track = is_of_rank
    if has_host:
        is_of_track = is_of_rank & (acts.on_device[segments.place] == track.is_device)
    starts = segments.start[is_of_track]
    ends = starts + segments.length[is_of_track]
    bar = _Bar(top + _BAR + 1, 2, "path")
    yield from _bars(union(starts, ends), window, bar)


class _Bar(NamedTuple):
    """The place and the look of bars."""

    top: float
    height: float
    kind: str


def _bars(time: Intervals, window: _Window, bar: _Bar) -> Iterator[Html]:
    """Yield the visible part of intervals as bars; gaps that are too short to be seen are filled."""
    starts, ends = clip(time, window.begin, window.end)
    unit_ns = (window.end - window.begin) / (_WIDE - _LEFT)
    longer_ends = (ends + unit_ns / 2).astype(np.int64)
    joined = union(starts, longer_ends)
    pairs = np.stack(joined, axis=1)
    for start, end in pairs.tolist():
        left = window.left(start)
        right = window.left(min(end, window.end))
        yield _rect(left, right - left, bar)


def _marked(results: Results, place: Place, window: _Window, tracks: list[_Track]) -> list[Html]:
    """Return the frame around a place; none where its track is not shown."""
    graph = results.graph
    acts = graph.activities
    rank = int(acts.rank[place.activity])
    is_device = bool(acts.on_device[place.activity])
    track = _Track(rank, is_device)
    if track not in tracks:
        return []
    start = int(graph.time[2 * place.activity])
    end = int(graph.time[2 * place.activity + 1])
    if place.start_us is not None:
        start_ns = round(1000 * place.start_us)
        end_ns = round(1000 * place.end_us)
        start = start_ns + graph.origin_ns
        end = end_ns + graph.origin_ns
    left = window.left(max(start, window.begin))
    right = window.left(min(end, window.end))
    width = max(right - left, 4.0)
    frame = _Bar(tracks.index(track) * _PITCH, _BAR, "cause")
    return [_rect(left - 1, width + 2, frame)]


def _name(track: _Track, top: float) -> Html:
    """Return the name of a track."""
    return element(
        "text",
        track.name,
        x=_LEFT - 8,
        y=top + _BAR - 3,
        text_anchor="end",
    )


def _rect(left: float, width: float, bar: _Bar) -> Html:
    """Return a bar from its left end on."""
    return element(
        "rect",
        x=f"{left:.1f}",
        y=f"{bar.top:.1f}",
        width=f"{max(width, 0.5):.1f}",
        height=f"{bar.height:.1f}",
        class_=bar.kind,
    )
