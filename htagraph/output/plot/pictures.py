"""Kinds of pictures that several figures are made of: parts by rank, pictures of categories, pictures of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from htagraph.output.plot.style import MAX_BARS, SEQUENTIAL

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Heatmap, Scatter

__all__ = ["category_map", "category_ticks", "color_bar", "legend_of", "parts_by_rank", "rank_axis"]

_MAX_TICKS = 40
"""Labels beside the rows of a picture. Chosen: rows are 22 pixels high then, and letters 12. Doubled, labels touch."""
_MAX_RANKS = 24
"""Labels below the ranks of a picture. Chosen: four digits each do not touch at a width of 700. Doubled, they do."""


def parts_by_rank(
    labels: Sequence[str],
    parts: Mapping[str, npt.NDArray[np.float64]],
    colors: Mapping[str, str],
    hovers: Mapping[str, Sequence[str]],
    unit: str,
) -> tuple[list[Bar | Heatmap], dict[str, Any]]:
    """Return traces and layout of parts that add up for each rank: stacked bars, or of many ranks a heat map.

    Args:
        labels: of the ranks or streams, as markup.
        parts: values by the name of the part, one for each label.
        colors: by the name of the part.
        hovers: what to show where one points, by the name of the part, as markup.
        unit: of the values, for the axis.
    """
    from plotly.graph_objects import Bar, Heatmap

    if len(labels) <= MAX_BARS:
        bars = [
            Bar(
                name=part, x=[*labels], y=values, marker_color=colors[part], hovertext=[*hovers[part]],
                hoverinfo="text",
            )
            for part, values in parts.items()
        ]  # fmt: skip
        return bars, {
            "barmode": "stack", "yaxis": {"title": {"text": unit}}, "xaxis": rank_axis(labels), "bargap": 0.25,
            "showlegend": True, "legend": {"traceorder": "reversed"},
        }  # fmt: skip
    heat = Heatmap(
        x=[*labels], y=[*parts], z=np.array([*parts.values()]), hovertext=[hovers[part] for part in parts],
        hoverinfo="text", colorscale=SEQUENTIAL, colorbar=color_bar(unit),
    )  # fmt: skip
    return [heat], {"xaxis": rank_axis(labels), "yaxis": {"autorange": "reversed"}, "height": 120 + 36 * len(parts)}


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
