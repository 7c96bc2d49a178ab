"""Where the time of each rank goes: temporal breakdown, overlap, idle time by cause, collectives, stragglers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from htagraph.findings.phrases import plural, time_text
from htagraph.findings.verbs.ranks import stragglers_sentences
from htagraph.output.plot.raster import columns_of, covered
from htagraph.output.plot.style import (
    COLORS,
    DIVERGING,
    EMPTY,
    KIND_COLORS,
    MAX_BARS,
    SEQUENTIAL,
    Part,
    category_ticks,
    color_bar,
    drawn,
    nothing,
    one_above_the_other,
    parts_by_rank,
    row_pixels,
    time_map,
    time_unit,
)

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from htagraph.analyses.stragglers import Stragglers

__all__ = ["collectives", "idle_breakdown", "overlap", "stragglers", "temporal_breakdown"]

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
_IN_COLLECTIVES = {
    "wait_us": ("wait for the last to arrive", COLORS["orange"]),
    "transfer_us": ("transfer", COLORS["blue"]),
    "excess_us": ("excess over the shortest transfer", COLORS["sky"]),
    "wait_or_transfer_us": ("wait or transfer, not known", COLORS["light"]),
    "beside_us": ("beside other work", COLORS["green"]),
}
_ABOVE = 240
"""Pixels of the upper picture. Chosen; doubled, the lower one is off the screen."""
_GAP = 80
"""Pixels between both pictures: the axis of the upper one, and its title."""
_NO_STEP = -1
_GAPS_UP_TO = 64
"""Ranks or steps between whose cells there is a line. Chosen: cells are 5 pixels then. Doubled, lines hide them."""


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
    parts = [
        Part(part, _PARTS[part], busy[f"{column}_percent"].to_numpy(), [
            f"rank {rank}: {part}<br>{time_text(us)} of {time_text(window)}, {percent:.1f} %"
            for rank, us, window, percent in zip(
                ranks, busy[f"{column}_us"], busy["window_us"], busy[f"{column}_percent"], strict=True
            )
        ])
        for part, column in ((part, part.replace(" ", "_")) for part in shown)
    ]  # fmt: skip
    traces, layout = parts_by_rank([*map(str, ranks)], parts, "share of the rank's time (%)")
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
    colors = {"hidden": COLORS["green"], "exposed": COLORS["vermillion"]}
    parts = [
        Part(part, colors[part], (values / factor).to_numpy(), [
            f"rank {rank}: {time_text(us)} {part}<br>of {time_text(whole)} of communication"
            for rank, us, whole in zip(ranks, values, table["communication_us"], strict=True)
        ])
        for part, values in times.items()
    ]  # fmt: skip
    traces, layout = parts_by_rank([*map(str, ranks)], parts, f"communication ({unit})")
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
    parts = [
        Part(words, color, (wide[cause] / factor).to_numpy(), [
            f"{where} {label}: {time_text(us)} idle<br>{words}" for label, us in zip(labels, wide[cause], strict=True)
        ])
        for cause, (words, color) in causes.items()
    ]  # fmt: skip
    traces, layout = parts_by_rank(labels, parts, f"idle time ({unit})")
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


def collectives(table: pd.DataFrame) -> Figure:
    """Return the figure of what ranks do in collectives: sums by rank above, and below when each rank waits.

    Args:
        table: result of `htagraph.collectives`.

    Returns:
        The figure, not shown; its axes are in µs, ms or s. The colour below is the share of time (percent) in which the
        rank waits in a collective for the last one to arrive.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.collectives(hg.collectives(hg.load("data/demo")))
        >>> figure.layout.title.text.split("<br>")[0]
        'Ranks wait 13.5 ms for each other in 6 collectives, and transfer 30.9 ms'
    """
    about = "Above: time in collectives by rank. Below: share of the time in which a rank waits for another to arrive."
    if not len(table):
        return nothing("No communication between ranks was recorded", about)
    by_rank = table.groupby("rank")[[*_IN_COLLECTIVES]].sum()
    ranks = [str(rank) for rank in by_rank.index]
    factor, unit = time_unit(float(by_rank.sum(axis=1).max()))
    parts = [
        Part(words, color, (by_rank[column] / factor).to_numpy(), [
            f"rank {rank}: {time_text(us)}<br>{words}" for rank, us in zip(ranks, by_rank[column], strict=True)
        ])
        for column, (words, color) in _IN_COLLECTIVES.items()
        if by_rank[column].any()
    ]  # fmt: skip
    traces, layout = parts_by_rank(ranks, parts, f"in collectives ({unit})")
    share, edges = _waiting(table, by_rank.index.to_numpy())
    scale, time = time_unit(float(edges[-1]))
    height, upper, lower = one_above_the_other(layout.pop("height", _ABOVE), _GAP, row_pixels(len(ranks)))
    hover = f"rank %{{y}}, %{{x:.4g}} {time}: waits %{{z:.0f}} % of the time"
    scale_bar = {**color_bar("waits (%)"), "y": 0, "yanchor": "bottom", "len": lower["domain"][1]}
    middles = (edges[1:] + edges[:-1]) / 2 / scale
    below = {"zmin": 0, "zmax": 100, "xaxis": "x2", "yaxis": "y2", "colorbar": scale_bar}
    traces.append(time_map(middles, ranks, share, hover, **below))
    layout["yaxis"] = {**layout["yaxis"], "domain": upper["domain"]}
    layout["xaxis"] = {**layout["xaxis"], "anchor": "y"}
    if len(ranks) > MAX_BARS:
        traces[0].update(colorbar={"y": 1, "yanchor": "top", "len": 1 - upper["domain"][0]})
    else:
        layout["legend"] = {"y": 1, "yanchor": "top", "traceorder": "reversed"}
    return drawn(
        traces, _finding(table), about, height=height,
        xaxis2={"anchor": "y2", "title": {"text": f"time since the job's first activity ({time})"}},
        yaxis2={**category_ticks(ranks), **lower, "title": {"text": "rank"}}, plot_bgcolor=EMPTY, **layout,
    )  # fmt: skip


def _waiting(table: pd.DataFrame, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of time in which each rank waits, percent, by rank and column, and the edges of the columns."""
    start = (table["start_us"] + table["beside_us"]).to_numpy()
    edges = columns_of(
        float(table["start_us"].min()), float((table["start_us"] + table["duration_us"]).max()), len(ranks)
    )
    row = np.searchsorted(ranks, table["rank"].to_numpy())
    time = covered(row, start, start + table["wait_us"].to_numpy(), edges, len(ranks))
    share = np.minimum(100 * time / np.diff(edges), 100.0)
    share[share == 0] = np.nan
    return share, edges


