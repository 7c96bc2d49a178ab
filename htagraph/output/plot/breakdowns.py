"""Where the time of each rank goes: temporal breakdown, overlap, idle time by cause, collectives, stragglers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from htagraph.analyses.stragglers import Stragglers
from htagraph.findings.limits import MIN_PERCENT
from htagraph.findings.phrases import plural, spoken, time_text
from htagraph.findings.verbs.ranks import straggler_answer
from htagraph.output.plot import style
from htagraph.output.plot.style import TimeColumns, columns_of, covered
from htagraph.output.scene import COLORS, KIND_COLORS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["collectives", "idle_breakdown", "overlap", "stragglers", "temporal_breakdown"]

_PARTS = {
    "computation": KIND_COLORS["computation"], "exposed communication": KIND_COLORS["communication"],
    "exposed memory": KIND_COLORS["memory"], "other": COLORS["sky"], "idle": KIND_COLORS["idle"],
}  # fmt: skip
_CAUSES = {
    "host_wait": "launched too late by the host", "kernel_wait": "between queued kernels",
    "other": "other (another stream, event or rank)",
}  # fmt: skip
_WAITS = {
    "host": "waiting for the host",
    "data loader": "waiting for the data loader",
    "device": "between queued kernels",
    "other ranks": "waiting for other ranks",
    "transfer": "waiting for a transfer",
    "device work": "waiting for work of another device",
    "earlier work": "waiting for earlier work",
    "other work": "waiting for work that was not recorded",
    "outside": "waiting for another process or thread",
    "not known": "for no known reason",
}
"""Reasons of whole devices, by the words of `htagraph.queries.waited_for`."""
_IN_COLLECTIVES = {
    "wait_us": "wait for the last to arrive", "transfer_us": "transfer",
    "excess_us": "excess over the shortest transfer", "wait_or_transfer_us": "wait or transfer, not known",
    "beside_us": "beside other work",
}  # fmt: skip
_COLORS = {
    **dict.fromkeys(_WAITS.values(), COLORS["light"]),
    _WAITS["host"]: COLORS["orange"], _WAITS["data loader"]: COLORS["blue"], _WAITS["device"]: COLORS["sky"],
    _WAITS["other ranks"]: COLORS["vermillion"], _WAITS["transfer"]: COLORS["green"],
    _WAITS["device work"]: COLORS["purple"],
    "hidden": COLORS["green"], "exposed": COLORS["vermillion"],
    _CAUSES["host_wait"]: COLORS["orange"], _CAUSES["kernel_wait"]: COLORS["sky"], _CAUSES["other"]: COLORS["purple"],
    _IN_COLLECTIVES["wait_us"]: COLORS["orange"], _IN_COLLECTIVES["transfer_us"]: COLORS["blue"],
    _IN_COLLECTIVES["excess_us"]: COLORS["sky"], _IN_COLLECTIVES["wait_or_transfer_us"]: COLORS["light"],
    _IN_COLLECTIVES["beside_us"]: COLORS["green"],
}  # fmt: skip


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
        return style.nothing("No work was recorded on any rank", "Time of each rank, from its first to its last work.")
    busy = busy.set_index(_labels(busy))
    times = pd.DataFrame({part: busy[f"{part.replace(' ', '_')}_us"] for part in _PARTS})
    sums, whole = times.sum(), busy["window_us"].sum()
    shown = [part for part in _PARTS if sums[part] or part in ("computation", "idle")]
    says = "rank {label}: {part}<br>{us} of {whole}, {percent:.1f} %"
    traces, layout = style.parts_by_rank(times[shown], _PARTS, says, "share of the rank's time (%)", busy["window_us"])
    large = sorted((part for part in shown if 100 * sums[part] >= MIN_PERCENT * whole), key=lambda part: -sums[part])
    words = ", ".join(f"{100 * sums[part] / whole:.0f} % {part}" for part in large)
    where = "device" if (busy["executor"] != "host").all() else "device, or on its threads where it has no device"
    window = f"Each rank's time from the first to the last work on its {where}; exposed: nothing computes meanwhile."
    whose = "The rank's time is" if len(busy) == 1 else "All ranks' time is"
    return style.drawn(traces, f"{whose} {words}", window, **layout)


def _labels(table: pd.DataFrame) -> pd.Series[str]:
    """Return the rank of each row, with the device where the rank has several."""
    one_of_several = table["executor"].str.startswith("device ")
    return table["rank"].astype(str) + (", " + table["executor"]).where(one_of_several, "")


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
        return style.nothing("No communication was recorded", about)
    hidden = table.set_index(_labels(table))[["hidden_us", "communication_us"]]
    times = pd.DataFrame({"hidden": hidden["hidden_us"], "exposed": hidden["communication_us"] - hidden["hidden_us"]})
    says = "rank {label}: {us} {part}<br>of {whole} of communication"
    traces, layout = style.parts_by_rank(times, _COLORS, says, "communication ({unit})")
    share = 100 * float(table["hidden_us"].sum()) / total
    finding = f"Computation hides {share:.0f} % of {time_text(total)} of communication"
    return style.drawn(traces, finding, about, **layout)


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
        return style.nothing("No device work was recorded", about)
    by_stream = "stream" in table
    keys = ["rank", "device", "stream"] if by_stream else ["rank"]
    times = table.pivot_table(index=keys, columns="cause", values="idle_us", aggfunc="sum", fill_value=0.0)
    if by_stream and len(times) > style.Sizes.bars:  # the same streams are side by side, so that ranks can be compared
        times = times.sort_index(level=["stream", "rank", "device"])
    if by_stream and int(table.groupby("rank")["device"].nunique().max()) < 2:  # the device says nothing
        times = times.droplevel("device")
    where = ", ".join(map(str, times.index.names))
    times.index = pd.Index([", ".join(map(str, np.atleast_1d(key))) for key in times.index.tolist()])
    words = _CAUSES | _WAITS
    times = times[[cause for cause in words if cause in times]].rename(columns=words)
    says = f"{where} {{label}}: {{us}} idle<br>{{part}}"
    traces, layout = style.parts_by_rank(times, _COLORS, says, "idle time ({unit})")
    layout["xaxis"]["title"] = where
    total, whose = float(times.to_numpy().sum()), "stream" if by_stream else "rank"
    if not total:
        return style.drawn(traces, f"No {whose} is idle between its first and last work", about, **layout)
    shares = sorted(((us, words) for words, us in times.sum().items()), reverse=True)
    named = "; ".join(f"{100 * us / total:.0f} % {words}" for us, words in shares if 100 * us >= MIN_PERCENT * total)
    return style.drawn(traces, f"Summed up, {whose}s are idle for {time_text(total)}: {named}", about, **layout)


def collectives(table: pd.DataFrame) -> Figure:
    """Return the figure of what ranks do in collectives: above, sums by rank; below, when each rank waits.

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
        return style.nothing("No communication between ranks was recorded", about)
    by_rank = table.groupby("rank")[[*_IN_COLLECTIVES]].sum()
    times = by_rank.loc[:, by_rank.any()].rename(columns=_IN_COLLECTIVES, index=str)
    traces, layout = style.parts_by_rank(times, _COLORS, "rank {label}: {us}<br>{part}", "in collectives ({unit})")
    share, time = _waiting(table, by_rank.index.to_numpy())
    height, upper, lower = style.one_above_the_other(layout.pop("height", 240), 80, style.row_pixels(len(times)))
    hover = f"rank %{{y}}, %{{x:.4g}} {time.unit}: waits %{{z:.0f}} % of the time"
    traces.append(style.heat_map(
        time.middles, [*times.index], share.astype(np.float32), hover, zmin=0, zmax=100, xaxis="x2", yaxis="y2",
        colorbar={**style.color_bar("waits (%)"), "y": 0, "yanchor": "bottom", "len": lower["domain"][1]},
    ))  # fmt: skip
    if len(times) > style.Sizes.bars:
        traces[0]["colorbar"] |= {"y": 1, "yanchor": "top", "len": 1 - upper["domain"][0]}
    else:
        layout["legend"] = {"y": 1, "yanchor": "top", "traceorder": "reversed"}
    layout["yaxis"] |= {"domain": upper["domain"]}
    layout["xaxis"] |= {"anchor": "y"}
    return style.drawn(
        traces, _finding(table), about, height=height, xaxis2={**time.axis(), "anchor": "y2"},
        yaxis2={**style.category_ticks([*times.index]), **lower, "title": "rank"}, plot_bgcolor=style.EMPTY, **layout,
    )  # fmt: skip


