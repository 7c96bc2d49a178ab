"""Pictures of time: what every stream of every rank does, and the critical path over steps and ranks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import DEVICE_WORK, ActivityKind, of_kinds
from htagraph.core.naming import short_name
from htagraph.findings.bound import BOUND
from htagraph.findings.phrases import plural, time_text
from htagraph.findings.results import Results
from htagraph.output.plot.raster import columns_of, covered, longest, running
from htagraph.output.plot.style import (
    EMPTY,
    KIND_COLORS,
    MAX_BARS,
    NAME_LETTERS,
    category_map,
    category_ticks,
    drawn,
    escaped,
    legend_of,
    nothing,
    one_above_the_other,
    plain,
    row_pixels,
    time_unit,
)
from htagraph.queries.paths import CATEGORIES

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure, Heatmap

    from htagraph.graph.activities import Lane
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.paths import CriticalPath

__all__ = ["critical_path", "timeline"]

_KINDS = {
    "computation": (ActivityKind.COMPUTATION, ActivityKind.OP), "memory": (ActivityKind.MEMORY,),
    "communication": (ActivityKind.COMMUNICATION, ActivityKind.HOST_COMMUNICATION),
}  # fmt: skip
_WORDS = [*_KINDS]
_NAMED_CELLS = 20_000
"""Cells that say the name of what runs there. Chosen: they take 2 MB. Doubled, 4 MB."""
_LABEL_LETTERS = 30
"""Letters of a thread's name beside the axis. Doubled, names of threads leave little room for time."""
_LEAST_IN_LEGEND = 0.001
"""Share of the path from which a category has a line in the legend. Chosen: less is no pixel of a bar. Doubled, the
same."""
_GAP = 70
"""Pixels between both pictures: the axis of the upper one."""
_ABOVE = 260
"""Pixels of the upper picture. Chosen; doubled, the strip is off the screen."""


def timeline(graph: DependencyGraph) -> Figure:
    """Return the figure of what each stream of each rank does over time: a picture of streams by time.

    Args:
        graph: the job; of ranks without device work, their threads that run operators.

    Returns:
        The figure, not shown; its axis is in µs, ms or s. The colour of a cell is the kind of work that takes most of
        its time, and what is idle has none.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.timeline(hg.load("data/demo"))
        >>> figure.layout.title.text.split("<br>")[0]
        'The 8 streams of 4 ranks are busy 52 % of 24.9 ms'
    """
    about = "Each row is a stream; each cell has the colour of the work that takes most of its time."
    rows, word = _work(graph)
    if not len(rows):
        return nothing("No work was recorded on any rank", about)
    acts = graph.activities
    lanes, row = np.unique(acts.lane[rows], return_inverse=True)
    start = (graph.time[2 * rows] - graph.origin_ns) / 1000
    end = (graph.time[2 * rows + 1] - graph.origin_ns) / 1000
    many = len(np.unique(acts.rank[rows])) > MAX_BARS
    order = sorted(range(len(lanes)), key=lambda at: _place(graph, int(lanes[at]), by_stream=many))
    row = np.argsort(order)[row]
    edges = columns_of(float(start.min()), float(end.max()), len(lanes))
    code = np.full(len(rows), -1)
    for number, kinds in enumerate(_KINDS.values()):
        code[of_kinds(acts.kind[rows], kinds)] = number
    codes = longest(row, start, end, code, edges)
    time = covered(row, start, end, edges, len(lanes))
    mostly = np.minimum(time / np.diff(edges), 1.0)
    factor, unit = time_unit(float(end.max()))
    places = [graph.lanes[int(lanes[at])] for at in order]
    devices = Counter(rank for rank, _ in {(each.rank, each.device) for each in places})
    labels = _unlike([_label(each, several=devices[each.rank] > 1) for each in places])
    hover: list[list[str]] | str = f"%{{y}}, %{{x:.4g}} {unit}<extra></extra>"
    if mostly.size <= _NAMED_CELLS:
        which = running(row, start, end, edges, len(lanes))
        lines = [[f"{label}: busy {100 * share:.0f} %" for share in of_row]
                 for label, of_row in zip(labels, mostly.tolist(), strict=True)]  # fmt: skip
        hover = _with_names(graph, np.where(which >= 0, rows[which], -1), lines)
    colors = [KIND_COLORS[kind] for kind in _WORDS]
    heat = category_map((edges[1:] + edges[:-1]) / 2 / factor, labels, codes, colors, hover)
    used = {_WORDS[int(each)]: KIND_COLORS[_WORDS[int(each)]] for each in np.unique(codes[~np.isnan(codes)])}
    ranks, length = len(np.unique(acts.rank[rows])), float(end.max() - start.min())
    busy = 100 * float(mostly.mean())
    who = f"The {plural(len(lanes), word)} of {plural(ranks, 'rank')} {'are' if len(lanes) > 1 else 'is'}"
    finding = f"{who} busy {busy:.0f} % of {time_text(length)}"
    return drawn(
        [heat, *legend_of(used)], finding, about.replace("stream", word), height=row_pixels(len(lanes)) + 40,
        showlegend=True, xaxis={"title": {"text": f"time since the job's first activity ({unit})"}, "showgrid": False},
        yaxis=category_ticks(labels), legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        plot_bgcolor=EMPTY,
    )  # fmt: skip