def _finding(table: pd.DataFrame) -> str:
    matched = table[table["collective"] >= 0]
    count = int(matched["collective"].nunique())
    if not count:
        return f"None of {plural(len(table), 'part')} of collectives has a known partner: waits are not known"
    wait, transfer = (float(table[column].sum()) for column in ("wait_us", "transfer_us"))
    transfer += float(table["excess_us"].sum())
    either = float(table["wait_or_transfer_us"].sum())
    also = f"; {time_text(either)} are one or the other" if either else ""
    return (
        f"Ranks wait {time_text(wait)} for each other in {plural(count, 'collective')}, "
        f"and transfer {time_text(transfer)}{also}"
    )


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
    finding, doubt = _straggler_finding(result)
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
        [f"rank {rank}, step {step}: " + ("not known" if np.isnan(us) else _beyond_words(us, word))
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


def _beyond_words(us: float, word: str) -> str:
    return f"{'+' if us > 0 and word != 'by itself' else ''}{time_text(us)} {word}"


def _straggler_finding(result: Stragglers) -> tuple[str, str]:
    """Return the title, and what makes it uncertain as a sentence; empty where nothing does."""
    blamed = float(result.ranks.loc[result.ranks["rank"] == result.straggler, "blamed_us"].sum())
    if blamed:
        share = 100 * blamed / result.total_wait_us
        waits = f"others wait {time_text(blamed)} for it, {share:.0f} % of all waiting"
        return f"Rank {result.straggler} is the straggler: {waits}", ""
    first = stragglers_sentences(result, len(result.ranks), [])[0].partition(" For those that were not")[0].rstrip(".")
    finding, but, doubt = first.partition("; but ")
    return finding, f" But {doubt}." if but else ""
