"""``htagraph patterns``: which sequences of kernels operators launch, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.targets import Output
from htagraph.core.naming import LINEAR
from htagraph.output.wording import patterns as wording

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["patterns", "report"]

_NAMED = 3
"""Annotations that are named where the operator asked for launches too little. Chosen: a line. Doubled, two lines."""


def patterns(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    operator: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Part of the name of operators, annotations or Python frames, or a glob of it."
        ),
    ] = LINEAR,
    min_length: Annotated[int, typer.Option(min=1, help="Leave out occurrences with fewer kernels.")] = 3,
    overlay: Annotated[
        Path | None, typer.Option(help="Write each rank's trace to this folder, with its frequent patterns marked.")
    ] = None,
    compress: Annotated[
        bool, typer.Option(help="Leave out names and arguments of the other events in these files.")
    ] = True,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 5,
    form: Form = None,
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
    from htagraph.findings.verbs import patterns as findings
    from htagraph.output.report import Wording, report_on

    shown = table.groupby("rank").head(top)
    brief = shown.drop(columns=["pattern", "example"])
    brief.insert(0, "number", range(1, len(shown) + 1))
    sentences = [
        *(f"{number}: {findings.pattern_text(text)}" for number, text in enumerate(shown["pattern"], 1)),
        *_conclusions(graph, table, inputs, operator, min_length),
    ]
    return report_on(
        graph, "patterns", {"patterns": table}, sentences, brief={"patterns": brief}, wording=Wording(wording.TITLES)
    )


def _conclusions(
    graph: DependencyGraph, table: pd.DataFrame, inputs: Sequence[str], operator: str, min_length: int
) -> list[str]:
    import numpy as np

    from htagraph.core.kinds import FRAMES
    from htagraph.findings.verbs import patterns as findings
    from htagraph.queries.kernel_sequences import containing

    if not containing(graph, operator).any():
        acts = graph.activities
        names = {graph.names[name] for name in acts.name[np.isin(acts.kind, FRAMES)]}
        return [findings.unknown_operator(operator, names)]
    shorter = findings.other_occurrences(_fewer(graph, table, operator), inputs, operator) if len(table) else []
    others = [] if len(table) else _launching(graph, min_length)
    return [*findings.sentences(table, inputs, operator, min_length, others), *shorter]


def _launching(graph: DependencyGraph, min_length: int) -> list[str]:
    """Return the annotations whose every occurrence launches at least so many kernels, the longest busy first."""
    from htagraph.analyses.phases import phases

    table = phases(graph)
    sums = table[table["kernels"] >= min_length * table["count"]].groupby("phase")["busy_us"].sum()
    known = set(graph.names)  # the names of phases may be shorter
    names = sums[sums > 0].sort_values(ascending=False, kind="stable").index
    return [str(name) for name in names if name in known][:_NAMED]


def _fewer(graph: DependencyGraph, table: pd.DataFrame, operator: str) -> int:
    """Return how many occurrences launched fewer kernels than what counts."""
    from htagraph.queries.kernel_sequences import containing

    occurrences = len(graph.tree.outermost(containing(graph, operator)))
    return occurrences - int(table["count"].sum())