def _waiting(table: pd.DataFrame, ranks: np.ndarray) -> tuple[np.ndarray, TimeColumns]:
    """Return the share of time in which each rank waits, percent, by rank and column, and the columns."""
    start, last = (table["start_us"] + table["beside_us"]).to_numpy(), (table["start_us"] + table["duration_us"]).max()
    time = columns_of(float(table["start_us"].min()), float(last), len(ranks))
    row = np.searchsorted(ranks, table["rank"].to_numpy())
    waits = covered(row, start, start + table["wait_us"].to_numpy(), time.edges, len(ranks))
    share = np.minimum(100 * waits / np.diff(time.edges), 100.0)
    share[share == 0] = np.nan
    return share, time


def _finding(table: pd.DataFrame) -> str:
    matched = table[table["collective"] >= 0]
    count = int(matched["collective"].nunique())
    if not count:
        return f"None of {plural(len(table), 'part')} of collectives has a known partner: waits are not known"
    wait, transfer, excess, either = table[["wait_us", "transfer_us", "excess_us", "wait_or_transfer_us"]].sum()
    also = f"; {time_text(either)} are one or the other" if either else ""
    return (
        f"Ranks wait {time_text(wait)} for each other in {plural(count, 'collective')}, "
        f"and transfer {time_text(transfer + excess)}{also}"
    )


