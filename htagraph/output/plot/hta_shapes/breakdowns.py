"""Where the time goes: temporal, idle, kernels, user annotations, overlap, and how even the ranks are."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from htagraph.output.plot.style import unique_labels

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = [
    "comm_comp_overlap", "gpu_kernel_breakdown", "idle_time_breakdown", "temporal_breakdown",
    "user_annotation_breakdown",
]  # fmt: skip

_PARTS = ("idle_time", "compute_time", "non_compute_time")
_OTHERS = "others"
_PIES_A_ROW = 2
"""Pies side by side: what fits a notebook's width with legends. Doubled, the legends overlap."""
_ROW_PIXELS = 400
"""Height of a row of pies, pixels. Chosen. Doubled, one row fills a screen."""


def temporal_breakdown(table: pd.DataFrame) -> Figure:
    """Return a stacked bar for each rank: the shares of time in which its device idles, computes, does something else.

    Args:
        table: result of `TraceAnalysis.get_temporal_breakdown`.
    """
    from plotly.graph_objects import Bar, Figure

    whole = table["kernel_time(us)"].where(table["kernel_time(us)"] > 0)
    bars = [Bar(name=part, x=table["rank"], y=table[f"{part}(us)"] / whole) for part in _PARTS]
    return Figure(bars).update_layout(
        barmode="stack", title_text="Temporal breakdown across ranks", legend_title_text="Time Breakdown",
        xaxis={"title": "Rank", "type": "category"}, yaxis={"title": "Percentage", "tickformat": ".2%"},
    )  # fmt: skip


def idle_time_breakdown(table: pd.DataFrame, *, percent: bool = True) -> Figure:
    """Return a stacked bar for each stream: its idle time by category.

    Args:
        table: the first result of `TraceAnalysis.get_idle_time_breakdown`.
        percent: shares of the stream's idle time, else µs.
    """
    from plotly.graph_objects import Bar, Figure

    column = "idle_time_ratio" if percent else "idle_time"
    ranks = sorted(table["rank"].unique().tolist())
    bars = []
    for category, rows in table.groupby("idle_category"):
        streams = [f"stream {stream}" for stream in rows["stream"]]
        where = streams if len(ranks) == 1 else [[f"rank {rank}" for rank in rows["rank"]], streams]
        bars.append(
            Bar(
                name=category,
                x=where,
                y=rows[column],
                customdata=rows[["idle_time", "idle_time_ratio"]],
                hovertemplate="%{x}: %{customdata[0]} µs, %{customdata[1]:.0%}",
            )
        )
    axis = {"title": "Percentage", "tickformat": ".2%"} if percent else {"title": "Idle time (us)"}
    return Figure(bars).update_layout(
        barmode="stack", title_text=f"Idle time breakdown on rank {', '.join(map(str, ranks))} per stream",
        legend_title_text="Idle Time Breakdown", yaxis=axis,
    )  # fmt: skip


def comm_comp_overlap(table: pd.DataFrame) -> Figure:
    """Return a bar for each rank: which share of its communication runs beside computation.

    Args:
        table: result of `TraceAnalysis.get_comm_comp_overlap`.
    """
    from plotly.graph_objects import Bar, Figure

    return Figure(Bar(x=table["rank"], y=table["comp_comm_overlap_pctg"] / 100)).update_layout(
        title_text="Computation-Communication Overlap", xaxis={"title": "Rank", "type": "category"},
        yaxis={"title": "Computation-Communication Overlap Percentage", "tickformat": ".2%"},
    )  # fmt: skip


def gpu_kernel_breakdown(types: pd.DataFrame, kernels: pd.DataFrame) -> list[Figure]:
    """Return a pie of the kernel types of all ranks, and for each type a pie for each rank and bars of mean durations.

    Args:
        types: the first result of `TraceAnalysis.get_gpu_kernel_breakdown`.
        kernels: the second.
    """
    from plotly.graph_objects import Figure, Pie

    shown = types[types["percentage"] > 0]
    pie = Figure(Pie(labels=shown["kernel_type"], values=shown["percentage"]))
    figures = [pie.update_layout(title_text="Kernel Type Percentage Across All Ranks", height=500)]
    for kind, rows in kernels.groupby("kernel_type"):
        figures.append(_pies(rows, f'Kernel type "{kind}" - kernel distribution on each rank'))
        figures.append(_means(rows, f'Kernel type "{kind}" - mean duration, from shortest to longest'))
    return figures


def user_annotation_breakdown(table: pd.DataFrame) -> list[Figure]:
    """Return a pie of user annotations for each rank, and bars of their mean durations.

    Args:
        table: result of `TraceAnalysis.get_gpu_user_annotation_breakdown`.
    """
    title = "User annotation distribution on each rank"
    return [_pies(table, title), _means(table, "User annotations - mean duration, from shortest to longest")]


def _pies(table: pd.DataFrame, title: str) -> Figure:
    """Return one pie of summed durations for each rank."""
    from plotly.graph_objects import Pie
    from plotly.subplots import make_subplots

    by_rank = list(table.groupby("rank"))
    rows = max(1, -(-len(by_rank) // _PIES_A_ROW))
    specs = [[{"type": "domain"}] * _PIES_A_ROW] * rows
    label_of = unique_labels(table["name"])
    figure = make_subplots(rows=rows, cols=_PIES_A_ROW, specs=specs)
    for place, (rank, kernels) in enumerate(by_rank):  # by place: ranks need not be 0, 1, 2, …
        row, column = divmod(place, _PIES_A_ROW)
        pie = Pie(
            labels=kernels["name"].map(label_of), values=kernels["sum (us)"], title=f"Rank {rank!s}", automargin=False,
            customdata=kernels["name"], hovertemplate="%{customdata}: %{value} µs, %{percent}<extra></extra>",
        )  # fmt: skip
        figure.add_trace(pie, row + 1, column + 1)
    return figure.update_layout(title_text=title, showlegend=True, height=_ROW_PIXELS * (1 + len(by_rank) / 2))


def _means(table: pd.DataFrame, title: str) -> Figure:
    """Return the mean duration of each name on each rank, with whiskers from the shortest to the longest."""
    from plotly.graph_objects import Bar, Figure

    named = table[table["name"] != _OTHERS]
    bars: list[Any] = []
    label_of = unique_labels(named["name"])
    for name, rows in named.groupby("name", sort=False):
        mean = rows["mean (us)"]
        whiskers = {"array": rows["max (us)"] - mean, "arrayminus": mean - rows["min (us)"]}
        shows = f"{escape(str(name))}, rank %{{x}}: %{{y}} µs<extra></extra>"
        bars.append(Bar(name=label_of[str(name)], x=rows["rank"], y=mean, error_y=whiskers, hovertemplate=shows))
    return Figure(bars).update_layout(
        barmode="group", title_text=title, showlegend=True, xaxis={"title": "Rank", "type": "category"},
        yaxis={"title": "Mean Duration (us)"},
    )  # fmt: skip
