"""How much of a difference between two jobs on hosts may be the profiler's own time: it records each event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.core.kinds import ADDED, ActivityKind, of_kinds
from htagraph.findings.differences.pair import JobPair, Side
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import time_text
from htagraph.graph.measures.steps import is_paced_by_ends
from htagraph.graph.tolerances import LIMITS

__all__ = ["RECORDING_COST", "RecordingCostClaim"]

_EVENT_US = 1.0
"""Time that recording one event of host code takes, µs. Measured: steps with and without PyTorch's profiler, of 200
runs of 25 pairs of jobs on hosts: 1.2 µs in the median; 0.5 to 1.4 µs in most jobs of 2,000 events per step and more,
which show the time best. Doubled, the sentence also names 5 % of a difference."""


@dataclass(frozen=True, kw_only=True)
class RecordingCostClaim(Claim):
    """One job has more events to record; the figure is the time that recording these takes, µs."""

    side: Side
    """The job with more events."""
    events: float
    """How many more events of host code it has."""
    span: str
    """The span that has them: ``step``, or ``job`` for a rank of a whole job."""
    is_smaller: bool
    """Whether the difference is smaller without a profiler."""
    is_reversed: bool = False
    """Whether recording takes longer than the whole difference, which may then be the other way round."""


def _when(pair: JobPair) -> list[RecordingCostClaim]:
    """Return the claim that a part of a difference is recording; none where devices pace steps, or for a small part.

    A job with more events of host code per step is slowed more by its profiler.
    """
    diff = pair.diff
    change = diff.change
    if change.shows_none or diff.is_same or any(is_paced_by_ends(job.graph) for job in diff.parts):
        return []
    before, after = map(_host_events, diff.parts)
    more_events = before - after
    shorter_us = change.before_us - change.after_us
    cost_us = abs(more_events) * _EVENT_US
    if cost_us < (1 - LIMITS.nearly_all) * abs(shorter_us):
        return []
    side: Side = "before" if more_events > 0 else "after"
    return [
        RecordingCostClaim(
            "recording_cost",
            side,
            cost_us,
            "us",
            side=side,
            events=abs(more_events),
            span=diff.unit,
            is_smaller=more_events * shorter_us > 0,
            is_reversed=more_events * shorter_us > 0 and cost_us > abs(shorter_us),
        )
    ]


def _short(claim: RecordingCostClaim) -> str:
    """Return the caution, with the time of recording."""
    difference = "is smaller" if claim.is_smaller else "is larger"
    if claim.is_reversed:
        difference = "may be the other way round"
    events = f"{claim.events:,.0f} more events of host code {'per step' if claim.span == 'step' else 'per rank'}"
    return (
        f"Caution: the job {claim.side} has {events}, and recording takes about {time_text(_EVENT_US)} for each event, "
        f"{time_text(claim.figure)} in all: without a profiler, the difference {difference}."
    )


def _host_events(compared: ComparedPart) -> float:
    """Return how many events of host code a step of a rank has, or a rank where no steps are compared."""
    acts = compared.graph.activities
    kinds = acts.kind[compared.activities]
    recorded = ~acts.on_device[compared.activities] & ~of_kinds(kinds, (ActivityKind.STEP, *ADDED))
    return float(np.count_nonzero(recorded)) / compared.repeats


RECORDING_COST = Finding("recording_cost", when=_when, short=_short)
