"""``htagraph stragglers``: for which rank the others wait, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.cli.options import (
    Form,
    Paths,
    Ranks,
    Scheduler,
    Steps,
    Top,
    given,
    read,
    read_on,
    show,
)  # fmt: skip
from htagraph.cli.targets import Drawn
from htagraph.output.wording import stragglers as wording

if TYPE_CHECKING:
    from htagraph.analyses.stragglers import Stragglers
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["report", "stragglers"]


def stragglers(  # noqa: PLR0913, PLR0917 - one argument per option
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Top = 10,
    form: Form = None,
    output: Drawn = None,
    scheduler: Scheduler = None,
) -> None:
    """Which rank makes the others wait, for how long, and why it is late."""
    if scheduler is not None:
        from htagraph.output.job_report import job_stragglers_report

        show(job_stragglers_report(read_on(scheduler, paths, ranks, steps), top=top), form, output, paths)
        return
    graph = read(paths, ranks, steps)
    from htagraph.analyses.stragglers import stragglers as stragglers_of

    result = stragglers_of(graph)
    show(report(graph, result, given(paths, ranks, steps), top=top), form, output, paths, lambda: result)


def report(graph: DependencyGraph, result: Stragglers, inputs: Sequence[str], *, top: int = 10) -> Report:
    """Return the report on the result of `htagraph.stragglers`; `inputs` are the words that choose what is read."""
    from htagraph.findings.interrupted import interruption_note
    from htagraph.findings.ranks_missing import RANKS_MISSING
    from htagraph.findings.results import Results
    from htagraph.findings.slow_stage import SLOW_STAGE
    from htagraph.findings.verbs import stragglers as findings
    from htagraph.findings.verdict import claims_of, sentences
    from htagraph.output.report import Wording, report_on

    table = result.to_frame().sort_values("blamed_us", ascending=False, kind="stable").head(top)
    causes = result.blame.groupby(["charged_rank", "cause"], as_index=False).agg(
        wait_us=("wait_us", "sum"), waits=("wait_us", "size")
    )
    causes = causes.sort_values("wait_us", ascending=False, kind="stable").head(top).reset_index(drop=True)
    tables = {"stragglers": table.reset_index(drop=True), "causes": causes}
    columns = ["rank", "blamed_us", "share_percent", "waits_us", "lateness_us", "late_count", "cause", "cause_name"]
    brief = {"stragglers": tables["stragglers"][columns].rename(columns={"cause_name": "name"}), "causes": causes}
    results = Results(graph, slow=result)
    stages = claims_of(results, [SLOW_STAGE])
    missing = claims_of(results, [RANKS_MISSING]) if len(graph.ranks) > 1 else []
    conclusions = findings.sentences(result, len(graph.ranks), inputs)
    conclusions += [
        *sentences(stages),
        *findings.shares_command(stages, inputs),
        *sentences(missing),
        *interruption_note(graph, inputs),
    ]
    figures = {"straggler": result.straggler, "total_wait_us": result.total_wait_us}
    return report_on(
        graph, "stragglers", tables, conclusions, figures=figures, brief=brief, wording=Wording(wording.TITLES),
    )  # fmt: skip
