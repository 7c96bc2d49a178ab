"""Where the time of each rank goes: temporal breakdown, overlap, idle time by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.findings.phrases import time_text
from htagraph.output.plot.pictures import parts_by_rank
from htagraph.output.plot.style import COLORS, KIND_COLORS, MAX_BARS, drawn, nothing, time_unit

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["idle_breakdown", "overlap", "temporal_breakdown"]

_PARTS = {
    "computation": KIND_COLORS["computation"], "exposed communication": KIND_COLORS["communication"],
    "exposed memory": KIND_COLORS["memory"], "other": COLORS["sky"], "idle": KIND_COLORS["idle"],
}  # fmt: skip
_CAUSES = {
    "host_wait": ("launched too late by the host", COLORS["orange"]),
    "kernel_wait": ("between queued kernels", COLORS["sky"]),
    "other": ("other (another stream, event or rank)", COLORS["purple"]),
}
_NO_WORK = "No work was recorded on any rank"
_MIN_PERCENT = 2.0
"""Percent of the time; chosen: less is not named in a title. Doubled, parts of 2 to 4 % are not."""


def temporal_breakdown(table: pd.DataFrame) -> Figure:
    """Return the figure of what each rank's time is spent on: stacked bars of percent, or a heat map of many ranks.

    Args:
        table: result of `htagraph.temporal_breakdown`.

    Returns:
        The figure, not shown. Its title gives the shares of all ranks' time; pointing at a part gives its time.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.temporal_breakdown(hg.temporal_breakdown(hg.load("data/demo")))
        >>> [bar.name for bar in figure.data]
        ['computation', 'exposed communication', 'exposed memory', 'idle']
    """
    busy = table[table["window_us"] > 0]
    if not len(busy):
        return nothing(_NO_WORK, "Time of each rank, from its first to its last work.")
    sums = {part: busy[f"{part.replace(' ', '_')}_us"].sum() for part in _PARTS}
    shown = [part for part in _PARTS if sums[part] or part in ("computation", "idle")]
    whole = busy["window_us"].sum()
    ranks = busy["rank"].tolist()
    parts = {part: busy[f"{part.replace(' ', '_')}_percent"].to_numpy() for part in shown}
    hovers = {
        part: [
            f"rank {rank}: {part}<br>{time_text(us)} of {time_text(window)}, {percent:.1f} %"
            for rank, us, window, percent in zip(
                ranks, busy[f"{part.replace(' ', '_')}_us"], busy["window_us"], parts[part], strict=True
            )
        ]
        for part in shown
    }
    traces, layout = parts_by_rank([*map(str, ranks)], parts, _PARTS, hovers, "share of the rank's time (%)")
    large = sorted((part for part in shown if 100 * sums[part] >= _MIN_PERCENT * whole), key=lambda part: -sums[part])
    words = ", ".join(f"{100 * sums[part] / whole:.0f} % {part}" for part in large)
    where = "device" if (busy["executor"] == "device").all() else "device, or on its threads where it has no device"
    window = f"Each rank's time from the first to the last work on its {where}; exposed: nothing computes meanwhile."
    whose = "The rank's time is" if len(ranks) == 1 else "All ranks' time is"
    return drawn(traces, f"{whose} {words}", window, **layout)


def overlap(table: pd.DataFrame) -> Figure:
    """Return the figure of how much of each rank's communication computation hides: stacked bars, or a heat map.

    Args:
        table: result of `htagraph.overlap`.

    Returns:
        The figure, not shown; its axis is in µs, ms or s. Its title gives the share of all communication.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.overlap(hg.overlap(hg.load("data/demo")))
        >>> [bar.name for bar in figure.data]
        ['hidden', 'exposed']
    """
    about = "Time of communication by whether computation of the same rank runs beside it (hidden) or not (exposed)."
    total = float(table["communication_us"].sum())
    if not total:
        return nothing("No communication was recorded", about)
    ranks = table["rank"].tolist()
    factor, unit = time_unit(float(table["communication_us"].max()))
    times = {"hidden": table["hidden_us"], "exposed": table["communication_us"] - table["hidden_us"]}
    hovers = {
        part: [
            f"rank {rank}: {time_text(us)} {part}<br>of {time_text(whole)} of communication"
            for rank, us, whole in zip(ranks, values, table["communication_us"], strict=True)
        ]
        for part, values in times.items()
    }
    parts = {part: (values / factor).to_numpy() for part, values in times.items()}
    colors = {"hidden": COLORS["green"], "exposed": COLORS["vermillion"]}
    traces, layout = parts_by_rank([*map(str, ranks)], parts, colors, hovers, f"communication ({unit})")
    share = 100 * float(table["hidden_us"].sum()) / total
    return drawn(traces, f"Computation hides {share:.0f} % of {time_text(total)} of communication", about, **layout)


def idle_breakdown(table: pd.DataFrame) -> Figure:
    """Return the figure of why streams, or ranks, are idle: stacked bars by cause, or a heat map of many.

    Args:
        table: result of `htagraph.idle_breakdown`, by stream or by rank.

    Returns:
        The figure, not shown; its axis is in µs, ms or s. Its title gives the share of each cause.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.idle_breakdown(hg.idle_breakdown(hg.load("data/demo"), by="rank"))
        >>> len(figure.data)
        3
    """
    about = "Idle time of devices between their first and last work, by what the work that ended a pause waited for."
    if not len(table):
        return nothing("No device work was recorded", about)
    by_stream = "stream" in table
    keys = ["rank", "device", "stream"] if by_stream else ["rank"]
    wide = table.pivot_table(index=keys, columns="cause", values="idle_us", aggfunc="sum", fill_value=0.0)
    if by_stream and len(wide) > MAX_BARS:  # the same streams are side by side, so that ranks can be compared
        wide = wide.sort_index(level=["stream", "rank", "device"])
    several = by_stream and int(table.groupby("rank")["device"].nunique().max()) > 1
    where = "rank, device, stream" if several else "rank, stream" if by_stream else "rank"
    labels = [_place(key if isinstance(key, tuple) else (key,), several=several) for key in wide.index]
    factor, unit = time_unit(float(wide.sum(axis=1).max()))
    causes = {cause: words for cause, words in _CAUSES.items() if cause in wide}
    parts = {words: (wide[cause] / factor).to_numpy() for cause, (words, _) in causes.items()}
    hovers = {
        words: [
            f"{where} {label}: {time_text(us)} idle<br>{words}" for label, us in zip(labels, wide[cause], strict=True)
        ]
        for cause, (words, _) in causes.items()
    }
    traces, layout = parts_by_rank(labels, parts, dict(causes.values()), hovers, f"idle time ({unit})")
    layout["xaxis"]["title"] = {"text": where}
    total = float(wide.to_numpy().sum())
    whose = "streams are" if by_stream else "ranks are"
    if not total:
        return drawn(
            traces, f"No {whose.replace('s are', ' is')} idle between its first and last work", about, **layout
        )
    shares = sorted(((float(wide[cause].sum()), words) for cause, (words, _) in causes.items()), reverse=True)
    named = "; ".join(f"{100 * us / total:.0f} % {words}" for us, words in shares if 100 * us >= _MIN_PERCENT * total)
    return drawn(traces, f"Summed up, {whose} idle for {time_text(total)}: {named}", about, **layout)


def _place(key: tuple[int, ...], *, several: bool) -> str:
    """Return the label of a rank or stream: its numbers, of which that of the device is left out if it says nothing."""
    return ", ".join(str(each) for at, each in enumerate(key) if several or at != 1)
