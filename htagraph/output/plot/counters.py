"""Counters over time: queued kernels and copies, bandwidths of copies, memory in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from htagraph.findings.phrases import time_text
from htagraph.output.plot import style
from htagraph.output.plot.style import TimeColumns, columns_of, highest_of_steps, mean_of_steps
from htagraph.output.scene import COLORS
from htagraph.trace.profiler_files.files import CATEGORIES

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from htagraph.trace.profiler_files.memory_snapshot import MemorySnapshot

__all__ = ["memory_bandwidth", "memory_timeline", "queue_length"]

_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))
_LINE_POINTS = 2000
"""Points of a line: more than a figure has pixels. Of those between, the highest is kept."""
_STEPS = {"shape": "hv"}
"""A line of values that hold until the next one."""
_ABOUT = "Memory that the allocator has given out, as the profiler recorded it."


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
        return style.nothing("No launch of device work was recorded", about)
    most = _largest(table, "queue_length")
    where = f"rank {int(most['rank'])}, stream {int(most['stream'])}, at {time_text(float(most['time_us']))}"
    finding = f"At most {int(most['queue_length']):,} kernels and copies are queued ({where})"
    return _counters(table, ["rank", "device", "stream"], "queue_length", (finding, about))


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
        return style.nothing("No copies were recorded", about)
    most = _largest(table, "bandwidth_gb_s")
    where = f"{style.plain(str(most['copy']))}, rank {most['rank']}, at {time_text(float(most['time_us']))}"
    finding = f"Copies reach at most {float(most['bandwidth_gb_s']):,.3g} GB/s ({where})"
    return _counters(table, ["rank", "copy"], "bandwidth_gb_s", (finding, about))


def _largest(table: pd.DataFrame, column: str) -> pd.Series[Any]:
    return table.iloc[int(table[column].to_numpy().argmax())]


def _counters(table: pd.DataFrame, keys: list[str], column: str, texts: tuple[str, str]) -> Figure:
    """Return a figure of the counters of a column, each named by other columns: lines, or a heat map of many."""
    title, behind = ("GB/s", " GB/s") if column.endswith("_gb_s") else ("queued", "")
    if "device" in keys and int(table.groupby("rank")["device"].nunique().max()) < 2:
        keys.remove("device")
    if table["rank"].nunique() > style.Sizes.bars:  # the same streams are below each other, to compare ranks
        keys = [*keys[1:], keys[0]]
    rows = {
        ", ".join(
            style.escaped(style.plain(str(value), style.Sizes.axis)) if name == "copy" else f"{name} {value}"
            for name, value in zip(keys, key, strict=True)
        ): each
        for key, each in table.groupby(keys)
    }
    time = _columns(table, len(rows))
    if len(rows) <= 3 and len(table) <= 20_000:  # more lines hide each other, and more points are slow to draw
        hover = f"%{{x:.4g}} {time.unit}: %{{y:.4g}}{behind}"
        lines = [
            _line(label, each, column, time, line=_STEPS | {"width": 1.5}, hovertemplate=hover)
            for label, each in rows.items()
        ]
        axis = {"title": title, "rangemode": "tozero"}
        return style.drawn(lines, *texts, xaxis=time.axis(), yaxis=axis, showlegend=len(rows) > 1)
    heat, layout = _picture(rows, column, highest_of_steps, time, (title, behind))
    heat["z"][heat["z"] == 0] = np.nan
    about = f"{texts[1]} Each cell: the highest in its time; none where that is 0."
    return style.drawn([heat], texts[0], about, xaxis=time.axis(), plot_bgcolor=style.EMPTY, **layout)


def _columns(table: pd.DataFrame, rows: int) -> TimeColumns:
    return columns_of(float(table["time_us"].min()), float(table["time_us"].max()), rows)


def _line(name: str, table: pd.DataFrame, column: str, time: TimeColumns, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    x, y = (table["time_us"] / time.factor).to_numpy(), table[column].to_numpy()
    return {"type": "scatter", "name": name, "x": x, "y": y, "mode": "lines", **more}


def _picture(
    rows: Mapping[str, pd.DataFrame], column: str, of_steps: Callable[..., Any], time: TimeColumns,
    words: tuple[str, str],
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """Return a heat map of a column by row and time, and its layout; `words` are those of the axis and of a number."""
    z = [of_steps(each["time_us"].to_numpy(), each[column].to_numpy(np.float64), time.edges) for each in rows.values()]
    hover = f"%{{y}}, %{{x:.4g}} {time.unit}: %{{z:.4g}}{words[1]}"
    heat = style.heat_map(time.middles, [*rows], np.array(z, np.float32), hover, colorbar=style.color_bar(words[0]))
    return heat, {"height": style.row_pixels(len(rows)), "yaxis": style.category_ticks([*rows])}


def memory_timeline(result: pd.DataFrame | MemorySnapshot) -> Figure:
    """Return the figure of memory over time: areas by category, lines, or a heat map of many devices.

    Args:
        result: result of `htagraph.memory.timeline`, of `htagraph.memory.read_timeline` (which has categories), or of
            `htagraph.memory.read_snapshot`.

    Returns:
        The figure, not shown; its axes are in bytes to GB and in µs, ms or s. The title gives the peak.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.memory_timeline(hg.memory.timeline(hg.load("data/demo")))
        >>> figure.layout.title.text.split("<br>")[0]
        'No allocation was recorded: profile with profile_memory=True'
    """
    table: pd.DataFrame = result.events if hasattr(result, "events") else result  # type: ignore[assignment]
    if not len(table):
        return style.nothing("No allocation was recorded: profile with profile_memory=True", _ABOUT)
    if "total_bytes" in table:
        return _by_category(table)
    if "rank" not in table:
        table = table.assign(rank=-1, device=[f"device {each}" for each in table["device"]])  # nobody knows whose it is
    return _by_device(table)


def _by_category(table: pd.DataFrame) -> Figure:
    peak, time = _largest(table, "total_bytes"), _columns(table, 1)
    table, size = _in_unit(_thinned(table, "total_bytes"), "total_bytes")
    areas = [
        _line(
            category.replace("_", " "), table, f"{category}_bytes", time, stackgroup="memory",
            line=_STEPS | {"width": 0.5, "color": color}, fillcolor=color, hovertemplate=f"%{{y:.4g}} {size}",
        )
        for category, color in zip(CATEGORIES, COLORS.values(), strict=False)
        if table[f"{category}_bytes"].any()
    ]  # fmt: skip
    largest = max(CATEGORIES, key=lambda category: peak[f"{category}_bytes"])
    share = 100 * peak[f"{largest}_bytes"] / max(peak["total_bytes"], 1.0)
    finding = (
        f"Memory peaks at {_size(peak['total_bytes'])} after {time_text(peak['time_us'])}; "
        f"{share:.0f} % of that is of category {largest.replace('_', ' ')}"
    )
    return style.drawn(
        areas, finding, "Memory in use by what it was used for, as the profiler classified it.", showlegend=True,
        xaxis=time.axis("the first recorded one"), yaxis={"title": f"memory in use ({size})", "rangemode": "tozero"},
        legend={"traceorder": "reversed"}, hovermode="x unified",
    )  # fmt: skip


def _by_device(table: pd.DataFrame) -> Figure:
    most = _largest(table, "allocated_bytes")
    where = f"{_place(most['rank'], most['device'])}, at {time_text(most['time_us'])}"
    finding = f"Memory in use peaks at {_size(most['allocated_bytes'])} ({where})"
    table, size = _in_unit(table, "allocated_bytes")
    rows = {
        style.escaped(_place(*cast("tuple[int, str]", key))): each for key, each in table.groupby(["rank", "device"])
    }
    time = _columns(table, len(rows))
    axis = time.axis("the first recorded one" if (table["rank"] < 0).all() else "the job's first activity")
    if len(rows) > 2:  # each device has two lines, which cross those of others
        heat, layout = _picture(rows, "allocated_bytes", mean_of_steps, time, (size, f" {size}"))
        return style.drawn([heat], finding, f"{_ABOUT} Each cell: the mean over its time.", xaxis=axis, **layout)
    lines = [
        _line(
            f"{label}, {words}", _thinned(each, "allocated_bytes"), column, time,
            line=_STEPS | {"dash": dash, "color": color}, hovertemplate="%{y:.4g}",
        )
        for (label, each), color in zip(rows.items(), COLORS.values(), strict=False)
        for words, column, dash in (("in use", "allocated_bytes", "solid"), ("reserved", "reserved_bytes", "dot"))
        if column == "allocated_bytes" or (column in each and each[column].any())
    ]  # fmt: skip
    return style.drawn(
        lines, finding, _ABOUT, xaxis=axis, yaxis={"title": size, "rangemode": "tozero"}, showlegend=True,
        hovermode="x unified", legend={"orientation": "v"},
    )  # fmt: skip


def _place(rank: int, device: object) -> str:
    return style.plain(str(device)) if rank < 0 else f"rank {rank}, {style.plain(str(device))}"


def _thinned(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows that a line needs: of each piece of time its highest value, and the last."""
    if len(table) <= _LINE_POINTS:
        return table
    piece = np.arange(len(table)) * _LINE_POINTS // len(table)
    order = np.lexsort((table[column].to_numpy(), piece))
    last = np.flatnonzero(np.diff(piece[order], append=_LINE_POINTS))
    return table.iloc[np.unique([*order[last], len(table) - 1])]


def _in_unit(table: pd.DataFrame, column: str) -> tuple[pd.DataFrame, str]:
    """Return a table with its columns of bytes in the unit that suits the largest value of one, and that unit."""
    divisor, unit = _unit(table[column].max())
    return table.assign(
        **{name: table[name] / divisor for name in map(str, table.columns) if name.endswith("_bytes")}
    ), unit


def _unit(largest: float) -> tuple[int, str]:
    return next((divisor, unit) for divisor, unit in _UNITS if largest >= divisor or divisor == 1)


def _size(count: float) -> str:
    divisor, unit = _unit(count)
    return f"{count / divisor:.3g} {unit}"
