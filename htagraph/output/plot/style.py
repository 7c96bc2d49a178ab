"""How every figure looks: one template for light and dark pages, colours that colour-blind readers tell apart.

Traces are plotly's, as dicts; `drawn` makes a figure of them. Intervals of time become pictures of rows and columns,
which are as large for a million intervals as for ten.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.errors import printable
from htagraph.core.naming import sibling_names
from htagraph.findings.phrases import shortened, time_text
from htagraph.output.scene import COLORS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "ABOVE", "AFTER", "BEFORE", "DIVERGING", "EMPTY", "GREY", "Sizes", "TimeColumns", "category_map", "category_ticks",
    "color_bar", "columns_of", "covered", "drawn", "escaped", "heading", "heat_map", "highest_of_steps", "hover_name",
    "hover_of", "legend_of", "longest", "mean_of_steps", "nothing", "one_above_the_other", "parts_by_rank", "plain",
    "rank_axis", "row_labels", "row_pixels", "running", "stacked_bars", "text_color", "time_unit", "unique_labels",
]  # fmt: skip

GREY = "#767676"
"""Of text and lines. Chosen: its contrast is 4.5 to 1 on white and on black, so that one figure suits both."""
_GRID = "rgba(128,128,128,0.25)"
EMPTY = "rgba(128,128,128,0.12)"
"""Behind pictures of time: where there is nothing."""
BEFORE, AFTER = COLORS["light"], COLORS["blue"]
SEQUENTIAL = "Cividis"
"""From little to much; made for all kinds of colour vision."""
DIVERGING = [[0.0, COLORS["blue"]], [0.5, "#E8E8E8"], [1.0, COLORS["vermillion"]]]
"""From less than the others to more."""
ABOVE = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
"""A legend of one line above the figure."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|[nµm]?s\b|[KMG]?i?B\b|TFLOP|GB/s)")
_UNITS = ((1e6, 1e6, "s"), (1e3, 1e3, "ms"), (0.0, 1.0, "µs"))
_NO_LETTERS = {ord("<"): "&lt;", ord(">"): "&gt;", ord("&"): "&amp;", ord("$"): "&#36;"}
_CLEAR = "rgba(0,0,0,0)"
_NO_NAME = "(no name)"


class Sizes:
    """Sizes of figures in pixels and letters, chosen so that a figure can be read at a width of 700 pixels."""

    bars = 32  # ranks or streams that are bars of 15 pixels; more are a heat map
    height = 420  # pixels of a figure without rows, which fits on a screen with its text
    row = 28  # pixels of a row of a heat map
    cells = 64  # cells in a row up to which each gives its numbers, and lines are between: these take 0.5 MB
    rows = 1024  # pixels of all rows of a heat map: 1,024 streams have a pixel each
    ticks = 40  # labels beside the rows of a picture, which are 22 pixels high then
    ranks = 24  # labels below the ranks of a picture, of four digits each
    title = 240  # letters of a title: four lines
    title_line = 84  # letters of a line of the title, each 15 pixels high
    about_line = 112  # letters of one of the smaller lines below it, each 12 pixels high
    name = 60  # letters of a name in a legend, in a title, or where one points at a small cell
    axis = 34  # letters of a name beside an axis: a third of the figure
    hover = 480  # letters of a name where one points, which hold the name of nearly every kernel
    hover_line = 80  # letters of a line of it


def drawn(traces: Iterable[Any], finding: str, about: str, **layout: Any) -> Figure:  # noqa: ANN401 - plotly's options
    """Return a figure: what it shows as its title, what is drawn in smaller letters below; `height` is without both."""
    from plotly.graph_objects import Figure

    title, pixels = heading(finding, about)
    pixels += 24 * (layout.get("legend", {}).get("orientation") == "h")  # a legend of one line
    height = layout.pop("height", Sizes.height)
    margin = {"l": 60, "r": 24, "b": 56, "t": pixels} | layout.pop("margin", {})
    figure = Figure(list(traces)).update_layout(template=_template(), title=title)
    return figure.update_layout(height=height + pixels, margin=margin, **layout)


def heading(finding: str, about: str) -> tuple[str, int]:
    """Return a title with what is drawn below it, as plotly's markup, and how high it is in pixels."""
    title = _lines(plain(finding, Sizes.title), Sizes.title_line) or [""]
    lines = _lines(plain(about, 2 * Sizes.title), Sizes.about_line)
    big = "<br>".join(map(escaped, title))
    small = "<br>".join(map(escaped, lines))
    text = f'{big}<br><span style="font-size:12px">{small}</span>' if small else big
    return text, 36 + 20 * len(title) + 16 * len(lines)  # lines are a third higher than their letters


