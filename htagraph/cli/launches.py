"""``htagraph launches``: what launching work costs, and which operators, graphs and compiled regions do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.targets import Drawn
from htagraph.output.wording import launches as wording

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["launches", "report"]

_FOR_PROGRAMS = ["launch", "graph_id", "gap_us", "communication_us", "example", "triton_us"]
_OF_PHASES = ["host_us", "mean_wall_us", "idle_us"]
"""What follows from the other columns, or matters less than whole names."""


def launches(
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 10,
    form: Form = None,
    output: Drawn = None,
) -> None:
    """What launch calls cost on the host, how long kernels wait after them, and what operators and graphs launch."""
    graph = read(paths, ranks, steps)
    from htagraph.analyses.launch_stats import launch_stats

    show(report(graph, given(paths, ranks, steps), top=top), form, output, paths, lambda: launch_stats(graph))


def report(graph: DependencyGraph, inputs: Sequence[str], *, top: int = 10) -> Report:
    """Return the report on a graph's launches; `inputs` are the words that choose what is read."""
    from htagraph.analyses.compiled_regions import compiled_regions
    from htagraph.analyses.graph_launches import graph_launches
    from htagraph.analyses.launch_stats import launch_stats
    from htagraph.analyses.operator_kernels import operator_kernels
    from htagraph.analyses.phases import phases
    from htagraph.findings.interrupted import interruption_note
    from htagraph.findings.verbs import launches as findings
    from htagraph.output.report import Wording, report_on

    stats = launch_stats(graph)
    operators = operator_kernels(graph).sort_values("device_us", ascending=False, kind="stable", ignore_index=True)
    tables = {
        "calls": by_call(stats), "operators": operators, "graph_launches": graph_launches(graph),
        "compiled_regions": compiled_regions(graph), "phases": phases(graph),
    }  # fmt: skip
    brief = {name: table.head(top).drop(columns=_FOR_PROGRAMS, errors="ignore") for name, table in tables.items()}
    brief = {name: _without_unknown(table) for name, table in brief.items() if len(table)}
    conclusions = [*findings.sentences(stats, tables["graph_launches"], inputs), *interruption_note(graph, inputs)]
    return report_on(
        graph, "launches", tables, conclusions, brief=brief,
        wording=Wording(wording.TITLES, wording.HEADINGS),
    )  # fmt: skip


def _without_unknown(table: pd.DataFrame) -> pd.DataFrame:
    """Return what is read: no column that is -1 (unknown) or NaN throughout; a name where no region launched."""
    unknown = table.isna().all() | table.drop(columns="rank").eq(-1).all().reindex(table.columns, fill_value=False)
    table = table.drop(columns=[*table.columns[unknown], *(_OF_PHASES if "phase" in table else [])])
    if "region" in table:
        table["region"] = table["region"].replace("", "(outside all regions)")
        table["count"] = table["count"].astype(object).where(table["count"] > 0, "-")
    return table


def by_call(stats: pd.DataFrame) -> pd.DataFrame:
    """Return one row per rank and launching call of the result of `htagraph.launch_stats`, most time first.

    Returns:
        ``rank`` (int64), ``name`` (str), ``calls``, ``works`` (int64), ``total_us``, ``mean_us``, ``max_us`` (float64:
        the calls' durations), ``excessive`` (int64: calls longer than the cutoff), ``median_delay_us`` (float64: from
        the call's end to the start of its first kernel or copy), ``short_percent`` (float64: calls that took longer
        than the kernels and copies they launched).
    """
    each = stats.groupby(["rank", "launch"], as_index=False).agg(
        name=("launch_name", "first"), works=("work", "size"), took=("launch_us", "first"), short=("short", "first"),
        excessive=("excessive_runtime", "first"), delay=("delay_us", "min"),
    )  # fmt: skip
    table = each.groupby(["rank", "name"], as_index=False).agg(
        calls=("launch", "size"), works=("works", "sum"), total_us=("took", "sum"), mean_us=("took", "mean"),
        max_us=("took", "max"), excessive=("excessive", "sum"), median_delay_us=("delay", "median"),
        short_percent=("short", "mean"),
    )  # fmt: skip
    table["short_percent"] = 100 * table["short_percent"].astype(np.float64)
    return table.sort_values(["rank", "total_us"], ascending=[True, False], kind="stable", ignore_index=True)
