"""Counters over time: queued kernels and copies, and bandwidths of copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from htagraph.findings.phrases import time_text
from htagraph.output.plot.labels import escaped, plain
from htagraph.output.plot.pictures import category_ticks, color_bar
from htagraph.output.plot.raster import columns_of, highest_of_steps
from htagraph.output.plot.style import EMPTY, MAX_BARS, SEQUENTIAL, drawn, nothing, row_pixels, time_unit

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["memory_bandwidth", "queue_length"]

_LABEL_LETTERS = 34
"""Letters of a label beside the axis. Doubled, a figure 700 pixels wide is half labels."""
_MAX_LINES = 3
"""Counters that are lines. Chosen: more hide each other. Doubled, jobs of one rank and many streams are a tangle."""
_MAX_POINTS = 20_000
"""Points of all lines; chosen: a browser draws them at once. Doubled, twice the size of the file."""


def queue_length(table: pd.DataFrame) -> Figure:
    """Return the figure of how many kernels and copies are queued on each stream: lines, or a heat map of many.

    Args:
        table: result of `htagraph.queue_length`, by time.

    Returns:
        The figure, not shown; its axis of time is in µs, ms or s.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.queue_length(hg.queue_length(hg.load("data/demo")))
        >>> figure.data[0].type
        'heatmap'
    """
    about = "Kernels and copies whose launch call has begun, and that have not started."
    if not len(table):
        return nothing("No launch of device work was recorded", about)
    most = table.iloc[int(table["queue_length"].to_numpy().argmax())]
    where = f"rank {int(most['rank'])}, stream {int(most['stream'])}, at {time_text(float(most['time_us']))}"
    finding = f"At most {int(most['queue_length']):,} kernels and copies are queued ({where})"
    return _drawn(table, ["rank", "device", "stream"], "queue_length", ("queued", ""), (finding, about))


def memory_bandwidth(table: pd.DataFrame) -> Figure:
    """Return the figure of how fast copies are: lines of GB/s by rank and kind of copy, or a heat map of many.

    Args:
        table: result of `htagraph.memory_bandwidth`, by time.

    Returns:
        The figure, not shown; its axis of time is in µs, ms or s.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.memory_bandwidth(hg.memory_bandwidth(hg.load("data/demo")))
        >>> figure.data[0].type
        'heatmap'
    """
    about = "Bandwidth of all copies and memsets of one kind that run on a rank at the same moment."
    if not len(table):
        return nothing("No copies were recorded", about)
    most = table.iloc[int(table["bandwidth_gb_s"].to_numpy().argmax())]
    where = f"{plain(str(most['copy']))}, rank {most['rank']}, at {time_text(float(most['time_us']))}"
    finding = f"Copies reach at most {float(most['bandwidth_gb_s']):,.3g} GB/s ({where})"
    return _drawn(table, ["rank", "copy"], "bandwidth_gb_s", ("GB/s", " GB/s"), (finding, about))


def _drawn(
    table: pd.DataFrame, keys: Sequence[str], column: str, words: tuple[str, str], texts: tuple[str, str]
) -> Figure:
    """Return a figure of counters.

    Args:
        table: their values.
        keys: columns that name a counter.
        column: the values.
        words: what they are, for an axis and behind a number.
        texts: the title, and what is drawn.
    """
    from plotly.graph_objects import Heatmap, Scatter

    device = "device" in table and int(table.groupby("rank")["device"].nunique().max()) > 1
    shown = [key for key in keys if key != "device" or device]
    # of many ranks, the same streams are one below the other, so that ranks can be compared
    order = [*shown[1:], shown[0]] if table["rank"].nunique() > MAX_BARS else shown
    rows = {_label(shown, order, key): each for key, each in table.groupby(order)}
    factor, unit = time_unit(float(table["time_us"].max()))
    time = {"title": {"text": f"time since the job's first activity ({unit})"}}
    if len(rows) <= _MAX_LINES and len(table) <= _MAX_POINTS:
        lines = [
            Scatter(
                name=label, x=(each["time_us"] / factor).to_numpy(), y=each[column].to_numpy(), mode="lines",
                line={"shape": "hv", "width": 1.5}, hovertemplate=f"%{{x:.4g}} {unit}: %{{y:.4g}}{words[1]}",
            )
            for label, each in rows.items()
        ]  # fmt: skip
        axis = {"title": {"text": words[0]}, "rangemode": "tozero"}
        return drawn(lines, *texts, xaxis=time, yaxis=axis, showlegend=len(rows) > 1)
    edges = columns_of(float(table["time_us"].min()), float(table["time_us"].max()), len(rows))
    picture = np.array([
        highest_of_steps(each["time_us"].to_numpy(), each[column].to_numpy(np.float64), edges) for each in rows.values()
    ])  # fmt: skip
    picture[picture == 0] = np.nan
    labels = list(rows)
    heat = Heatmap(
        x=(edges[1:] + edges[:-1]) / 2 / factor, y=labels, z=picture.astype(np.float32), colorscale=SEQUENTIAL,
        colorbar=color_bar(words[0]), hovertemplate=f"%{{y}}, %{{x:.4g}} {unit}: %{{z:.4g}}{words[1]}<extra></extra>",
    )  # fmt: skip
    return drawn(
        [heat], texts[0], f"{texts[1]} Each cell: the highest in its time; none where that is 0.",
        height=row_pixels(len(labels)), xaxis=time, yaxis=category_ticks(labels), plot_bgcolor=EMPTY,
    )  # fmt: skip


def _label(shown: Sequence[str], keys: Sequence[str], key: tuple[object, ...]) -> str:
    parts = [
        escaped(plain(str(value), _LABEL_LETTERS)) if name == "copy" else f"{name} {value}"
        for name, value in zip(keys, key, strict=True)
        if name in shown
    ]
    return ", ".join(parts)
