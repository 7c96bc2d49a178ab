"""The figures of HTA's tables, and how they are shown.

A function draws the result of the method of HTA's that has its name, with ``get_`` before it. Times are µs; `where`
stands in titles, such as ``"rank 0"``. `MemoryAnalysis` is HTA's interface to memory timelines.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from htagraph.trace.profiler_files.files import CATEGORIES, read_memory_timeline, times_and_sizes

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = [
    "OTHERS", "MemoryAnalysis", "comm_comp_overlap", "counts_diff", "duration_diff", "figure", "gpu_kernel_breakdown",
    "idle_time_breakdown", "late_starts", "launch_stats", "memory_categories", "operator_kernels", "patterns", "show",
    "temporal_breakdown", "user_annotation_breakdown", "write",
]  # fmt: skip

OTHERS = "others"
"""The name of the row that sums up the names without a row of their own."""
_RANKS: dict[str, Any] = {"title": "Rank", "type": "category"}
_OPERATORS = {
    "ATen Operation": "aten_op_name", "Kernel Sequence": "kernel_sequence", "Occurrence Count": "occurrence_count",
    "Average ATen Op Launch Delay (us)": "avg_aten_op_launch_delay",
    "Average Runtime Delay (us)": "avg_runtime_delay",
}  # fmt: skip
_TOTAL = "_total_duration"


def show(*shown: Figure, renderer: str | None = None) -> None:
    """Show figures where the user looks: in a notebook or a browser."""
    for each in shown:
        each.show(renderer=renderer or None)


def write(drawn: Figure, path: str) -> None:
    """Write a figure to a file: a page if its name ends with ``.html``, else an image."""
    drawn.write_html(path) if path.endswith(".html") else drawn.write_image(path)


def figure(traces: Sequence[dict[str, Any]], title: str, **layout: object) -> Figure:
    """Return a figure of some traces, each given as plotly's dictionary."""
    from plotly.graph_objects import Figure

    return Figure(list(traces)).update_layout(title_text=title, **layout)


def temporal_breakdown(table: pd.DataFrame) -> Figure:
    """Return a stacked bar for each rank: the shares of time in which its device idles, computes or does else."""
    whole = table["kernel_time(us)"].where(table["kernel_time(us)"] > 0)
    bars = [
        {"type": "bar", "name": part, "x": table["rank"], "y": table[f"{part}(us)"] / whole}
        for part in ("idle_time", "compute_time", "non_compute_time")
    ]
    return figure(
        bars, "Temporal breakdown across ranks", barmode="stack", legend_title_text="Time Breakdown", xaxis=_RANKS,
        yaxis={"title": "Percentage", "tickformat": ".2%"},
    )  # fmt: skip


def comm_comp_overlap(table: pd.DataFrame) -> Figure:
    """Return a bar for each rank: which share of its communication runs beside computation."""
    bar = {"type": "bar", "x": table["rank"], "y": table["comp_comm_overlap_pctg"] / 100}
    axis = {"title": "Computation-Communication Overlap Percentage", "tickformat": ".2%"}
    return figure([bar], "Computation-Communication Overlap", xaxis=_RANKS, yaxis=axis)


def idle_time_breakdown(table: pd.DataFrame, *, percent: bool = True) -> Figure:
    """Return a stacked bar for each stream: its idle time by category, as shares of it or in µs."""
    ranks = sorted(table["rank"].unique().tolist())
    bars = []
    for category, rows in table.groupby("idle_category"):
        streams = [f"stream {stream}" for stream in rows["stream"]]
        bars.append({
            "type": "bar", "name": category,
            "x": streams if len(ranks) == 1 else [[f"rank {rank}" for rank in rows["rank"]], streams],
            "y": rows["idle_time_ratio" if percent else "idle_time"],
            "customdata": rows[["idle_time", "idle_time_ratio"]],
            "hovertemplate": "%{x}: %{customdata[0]} µs, %{customdata[1]:.0%}",
        })  # fmt: skip
    return figure(
        bars, f"Idle time breakdown on rank {', '.join(map(str, ranks))} per stream", barmode="stack",
        legend_title_text="Idle Time Breakdown",
        yaxis={"title": "Percentage", "tickformat": ".2%"} if percent else {"title": "Idle time (us)"},
    )  # fmt: skip


def gpu_kernel_breakdown(types: pd.DataFrame, kernels: pd.DataFrame) -> list[Figure]:
    """Return a pie of the kernel types of all ranks; for each type a pie for each rank, and bars of mean durations."""
    shown = types[types["percentage"] > 0]
    pie = {"type": "pie", "labels": shown["kernel_type"], "values": shown["percentage"]}
    figures = [figure([pie], "Kernel Type Percentage Across All Ranks", height=500)]
    for kind, rows in kernels.groupby("kernel_type"):
        figures.append(_pies(rows, f'Kernel type "{kind}" - kernel distribution on each rank'))
        figures.append(_means(rows, f'Kernel type "{kind}" - mean duration, from shortest to longest'))
    return figures


