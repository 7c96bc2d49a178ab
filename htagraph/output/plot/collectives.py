"""Collectives: how long each rank waits and transfers, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.findings.phrases import plural, time_text
from htagraph.output.plot.pictures import category_ticks, color_bar, parts_by_rank
from htagraph.output.plot.raster import columns_of, covered
from htagraph.output.plot.style import COLORS, EMPTY, MAX_BARS, SEQUENTIAL, drawn, nothing, row_pixels, time_unit

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["collectives"]

_PARTS = {
    "wait_us": ("wait for the last to arrive", COLORS["orange"]),
    "transfer_us": ("transfer", COLORS["blue"]),
    "excess_us": ("excess over the shortest transfer", COLORS["sky"]),
    "wait_or_transfer_us": ("wait or transfer, not known", COLORS["light"]),
    "beside_us": ("beside other work", COLORS["green"]),
}
_ABOVE = 240
"""Pixels of the upper picture. Chosen; doubled, the lower one is off the screen."""
_GAP = 80
"""Pixels between both pictures: the axis of the upper one, and its title."""


def collectives(table: pd.DataFrame) -> Figure:
    """Return the figure of what ranks do in collectives: sums by rank above, and below when each rank waits.

    Args:
        table: result of `htagraph.collectives`.

    Returns:
        The figure, not shown; its axes are in µs, ms or s. The colour below is the share of time (percent) in which the
        rank waits in a collective for the last one to arrive.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.collectives(hg.collectives(hg.load("data/demo")))
        >>> figure.layout.title.text.split("<br>")[0]
        'Ranks wait 13.5 ms for each other in 6 collectives, and transfer 30.9 ms'
    """
    about = "Above: time in collectives by rank. Below: share of the time in which a rank waits for another to arrive."
    if not len(table):
        return nothing("No communication between ranks was recorded", about)
    from plotly.graph_objects import Heatmap

    by_rank = table.groupby("rank")[[*_PARTS]].sum()
    ranks = [str(rank) for rank in by_rank.index]
    factor, unit = time_unit(float(by_rank.sum(axis=1).max()))
    shown = {column: words for column, words in _PARTS.items() if by_rank[column].any()}
    parts = {words: (by_rank[column] / factor).to_numpy() for column, (words, _) in shown.items()}
    hovers = {
        words: [f"rank {rank}: {time_text(us)}<br>{words}" for rank, us in zip(ranks, by_rank[column], strict=True)]
        for column, (words, _) in shown.items()
    }
    traces, layout = parts_by_rank(ranks, parts, dict(shown.values()), hovers, f"in collectives ({unit})")
    picture, edges = _waiting(table, by_rank.index.to_numpy())
    scale, time = time_unit(float(edges[-1]))
    traces.append(
        Heatmap(
            x=(edges[1:] + edges[:-1]) / 2 / scale, y=ranks, z=picture.astype(np.float32), zmin=0, zmax=100,
            colorscale=SEQUENTIAL, xaxis="x2", yaxis="y2",
            hovertemplate=f"rank %{{y}}, %{{x:.4g}} {time}: waits %{{z:.0f}} % of the time<extra></extra>",
        )
    )  # fmt: skip
    above = layout.pop("height", _ABOVE)
    below = row_pixels(len(ranks))
    height = above + _GAP + below
    split, upper = below / height, (below + _GAP) / height
    traces[-1].update(colorbar={**color_bar("waits (%)"), "y": 0, "yanchor": "bottom", "len": split})
    layout["yaxis"] = {**layout["yaxis"], "domain": [upper, 1.0]}
    layout["xaxis"] = {**layout["xaxis"], "anchor": "y"}
    if len(ranks) > MAX_BARS:
        traces[0].update(colorbar={"y": 1, "yanchor": "top", "len": 1 - upper})
    else:
        layout["legend"] = {"y": 1, "yanchor": "top", "traceorder": "reversed"}
    return drawn(
        traces, _finding(table), about, height=height,
        xaxis2={"anchor": "y2", "title": {"text": f"time since the job's first activity ({time})"}},
        yaxis2={
            **category_ticks(ranks), "domain": [0.0, split], "title": {"text": "rank"}, "anchor": "x2",
        },
        plot_bgcolor=EMPTY, **layout,
    )  # fmt: skip


def _waiting(table: pd.DataFrame, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of time in which each rank waits, percent, by rank and column, and the edges of the columns."""
    start = (table["start_us"] + table["beside_us"]).to_numpy()
    edges = columns_of(
        float(table["start_us"].min()), float((table["start_us"] + table["duration_us"]).max()), len(ranks)
    )
    row = np.searchsorted(ranks, table["rank"].to_numpy())
    time = covered(row, start, start + table["wait_us"].to_numpy(), edges, len(ranks))
    share = np.minimum(100 * time / np.diff(edges), 100.0)
    share[share == 0] = np.nan
    return share, edges


def _finding(table: pd.DataFrame) -> str:
    matched = table[table["collective"] >= 0]
    count = int(matched["collective"].nunique())
    if not count:
        return f"None of {plural(len(table), 'part')} of collectives has a known partner: waits are not known"
    wait, transfer = (float(table[column].sum()) for column in ("wait_us", "transfer_us"))
    transfer += float(table["excess_us"].sum())
    either = float(table["wait_or_transfer_us"].sum())
    also = f"; {time_text(either)} are one or the other" if either else ""
    return (
        f"Ranks wait {time_text(wait)} for each other in {plural(count, 'collective')}, "
        f"and transfer {time_text(transfer)}{also}"
    )
