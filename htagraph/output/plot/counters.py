"""Counters over time: queue lengths and bandwidths of copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["memory_bandwidth", "queue_length"]


def queue_length(table: pd.DataFrame) -> Figure:
    """Return a line of steps per stream.

    Args:
        table: result of `htagraph.queue_length`, or rows of it.
    """
    lines = {
        f"rank {rank}, device {device}, stream {stream}": rows
        for (rank, device, stream), rows in table.groupby(["rank", "device", "stream"])
    }
    return _steps(lines, "queue_length").update_layout(
        title_text="Queue Length", yaxis_title="queued kernels and copies"
    )


def memory_bandwidth(table: pd.DataFrame) -> Figure:
    """Return a line of steps per rank and kind of copy.

    Args:
        table: result of `htagraph.memory_bandwidth`, or rows of it.
    """
    lines = {f"rank {rank}, {copy}": rows for (rank, copy), rows in table.groupby(["rank", "copy"])}
    return _steps(lines, "bandwidth_gb_s").update_layout(title_text="Memory Bandwidth", yaxis_title="GB/s")


def _steps(lines: dict[str, pd.DataFrame], column: str) -> Figure:
    from plotly.graph_objects import Figure, Scattergl

    shape = {"shape": "hv"}  # a value holds until the next
    drawn = [Scattergl(name=name, x=rows["time_us"], y=rows[column], line=shape) for name, rows in lines.items()]
    return Figure(drawn).update_layout(xaxis_title="time (us)")
