"""The critical path: what it is spent on in each step, and where it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from htagraph.core.naming import short_name
from htagraph.findings.bound import BOUND
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results
from htagraph.output.plot.labels import escaped, plain
from htagraph.output.plot.pictures import category_map, category_ticks
from htagraph.output.plot.raster import columns_of, longest, running
from htagraph.output.plot.style import KIND_COLORS, drawn, nothing, row_pixels, time_unit
from htagraph.queries.paths import CATEGORIES

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure, Heatmap

    from htagraph.queries.paths import CriticalPath

__all__ = ["critical_path"]

_NAMED_CELLS = 20_000
"""Cells of the strip that say the name of what runs there. Chosen: they take 2 MB. Doubled, 4 MB."""
_NAME_LETTERS = 60
"""Letters of such a name. Doubled, so are these megabytes."""
_LEAST_IN_LEGEND = 0.001
"""Share of the path from which a category has a line in the legend. Chosen: less is no pixel of a bar. Doubled, the
same."""
_GAP = 70
"""Pixels between both pictures: the axis of the upper one."""
_ABOVE = 260
"""Pixels of the upper picture. Chosen; doubled, the strip is off the screen."""


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
    below = row_pixels(len(ranks))
    height = _ABOVE + _GAP + below
    return drawn(
        [*bars, strip], _finding(path), about, height=height, barmode="stack", showlegend=True, bargap=0.2,
        legend={"traceorder": "reversed"},
        xaxis={"type": "category", "title": {"text": "step"}, "anchor": "y", "showgrid": False},
        yaxis={"title": {"text": f"on the path ({unit})"}, "domain": [(below + _GAP) / height, 1.0], "anchor": "x"},
        xaxis2={"anchor": "y2", "title": {"text": f"time since the job's first activity ({time})"}},
        yaxis2={
            **category_ticks(ranks), "domain": [0.0, below / height], "anchor": "x2", "title": {"text": "rank"},
        },
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
    factor, unit = time_unit(float(end.max()))
    colors = [KIND_COLORS[category] for category in CATEGORIES]
    middles = (edges[1:] + edges[:-1]) / 2 / factor
    strip = category_map(middles, labels, codes, colors, _names(path, which, labels, codes))
    strip.update(xaxis="x2", yaxis="y2")
    return strip, labels, unit


def _names(
    path: CriticalPath, which: npt.NDArray[np.int64], labels: list[str], codes: npt.NDArray[np.float64]
) -> list[list[str]]:
    """Return what to show at each cell: rank, category and, of small pictures, the name of the activity."""
    parts, graph = path.segments, path.graph
    name = graph.activities.name[parts.activity]
    known: dict[Any, str] = {}

    def words(at: int, code: float, rank: str) -> str:
        if np.isnan(code):
            return ""
        line = f"rank {rank}: mostly {_words(CATEGORIES[int(code)])}"
        if at < 0 or which.size > _NAMED_CELLS:
            return line
        if name[at] not in known:
            known[name[at]] = escaped(plain(short_name(graph.names[name[at]]), _NAME_LETTERS))
        return f"{line}<br>{known[name[at]]}"

    return [
        [words(int(at), float(code), labels[row]) for at, code in zip(which[row], codes[row], strict=True)]
        for row in range(len(labels))
    ]
