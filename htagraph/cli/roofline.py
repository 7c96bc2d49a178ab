"""``htagraph roofline``: how close operators come to the peaks of the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.targets import Drawn
from htagraph.output.wording import roofline as wording

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["report", "roofline"]

_FOR_PROGRAMS = ["element_bytes", "flop", "bytes", "peak_tflop_s", "peak_gb_s", "tf32", "at_most"]


def roofline(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    peak_tflops: Annotated[float | None, typer.Option(help="Peak compute of the device, TFLOP/s.")] = None,
    peak_gbs: Annotated[float | None, typer.Option(help="Peak bandwidth of its memory, GB/s.")] = None,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 15,
    form: Form = None,
    output: Drawn = None,
) -> None:
    """How many FLOPs and bytes operators reach per second, and how close that is to what the device allows."""
    for option, peak in (("--peak-tflops", peak_tflops), ("--peak-gbs", peak_gbs)):
        if peak is not None and not 0 < peak < float("inf"):
            msg = f"{peak:g} is not a peak of a device: give a number above 0"
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
    from htagraph.findings.verbs import roofline as findings
    from htagraph.output.report import Wording, report_on

    counters = cupti_counters(graph)
    tables = {"roofline": table} | ({"counters": counters} if len(counters) else {})
    brief = table.head(top).drop(columns=_FOR_PROGRAMS).dropna(axis="columns", how="all")
    return report_on(
        graph, "roofline", tables, findings.sentences(table, inputs, chosen), brief={"roofline": brief},
        wording=Wording(wording.TITLES, wording.HEADINGS),
    )  # fmt: skip
