"""The roofline: what operators reach at their arithmetic intensity, below what the device allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htagraph.findings.phrases import time_text
from htagraph.output.plot.labels import hover_name, plain
from htagraph.output.plot.style import COLORS, GREY, drawn, nothing

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure, Scatter

__all__ = ["roofline"]

_MAX_MARKER_SIZE = 40
"""Pixels of the point of the operator with the most time; chosen. Doubled, points hide each other."""
_MAX_POINTS = 3000
"""Points, those with most time. Chosen: a browser draws them at once. Doubled, small ones hide large ones."""
_DECADE = 10.0
"""Factor by which roofs are drawn beyond the points and the ridge."""
_BOUNDS = {
    "compute": ("compute-bound", COLORS["blue"]), "memory": ("memory-bound", COLORS["orange"]),
    "": ("peaks unknown", COLORS["green"]),
}  # fmt: skip


def roofline(table: pd.DataFrame) -> Figure:
    """Return the figure of operators as points, larger for more time, below the roofs of their devices.

    Args:
        table: result of `htagraph.roofline`; rows of unknown intensity or speed are left out.

    Returns:
        The figure, not shown; both axes are logarithmic, flop/B and TFLOP/s. Pointing at an operator gives its shapes
        and its time in µs, ms or s.

    Example:
        >>> import htagraph as hg
        >>> table = hg.roofline(hg.load("data/gloo_ddp", ranks=[0]), peak_tflop_s=2.0, peak_gb_s=100.0)
        >>> [trace.mode for trace in hg.plot.roofline(table).data][-1]
        'lines'
    """
    about = "Operators by arithmetic intensity and speed reached; the area of a point is its time. Lines: the peaks."
    known = table[(table["intensity"] > 0) & (table["tflop_s"] > 0)].head(_MAX_POINTS)
    if not len(known):
        why = "No operator's operations and bytes are known: profile with record_shapes=True"
        return nothing(why, about)
    from plotly.graph_objects import Scatter

    longest = float(known["time_us"].max())
    points = []
    for bound, (word, color) in _BOUNDS.items():
        rows = known[known["bound"] == bound]
        if not len(rows):
            continue
        points.append(
            Scatter(
                name=word, x=rows["intensity"].to_numpy(), y=rows["tflop_s"].to_numpy(), mode="markers",
                marker={
                    "size": (_MAX_MARKER_SIZE * (rows["time_us"] / longest) ** 0.5).to_numpy(), "sizemin": 4,
                    "color": color, "opacity": 0.7, "line": {"width": 1, "color": GREY},
                },
                hovertext=[_hover(row) for row in rows.to_dict("records")], hoverinfo="text",
            )
        )  # fmt: skip
    return drawn(
        [*points, *_roofs(known)], _finding(known), about, height=460, showlegend=True,
        legend={"itemsizing": "constant"},
        xaxis={"title": {"text": "arithmetic intensity (flop/B)"}, "type": "log", "exponentformat": "SI", "dtick": 1},
        yaxis={"title": {"text": "TFLOP/s"}, "type": "log", "exponentformat": "power", "dtick": 1},
    )  # fmt: skip


def _finding(known: pd.DataFrame) -> str:
    first = known.iloc[int(known["time_us"].to_numpy().argmax())]
    name, reached = plain(str(first["operator"]), 60), float(first["tflop_s"])
    speed = f"{name}, the row with most time, reaches {reached:.3g} TFLOP/s"
    if first["roof_percent"] > 0:
        return f"{speed}, {first['roof_percent']:.0f} % of what the device allows at its intensity"
    return f"{speed}; the peaks of its device are not known"


def _hover(row: dict[Any, Any]) -> str:
    roof = f"<br>{row['roof_percent']:.0f} % of the roof" if row["roof_percent"] > 0 else ""
    shapes = f"<br>{hover_name(str(row['shapes']))}" if row["shapes"] else ""
    return (
        f"{hover_name(str(row['operator']))}{shapes}<br>rank {row['rank']}, "
        f"{row['count']:,} times, {time_text(row['time_us'])}<br>{row['intensity']:.3g} flop/B, "
        f"{row['tflop_s']:.3g} TFLOP/s{roof}"
    )


def _roofs(known: pd.DataFrame) -> list[Scatter]:
    """Return one line per pair of limits: the memory's slope up to the ridge, then the level of the arithmetic."""
    from plotly.graph_objects import Scatter

    limits = known[["peak_gb_s", "peak_tflop_s"]].dropna().drop_duplicates()
    lines = []
    for gb_s, tflop_s in limits.itertuples(index=False, name=None):
        ridge = 1000 * tflop_s / gb_s
        left = min(known["intensity"].min(), ridge) / _DECADE
        right = max(known["intensity"].max(), ridge) * _DECADE
        name = f"{tflop_s:g} TFLOP/s,<br>{gb_s:g} GB/s"
        lines.append(
            Scatter(
                x=[left, ridge, right], y=[left * gb_s / 1000, tflop_s, tflop_s], mode="lines", name=name,
                line={"color": GREY, "width": 2}, hoverinfo="name",
            )
        )  # fmt: skip
    return lines
