"""Opportunities: how much shorter the job would be without something, and what no change of it can exceed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htagraph.core.naming import short_name
from htagraph.findings.phrases import group_words, time_text
from htagraph.output.plot.labels import hover_name, plain, row_labels
from htagraph.output.plot.style import AFTER, BEFORE, COLORS, drawn, nothing, time_unit

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["opportunities"]

_ROWS = 25
"""Opportunities that are drawn, the largest. Chosen: they fit a screen. Doubled, one scrolls."""
_TITLE_NAME = 60
"""Letters of a name in a title. Doubled, it may fill two lines."""


def opportunities(table: pd.DataFrame) -> Figure:
    """Return the figure of what could be gained: bars from the recorded time back, each below its ceiling.

    Args:
        table: result of `htagraph.opportunities`.

    Returns:
        The figure, not shown; its axis is in µs, ms or s. The bar is the gain if something took no time, its mark the
        gain if it took half of its time, and the pale bar behind it its time on the critical path.

    Example:
        >>> import htagraph as hg
        >>> figure = hg.plot.opportunities(hg.opportunities(hg.load("data/demo")))
        >>> [trace.name for trace in figure.data]
        ['time on the critical path', 'gain if it took no time', 'gain if it took half']
    """
    about = "Each gain is a replay of its own; they overlap and do not add up."
    if not len(table):
        return nothing("Nothing that could be changed is on the critical path", about)
    from plotly.graph_objects import Bar, Scatter

    shown = table.head(_ROWS)
    names = [_words(str(row["what"]), str(row["name"])) for row in shown.to_dict("records")]
    ticks = row_labels(names)
    factor, unit = time_unit(float(shown[["gain_us", "critical_us"]].to_numpy().max()))
    hover = [_hover(row) for row in shown.to_dict("records")]
    rows = list(range(len(shown)))
    traces: list[Any] = [
        Bar(name="time on the critical path", x=(shown["critical_us"] / factor).to_numpy(), y=rows, orientation="h",
            marker_color=BEFORE, hovertext=hover, hoverinfo="text", width=0.8),
        Bar(name="gain if it took no time", x=(shown["gain_us"] / factor).to_numpy(), y=rows, orientation="h",
            marker_color=AFTER, hovertext=hover, hoverinfo="text", width=0.5),
    ]  # fmt: skip
    if "gain_at_50_us" in shown:
        traces.append(
            Scatter(
                name="gain if it took half", x=(shown["gain_at_50_us"] / factor).to_numpy(), y=rows, mode="markers",
                marker={"symbol": "line-ns", "size": 14, "line": {"width": 3, "color": COLORS["orange"]}},
                hovertext=hover, hoverinfo="text",
            )
        )  # fmt: skip
    first = shown.iloc[0]
    name = plain(names[0], _TITLE_NAME)
    finding = (
        f"Largest gain: {time_text(float(first['gain_us']))} ({first['gain_percent']:.0f} % of the job) if "
        f"{name} took no time"
    )
    return drawn(
        traces, finding, about, height=110 + 30 * len(shown), barmode="overlay", showlegend=True,
        xaxis={"title": {"text": f"of the whole job ({unit})"}, "rangemode": "tozero"},
        yaxis={"tickvals": rows, "ticktext": ticks, "range": [len(shown) - 0.5, -0.5], "showgrid": False},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
    )  # fmt: skip


def _words(what: str, name: str) -> str:
    """Return what a row is about: names of phases and ranks say it already."""
    if what == "group":
        return f"transfers of {group_words(plain(name))}"
    if what == "straggler":
        return f"what {plain(name)} takes"
    short = plain(short_name(name) if what == "kernel" else name)
    return short if what in ("rank", "phase") else f"{what} {short}"


def _hover(row: dict[Any, Any]) -> str:
    lines = [
        hover_name(str(row["name"])),
        f"gain if it took no time: {time_text(row['gain_us'])}, {row['gain_percent']:.1f} % of the job",
        f"on the critical path: {time_text(row['critical_us'])}; its own time, all ranks: {time_text(row['time_us'])}",
    ]
    lines += [f"note: {hover_name(str(row['note']))}"] if row.get("note") else []
    lines += [f"inside: {hover_name(str(row['inside']))}"] if row.get("inside") else []
    return "<br>".join(lines)
