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
    from htagraph.analyses.critical_path import critical_path
    from htagraph.findings.claim import Says
    from htagraph.findings.conclusions.claims import bound_claims, consistent, doubts_of, gain_claims, is_interrupted
    from htagraph.findings.conclusions.warm_up_claims import start_up_claims, with_start_up
    from htagraph.findings.verbs import opportunities as findings
    from htagraph.graph.measures.steps import whole_steps
    from htagraph.output.report import Wording, report_on
    from htagraph.queries.path_segments import bound_of

    path = critical_path(graph)
    bound, doubts = bound_of(path), doubts_of(graph)
    above = [claim for claim in bound_claims(path, bound, doubts) if claim.says in (Says.BOUND, Says.INTERRUPTED)]
    gains = gain_claims(graph, table, bound=bound, doubts=doubts, interrupted=is_interrupted(above))
    started = start_up_claims(path)
    claims = [*above, *started, *with_start_up(graph, gains, started)]
    steps = whole_steps(graph)
    brief = {"opportunities": wording.brief(table, steps)}
    return report_on(
        graph, "opportunities", {"opportunities": table}, findings.sentences(consistent(claims), inputs), brief=brief,
        wording=Wording(wording.titles(steps)),
    )  # fmt: skip
