"""Pictures of time: what every stream of every rank does, and the critical path over steps and ranks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import DEVICE_WORK, ActivityKind, of_kinds
from htagraph.core.naming import short_name
from htagraph.findings.bound import BOUND, BoundClaim, bound_text
from htagraph.findings.finding import claims_that_are
from htagraph.findings.phrases import plural, time_text
from htagraph.findings.results import Results
from htagraph.graph.activities import Lane
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.plot import style
from htagraph.output.plot.style import TimeColumns, columns_of, covered, longest, running
from htagraph.output.scene import KIND_COLORS, Scene, path_scene, scene_of
from htagraph.queries.paths import CATEGORIES, CriticalPath

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["critical_path", "timeline"]

_KINDS = {
    "computation": (ActivityKind.COMPUTATION, ActivityKind.OP), "memory": (ActivityKind.MEMORY,),
    "communication": (ActivityKind.COMMUNICATION, ActivityKind.HOST_COMMUNICATION),
}  # fmt: skip
_NAMED_CELLS = 20_000
"""Cells that say the name of what runs there. Chosen: they take 2 MB. Doubled, 4 MB."""


def timeline(graph: DependencyGraph) -> Figure:
    """Return the figure of what each stream of each rank does over time: a picture of streams by time.

    Args:
        graph: the job; of ranks without device work, their threads that run operators.

    Returns:
        The figure, not shown; its axis is in µs, ms or s. The colour of a cell is the kind of work that takes most of
        the cell's time; idle cells have no colour.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.timeline(hg.load("data/demo"))
        >>> figure.layout.title.text.split("<br>")[0]
        'The 8 streams of 4 ranks are busy 52 % of 24.9 ms'
    """
    rows, word = _work(graph)
    about = f"Each row is a {word}; each cell has the colour of the work that takes most of its time."
    if not len(rows):
        return style.nothing("No work was recorded on any rank", about)
    ranks = len(np.unique(graph.activities.rank[rows]))
    by_stream = ranks > style.Sizes.bars  # the same streams lie together, so that ranks can be compared
    scene = scene_of(graph, rows, lambda lane, _: (by_stream * lane.stream, lane.rank, lane.device, lane.stream))
    code = np.full(len(rows), -1)
    for number, kinds in enumerate(_KINDS.values()):
        code[of_kinds(graph.activities.kind[rows], kinds)] = number
    devices = Counter(rank for rank, _ in {(each.rank, each.device) for each in scene.lanes})
    labels = [_label(each, several=devices[each.rank] > 1) for each in scene.lanes]
    alike = Counter(labels)  # threads may share a name
    labels = [label if alike[label] == 1 else f"{label} ({number})" for number, label in enumerate(labels)]
    start = (scene.start - graph.origin_ns) / 1000
    end = (scene.start + scene.duration - graph.origin_ns) / 1000
    time, codes, activity = _picture(scene, start, end, code)
    mostly = np.minimum(covered(scene.lane, start, end, time.edges, len(labels)) / np.diff(time.edges), 1.0)
    hover: list[list[str]] | str = f"%{{y}}, %{{x:.4g}} {time.unit}"
    if mostly.size <= _NAMED_CELLS:
        lines = [[f"{label}: busy {100 * share:.0f} %" for share in of_row]
                 for label, of_row in zip(labels, mostly.tolist(), strict=True)]  # fmt: skip
        hover = _with_names(graph, activity, lines)
    colors = {kind: KIND_COLORS[kind] for kind in _KINDS}
    used = set(codes[~np.isnan(codes)].astype(int).tolist())
    heat = style.category_map(time.middles, labels, codes, [*colors.values()], hover)
    legend = style.legend_of({kind: color for number, (kind, color) in enumerate(colors.items()) if number in used})
    who = f"The {plural(len(labels), word)} of {plural(ranks, 'rank')}"
    busy = f"{'are' if len(labels) > 1 else 'is'} busy {100 * float(mostly.mean()):.0f} %"
    return style.drawn(
        [heat, *legend], f"{who} {busy} of {time_text(float(end.max() - start.min()))}", about,
        height=style.row_pixels(len(labels)) + 40, showlegend=True, xaxis={**time.axis(), "showgrid": False},
        yaxis=style.category_ticks(labels), legend=style.ABOVE, plot_bgcolor=style.EMPTY,
    )  # fmt: skip


def _work(graph: DependencyGraph) -> tuple[Array, str]:
    """Return the work to draw, and what its rows are: device work, or operators and communication of hosts."""
    kind = graph.activities.kind
    rows = np.flatnonzero(of_kinds(kind, DEVICE_WORK) & (kind != ActivityKind.DEVICE_OTHER))
    if len(rows):
        return rows, "stream"
    outermost = (kind == ActivityKind.OP) & (graph.tree.nearest(kind == ActivityKind.OP, graph.activities.parent) < 0)
    return np.flatnonzero(outermost | (kind == ActivityKind.HOST_COMMUNICATION)), "thread"


def _label(lane: Lane, *, several: bool) -> str:
    if lane.stream >= 0 and not several:
        return f"rank {lane.rank}, stream {lane.stream}"
    return style.escaped(f"rank {lane.rank}, {style.plain(lane.label, 30)}")


def _with_names(graph: DependencyGraph, activity: Array, lines: list[list[str]]) -> list[list[str]]:
    """Return what to show at each cell: its line and, where an activity runs (none is -1), its name below."""
    names = graph.activities.name
    texts = {
        number: f"<br>{style.escaped(style.plain(short_name(graph.names[number]), style.Sizes.name))}"
        for number in np.unique(names[activity[activity >= 0]]).tolist()
    }
    return [
        [line + (texts[int(names[at])] if at >= 0 else "") for line, at in zip(row, of_row.tolist(), strict=True)]
        for row, of_row in zip(lines, activity, strict=True)
    ]


def critical_path(path: CriticalPath) -> Figure:
    """Return the figure of a critical path: above, its composition by step; below, on which rank it runs at which time.

    Args:
        path: result of `htagraph.critical_path`, or of `Outcome.critical_path`.

    Returns:
        The figure, not shown; its axes are in µs, ms or s. The bars sum to the makespan.

    Example:
        >>> import htagraph as hg
        >>> path = hg.critical_path(hg.load("data/demo"))
        >>> bars = [trace for trace in hg.plot.critical_path(path).data if trace.type == "bar"]
        >>> bool(abs(sum(bar.y.sum() for bar in bars) - path.makespan_ns / 1e6) < 1e-6)
        True
    """
    about = "Above: time on the path by step and what it is spent on. Below: the path as it runs, over the ranks."
    if not path.makespan_ns or not len(path.segments):
        return style.nothing("No work was recorded: there is no critical path", about)
    bars, unit = _composition(path)
    strip, ranks, time = _strip(path)
    height, upper, lower = style.one_above_the_other(260, 70, style.row_pixels(len(ranks)))
    claims = claims_that_are(BoundClaim, BOUND.when(Results(path.graph, path=path)))
    title = bound_text(claims[0]) if claims else f"The critical path takes {time_text(path.makespan_ns / 1000)}"
    return style.drawn(
        [*bars, strip], title, about, height=height, barmode="stack", showlegend=True,
        bargap=0.2, legend={"traceorder": "reversed"}, yaxis={"title": f"on the path ({unit})", **upper},
        xaxis={"type": "category", "title": "step", "anchor": "y", "showgrid": False},
        xaxis2={"anchor": "y2", **time.axis()}, yaxis2={**style.category_ticks(ranks), **lower, "title": "rank"},
    )  # fmt: skip


def _composition(path: CriticalPath) -> tuple[list[dict[str, Any]], str]:
    """Return a bar by category, with a value by step, and the unit."""
    parts = path.segments
    steps, at = np.unique(path.graph.activities.step[parts.place], return_inverse=True)
    sums = np.bincount(at * len(CATEGORIES) + parts.category, parts.length, len(steps) * len(CATEGORIES))
    labels = ["outside steps" if step < 0 else f"step {step}" for step in steps.tolist()]
    table = pd.DataFrame(sums.reshape(len(steps), -1) / 1000, labels, [_words(each) for each in CATEGORIES])
    table = table.iloc[np.argsort(steps < 0, kind="stable")]  # what is outside of steps comes last
    table = table.rename({"outside steps": "no steps"}) if len(steps) == 1 else table
    whole = table.sum().sort_values(ascending=False, kind="stable")
    colors = {_words(category): KIND_COLORS[category] for category in CATEGORIES}
    says = "{label}: {part}<br>{us} of {whole}, {percent:.0f} %"
    bars, unit = style.stacked_bars(table[whole.index[whole > 0]], colors, says)
    for bar in bars:
        bar["x"] = [label.removeprefix("step ") for label in bar["x"]]
        bar["showlegend"] = bool(whole[bar["name"]] >= 0.001 * whole.sum())  # less is no pixel of a bar
    return bars, unit


def _words(category: str) -> str:
    words = {"gap": "unexplained", "head": "before recording", "outside": "outside the recording"}
    return words.get(category, category.replace("_", " "))


def _strip(path: CriticalPath) -> tuple[dict[str, Any], list[str], TimeColumns]:
    """Return a picture of rank by time in the colours of categories, its ranks, and its columns."""
    scene = path_scene(path)
    start = (scene.start - path.graph.origin_ns) / 1000
    time, codes, activity = _picture(scene, start, start + scene.duration / 1000, path.segments.category)
    labels = ["between" if lane.rank < 0 else str(lane.rank) for lane in scene.lanes]
    lines = [
        ["" if np.isnan(code) else f"rank {label}: mostly {_words(CATEGORIES[int(code)])}" for code in of_row]
        for label, of_row in zip(labels, codes.tolist(), strict=True)
    ]
    named = ~np.isnan(codes) & (codes.size <= _NAMED_CELLS)
    hover = _with_names(path.graph, np.where(named, activity, -1), lines)
    strip = style.category_map(time.middles, labels, codes, [KIND_COLORS[category] for category in CATEGORIES], hover)
    return strip | {"xaxis": "x2", "yaxis": "y2"}, labels, time


def _picture(scene: Scene, start: Array, end: Array, code: Array) -> tuple[TimeColumns, Array, Array]:
    """Return columns of time (µs) and, by lane and column, the code of most of it and what runs midway, or -1."""
    time = columns_of(float(start.min()), float(end.max()), len(scene.lanes))
    which = running(scene.lane, start, end, time.edges, len(scene.lanes))
    return time, longest(scene.lane, start, end, code, time.edges), np.where(which >= 0, scene.activity[which], -1)
