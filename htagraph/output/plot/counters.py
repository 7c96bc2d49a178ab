"""Counters over time: queued kernels and copies, bandwidths of copies, memory in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from htagraph.findings.phrases import time_text
from htagraph.output.plot.raster import columns_of, highest_of_steps, mean_of_steps
from htagraph.output.plot.style import (
    COLORS,
    EMPTY,
    MAX_BARS,
    category_ticks,
    color_bar,
    drawn,
    escaped,
    nothing,
    plain,
    row_pixels,
    time_map,
    time_unit,
)
from htagraph.trace.profiler_files.memory_timeline import CATEGORIES

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from htagraph.trace.profiler_files.memory_snapshot import MemorySnapshot

__all__ = ["memory_bandwidth", "memory_timeline", "queue_length"]

_LABEL_LETTERS = 34
"""Letters of a label beside the axis. Doubled, a figure 700 pixels wide is half labels."""
_MAX_LINES = 3
"""Counters that are lines. Chosen: more hide each other. Doubled, jobs of one rank and many streams are a tangle."""
_MAX_POINTS = 20_000
"""Points of all lines; chosen: a browser draws them at once. Doubled, twice the size of the file."""
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_NO_RANK = -1
"""Stands for the rank of a snapshot, which does not say whose it is."""
_LINE_POINTS = 2000
"""Points of a line. Chosen: more than a figure has pixels; of those between, the highest is kept. Doubled, files are
twice as large and look the same."""
_MAX_DEVICES = 2
"""Devices that are lines. Chosen: each has two, which cross those of others. Doubled, eight lines cross."""
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
    from plotly.graph_objects import Scatter

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
    hover, middles = f"%{{y}}, %{{x:.4g}} {unit}: %{{z:.4g}}{words[1]}", (edges[1:] + edges[:-1]) / 2 / factor
    heat = time_map(middles, [*rows], picture, hover, colorbar=color_bar(words[0]))
    return drawn(
        [heat], texts[0], f"{texts[1]} Each cell: the highest in its time; none where that is 0.",
        height=row_pixels(len(rows)), xaxis=time, yaxis=category_ticks([*rows]), plot_bgcolor=EMPTY,
    )  # fmt: skip


def _label(shown: Sequence[str], keys: Sequence[str], key: tuple[object, ...]) -> str:
    parts = [
        escaped(plain(str(value), _LABEL_LETTERS)) if name == "copy" else f"{name} {value}"
        for name, value in zip(keys, key, strict=True)
        if name in shown
    ]
    return ", ".join(parts)


def memory_timeline(result: pd.DataFrame | MemorySnapshot) -> Figure:
    """Return the figure of memory over time: areas by category, or lines in use and reserved; of many, a heat map.

    Args:
        result: result of `htagraph.memory.timeline`, of `htagraph.memory.read_timeline` (which has categories), or of
            `htagraph.memory.read_snapshot`.

    Returns:
        The figure, not shown; its axes are in bytes to GiB and in µs, ms or s. The title gives the peak.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.memory_timeline(hg.memory.timeline(hg.load("data/demo")))
        >>> figure.layout.title.text.split("<br>")[0]
        'No allocation was recorded: profile with profile_memory=True'
    """
    table: pd.DataFrame = result.events if hasattr(result, "events") else result  # type: ignore[assignment]
    if not len(table):
        return nothing("No allocation was recorded: profile with profile_memory=True", _ABOUT)
    if "total_bytes" in table:
        return _by_category(table)
    if "rank" not in table:
        table = table.assign(rank=_NO_RANK, device=[f"device {each}" for each in table["device"]])
    return _by_device(table)


def _by_category(table: pd.DataFrame) -> Figure:
    from plotly.graph_objects import Scatter

    table = _thinned(table, "total_bytes")
    (divisor, size), (factor, unit) = _size_unit(table["total_bytes"].max()), time_unit(float(table["time_us"].max()))
    areas = [
        Scatter(
            name=category.replace("_", " "), x=(table["time_us"] / factor).to_numpy(),
            y=(table[f"{category}_bytes"] / divisor).to_numpy(), mode="lines", stackgroup="memory",
            line={"shape": "hv", "width": 0.5, "color": color}, fillcolor=color,
            hovertemplate=f"%{{y:.4g}} {size}",
        )
        for category, color in zip(CATEGORIES, COLORS.values(), strict=False)
        if table[f"{category}_bytes"].any()
    ]  # fmt: skip
    at = int(table["total_bytes"].to_numpy().argmax())
    peak = table.iloc[at]
    sizes = {category: float(peak[f"{category}_bytes"]) for category in CATEGORIES}
    largest = max(sizes, key=sizes.__getitem__)
    share = 100 * sizes[largest] / max(float(peak["total_bytes"]), 1.0)
    finding = (
        f"Memory peaks at {_size(float(peak['total_bytes']))} after {time_text(float(peak['time_us']))}; "
        f"{share:.0f} % of that is of category {largest.replace('_', ' ')}"
    )
    return drawn(
        areas, finding, "Memory in use by what it was used for, as the profiler classified it.", showlegend=True,
        xaxis={"title": {"text": f"time since the first recorded one ({unit})"}}, hovermode="x unified",
        yaxis={"title": {"text": f"memory in use ({size})"}, "rangemode": "tozero"},
        legend={"traceorder": "reversed"},
    )  # fmt: skip


def _by_device(table: pd.DataFrame) -> Figure:
    divisor, size = _size_unit(table["allocated_bytes"].max())
    factor, unit = time_unit(float(table["time_us"].max()))
    groups = {escaped(_place(*key)): each for key, each in table.groupby(["rank", "device"])}
    most = table.iloc[int(table["allocated_bytes"].to_numpy().argmax())]
    where = _place(most["rank"], most["device"])
    finding = (
        f"Memory in use peaks at {_size(float(most['allocated_bytes']))} ({where}, "
        f"at {time_text(float(most['time_us']))})"
    )
    since = "the first recorded one" if (table["rank"] < 0).all() else "the job's first activity"
    time = {"title": {"text": f"time since {since} ({unit})"}}
    if len(groups) <= _MAX_DEVICES:
        lines = [line for at, each in enumerate(groups.items()) for line in _lines(*each, (divisor, factor), at)]
        axis = {"title": {"text": size}, "rangemode": "tozero"}
        return drawn(lines, finding, _ABOUT, xaxis=time, yaxis=axis, showlegend=True, hovermode="x unified",
                     legend={"orientation": "v"})  # fmt: skip
    edges = columns_of(float(table["time_us"].min()), float(table["time_us"].max()), len(groups))
    picture = np.array([
        mean_of_steps(each["time_us"].to_numpy(), each["allocated_bytes"].to_numpy(np.float64), edges)
        for each in groups.values()
    ]) / divisor  # fmt: skip
    hover, middles = f"%{{y}}, %{{x:.4g}} {unit}: %{{z:.4g}} {size}", (edges[1:] + edges[:-1]) / 2 / factor
    heat = time_map(middles, [*groups], picture, hover, colorbar=color_bar(size))
    about = f"{_ABOUT} Each cell: the mean over its time."
    return drawn([heat], finding, about, height=row_pixels(len(groups)), xaxis=time, yaxis=category_ticks([*groups]))


def _place(rank: object, device: object) -> str:
    return plain(str(device)) if rank == _NO_RANK else f"rank {rank}, {plain(str(device))}"


def _lines(label: str, table: pd.DataFrame, units: tuple[float, float], number: int) -> list[Any]:
    from plotly.graph_objects import Scatter

    table = _thinned(table, "allocated_bytes")
    divisor, factor = units
    columns = {"in use": ("allocated_bytes", "solid"), "reserved": ("reserved_bytes", "dot")}
    return [
        Scatter(
            name=f"{label}, {words}", x=(table["time_us"] / factor).to_numpy(), y=(table[column] / divisor).to_numpy(),
            mode="lines", line={"shape": "hv", "dash": dash, "color": [*COLORS.values()][number]},
            hovertemplate="%{y:.4g}",
        )
        for words, (column, dash) in columns.items()
        if column in table and (column == "allocated_bytes" or table[column].any())
    ]  # fmt: skip


def _thinned(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows that a line needs: of each piece of time its highest value, and the last."""
    if len(table) <= _LINE_POINTS:
        return table
    piece = np.arange(len(table)) * _LINE_POINTS // len(table)
    values = table[column].to_numpy()
    order = np.lexsort((values, piece))
    last = np.flatnonzero(np.diff(piece[order], append=_LINE_POINTS))
    return table.iloc[np.unique([*order[last], len(table) - 1])]


def _size_unit(largest: float) -> tuple[int, str]:
    return next((divisor, unit) for divisor, unit in _UNITS if largest >= divisor or divisor == 1)


def _size(count: float) -> str:
    divisor, unit = _size_unit(count)
    return f"{count / divisor:.3g} {unit}"
