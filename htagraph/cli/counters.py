"""``htagraph counters``: queue lengths and bandwidths of copies, summed up or over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Steps, given, read, refuse_input, show
from htagraph.cli.words import command_line, time_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["counters", "report"]

_FULL = 1024


def counters(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    ranks: Ranks = None,
    steps: Steps = None,
    full: Annotated[int, typer.Option("--full", min=1, help="Works in a queue that is full.")] = _FULL,
    series: Annotated[bool, typer.Option("--series", help="Print every change over time too.")] = False,
    perfetto: Annotated[
        Path | None,
        typer.Option("--perfetto", help="Write the trace with the counters to this file, for Perfetto's UI."),
    ] = None,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """How many works streams have queued, for how long a queue is full, and at which bandwidth memory is copied."""
    refuse_input(perfetto, paths, "--perfetto")
    graph = read(paths, ranks, steps)
    found = report(graph, given(paths, ranks, steps), full=full, series=series)
    if perfetto is not None:
        from htagraph.output.export.perfetto import counters_to_perfetto

        found.sentences.append(f"{counters_to_perfetto(graph, perfetto)}.")
    show(found, form, output, paths)


def report(graph: DependencyGraph, inputs: Sequence[str], *, full: int = _FULL, series: bool = False) -> Report:
    """Return the report on a graph's counters; `inputs` are the words that choose what is read."""
    from htagraph.analyses.memory_bandwidth import memory_bandwidth
    from htagraph.analyses.queue_length import queue_length
    from htagraph.output.report import report_on

    queues, copies = queue_length(graph, by="stream", full=full), memory_bandwidth(graph, by="copy")
    tables = {"queues": queues, "bandwidth": copies}
    if series:
        tables |= {"queue_length": queue_length(graph), "memory_bandwidth": memory_bandwidth(graph)}
    return report_on(graph, "counters", tables, _sentences(queues, copies, full, inputs))


def _sentences(queues: pd.DataFrame, copies: pd.DataFrame, full: int, inputs: Sequence[str]) -> list[str]:
    if not len(queues):
        return ["No launch with its device work is in the traces, so there are no queues to count."]
    out = []
    worst = queues.iloc[int(queues["full_us"].argmax())]
    if worst["full_us"] > 0:
        out.append(
            f"Rank {worst['rank']:.0f}, stream {worst['stream']:.0f}: {full} works or more were queued for "
            f"{time_text(worst['full_us'])}; launches then block, and the host is not what the device waits for."
        )
    else:
        out.append(f"No queue held {full} works: the longest had {queues['max'].max():.0f}.")
    mean = queues.iloc[int(queues["mean_over_time"].argmax())]
    if mean["mean_over_time"] < 1:
        out.append(
            "Queues are empty most of the time: the device waits for the host. What that costs: "
            + command_line("opportunities", inputs)
        )
    if len(copies):
        most = copies.iloc[int(copies["busy_us"].argmax())]
        out.append(
            f"Of copies, {most['copy']} on rank {most['rank']} takes most time: {most['copied_gb']:.3g} GB in "
            f"{time_text(most['busy_us'])}, {most['mean_over_time_gb_s']:.3g} GB/s."
        )
    return out
