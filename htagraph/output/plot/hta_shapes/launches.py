"""Launches: what is out of the ordinary, what operators launch, and who starts late."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["late_starts_figure", "launch_stats_figures", "operator_kernels_figure"]

_BINS = 300
"""Bins of a histogram, at most: two or three pixels each in a notebook. Doubled, bars get thinner than a pixel."""
_OPERATORS = {
    "ATen Operation": "operator", "Kernel Sequence": "kernel_sequence", "Occurrence Count": "count",
    "Average ATen Op Launch Delay (us)": "launch_delay_us", "Average Runtime Delay (us)": "kernel_delay_us",
}  # fmt: skip


def launch_stats_figures(
    table: pd.DataFrame, where: str, runtime_cutoff_us: float = 50.0, launch_delay_cutoff_us: float = 100.0
) -> list[Figure]:
    """Return three histograms: calls longer than their kernels, excessive calls, excessive delays.

    Args:
        table: result of `htagraph.launch_stats`, or rows of it.
        where: for the titles, such as ``"rank 0"``.
        runtime_cutoff_us: a launch call that takes longer is excessive, µs.
        launch_delay_cutoff_us: a delay above this is excessive, µs.
    """
    short = (table["launch_us"] <= runtime_cutoff_us) & (table["work_us"] < table["launch_us"])
    return [
        _histogram(
            table.loc[short, "launch_us"], f"Short GPU kernels (gpu op duration < cpu op duration) on {where}",
            "Cuda Runtime Event Duration (us)", None,
        ),
        _histogram(
            table.loc[table["launch_us"] > runtime_cutoff_us, "launch_us"],
            f"Runtime Event Duration Outliers (duration > {runtime_cutoff_us:g} us) on {where}",
            "Cuda Runtime Event Duration (us)", _BINS,
        ),
        _histogram(
            table.loc[table["delay_us"] > launch_delay_cutoff_us, "delay_us"],
            f"Launch Delay Outliers (duration > {launch_delay_cutoff_us:g} us) on {where}",
            "Launch Delay Duration (us)", _BINS,
        ),
    ]  # fmt: skip


def operator_kernels_figure(table: pd.DataFrame, where: str) -> Figure:
    """Return a table to look at.

    Args:
        table: result of `htagraph.operator_kernels`, or rows of it.
        where: for the title, such as ``"rank 0"``.
    """
    from plotly.graph_objects import Figure, Table

    cells = {"values": [table[column] for column in _OPERATORS.values()], "height": 30, "align": "left"}
    return Figure([Table(header={"values": list(_OPERATORS)}, cells=cells)]).update_layout(
        title_text=f"ATen Operations, Associated Kernels, ATen and Runtime Delays for {where}",
        width=1500, height=1500, autosize=True, margin={"l": 10, "r": 10, "t": 40, "b": 10},
    )  # fmt: skip


def late_starts_figure(table: pd.DataFrame) -> Figure:
    """Return bars of when each rank started, one group per step.

    Args:
        table: result of `htagraph.late_starts`.
    """
    from plotly.graph_objects import Bar, Figure

    bars = [
        Bar(name=f"step {step}", x=rows["rank"], y=rows["late_us"], customdata=rows["normalized_start"])
        for step, rows in table.groupby("step")
    ]
    return Figure(bars).update_layout(
        barmode="group", title_text="Potential Stragglers", xaxis_title="rank",
        yaxis_title="start after the first rank (us)",
    )  # fmt: skip


def _histogram(values: pd.Series[float], title: str, label: str, bins: int | None) -> Figure:
    from plotly.graph_objects import Figure, Histogram

    return Figure([Histogram(x=values, nbinsx=bins)]).update_layout(
        title_text=title, xaxis_title=label, yaxis_title="count"
    )