def _lines(text: str, letters: int) -> list[str]:
    """Return a text in lines, which begin with no unit."""
    text = _BEFORE_UNIT.sub("\xa0", text)
    lines = textwrap.wrap(text, letters)
    if len(lines) > 1:  # of about the same length, so that no word stands alone
        widths = range(-(-len(text) // len(lines)), letters)
        lines = next((each for width in widths if len(each := textwrap.wrap(text, width)) == len(lines)), lines)
    return [line.replace("\xa0", " ") for line in lines]


def nothing(finding: str, about: str = "") -> Figure:
    """Return a figure that says that there is nothing to draw, and why."""
    figure = drawn([], finding, about, height=120, xaxis_visible=False, yaxis_visible=False)
    return figure.add_annotation(text="Nothing to draw.", showarrow=False, xref="paper", yref="paper", x=0, y=1)


def _template() -> dict[str, Any]:
    axis = {
        "gridcolor": _GRID, "linecolor": GREY, "zerolinecolor": _GRID, "automargin": True, "ticks": "outside",
        "ticklen": 4, "tickcolor": _CLEAR, "title": {"standoff": 8},
    }  # fmt: skip
    title = {
        "x": 0, "xref": "container", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top",
        "pad": {"l": 14, "t": 20}, "font": {"size": 15},
    }  # fmt: skip
    return {
        "data": {"bar": [{"marker": {"line": {"width": 0}}}]},  # the default is white, which glares on dark pages
        "layout": {
            "paper_bgcolor": _CLEAR, "plot_bgcolor": _CLEAR, "colorway": [*COLORS.values()],
            "font": {"color": GREY, "size": 12}, "xaxis": axis, "yaxis": axis, "title": title,
            "legend": {"bgcolor": _CLEAR, "font": {"size": 11}},
            "hoverlabel": {"align": "left", "font": {"size": 12}}, "coloraxis": {"colorbar": {"outlinewidth": 0}},
        },
    }  # fmt: skip


def text_color(color: str) -> str:
    """Return black or white: what can be read on a colour.

    Example:
        >>> text_color("#0072B2"), text_color("#E69F00")
        ('#FFFFFF', '#000000')
    """
    red, green, blue = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    luminance = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    return "#FFFFFF" if luminance < 0.21 else "#000000"  # only blue, brown and vermillion are darker than that


def time_unit(longest_us: float) -> tuple[float, str]:
    """Return (how many µs it has, its name) of the unit for an axis whose largest value is given in µs.

    Example:
        >>> time_unit(2500.0), time_unit(12.0)
        ((1000.0, 'ms'), (1.0, 'µs'))
    """
    return next((factor, name) for least, factor, name in _UNITS if longest_us >= least or not least)


def row_pixels(rows: int) -> int:
    """Return how high a heat map of some rows is, pixels."""
    return 60 + min(rows * Sizes.row, Sizes.rows)


def one_above_the_other(above: int, gap: int, below: int) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Return the height of a figure of two pictures and the options of both axes of y, from heights in pixels."""
    height = above + gap + below
    upper = {"domain": [(below + gap) / height, 1.0], "anchor": "x"}
    return height, upper, {"domain": [0.0, below / height], "anchor": "x2"}


def unique_labels(names: Iterable[str], letters: int = Sizes.name) -> dict[str, str]:
    """Return a label for each name: without signature, cut to what a legend holds, and different for each name.

    plotly makes one item of those that have one label. Names whose labels would be equal are numbered, in the order in
    which they are given.

    Example:
        >>> unique_labels(["void gemm<float>(float*)", "void gemm<half>(half*)", "copy"])
        {'void gemm<float>(float*)': 'gemm<float>', 'void gemm<half>(half*)': 'gemm<half>', 'copy': 'copy'}
    """
    names = list(dict.fromkeys(names))
    return dict(zip(names, _numbered([shortened(name, letters) for name in sibling_names(names)]), strict=True))


def row_labels(texts: Sequence[str]) -> list[str]:
    """Return a label for each row of a figure, as plotly's markup: cut in the middle, and numbered if rows look alike.

    Example:
        >>> row_labels(["a<b", "copy", "copy"])
        ['a&lt;b', 'copy [1]', 'copy [2]']
    """
    return [*map(escaped, _numbered([shortened(plain(text), Sizes.axis) or _NO_NAME for text in texts]))]


def _numbered(labels: Sequence[str]) -> list[str]:
    """Return labels, of which those that are alike have a number."""
    alike, seen = Counter(labels), Counter[str]()
    shown = []
    for label in labels:
        seen[label] += 1
        shown.append(label if alike[label] == 1 else f"{label} [{seen[label]}]")
    return shown


def hover_name(name: str) -> str:
    """Return a full name as plotly's markup, on several lines; beyond 480 letters it is cut.

    Example:
        >>> hover_name("void gemm<float>(float*)")
        'void gemm&lt;float&gt;(float*)'
    """
    return "<br>".join(map(escaped, textwrap.wrap(plain(name, Sizes.hover), Sizes.hover_line))) or _NO_NAME


def hover_of(rows: pd.DataFrame, says: str | Callable[[Mapping[str, Any]], str]) -> list[str]:
    """Return what to show where one points at each row, as markup: times (``…_us``) with their unit, names in full.

    `says` is a text with names of columns in braces, or a function that gives that of a row.

    Example:
        >>> import pandas as pd
        >>> hover_of(pd.DataFrame({"name": ["a<b"], "rank": [1], "own_us": [1500.0]}), "{name}, rank {rank}: {own_us}")
        ['a&lt;b, rank 1: 1.50 ms']
    """

    def shown(name: str, value: Any) -> Any:  # noqa: ANN401 - any cell
        return time_text(value) if name.endswith("_us") else hover_name(value) if isinstance(value, str) else value

    records: list[Any] = rows.rename(columns=str).to_dict("records")
    texts = [says if isinstance(says, str) else says(row) for row in records]
    return [
        text.format_map({name: shown(name, each) for name, each in row.items()})
        for text, row in zip(texts, records, strict=True)
    ]


def plain(text: str, letters: int | None = None) -> str:
    """Return a text on one line that can be encoded and turns no direction of writing, cut to some letters."""
    if letters is not None and len(text) > letters:
        text = text[: letters - 1] + "…"
    return " ".join(printable(text.encode("utf-8", "replace").decode()).split())


def escaped(text: str) -> str:
    """Return a text as plotly's markup, in which it is itself: plotly reads tags, entities and formulas in texts.

    Example:
        >>> escaped("<a href='x'>$a$</a>")
        "&lt;a href='x'&gt;&#36;a&#36;&lt;/a&gt;"
    """
    return text.translate(_NO_LETTERS)


def stacked_bars(
    times: pd.DataFrame, colors: Mapping[str, str], says: str, shares_of: pd.Series[float] | None = None
) -> tuple[list[dict[str, Any]], str]:
    """Return bars of parts that add up, and the unit of their times, µs by bar (as markup) and part (from the bottom).

    `says` has ``{label}``, ``{part}``, ``{us}``, ``{whole}`` and ``{percent}``. Shares of µs by bar are in percent.
    """
    whole = times.sum(axis=1) if shares_of is None else shares_of
    factor, unit = time_unit(float(whole.max()))
    shares = (100 * times).div(whole.clip(lower=1e-9), axis=0)
    bars = []
    for part in times.columns.tolist():
        hover = [
            says.format(label=label, part=part, us=time_text(us), whole=time_text(of), percent=percent)
            for label, us, of, percent in zip(times.index, times[part], whole, shares[part], strict=True)
        ]
        values = times[part] / factor if shares_of is None else shares[part]
        bars.append({
            "type": "bar", "name": part, "x": times.index.tolist(), "y": values.to_numpy(),
            "marker_color": colors[part], "hovertext": hover, "hoverinfo": "text",
        })  # fmt: skip
    return bars, unit


def parts_by_rank(
    times: pd.DataFrame, colors: Mapping[str, str], says: str, title: str, shares_of: pd.Series[float] | None = None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return traces and layout of parts that add up for each rank: stacked bars, or of many ranks a heat map.

    The arguments are those of `stacked_bars`, and the title of the axis of values, ``{unit}`` in place of their unit.
    """
    bars, unit = stacked_bars(times, colors, says, shares_of)
    title, labels = title.format(unit=unit), times.index.tolist()
    if len(times) <= Sizes.bars:
        return bars, {
            "barmode": "stack", "yaxis": {"title": title}, "xaxis": rank_axis(labels), "bargap": 0.25,
            "showlegend": True, "legend": {"traceorder": "reversed"},
        }  # fmt: skip
    values, hover = np.array([bar["y"] for bar in bars]), [bar["hovertext"] for bar in bars]
    heat = heat_map(labels, times.columns.tolist(), values, hover, colorbar=color_bar(title))
    return [heat], {"xaxis": rank_axis(labels), "yaxis": {"autorange": "reversed"}, "height": 120 + 36 * len(bars)}


def rank_axis(labels: Sequence[str]) -> dict[str, Any]:
    """Return an axis of ranks, which are words: ranks that were not read leave no room."""
    return {"type": "category", "title": "rank", "nticks": min(len(labels), Sizes.ranks), "showgrid": False}


def color_bar(title: str) -> dict[str, Any]:
    """Return the bar that explains the colours of a heat map."""
    return {"title": {"text": title, "side": "right"}, "thickness": 12, "outlinewidth": 0}


def heat_map(
    x: Sequence[str] | Array,
    labels: Sequence[str],
    values: Array,
    hover: Sequence[Sequence[str]] | str,
    **more: Any,  # noqa: ANN401 - plotly's options
) -> dict[str, Any]:
    """Return a picture of values by row and column, NaN for none.

    The columns have labels or middles, the rows labels as markup; `hover` is markup of each cell, or plotly's template.
    """
    template = isinstance(hover, str)
    words = {"hovertemplate": f"{hover}<extra></extra>"} if template else {"hovertext": hover, "hoverinfo": "text"}
    return {"type": "heatmap", "x": x, "y": [*labels], "z": values, "colorscale": SEQUENTIAL, **words, **more}


def category_map(
    x: Array, labels: Sequence[str], codes: Array, colors: Sequence[str], hover: Sequence[Sequence[str]] | str
) -> dict[str, Any]:
    """Return a picture, as `heat_map` does, whose cells have the colours that their codes stand for; NaN for none."""
    count = len(colors)
    steps = [[(code + end) / count, color] for code, color in enumerate(colors) for end in (0, 1)]
    return heat_map(
        x, labels, codes.astype(np.float32), hover, zmin=-0.5, zmax=count - 0.5, colorscale=steps, showscale=False,
        hoverongaps=False,
    )  # fmt: skip


def category_ticks(labels: Sequence[str]) -> dict[str, Any]:
    """Return an axis for rows in their order, the first at the top, with as many labels as there is room for."""
    shown = list(labels[:: max(1, -(-len(labels) // Sizes.ticks))])
    return {
        "type": "category", "categoryorder": "array", "categoryarray": list(labels), "tickvals": shown,
        "ticktext": shown, "showgrid": False, "zeroline": False, "range": [len(labels) - 0.5, -0.5],
    }  # fmt: skip


def legend_of(colors: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return traces that draw nothing but have a line in the legend; `colors` are by word."""
    return [
        {"type": "scatter", "x": [None], "y": [None], "mode": "markers", "name": word,
         "marker": {"color": color, "symbol": "square", "size": 10}}
        for word, color in colors.items()
    ]  # fmt: skip


_CELLS = 100_000
"""Cells of a picture, which take about 0.6 MB in a file; of many rows, columns of time are fewer."""


class TimeColumns(NamedTuple):
    """Columns of time of a picture."""

    edges: npt.NDArray[np.float64]
    """µs."""
    factor: float
    """µs of the unit of their axis."""
    unit: str

    @property
    def middles(self) -> npt.NDArray[np.float64]:
        """The middles of the columns, in their unit."""
        return (self.edges[1:] + self.edges[:-1]) / 2 / self.factor

    def axis(self, since: str = "the job's first activity") -> dict[str, Any]:
        """Return their axis."""
        return {"title": f"time since {since} ({self.unit})"}


def columns_of(begin: float, end: float, rows: int) -> TimeColumns:
    """Return the columns of a picture of some rows, from and to a time in µs.

    There are at most 800, two pixels each in a figure 1,400 pixels wide, and at least 100.
    """
    count = max(100, min(800, _CELLS // max(rows, 1)))
    return TimeColumns(np.linspace(begin, end if end > begin else begin + 1.0, count + 1), *time_unit(end))


def covered(row: Array, start: Array, end: Array, edges: Array, rows: int) -> npt.NDArray[np.float64]:
    """Return for each row and column how much of its time intervals cover; those that overlap count each.

    Example:
        >>> covered(np.array([0]), np.array([1.0]), np.array([4.0]), np.array([0.0, 2.0, 4.0]), 1).tolist()
        [[1.0, 2.0]]
    """
    picture = np.zeros((rows, len(edges) - 1))
    for at, inside in _by_row(row, rows, np.argsort(row, kind="stable")):
        picture[at] = np.diff(_beyond(start[inside], edges) - _beyond(end[inside], edges))
    return np.maximum(picture, 0.0)


_LEAST_OF_CELL = 1e-6
"""Share of a cell that something covers at least, to be drawn there. Chosen: sums of floats are less exact than nothing
by about a tenth of that, and looked like copies. Doubled, nothing that can be seen changes."""


def longest(row: Array, start: Array, end: Array, code: Array, edges: Array) -> npt.NDArray[np.float64]:
    """Return for each row and column the code (from 0) of the intervals that cover most of it; NaN where none do."""
    rows, codes = int(row.max(initial=-1)) + 1, int(code.max(initial=-1)) + 1
    best = np.full((rows, len(edges) - 1), np.nan)
    most = np.zeros_like(best) + _LEAST_OF_CELL * np.diff(edges)
    for each in range(codes):
        chosen = code == each
        time = covered(row[chosen], start[chosen], end[chosen], edges, rows)
        better = time > most
        best[better], most[better] = each, time[better]
    return best


def running(row: Array, start: Array, end: Array, edges: Array, rows: int) -> npt.NDArray[np.int64]:
    """Return for each row and column the position of an interval that runs in its middle; -1 for none.

    Of intervals that overlap it is the one that began last.
    """
    middles = (edges[1:] + edges[:-1]) / 2
    picture = np.full((rows, len(middles)), -1, np.int64)
    for at, inside in _by_row(row, rows, np.lexsort((start, row))):
        found = np.searchsorted(start[inside], middles, side="right") - 1
        there = inside[np.maximum(found, 0)]
        picture[at] = np.where((found >= 0) & (end[there] > middles), there, -1)
    return picture


def _by_row(row: Array, rows: int, order: Array) -> Iterator[tuple[int, Array]]:
    """Yield each row that has intervals, and their positions in an order that sorts them by row."""
    bounds = np.searchsorted(row[order], np.arange(rows + 1))
    for at in np.flatnonzero(np.diff(bounds)).tolist():
        yield at, order[bounds[at] : bounds[at + 1]]


def mean_of_steps(time: Array, value: Array, edges: Array) -> npt.NDArray[np.float64]:
    """Return the mean over each column of a value that holds from each time to the next; 0 before the first.

    Example:
        >>> mean_of_steps(np.array([1.0, 3.0]), np.array([4.0, 0.0]), np.array([0.0, 2.0, 4.0])).tolist()
        [2.0, 2.0]
    """
    change = np.diff(value, prepend=0.0)
    order = np.argsort(time, kind="stable")
    moments, change = time[order], change[order]
    before = np.searchsorted(moments, edges, side="right")
    level, moment = (np.concatenate(([0.0], np.cumsum(each))) for each in (change, change * moments))
    area = level[before] * edges - moment[before]
    return np.diff(area) / np.diff(edges)


def highest_of_steps(time: Array, value: Array, edges: Array) -> npt.NDArray[np.float64]:
    """Return the highest in each column of a value that holds from each time to the next; 0 before the first.

    Example:
        >>> highest_of_steps(np.array([1.0, 3.0]), np.array([4.0, 0.0]), np.array([0.0, 2.0, 4.0, 6.0])).tolist()
        [4.0, 4.0, 0.0]
    """
    order = np.argsort(time, kind="stable")
    moments, values = time[order], np.concatenate(([0.0], value[order], [-np.inf]))
    first = np.searchsorted(moments, edges[:-1], side="right")  # the place in `values` of what holds at an edge
    last = np.searchsorted(moments, edges[1:], side="left")
    last[-1] = len(moments)
    highest = np.maximum.reduceat(values, np.ravel([first, np.maximum(last, first) + 1], order="F")[:-1])[::2]
    return np.asarray(highest, np.float64)


def _beyond(moments: Array, edges: Array) -> npt.NDArray[np.float64]:
    """Return for each edge how far all moments before it lie before it, summed."""
    moments = np.sort(moments)
    sums = np.concatenate(([0.0], np.cumsum(moments)))
    before = np.searchsorted(moments, edges)
    return np.asarray(before * edges - sums[before], np.float64)
