"""``htagraph counters``: queue lengths and memory copy bandwidths, summed up or over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Paths, Ranks, Steps, given, read, refuse_input, show
from htagraph.cli.targets import Drawn, Perfetto
from htagraph.output.wording import counters as wording

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["counters", "report"]

_FULL = 1024
"""Kernels and copies in a queue that counts as full: HTA's default for `max_queue_length`, about the depth at which a
CUDA launch blocks. Doubled, fewer queues or none are ever full."""


def counters(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    ranks: Ranks = None,
    steps: Steps = None,
    full: Annotated[int, typer.Option("--full", min=1, help="Kernels and copies in a queue that is full.")] = _FULL,
    series: Annotated[bool, typer.Option("--series", help="Also print every change over time.")] = False,
    perfetto: Perfetto = None,
    form: Form = None,
    output: Drawn = None,
) -> None:
    """How many kernels and copies each stream has queued, how long a queue is full, and how fast memory is copied."""
    refuse_input(perfetto, paths, "--perfetto")
    graph = read(paths, ranks, steps)
    results = report(graph, given(paths, ranks, steps), full=full, series=series)
    if perfetto is not None:
        from htagraph.output.export.perfetto import counters_to_perfetto

        results.sentences.append(f"{counters_to_perfetto(graph, perfetto)}.")
    from htagraph.analyses.queue_length import queue_length

    show(results, form, output, paths, lambda: queue_length(graph))


def report(graph: DependencyGraph, inputs: Sequence[str], *, full: int = _FULL, series: bool = False) -> Report:
    """Return the report on a graph's counters; `inputs` are the words that choose what is read."""
    from htagraph.analyses.memory_bandwidth import memory_bandwidth
    from htagraph.analyses.queue_length import queue_length
    from htagraph.findings.verbs import counters as findings
    from htagraph.output.report import Wording, report_on

    queues, copies = queue_length(graph, by="stream", full=full), memory_bandwidth(graph, by="copy")
    tables = {"queues": queues, "bandwidth": copies}
    if series:
        tables |= {"queue_length": queue_length(graph), "memory_bandwidth": memory_bandwidth(graph)}
    return report_on(
        graph, "counters", tables, findings.sentences(queues, copies, full, inputs), wording=Wording(wording.TITLES)
    )