def stragglers(result: Stragglers) -> Figure:
    """Return the figure of how much longer each rank takes for each step than the others: a heat map.

    Args:
        result: result of `htagraph.stragglers`.

    Returns:
        The figure, not shown; its colours are in µs, ms or s. Where ranks cannot be compared (they do different work by
        design), the colours are the own step of each rank.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.stragglers(hg.stragglers(hg.load("data/demo")))
        >>> figure.layout.title.text.split(":")[0]
        'Rank 2 is the straggler'
    """
    table = result.by_step
    finding, more = _straggler_finding(result)
    compares = len(table) and bool(table["excess_us"].notna().any())
    column, word = ("excess_us", "beyond the others") if compares else ("own_us", "by itself")
    what = "beyond the median of the others; waiting for others left out."
    unlike = "waiting for others left out. The ranks' work is not the same."
    drawable = len(table) and bool(table[column].notna().any())
    about = f"What each rank does by itself in a step, {what if compares or not drawable else unlike}"
    about = " ".join(spoken(about, more))
    if not drawable:
        return style.nothing(finding, about)
    wide = table.pivot_table(index="rank", columns="step", values=column, dropna=False).rename(index=str, columns=str)
    wide = wide.rename(columns={"-1": "the recording"})
    far = float(np.nanmax(np.abs(wide.to_numpy())))
    factor, unit = style.time_unit(far)
    hover = [
        [f"rank {rank}, step {step}: "
         + ("not known" if np.isnan(us) else f"{'+' if us > 0 and compares else ''}{time_text(us)} {word}")
         for step, us in row.items()]
        for rank, row in wide.iterrows()
    ]  # fmt: skip
    scale = {"colorscale": style.DIVERGING, "zmid": 0, "zmin": -far / factor, "zmax": far / factor} if compares else {}
    heat = style.heat_map(
        [*wide.columns], [*wide.index], wide.to_numpy() / factor, hover, colorbar=style.color_bar(f"{word} ({unit})"),
        xgap=int(wide.shape[1] < style.Sizes.cells), ygap=int(len(wide) < style.Sizes.cells), **scale,
    )  # fmt: skip
    return style.drawn(
        [heat], finding, about, height=style.row_pixels(len(wide)) + 80, xaxis={"type": "category", "title": "step"},
        yaxis={**style.category_ticks([*wide.index]), "title": "rank"},
    )  # fmt: skip


def _straggler_finding(result: Stragglers) -> tuple[str, str]:
    """Return the title, and a sentence that makes the title uncertain or adds to the answer; empty for nothing."""
    blamed = float(result.ranks.loc[result.ranks["rank"] == result.straggler, "blamed_us"].sum())
    if blamed:
        share = 100 * blamed / result.total_wait_us
        waits = f"others wait {time_text(blamed)} for it, {share:.0f} % of all waiting"
        return f"Rank {result.straggler} is the straggler: {waits}", ""
    answer = straggler_answer(result, len(result.ranks))
    doubt = f"But {answer.doubt}." if answer.doubt else ""
    return answer.short, doubt or answer.more
