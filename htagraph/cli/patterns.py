"""``htagraph patterns``: which sequences of kernels operators launch, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Format, Output, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.words import command_line, plural, time_text
from htagraph.core.naming import LINEAR

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["patterns", "report"]

_LONG = 12
"""Kernels of a pattern that are listed."""
_SHARE = 0.5


def patterns(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    operator: Annotated[
        str, typer.Option(help="Text in the operator's, annotation's or Python frame's name.")
    ] = LINEAR,
    min_length: Annotated[int, typer.Option(min=1, help="Occurrences with fewer kernels do not count.")] = 3,
    overlay: Annotated[
        Path | None, typer.Option(help="Write each rank's trace with its frequent patterns marked to this folder.")
    ] = None,
    compress: Annotated[
        bool, typer.Option(help="In these files, take names and arguments from the other events.")
    ] = True,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 5,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """Which sequences of kernels an operator launches, how often, and how long they take."""
    graph = read(paths, ranks, steps)
    from htagraph.analyses.kernel_patterns import kernel_patterns

    table = kernel_patterns(graph, operator, min_length=min_length)
    if overlay is not None:
        from htagraph.output.export.patterns import export_patterns

        files = export_patterns(graph, overlay, operator, min_length=min_length, top=top, compress=compress)
        for file in files:
            typer.echo(f"htagraph: wrote {file}; search it for Patterns", err=True)
    inputs = given(paths, ranks, steps)
    show(report(graph, table, inputs, operator=operator, min_length=min_length, top=top), form, output, paths)


def report(
    graph: DependencyGraph, table: pd.DataFrame, inputs: Sequence[str], *, operator: str, min_length: int, top: int = 5
) -> Report:
    """Return the report on the result of `htagraph.kernel_patterns`; `inputs` choose what is read."""
    from htagraph.output.report import report_on

    shown = table.groupby("rank").head(top)
    brief = shown.drop(columns=["pattern", "example"])
    brief.insert(0, "number", range(1, len(shown) + 1))
    sentences = [
        *(f"{number}: {_readable(text)}" for number, text in enumerate(shown["pattern"], 1)),
        *_sentences(table, inputs, operator, min_length),
        *(_shorter(graph, table, inputs, operator) if len(table) else []),
    ]
    return report_on(graph, "patterns", {"patterns": table}, sentences, brief={"patterns": brief})


def _readable(pattern: str) -> str:
    from htagraph.core.naming import short_name

    operator, *kernels = pattern.split("|")
    more = f" → … {len(kernels) - _LONG} more" if len(kernels) > _LONG else ""
    return f"{operator}: {' → '.join(map(short_name, kernels[:_LONG]))}{more}"


def _shorter(graph: DependencyGraph, table: pd.DataFrame, inputs: Sequence[str], operator: str) -> list[str]:
    """Return how many occurrences launched less than what counts, and how to see them."""
    from htagraph.queries.kernel_sequences import containing

    every = len(graph.tree.outermost(containing(graph, operator)))
    fewer = every - int(table["count"].sum())
    if not fewer:
        return []
    again = command_line("patterns", inputs, "--operator", operator, "--min-length", "1")
    return [f"{plural(fewer, 'other occurrence')} launched fewer kernels or none; those that launched any: {again}"]


def _sentences(table: pd.DataFrame, inputs: Sequence[str], operator: str, min_length: int) -> list[str]:
    if not len(table):
        again = command_line("patterns", inputs, "--operator", operator, "--min-length", "1")
        return [f"Nothing with {operator!r} in its name launched {min_length} kernels or more. With fewer: {again}"]
    count, most = int(table["count"].sum()), table.iloc[int(table["count"].argmax())]
    said = (
        f"{plural(count, 'occurrence')} of {operator!r} launched {plural(len(table), 'pattern')} of kernels, which ran "
        f"{time_text(table['kernel_us'].sum())}; the most frequent one, of {most['kernels']} kernels, occurred "
        f"{most['count']} times on rank {most['rank']}."
    )
    if most["kernel_us"] < _SHARE * most["operator_us"]:
        line = command_line("opportunities", inputs)
        return [said, f"Its kernels take less time than launching them: one kernel in their place helps; see {line}"]
    return [said]
