"""Stragglers: which rank takes longer than the others, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.findings.phrases import time_text
from htagraph.findings.verbs.stragglers import sentences
from htagraph.output.plot.pictures import category_ticks, color_bar
from htagraph.output.plot.style import DIVERGING, SEQUENTIAL, drawn, nothing, row_pixels, time_unit

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from htagraph.analyses.stragglers import Stragglers

__all__ = ["stragglers"]

_NO_STEP = -1
_GAPS_UP_TO = 64
"""Ranks or steps between whose cells there is a line. Chosen: cells are 5 pixels then. Doubled, lines hide them."""


def stragglers(result: Stragglers) -> Figure:
    """Return the figure of how much longer each rank takes for each step than the others: a heat map.

    Args:
        result: result of `htagraph.stragglers`.

    Returns:
        The figure, not shown; its colours are in µs, ms or s. Where nothing compares (ranks that do different work by
        design), they are what each rank does by itself in a step.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.stragglers(hg.stragglers(hg.load("data/demo")))
        >>> figure.layout.title.text.split(":")[0]
        'Rank 2 is the straggler'
    """
    table = result.by_step
    about = "What each rank does by itself in a step, beyond the median of the others; waiting for others left out."
    finding, doubt = _finding(result)
    about += doubt
    compares = len(table) and bool(table["excess_us"].notna().any())
    column = "excess_us" if compares else "own_us"
    if not len(table) or not table[column].notna().any():
        return nothing(finding.partition(". ")[0], about)
    from plotly.graph_objects import Heatmap

    wide = table.pivot_table(index="rank", columns="step", values=column, dropna=False)
    ranks = [str(rank) for rank in wide.index]
    steps = ["the recording" if step == str(_NO_STEP) else step for step in map(str, wide.columns)]
    values = wide.to_numpy()
    far = float(np.nanmax(np.abs(values)))
    factor, unit = time_unit(far)
    word = "beyond the others" if compares else "by itself"
    hover = [
        [f"rank {rank}, step {step}: not known" if np.isnan(us) else f"rank {rank}, step {step}: {_words(us, word)}"
         for step, us in zip(steps, row, strict=True)]
        for rank, row in zip(ranks, values, strict=True)
    ]  # fmt: skip
    scale = {"colorscale": DIVERGING, "zmid": 0, "zmin": -far / factor, "zmax": far / factor} if compares else {
        "colorscale": SEQUENTIAL}  # fmt: skip
    heat = Heatmap(
        x=steps, y=ranks, z=values / factor, hovertext=hover, hoverinfo="text",
        xgap=int(len(steps) < _GAPS_UP_TO), ygap=int(len(ranks) < _GAPS_UP_TO),
        colorbar=color_bar(f"{word} ({unit})"), **scale,
    )  # fmt: skip
    if not compares:
        about = "What each rank does by itself in a step, waiting for others left out. The ranks' work is not the same."
        about += doubt
    return drawn(
        [heat], finding, about, height=row_pixels(len(ranks)) + 80,
        yaxis={**category_ticks(ranks), "title": {"text": "rank"}},
        xaxis={"type": "category", "title": {"text": "step"}},
    )  # fmt: skip


def _words(us: float, word: str) -> str:
    return f"{'+' if us > 0 and word != 'by itself' else ''}{time_text(us)} {word}"


def _finding(result: Stragglers) -> tuple[str, str]:
    """Return the title, and what makes it uncertain as a sentence; empty where nothing does."""
    blamed = float(result.ranks.loc[result.ranks["rank"] == result.straggler, "blamed_us"].sum())
    if blamed:
        share = 100 * blamed / result.total_wait_us
        waits = f"others wait {time_text(blamed)} for it, {share:.0f} % of all waiting"
        return f"Rank {result.straggler} is the straggler: {waits}", ""
    first = sentences(result, len(result.ranks), [])[0].partition(" For those that were not")[0].rstrip(".")
    finding, but, doubt = first.partition("; but ")
    return finding, f" But {doubt}." if but else ""
