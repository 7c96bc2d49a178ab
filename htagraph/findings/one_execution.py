"""One execution takes most of the time of its name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.core.arrays import marked
from htagraph.findings.finding import (
    ATTRIBUTES,
    Bar,
    Chart,
    Claim,
    Evidence,
    Finding,
    claims_that_are,
    in_short,
    of_activities,
)
from htagraph.findings.interrupted import INTERRUPTED, InterruptedClaim
from htagraph.findings.limits import MIN_PERCENT
from htagraph.findings.phrases import share_text, time_text
from htagraph.findings.results import Results
from htagraph.queries.lone_execution import LoneExecution, lone_executions

__all__ = ["ONE_EXECUTION", "OneExecutionClaim"]


@dataclass(frozen=True, kw_only=True)
class OneExecutionClaim(Claim):
    """One execution takes most of the time of its name; the figure is its share of this time, percent."""

    own_us: float
    """The own time of the execution, µs."""
    count: int
    """Executions of the name on the rank."""
    step: int
    """The step of the execution; -1 outside steps."""
    start_us: float
    """The start of the execution, since the first activity of the job, µs."""
    is_first: bool
    """Whether it is the first execution of its name on the rank."""
    around: str
    """The annotation or source frame around it; empty for none."""
    has_ranks: bool
    """Whether the job has several ranks."""


def _when(results: Results) -> list[OneExecutionClaim]:
    graph = results.graph
    interrupted = [claim.activities for claim in claims_that_are(InterruptedClaim, results.claims(INTERRUPTED.when))]
    rows = np.array(sorted(frozenset().union(*interrupted)), np.int64)
    apart = marked(rows, len(graph.activities))
    apart[graph.start_up.activity] = True
    least_ns = MIN_PERCENT / 100 * int(results.parts.length.sum())
    executions = lone_executions(graph, results.parts, least_ns, apart)
    return [_claim(results, execution) for execution in executions[:1]]


def _claim(results: Results, execution: LoneExecution) -> OneExecutionClaim:
    """Return the claim that an execution takes most of the time of its name."""
    graph = results.graph
    acts = graph.activities
    row = execution.activity
    return OneExecutionClaim(
        "one_execution",
        graph.names[acts.name[row]],
        100 * execution.own_ns / execution.total_ns,
        "percent",
        rows=(row,),
        ranks=(int(acts.rank[row]),),
        own_us=execution.own_ns / 1000,
        count=execution.count,
        step=int(acts.step[row]),
        start_us=float(graph.time[2 * row] - graph.origin_ns) / 1000,
        is_first=execution.is_first,
        around=execution.around,
        has_ranks=len(graph.ranks) > 1,
    )


def _place(claim: OneExecutionClaim) -> str:
    """Return where the execution is: its rank, its step or its time, and the region around it."""
    words = [f"on rank {claim.ranks[0]}"] if claim.has_ranks else []
    words.append(f"in step {claim.step}" if claim.step >= 0 else f"at {time_text(claim.start_us)}")
    if claim.around:
        words.append(f"in {in_short(claim.around)}")
    return ", ".join(words)


def _short(claim: OneExecutionClaim) -> str:
    subject = "the first" if claim.is_first else "one"
    return (
        f"Of {claim.count:,} executions of {in_short(claim.about)}, {subject} takes {time_text(claim.own_us)}, "
        f"{share_text(claim.figure)} of the time of all of them: {_place(claim)}."
    )


def _why(claim: OneExecutionClaim) -> str:
    """Return which execution takes most of the time of its name."""
    return f"One of {claim.count:,} {in_short(claim.about)} takes {time_text(claim.own_us)}: {_place(claim)}."


def _evidence(results: Results, claim: OneExecutionClaim) -> Evidence:
    execution = of_activities(results, claim.rows, "The execution")
    total_us = 100 * claim.own_us / claim.figure
    bars = [
        Bar("this execution", claim.own_us, place=execution.first),
        Bar("every other one together", total_us - claim.own_us),
    ]
    return Evidence(
        Chart("Own time of this name on the rank", bars, "host"),
        execution,
        place=execution.first,
        look="the execution",
        command=("critical-path",),
        meaning=lone_executions,
    )


ONE_EXECUTION = Finding(
    "one_execution",
    needs=ATTRIBUTES,
    when=_when,
    short=_short,
    why=_why,
    evidence=_evidence,
)
