"""``htagraph phases``: wall time, device time and tokens of phases such as prefill and decode, or of annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.targets import Output
from htagraph.output.wording import phases as wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["phases", "report"]


def phases(  # noqa: PLR0913 - one argument per option
    paths: Paths,
    *,
    annotation: Annotated[
        str | None,
        typer.Option(
            "--annotation", help="Glob of annotations, operators, Python frames or phases, such as decode.",
            show_default=False,
        ),
    ] = None,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 10,
    form: Form = None,
    output: Output = None,
) -> None:  # fmt: skip
    """How long phases take, such as prefill and decode or what your annotations name, and how busy the device is."""
    graph = read(paths, ranks, steps)
    from htagraph.analyses.phases import phases as table_of

    table = table_of(graph, annotation=annotation)
    show(report(graph, table, given(paths, ranks, steps), annotation=annotation, top=top), form, output, paths)


def report(
    graph: DependencyGraph, table: pd.DataFrame, inputs: Sequence[str], *, annotation: str | None = None, top: int = 10
) -> Report:
    """Return the report on the result of `htagraph.phases`; `inputs` are the words that choose what is read."""
    from htagraph.findings.verbs import phases as findings
    from htagraph.output.report import Wording, report_on

    brief = table.groupby("rank").head(top).drop(columns=["example", "host_us", "mean_wall_us", "idle_us"])
    if (table["tokens"] < 0).all():
        brief = brief.drop(columns=["tokens", "tokens_per_s"])
    return report_on(
        graph, "phases", {"phases": table}, findings.sentences(table, inputs, annotation), brief={"phases": brief},
        wording=Wording(wording.TITLES),
    )  # fmt: skip
