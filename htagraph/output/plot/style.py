"""How every figure looks: one template for light and dark pages, colours that colour-blind readers tell apart."""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import printable
from htagraph.core.naming import short_name
from htagraph.findings.phrases import shortened
from htagraph.output.scene import COLORS, KIND_COLORS

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure, Heatmap, Scatter

__all__ = [
    "AFTER", "BEFORE", "COLORS", "DIVERGING", "EMPTY", "GREY", "KIND_COLORS", "MAX_BARS", "NAME_LETTERS", "SEQUENTIAL",
    "Part", "axis_labels", "category_map", "category_ticks", "color_bar", "drawn", "escaped", "heading", "hover_name",
    "legend_of", "nothing", "one_above_the_other", "parts_by_rank", "plain", "rank_axis", "row_labels", "row_pixels",
    "text_color", "time_map", "time_unit", "unique_labels",
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
MAX_BARS = 32
"""Ranks or streams that are bars. Chosen: bars of 15 pixels at a width of 700. More are a heat map; doubled, bars and
the labels below them are too thin to read."""
_TITLE_LETTERS = 84
"""Letters of a line of a title, which must fit a figure 700 pixels wide. Doubled, titles are cut there."""
_ABOUT_LETTERS = 112
"""The same of the smaller lines below it."""
_MAX_TITLE = 240
"""Letters of a title. Chosen: four lines. Doubled, a title may take as much room as its figure."""
_TITLE_PIXELS, _ABOUT_PIXELS = 20, 16
"""Heights of a line of the title and of one below it; those of their letters, 15 and 12 pixels, and a third more."""
_LEGEND_PIXELS = 24
"""Height of a legend that is one line above the figure."""
_HEIGHT = 420
"""Pixels of a figure without rows. Chosen: a figure and its text fit on a screen. Doubled, one fills a screen."""
_MAX_ROW, _ROWS_PIXELS = 28, 1024
"""Pixels of a row of a heat map, and of all rows together, at most. Chosen: 1,024 streams have a pixel each, and of
more, some share one. Doubled, one scrolls."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|[nµm]?s\b|[KMG]?i?B\b|TFLOP|GB/s)")
_UNITS = ((1e6, 1e6, "s"), (1e3, 1e3, "ms"), (0.0, 1.0, "µs"))
_DARK_LUMINANCE = 0.35
"""Relative luminance below which text on a colour is white. Chosen: only blue, brown and vermillion are darker than
that. Doubled, white text stands on orange."""
NAME_LETTERS = 60
"""Letters of a name in a legend, in a title, or where one points at a small cell. Chosen: longer names push the figure
aside, and fill two lines of a title. Doubled, two pies do not fit."""
_AXIS_LETTERS = 34
"""Letters of a name beside an axis. Chosen: a third of a figure 700 pixels wide. Doubled, they leave no room."""
_HOVER_LETTERS = 480
"""Letters of a name where one points. Chosen: six lines hold the name of nearly every kernel. Doubled, names of
templates cover what they are shown beside."""
_HOVER_LINE = 80
"""Letters of a line of it. Doubled, it is wider than a figure."""
_NO_LETTERS = {ord("<"): "&lt;", ord(">"): "&gt;", ord("&"): "&amp;", ord("$"): "&#36;"}
_MAX_TICKS = 40
"""Labels beside the rows of a picture. Chosen: rows are 22 pixels high then, and letters 12. Doubled, labels touch."""
_MAX_RANKS = 24
"""Labels below the ranks of a picture. Chosen: four digits each do not touch at a width of 700. Doubled, they do."""


def drawn(traces: Iterable[Any], finding: str, about: str, **layout: Any) -> Figure:  # noqa: ANN401 - plotly's options
    """Return a figure of some traces in the common style.

    Args:
        traces: plotly's traces.
        finding: the title: what the figure shows, as a sentence that is true, or what it is about.
        about: what is drawn, in smaller letters below.
        layout: options of plotly's layout; `height` is without the title.
    """
    from plotly.graph_objects import Figure

    title, pixels = heading(finding, about)
    above = layout.get("legend", {}).get("orientation") == "h"
    pixels += _LEGEND_PIXELS * above
    height = layout.pop("height", _HEIGHT)
    margin = {"l": 60, "r": 24, "b": 56, "t": pixels} | layout.pop("margin", {})
    figure = Figure(list(traces)).update_layout(template=_template(), title={"text": title})
    return figure.update_layout(height=height + pixels, margin=margin, **layout)


def heading(finding: str, about: str) -> tuple[str, int]:
    """Return a title with what is drawn below it, as plotly's markup, and how high it is in pixels."""
    title = _lines(plain(finding, _MAX_TITLE), _TITLE_LETTERS) or [""]
    lines = _lines(plain(about, 2 * _MAX_TITLE), _ABOUT_LETTERS)
    big = "<br>".join(map(escaped, title))
    small = "<br>".join(map(escaped, lines))
    text = f'{big}<br><span style="font-size:12px">{small}</span>' if small else big
    return text, 36 + _TITLE_PIXELS * len(title) + _ABOUT_PIXELS * len(lines)


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
    figure = drawn([], finding, about, height=120, xaxis={"visible": False}, yaxis={"visible": False})
    return figure.add_annotation(text="Nothing to draw.", showarrow=False, xref="paper", yref="paper", x=0, y=1)


def time_unit(longest_us: float) -> tuple[float, str]:
    """Return (how many µs it has, its name) of the unit for an axis whose largest value is given in µs.

    Example:
        >>> time_unit(2500.0), time_unit(12.0)
        ((1000.0, 'ms'), (1.0, 'µs'))
    """
    return next((factor, name) for least, factor, name in _UNITS if longest_us >= least or not least)


def row_pixels(rows: int) -> int:
    """Return how high a heat map of some rows is, pixels."""
    return 60 + min(rows * _MAX_ROW, _ROWS_PIXELS)


def text_color(color: str) -> str:
    """Return black or white: what can be read on a colour.

    Example:
        >>> text_color("#0072B2"), text_color("#E69F00")
        ('#FFFFFF', '#000000')
    """
    red, green, blue = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    luminance = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    return "#FFFFFF" if luminance < _DARK_LUMINANCE * 0.6 else "#000000"


def _template() -> dict[str, Any]:
    axis = {
        "gridcolor": _GRID, "linecolor": GREY, "zerolinecolor": _GRID, "automargin": True, "ticks": "outside",
        "ticklen": 4, "tickcolor": "rgba(0,0,0,0)",
        "title": {"standoff": 8},
    }  # fmt: skip
    return {
        "data": {"bar": [{"marker": {"line": {"width": 0}}}]},  # the default is white, which glares on dark pages
        "layout": {
            "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "colorway": [*COLORS.values()],
            "font": {"color": GREY, "size": 12}, "xaxis": axis, "yaxis": axis,
            "title": {
                "x": 0, "xref": "container", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top",
                "pad": {"l": 14, "t": 20}, "font": {"size": 15},
            },
            "legend": {"bgcolor": "rgba(0,0,0,0)", "font": {"size": 11}},
            "hoverlabel": {"align": "left", "font": {"size": 12}},
            "coloraxis": {"colorbar": {"outlinewidth": 0}},
        }
    }  # fmt: skip


def unique_labels(names: Iterable[str], letters: int = NAME_LETTERS) -> dict[str, str]:
    """Return a label for each name: without signature, cut to what a legend holds, and different for each name.

    plotly makes one item of those that have one label. Names whose labels would be equal are numbered, in the order in
    which they are given.

    Example:
        >>> unique_labels(["void gemm<float>(float*)", "void gemm<half>(half*)", "copy"])
        {'void gemm<float>(float*)': 'gemm [1]', 'void gemm<half>(half*)': 'gemm [2]', 'copy': 'copy'}
    """
    by_label: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        by_label[shortened(short_name(name), letters)].append(name)
    return {
        name: label if len(same) == 1 else f"{label} [{number}]"
        for label, same in by_label.items()
        for number, name in enumerate(same, 1)
    }


def axis_labels(names: Iterable[str]) -> dict[str, str]:
    """Return a label for each name of a kernel or operator as `unique_labels` does, shorter, and as plotly's markup.

    Example:
        >>> axis_labels(["void a<int>(int)", "x" * 40])
        {'void a<int>(int)': 'a', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx': 'xxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxx'}
    """
    names = list(dict.fromkeys(names))
    return dict(zip(names, row_labels([short_name(name) for name in names]), strict=True))


def row_labels(texts: Sequence[str], letters: int = _AXIS_LETTERS) -> list[str]:
    """Return a label for each row of a figure, as plotly's markup: cut in the middle, and numbered if rows look alike.

    Example:
        >>> row_labels(["a<b", "copy", "copy"])
        ['a&lt;b', 'copy [1]', 'copy [2]']
    """
    cut = [shortened(plain(text), letters) or "(no name)" for text in texts]
    alike, seen = Counter(cut), Counter[str]()
    labels = []
    for label in cut:
        seen[label] += 1
        labels.append(escaped(label if alike[label] == 1 else f"{label} [{seen[label]}]"))
    return labels


def hover_name(name: str) -> str:
    """Return a full name as plotly's markup, on several lines; beyond 480 letters it is cut.

    Example:
        >>> hover_name("void gemm<float>(float*)")
        'void gemm&lt;float&gt;(float*)'
    """
    return "<br>".join(map(escaped, textwrap.wrap(plain(name, _HOVER_LETTERS), _HOVER_LINE))) or "(no name)"


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


class Part(NamedTuple):
    """What each rank or stream has of one part of a whole."""

    word: str
    color: str
    values: npt.NDArray[np.float64]
    """One for each rank."""
    hover: Sequence[str]
    """What to show where one points, for each rank, as markup."""


def parts_by_rank(
    labels: Sequence[str], parts: Sequence[Part], unit: str
) -> tuple[list[Bar | Heatmap], dict[str, Any]]:
    """Return traces and layout of parts that add up for each rank: stacked bars, or of many ranks a heat map.

    Args:
        labels: of the ranks or streams, as markup.
        parts: from the bottom of a bar to its top.
        unit: of the values, for the axis.
    """
    from plotly.graph_objects import Bar, Heatmap

    if len(labels) <= MAX_BARS:
        bars = [
            Bar(name=word, x=[*labels], y=values, marker_color=color, hovertext=[*hover], hoverinfo="text")
            for word, color, values, hover in parts
        ]
        return bars, {
            "barmode": "stack", "yaxis": {"title": {"text": unit}}, "xaxis": rank_axis(labels), "bargap": 0.25,
            "showlegend": True, "legend": {"traceorder": "reversed"},
        }  # fmt: skip
    heat = Heatmap(
        x=[*labels], y=[part.word for part in parts], z=np.array([part.values for part in parts]),
        hovertext=[part.hover for part in parts], hoverinfo="text", colorscale=SEQUENTIAL, colorbar=color_bar(unit),
    )  # fmt: skip
    return [heat], {"xaxis": rank_axis(labels), "yaxis": {"autorange": "reversed"}, "height": 120 + 36 * len(parts)}


def time_map(
    x: npt.NDArray[np.float64],
    labels: Sequence[str],
    values: npt.NDArray[Any],
    hover: str,
    **more: Any,  # noqa: ANN401 - plotly's options
) -> Heatmap:
    """Return a picture of values by row and column of time.

    Args:
        x: middles of the columns.
        labels: of the rows, as markup; no two are the same.
        values: by row and column; NaN for none.
        hover: plotly's template of what to show where one points.
        **more: plotly's options of the trace.
    """
    from plotly.graph_objects import Heatmap

    return Heatmap(
        x=x, y=[*labels], z=values.astype(np.float32), colorscale=SEQUENTIAL,
        hovertemplate=f"{hover}<extra></extra>", **more,
    )  # fmt: skip


def one_above_the_other(above: int, gap: int, below: int) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Return the height of a figure of two pictures, and the options of the axes of y of the upper and the lower one.

    Args:
        above: pixels of the upper picture.
        gap: pixels between both.
        below: pixels of the lower picture.
    """
    height = above + gap + below
    upper = {"domain": [(below + gap) / height, 1.0], "anchor": "x"}
    return height, upper, {"domain": [0.0, below / height], "anchor": "x2"}


def rank_axis(labels: Sequence[str], title: str = "rank") -> dict[str, Any]:
    """Return an axis of ranks, which are words: ranks that were not read leave no room."""
    return {"type": "category", "title": {"text": title}, "nticks": min(len(labels), _MAX_RANKS), "showgrid": False}


def color_bar(title: str) -> dict[str, Any]:
    """Return the bar that explains the colours of a heat map."""
    return {"title": {"text": title, "side": "right"}, "thickness": 12, "outlinewidth": 0}


def category_map(
    x: npt.NDArray[np.float64],
    labels: Sequence[str],
    codes: npt.NDArray[np.float64],
    colors: Sequence[str],
    hover: Sequence[Sequence[str]] | str,
) -> Heatmap:
    """Return a picture whose cells have the colours of categories.

    Args:
        x: middles of the columns.
        labels: of the rows, as markup; no two are the same.
        codes: by row and column, positions in `colors`; NaN for none.
        colors: of the categories.
        hover: what to show where one points, by row and column, as markup; or plotly's template of it.
    """
    from plotly.graph_objects import Heatmap

    count = len(colors)
    steps = [[(code + end) / count, color] for code, color in enumerate(colors) for end in (0, 1)]
    words = {"hovertemplate": hover} if isinstance(hover, str) else {"hovertext": hover, "hoverinfo": "text"}
    return Heatmap(
        x=x, y=[*labels], z=codes.astype(np.float32), zmin=-0.5, zmax=count - 0.5, colorscale=steps, showscale=False,
        hoverongaps=False, **words,
    )  # fmt: skip


def category_ticks(labels: Sequence[str]) -> dict[str, Any]:
    """Return an axis for rows in their order, the first at the top, with as many labels as there is room for."""
    shown = list(labels[:: max(1, -(-len(labels) // _MAX_TICKS))])
    return {
        "type": "category", "categoryorder": "array", "categoryarray": list(labels), "tickvals": shown,
        "ticktext": shown, "showgrid": False, "zeroline": False, "range": [len(labels) - 0.5, -0.5],
    }  # fmt: skip


def legend_of(words: Mapping[str, str]) -> list[Scatter]:
    """Return traces that draw nothing but have a line in the legend.

    Args:
        words: colours by word.
    """
    from plotly.graph_objects import Scatter

    return [
        Scatter(x=[None], y=[None], mode="markers", name=word, marker={"color": color, "symbol": "square", "size": 10})
        for word, color in words.items()
    ]