def _work(graph: DependencyGraph) -> tuple[Array, str]:
    """Return the work to draw, and what its rows are: device work, or operators and communication of hosts."""
    kind = graph.activities.kind
    rows = np.flatnonzero(of_kinds(kind, DEVICE_WORK) & (kind != ActivityKind.DEVICE_OTHER))
    if len(rows):
        return rows, "stream"
    outermost = (kind == ActivityKind.OP) & (graph.tree.nearest(kind == ActivityKind.OP, graph.activities.parent) < 0)
    return np.flatnonzero(outermost | (kind == ActivityKind.HOST_COMMUNICATION)), "thread"


def _place(graph: DependencyGraph, lane: int, *, by_stream: bool) -> tuple[int, ...]:
    """Return what rows are ordered by; of many ranks, the same streams lie together, so that ranks can be compared."""
    each = graph.lanes[lane]
    return (each.stream, each.rank, each.device, lane) if by_stream else (each.rank, each.device, each.stream, lane)


def _label(lane: Lane, *, several: bool) -> str:
    if lane.stream >= 0 and not several:
        return f"rank {lane.rank}, stream {lane.stream}"
    return escaped(f"rank {lane.rank}, {plain(lane.label, _LABEL_LETTERS)}")


def _unlike(labels: list[str]) -> list[str]:
    """Return labels of which no two are the same: threads may share a name."""
    alike = Counter(labels)
    return [label if alike[label] == 1 else f"{label} ({number})" for number, label in enumerate(labels)]


def _with_names(graph: DependencyGraph, activity: Array, lines: list[list[str]]) -> list[list[str]]:
    """Return what to show at each cell: its line and, where an activity runs, its name below.

    Args:
        graph: the job.
        activity: what runs in each cell, by row and column; -1 for nothing.
        lines: what is said of each cell.
    """
    names = graph.activities.name
    texts = {
        number: f"<br>{escaped(plain(short_name(graph.names[number]), NAME_LETTERS))}"
        for number in np.unique(names[activity[activity >= 0]]).tolist()
    }
    return [
        [line + (texts[int(names[at])] if at >= 0 else "") for line, at in zip(row, of_row.tolist(), strict=True)]
        for row, of_row in zip(lines, activity, strict=True)
    ]


