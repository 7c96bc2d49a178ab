"""``htagraph opportunities``: what is worth improving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.cli.options import Form, Paths, Ranks, Steps, Top, given, read, show
from htagraph.cli.targets import Drawn
from htagraph.output.wording import opportunities as wording

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["opportunities", "report"]


def opportunities(
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 10,
    form: Form = None,
    output: Drawn = None,
) -> None:
    """What to improve first, by largest possible gain: kernels, operators, ranks, process groups, host phases."""
    graph = read(paths, ranks, steps)
    from htagraph.whatif.opportunities import opportunities as ranked

    show(report(graph, ranked(graph, top=top), given(paths, ranks, steps)), form, output, paths)


def report(graph: DependencyGraph, table: pd.DataFrame, inputs: Sequence[str]) -> Report:
    """Return the report on the result of `htagraph.opportunities`; `inputs` are the words that choose what is read."""
    from htagraph.findings.results import Results
    from htagraph.findings.verbs import opportunities as findings
    from htagraph.findings.verdict import claims_of
    from htagraph.output.report import Wording, report_on

    results = Results(graph, opportunities=table)
    sentences = findings.sentences(claims_of(results, findings.CONCLUSIONS), inputs)
    steps = results.steps
    brief = {"opportunities": wording.brief(table, steps)}
    return report_on(
        graph, "opportunities", {"opportunities": table}, sentences, brief=brief,
        wording=Wording(wording.titles(steps)),
    )  # fmt: skip
