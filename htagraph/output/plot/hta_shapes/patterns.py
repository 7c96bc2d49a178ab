"""Frequent kernel patterns as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["patterns_figure"]


def patterns_figure(table: pd.DataFrame, where: str, top: int = 5) -> Figure:
    """Return how often the most frequent patterns occur; pointing at a bar shows the kernels.

    Args:
        table: result of `htagraph.kernel_patterns` for one rank, or HTA's table: columns ``pattern`` and ``count``.
        where: for the title, such as ``"rank 0"``.
        top: patterns to show.
    """
    from plotly.graph_objects import Bar, Figure

    shown = table.head(top)
    texts = shown["pattern"].str.replace("|", "<br>", regex=False)
    bars = Bar(x=[str(i) for i in range(len(shown))], y=shown["count"], customdata=texts, hovertemplate=_SHOWN)
    return Figure([bars]).update_layout(
        title_text=f"Top {len(shown)} frequent patterns for {where}",
        xaxis={"title": "Pattern Index", "type": "category"},
        yaxis_title="Pattern Count",
    )


_SHOWN = "%{y} times<br>%{customdata}<extra></extra>"