def user_annotation_breakdown(table: pd.DataFrame) -> list[Figure]:
    """Return a pie of user annotations for each rank, and bars of their mean durations."""
    title = "User annotation distribution on each rank"
    return [_pies(table, title), _means(table, "User annotations - mean duration, from shortest to longest")]


def _pies(table: pd.DataFrame, title: str) -> Figure:
    """Return one pie of summed durations for each rank."""
    from plotly.subplots import make_subplots

    from htagraph.output.plot.style import unique_labels

    by_rank = list(table.groupby("rank"))
    rows = max(1, (len(by_rank) + 1) // 2)  # two pies and their legends fit a notebook's width
    label_of = unique_labels(table["name"])
    pies = make_subplots(rows=rows, cols=2, specs=[[{"type": "domain"}] * 2] * rows)
    for place, (rank, kernels) in enumerate(by_rank):  # by place: ranks need not be 0, 1, 2, …
        row, column = divmod(place, 2)
        pie = {
            "type": "pie", "labels": kernels["name"].map(label_of), "values": kernels["sum (us)"],
            "title": f"Rank {rank!s}", "automargin": False, "customdata": kernels["name"],
            "hovertemplate": "%{customdata}: %{value} µs, %{percent}<extra></extra>",
        }  # fmt: skip
        pies.add_trace(pie, row + 1, column + 1)
    return pies.update_layout(title_text=title, showlegend=True, height=400 + 200 * len(by_rank))


def _means(table: pd.DataFrame, title: str) -> Figure:
    """Return the mean duration of each name on each rank, with whiskers from the shortest to the longest."""
    from htagraph.output.plot.style import unique_labels

    named = table[table["name"] != OTHERS]
    label_of = unique_labels(named["name"])
    bars = []
    for name, rows in named.groupby("name", sort=False):
        mean = rows["mean (us)"]
        bars.append({
            "type": "bar", "name": label_of[str(name)], "x": rows["rank"], "y": mean,
            "error_y": {"array": rows["max (us)"] - mean, "arrayminus": mean - rows["min (us)"]},
            "hovertemplate": f"{escape(str(name))}, rank %{{x}}: %{{y}} µs<extra></extra>",
        })  # fmt: skip
    axis = {"title": "Mean Duration (us)"}
    return figure(bars, title, barmode="group", showlegend=True, xaxis=_RANKS, yaxis=axis)


def launch_stats(
    table: pd.DataFrame, where: str, runtime_cutoff_us: float = 50.0, launch_delay_cutoff_us: float = 100.0
) -> list[Figure]:
    """Return three histograms: calls longer than their kernels, excessive calls, excessive delays."""
    call, delay = table["cpu_duration"], table["launch_delay"]
    short = (call <= runtime_cutoff_us) & (table["gpu_duration"] < call)
    duration = "Cuda Runtime Event Duration (us)"
    long = f"Runtime Event Duration Outliers (duration > {runtime_cutoff_us:g} us)"
    late = f"Launch Delay Outliers (duration > {launch_delay_cutoff_us:g} us)"
    histograms = (
        (call[short], "Short GPU kernels (gpu op duration < cpu op duration)", duration, None),
        (call[call > runtime_cutoff_us], long, duration, 300),  # bins, each two or three pixels wide in a notebook
        (delay[delay > launch_delay_cutoff_us], late, "Launch Delay Duration (us)", 300),
    )
    return [
        figure(
            [{"type": "histogram", "x": values, "nbinsx": bins}], f"{title} on {where}", xaxis_title=axis,
            yaxis_title="count",
        )
        for values, title, axis, bins in histograms
    ]  # fmt: skip


def operator_kernels(table: pd.DataFrame, where: str) -> Figure:
    """Return a table to look at."""
    cells = {"values": [table[column] for column in _OPERATORS.values()], "height": 30, "align": "left"}
    return figure(
        [{"type": "table", "header": {"values": list(_OPERATORS)}, "cells": cells}],
        f"ATen Operations, Associated Kernels, ATen and Runtime Delays for {where}",
        width=1500, height=1500, autosize=True, margin={"l": 10, "r": 10, "t": 40, "b": 10},
    )  # fmt: skip


def late_starts(table: pd.DataFrame, found: Sequence[int] = ()) -> Figure:
    """Return bars of when each rank started, one group per step; red for the ranks that were found."""
    bars = [
        {
            "type": "bar", "name": f"step {step}", "x": rows["rank"], "y": rows["late_us"],
            "customdata": rows["normalized_start"],
            "marker": {"color": ["red" if rank in found else "blue" for rank in rows["rank"]]},
        }
        for step, rows in table.groupby("step")
    ]  # fmt: skip
    axes = {"xaxis_title": "rank", "yaxis_title": "start after the first rank (us)"}
    named = f": {', '.join(map(str, found))} (red)" if len(found) else ""
    return figure(bars, f"Potential Stragglers{named}", barmode="group", **axes)


def patterns(table: pd.DataFrame, where: str, top: int = 5) -> Figure:
    """Return how often the most frequent patterns occur; pointing at a bar shows the kernels."""
    shown = table.head(top)
    bars = {
        "type": "bar", "x": [str(i) for i in range(len(shown))], "y": shown["count"],
        "customdata": shown["pattern"].str.replace("|", "<br>", regex=False),
        "hovertemplate": "%{y} times<br>%{customdata}<extra></extra>",
    }  # fmt: skip
    axis = {"title": "Pattern Index", "type": "category"}
    return figure([bars], f"Top {len(shown)} frequent patterns for {where}", xaxis=axis, yaxis_title="Pattern Count")


def counts_diff(table: pd.DataFrame) -> Figure:
    """Return bars of how often each name occurs in either job, and the difference."""
    return figure(_sides(table, "_counts", "diff_counts"), "Ops Count Comparison", barmode="group")


def duration_diff(table: pd.DataFrame) -> Figure:
    """Return bars of how long each name takes in either job, and the difference; the table as for `counts_diff`."""
    bars, axis = _sides(table, _TOTAL, "diff_duration"), "Total Duration (us)"
    size = {"autosize": True, "width": 1000, "height": 1000}
    return figure(bars, "Ops Duration Comparison", barmode="group", yaxis_title=axis, **size)


def _sides(table: pd.DataFrame, suffix: str, difference: str) -> list[dict[str, Any]]:
    labels = [str(name).removesuffix(_TOTAL) for name in table.columns if str(name).endswith(_TOTAL)]
    if len(labels) != 2:
        msg = f"the table has {len(labels)} columns that end with {_TOTAL}: pass the result of compare_traces"
        raise ValueError(msg)
    columns = {label: f"{label}{suffix}" for label in labels} | {"Difference": difference}
    return [{"type": "bar", "name": name, "x": table.index, "y": table[column]} for name, column in columns.items()]


def memory_categories(timeline: pd.DataFrame) -> Figure:
    """Return the figure of what memory was used for: areas by category over time."""
    from plotly.colors import qualitative

    areas = [
        {
            "type": "scatter", "x": timeline["time_us"] / 1000, "y": timeline[f"{category}_bytes"] / 2**30,
            "name": category.replace("_", " ").capitalize(), "mode": "lines",
            "line": {"color": color, "shape": "hv"}, "stackgroup": "memory",
        }
        for category, color in zip(CATEGORIES, qualitative.Pastel, strict=False)
    ]  # fmt: skip
    axes = {"xaxis_title": "Time (ms)", "yaxis_title": "Memory (GiB)"}
    return figure(areas, "What memory is used for", title_x=0.5, **axes)


class MemoryAnalysis:
    """What a device's memory was used for, from ``prof.export_memory_timeline("….raw.json.gz")``.

    Args:
        path: the file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path

    def plot_memory_timeline(self, save_graph: bool = False) -> None:
        """Show the memory in use by category over time, or write it to the folder ``images``.

        Args:
            save_graph: write ``images/memory_plot.png`` instead; ``images/memory_plot.html`` where no kaleido is
                installed, without which plotly makes no images.
        """
        figure = memory_categories(read_memory_timeline(self.path)).update_layout(
            title_text="Memory timeline", yaxis_title="Memory (GB)", width=1200, height=800
        )
        if not save_graph:
            show(figure)
            return
        folder = Path("images")
        folder.mkdir(exist_ok=True)
        try:
            figure.write_image(folder / "memory_plot.png")
        except (ImportError, RuntimeError, ValueError) as error:
            figure.write_html(folder / "memory_plot.html")
            message = f"wrote {folder / 'memory_plot.html'}: plotly makes no image here ({str(error).splitlines()[0]})"
            warnings.warn(message, stacklevel=2)

    def _process_raw_events(self) -> tuple[list[int], list[list[int]]]:
        """Return the moments of changes, and the bytes in use by category after each, in HTA's order."""
        times, sizes = times_and_sizes(self.path)
        return times.tolist(), sizes.tolist()
