"""How every figure looks: one template for light and dark pages, colours that colour-blind readers tell apart."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from htagraph.output.kind_colors import COLORS, KIND_COLORS
from htagraph.output.plot.labels import escaped, plain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "AFTER", "BEFORE", "COLORS", "DIVERGING", "EMPTY", "GREY", "KIND_COLORS", "MAX_BARS", "SEQUENTIAL", "drawn",
    "heading", "nothing", "row_pixels", "text_color", "time_unit",
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
    lines = textwrap.wrap(_BEFORE_UNIT.sub("\xa0", text), letters)
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