def critical_path(path: CriticalPath) -> Figure:
    """Return the figure of a critical path: its composition by step above, below on which rank it runs when.

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
        return nothing("No work was recorded: there is no critical path", about)
    bars, unit = _composition(path)
    strip, ranks, time = _strip(path)
    height, upper, lower = one_above_the_other(_ABOVE, _GAP, row_pixels(len(ranks)))
    return drawn(
        [*bars, strip], _finding(path), about, height=height, barmode="stack", showlegend=True, bargap=0.2,
        legend={"traceorder": "reversed"},
        xaxis={"type": "category", "title": {"text": "step"}, "anchor": "y", "showgrid": False},
        yaxis={"title": {"text": f"on the path ({unit})"}, **upper},
        xaxis2={"anchor": "y2", "title": {"text": f"time since the job's first activity ({time})"}},
        yaxis2={**category_ticks(ranks), **lower, "title": {"text": "rank"}},
    )  # fmt: skip


def _finding(path: CriticalPath) -> str:
    """Return what bounds the window, in the words of the reports."""
    claims = BOUND.when(Results(path.graph, path=path))
    first = BOUND.long(*claims) if claims else f"The critical path takes {time_text(path.makespan_ns / 1000)}"
    return first.partition(". ")[0].rstrip(".")


def _composition(path: CriticalPath) -> tuple[list[Bar], str]:
    """Return a bar by category, with a value by step, and the unit."""
    from plotly.graph_objects import Bar

    parts = path.segments
    number = path.graph.activities.step[parts.place]
    steps = np.unique(number)
    at = np.searchsorted(steps, number)
    sums = np.bincount(at * len(CATEGORIES) + parts.category, parts.length, len(steps) * len(CATEGORIES))
    table = sums.reshape(len(steps), -1) / 1000
    whole = table.sum(axis=1)
    factor, unit = time_unit(float(whole.max()))
    order = np.argsort(steps < 0, kind="stable")  # what is outside of steps comes last
    words = ["outside steps" if steps[i] < 0 else str(steps[i]) for i in order]
    words = ["no steps"] if words == ["outside steps"] else words
    bars = []
    for code in np.argsort(-table.sum(axis=0), kind="stable").tolist():
        if not table[:, code].any():
            continue
        hover = [
            f"{_step_words(word)}: {_words(CATEGORIES[code])}<br>{time_text(table[i, code])} of {time_text(whole[i])}, "
            f"{100 * table[i, code] / max(whole[i], 1e-9):.0f} %"
            for word, i in zip(words, order, strict=True)
        ]
        bars.append(
            Bar(
                name=_words(CATEGORIES[code]), x=words, y=table[order, code] / factor, hovertext=hover,
                showlegend=bool(table[:, code].sum() >= _LEAST_IN_LEGEND * whole.sum()), hoverinfo="text",
                marker_color=KIND_COLORS[CATEGORIES[code]],
            )
        )  # fmt: skip
    return bars, unit


def _step_words(word: str) -> str:
    return f"step {word}" if word.isdigit() else word


def _words(category: str) -> str:
    return {"gap": "unexplained", "head": "before recording"}.get(category, category.replace("_", " "))


def _strip(path: CriticalPath) -> tuple[Heatmap, list[str], str]:
    """Return a picture of rank by time in the colours of categories, its ranks, and the unit of time."""
    graph, parts = path.graph, path.segments
    rank = graph.activities.rank[parts.place].astype(np.int64)
    ranks = np.unique(rank)
    row = np.searchsorted(ranks, rank)
    start = (parts.start - graph.origin_ns) / 1000
    end = start + parts.length / 1000
    edges = columns_of(float(start.min()), float(end.max()), len(ranks))
    codes = longest(row, start, end, parts.category, edges)
    labels = ["between" if each < 0 else str(each) for each in ranks.tolist()]
    which = running(row, start, end, edges, len(ranks))
    named = (which >= 0) & ~np.isnan(codes) & (which.size <= _NAMED_CELLS)
    lines = [
        ["" if np.isnan(code) else f"rank {label}: mostly {_words(CATEGORIES[int(code)])}" for code in of_row]
        for label, of_row in zip(labels, codes.tolist(), strict=True)
    ]
    hover = _with_names(graph, np.where(named, parts.activity[which], -1), lines)
    factor, unit = time_unit(float(end.max()))
    colors = [KIND_COLORS[category] for category in CATEGORIES]
    middles = (edges[1:] + edges[:-1]) / 2 / factor
    strip = category_map(middles, labels, codes, colors, hover)
    strip.update(xaxis="x2", yaxis="y2")
    return strip, labels, unit
