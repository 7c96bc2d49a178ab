"""The roofline: what operators reach at their arithmetic intensity, below what the device allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure, Scatter

__all__ = ["roofline_figure"]

_SHOWN = "%{customdata[0]}<br>%{customdata[1]}<br>%{x:.3g} flop/B, %{y:.3g} TFLOP/s, %{customdata[2]:.3g} µs"
_MAX_MARKER_SIZE = 40
"""Pixels of the point of the operator with the most time; chosen. Doubled, points hide each other."""
_DECADE = 10.0
"""Factor by which roofs are drawn beyond the points and the ridge."""


def roofline_figure(table: pd.DataFrame) -> Figure:
    """Return operators as points, larger for more time, and the roofs of their devices as lines; both axes logarithmic.

    Args:
        table: result of `htagraph.roofline`; rows of unknown intensity or speed are left out.
    """
    from plotly.graph_objects import Figure, Scatter

    known = table[(table["intensity"] > 0) & (table["tflop_s"] > 0)]
    traces = []
    for (rank, source), rows in known.groupby(["rank", "source"]):
        size = _MAX_MARKER_SIZE * (rows["time_us"] / known["time_us"].max()) ** 0.5
        traces.append(
            Scatter(
                x=rows["intensity"], y=rows["tflop_s"], mode="markers", name=f"rank {rank}, by {source}",
                marker={"size": size, "sizemin": 4}, customdata=rows[["operator", "shapes", "time_us"]].to_numpy(),
                hovertemplate=_SHOWN,
            )
        )  # fmt: skip
    return Figure([*traces, *_roofs(known)]).update_layout(
        title_text="Roofline",
        xaxis={"title": "arithmetic intensity (flop/B)", "type": "log"},
        yaxis={"title": "TFLOP/s", "type": "log"},
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
        name = f"{tflop_s:g} TFLOP/s, {gb_s:g} GB/s"
        lines.append(Scatter(x=[left, ridge, right], y=[left * gb_s / 1000, tflop_s, tflop_s], mode="lines", name=name))
    return lines
