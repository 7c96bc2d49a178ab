"""HTA's older timeline: the kernels of ranks and streams as bars over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from htagraph.core.naming import short_name
from htagraph.hta.common.timeline import TimelinePlotSetting, bars
from htagraph.hta.shapes.figures import show
from htagraph.hta.utils.utils import require

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from htagraph.hta.common.trace import Trace
    from htagraph.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = [
    "gpu_kernels_figure", "plot_timeline", "plot_timeline_gpu_kernels", "plot_timeline_gpu_kernels_from_trace",
    "prepare_timeline_gpu_events",
]  # fmt: skip

_REQUIRED = ("iteration", "name", "cat", "rank", "stream", "ts", "dur")
_BARS = ("calibrated_start_global", "calibrated_end_global", "task", "label")
_HOVER = ("rank", "stream", "iteration", "s_cat", "s_name")
_SETTING = TimelinePlotSetting(color_column="label", use_global_time=True)


def prepare_timeline_gpu_events(
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: Sequence[int] | None = None,
    iterations: Sequence[int] | None = None,
    streams: Sequence[int] | None = None,
    duration_threshold: int = 1000,
) -> pd.DataFrame:
    """Return the bars of device events.

    Args:
        df: frames of one or several ranks, with a column ``rank``.
        symbol_table: what the numbers in ``name`` and ``cat`` stand for.
        ranks: which ranks; all if not given.
        iterations: which profiler steps; all events if not given.
        streams: which streams; all if not given.
        duration_threshold: µs that a bar is long at least; with twice as many, short kernels cover their neighbours.

    Returns:
        The chosen rows, by rank, stream and time, with ``s_name``, ``s_cat``, ``label`` (what gives the colour),
        ``task`` (the line), ``calibrated_start_global`` and ``calibrated_end_global`` (datetime64, from ``ts``).

    Raises:
        ValueError: a column is absent.
    """
    require(df, _REQUIRED, f"; it has {', '.join(map(str, df.columns))}", ValueError)
    keep = pd.Series(True, index=df.index)
    for column, wanted in (("rank", ranks), ("iteration", iterations), ("stream", streams)):
        keep &= df[column].ne(-1) if wanted is None else df[column].isin(wanted)
    events = df[keep].copy()
    for column, shown in (("name", short_name), ("cat", str)):
        words = {number: shown(symbol_table.sym_table[number]) for number in events[column].unique().tolist()}
        events[f"s_{column}"] = events[column].map(words)
    start = events["ts"].astype("float64")
    events["calibrated_start_global"] = pd.to_datetime(start, unit="us")
    events["calibrated_end_global"] = pd.to_datetime(start + events["dur"].clip(lower=duration_threshold), unit="us")
    events["label"] = events["s_name"]
    events["task"] = "rank " + events["rank"].astype(str) + " stream " + events["stream"].astype(str)
    return events.sort_values(["rank", "stream", "ts"], kind="stable")


def gpu_kernels_figure(title: str, df: pd.DataFrame, symbol_table: TraceSymbolTable) -> Figure:
    """Return device events as bars over time; it takes the arguments of `plot_timeline_gpu_kernels`."""
    return bars(title, prepare_timeline_gpu_events(df, symbol_table), _SETTING, _HOVER)


def plot_timeline(title: str, events: pd.DataFrame, ranks: Sequence[int] | None = None) -> None:
    """Show bars over time.

    Args:
        title: what stands above them.
        events: what `prepare_timeline_gpu_events` returned.
        ranks: whose; all if not given.

    Raises:
        ValueError: a column is absent.
    """
    require(events, _BARS, ": pass what prepare_timeline_gpu_events returned", ValueError)
    shown = events if ranks is None or "rank" not in events else events[events["rank"].isin(ranks)]
    show(bars(title, shown, _SETTING, _HOVER))


def plot_timeline_gpu_kernels(
    title: str,
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: Sequence[int] | None = None,
    iterations: Sequence[int] | None = None,
    streams: Sequence[int] | None = None,
    duration_threshold: int = 1000,
) -> None:
    """Show device events over time; it takes a title and the arguments of `prepare_timeline_gpu_events`."""
    plot_timeline(title, prepare_timeline_gpu_events(df, symbol_table, ranks, iterations, streams, duration_threshold))


def plot_timeline_gpu_kernels_from_trace(
    title: str,
    trace_data: Trace,
    ranks: Sequence[int] | None = None,
    iterations: Sequence[int] | None = None,
    streams: Sequence[int] | None = None,
    duration_threshold: int = 1000,
) -> None:
    """Show device events of a trace over time; arguments as `plot_timeline_gpu_kernels`, with a trace for the frame."""
    chosen = [rank for rank in trace_data.get_ranks() if ranks is None or rank in ranks]
    frame = pd.concat([trace_data.get_trace(rank).assign(rank=rank) for rank in chosen], ignore_index=True)
    plot_timeline_gpu_kernels(title, frame, trace_data.symbol_table, ranks, iterations, streams, duration_threshold)
