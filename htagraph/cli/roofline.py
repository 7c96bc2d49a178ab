"""``htagraph roofline``: how close operators come to what the device can compute and move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.words import command_line, plural, time_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["report", "roofline"]

_FOR_PROGRAMS = ["element_bytes", "flop", "bytes", "peak_tflop_s", "peak_gb_s", "tf32"]
_LITTLE = 50.0
"""Percent of the device's time."""


def roofline(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    peak_tflops: Annotated[float | None, typer.Option(help="What the device computes at most, TFLOP/s.")] = None,
    peak_gbs: Annotated[float | None, typer.Option(help="What its memory moves at most, GB/s.")] = None,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 15,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """What operators compute and move per second, and how much the device would allow."""
    for option, peak in (("--peak-tflops", peak_tflops), ("--peak-gbs", peak_gbs)):
        if peak is not None and not 0 < peak < float("inf"):
            msg = f"{peak:g}: give what the device does at most, a number above 0"
            raise typer.BadParameter(msg, param_hint=option)
    graph = read(paths, ranks, steps)
    from htagraph.analyses.roofline import roofline as table_of

    table = table_of(graph, peak_tflop_s=peak_tflops, peak_gb_s=peak_gbs)
    chosen = (peak_tflops is not None, peak_gbs is not None)
    show(report(graph, table, given(paths, ranks, steps), top=top, chosen=chosen), form, output, paths)


def report(
    graph: DependencyGraph,
    table: pd.DataFrame,
    inputs: Sequence[str],
    *,
    top: int = 15,
    chosen: tuple[bool, bool] = (False, False),
) -> Report:
    """Return the report on the result of `htagraph.roofline`; `inputs` are the words that choose what is read.

    `chosen` says whether the user gave the peaks of computing and of memory.
    """
    from htagraph.analyses.cupti_counters import cupti_counters
    from htagraph.output.report import report_on

    counters = cupti_counters(graph)
    tables = {"roofline": table} | ({"counters": counters} if len(counters) else {})
    brief = table.head(top).drop(columns=_FOR_PROGRAMS).dropna(axis="columns", how="all")
    return report_on(graph, "roofline", tables, _sentences(table, inputs, chosen), brief={"roofline": brief})


def _sentences(table: pd.DataFrame, inputs: Sequence[str], chosen: tuple[bool, bool]) -> list[str]:
    odd = table.attrs.get("left_out", 0)
    left_out = (
        [f"The shapes of {plural(odd, 'operator')} fit no formula: what they compute is not counted."] if odd else []
    )
    if not len(table):
        return [
            *left_out,
            "No operator's work can be counted: record with record_shapes=True, or with CUPTI's range profiler. What "
            f"takes the time all the same: {command_line('summary', inputs)}",
        ]
    time, flop = float(table["time_us"].sum()), float(table["flop"].sum())
    said = f"{plural(int(table['count'].sum()), 'operator')} computed {flop / 1e12:.3g} TFLOP in {time_text(time)}."
    return [said, *left_out, *_peaks(table, chosen), *_roof(table), *_share(table, inputs)]


def _peaks(table: pd.DataFrame, chosen: tuple[bool, bool]) -> list[str]:
    """Return what the roof is made of: each peak that occurs, and who says so."""
    said = []
    for column, unit, given_here in zip(("peak_tflop_s", "peak_gb_s"), ("TFLOP/s", "GB/s"), chosen, strict=True):
        peaks = sorted(table[column].dropna().unique())
        option = "--peak-tflops" if unit == "TFLOP/s" else "--peak-gbs"
        source = f"given with {option}" if given_here else "the maker's data sheet, dense, at boost clock"
        if peaks:
            said.append(f"{' or '.join(f'{peak:,.4g}' for peak in peaks)} {unit} ({source})")
    return [f"The roof: at most {' and '.join(said)}."] if said else []


def _roof(table: pd.DataFrame) -> list[str]:
    known = table[table["roof_percent"].notna()]
    if not len(known):
        return ["What the device could do is not known by its name: give --peak-tflops and --peak-gbs."]
    lost = known["time_us"] * (1 - known["roof_percent"].clip(upper=100) / 100)
    worst = known.iloc[int(lost.argmax())]
    return [
        f"Most time below the roof goes to {worst['operator']} ({worst['shapes']}): it reaches "
        f"{worst['roof_percent']:.0f} % of what {worst['bound']} allows; at the roof it would take "
        f"{time_text(float(lost.max()))} less."
    ]


def _share(table: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    share = table.groupby("rank")["share_percent"].sum(min_count=1).mean()
    if not share < _LITTLE:  # also where it is unknown
        return []
    return [
        f"They are {share:.0f} % of the device's time; for the rest, whose work cannot be counted, see "
        + command_line("summary", inputs)
    ]
