"""What ``htagraph what-if --sweep`` shows: one scenario for many factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.output.wording import sweeps as wording

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report
    from htagraph.whatif.options import Change, Sweep
    from htagraph.whatif.scenario import Scenario

__all__ = ["sweep_report"]


def sweep_report(
    graph: DependencyGraph, asked: Sweep, changes: Sequence[Change] = (), texts: Sequence[str] = ()
) -> Report:
    """Return the report on a sweep.

    Args:
        graph: the job.
        asked: what takes which multiples of its time.
        changes: made before, for every factor alike.
        texts: these changes in words.
    """
    from htagraph.findings.verbs import what_if as findings
    from htagraph.output.report import Wording, report_on
    from htagraph.whatif.scenario import what_if
    from htagraph.whatif.sweep import sweep

    def scenario(job: Scenario, factor: float) -> Scenario:
        for change in changes:
            job = change.apply(job)
        return asked.apply(job, factor)

    table = sweep(graph, scenario, asked.factors, intervals=True)
    recorded_us = what_if(graph).run().baseline_mean_step_ns / 1000
    sentences = findings.sweep_sentences(
        table, " ".join([asked.what, *(f"after {text}" for text in texts)]), recorded_us
    )
    brief = table[["factor", "mean_step_us", "makespan_us", "saved_us", "speedup", "low", "high"]]
    return report_on(
        graph, "what-if", {"sweep": table}, sentences, figures={"swept": asked.what, "baseline_step_us": recorded_us},
        brief={"sweep": brief.assign(factor=table["factor"].map("{:g}".format))},
        wording=Wording(wording.titles(asked.what), wording.HEADINGS),
    )  # fmt: skip
