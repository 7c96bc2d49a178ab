"""``htagraph opportunities``: what is worth improving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.words import command_line, time_text

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["opportunities", "report"]

_FEW = 2.0  # percent: less is hardly worth the work


def opportunities(
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 10,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """What to improve first, by what it would gain: kernels, operators, ranks, process groups, host phases."""
    graph = read(paths, ranks, steps)
    from htagraph.whatif.opportunities import opportunities as ranked

    show(report(graph, ranked(graph, top=top), given(paths, ranks, steps)), form, output, paths)


def report(graph: DependencyGraph, table: pd.DataFrame, inputs: Sequence[str]) -> Report:
    """Return the report on the result of `htagraph.opportunities`; `inputs` are the words that choose what is read."""
    from htagraph.output.report import report_on

    columns = ["what", "name", "time_us", "critical_us", "gain_us", "gain_percent", "gain_at_50_us"]
    brief = {"opportunities": table[columns].rename(columns={"gain_at_50_us": "gain_if_halved_us"})}
    return report_on(graph, "opportunities", {"opportunities": table}, _sentences(table, inputs), brief=brief)


def _sentences(table: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    if not len(table) or table.iloc[0]["gain_percent"] < _FEW:
        return [f"Nothing alone would gain {_FEW:.0f} %: the time is spread over many things, or over pauses."]
    best = table.iloc[0]
    note = f" ({best['note']})" if best["note"] else ""
    sentences = [
        f"Most is to be gained from the {best['what']} {best['name']}{note}: at most {time_text(best['gain_us'])} "
        f"({best['gain_percent']:.0f} %), {time_text(best['gain_at_50_us'])} if it took half its time. Gains "
        "overlap and do not add up."
    ]
    if best["target"]:
        line = command_line("what-if", inputs, "--scale", f"{best['target']}:0.5")
        sentences.append(f"Try it together with other changes: {line}")
    return sentences
