"""The timeline: what every stream of every rank does, as one picture."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kind_masks import of_kinds
from htagraph.core.kinds import DEVICE_WORK, ActivityKind
from htagraph.core.naming import short_name
from htagraph.findings.phrases import plural, time_text
from htagraph.output.plot.labels import escaped, plain
from htagraph.output.plot.pictures import category_map, category_ticks, legend_of
from htagraph.output.plot.raster import columns_of, covered, longest, running
from htagraph.output.plot.style import EMPTY, KIND_COLORS, MAX_BARS, drawn, nothing, row_pixels, time_unit

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from htagraph.graph.activities import Lane
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["timeline"]

_KINDS = {
    "computation": (ActivityKind.COMPUTATION, ActivityKind.OP), "memory": (ActivityKind.MEMORY,),
    "communication": (ActivityKind.COMMUNICATION, ActivityKind.HOST_COMMUNICATION),
}  # fmt: skip
_WORDS = [*_KINDS]
_NAMED_CELLS = 20_000
"""Cells that say the name of what runs there. Chosen: they take 2 MB. Doubled, 4 MB."""
_NAME_LETTERS = 60
"""Letters of such a name. Doubled, so are these megabytes."""
_LABEL_LETTERS = 30
"""Letters of a thread's name beside the axis. Doubled, names of threads leave little room for time."""


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
    heat = category_map(
        (edges[1:] + edges[:-1]) / 2 / factor, labels, codes, [KIND_COLORS[kind] for kind in _WORDS],
        _hover(graph, rows, running(row, start, end, edges, len(lanes)), labels, mostly)
        if mostly.size <= _NAMED_CELLS
        else f"%{{y}}, %{{x:.4g}} {unit}<extra></extra>",
    )  # fmt: skip
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


def _hover(graph: DependencyGraph, rows: Array, which: Array, labels: list[str], busy: Array) -> list[list[str]]:
    """Return what to show at each cell: where it is, how busy, and in small pictures the name of what runs."""
    name = graph.activities.name[rows]
    texts: dict[int, str] = {}

    def words(at: int, share: float, label: str) -> str:
        line = f"{label}: busy {100 * share:.0f} %"
        if at < 0:
            return line
        if name[at] not in texts:
            texts[name[at]] = escaped(plain(short_name(graph.names[name[at]]), _NAME_LETTERS))
        return f"{line}<br>{texts[name[at]]}"

    return [
        [words(int(at), float(share), label) for at, share in zip(which[row], busy[row], strict=True)]
        for row, label in enumerate(labels)
    ]
