"""How much of a difference between two jobs on hosts may be the profiler's own time: it records each event."""

from __future__ import annotations

import numpy as np

from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.analyses.differences.diff import Diff
from htagraph.core.kinds import ADDED, ActivityKind, of_kinds
from htagraph.findings.phrases import time_text
from htagraph.graph.measures.steps import is_paced_by_ends
from htagraph.graph.tolerances import LIMITS

__all__ = ["recording_sentence"]

_EVENT_US = 1.0
"""Time that recording one event of host code takes, µs. Measured: steps with and without PyTorch's profiler, of 200
runs of 25 pairs of jobs on hosts: 1.2 µs in the median; 0.5 to 1.4 µs in most jobs of 2,000 events per step and more,
which show the time best. Doubled, the sentence also names 5 % of a difference."""


def recording_sentence(diff: Diff) -> str:
    """Return the caution that a part of a difference is recording; empty where devices pace steps, or for a small part.

    A job with more events of host code per step is slowed more by its profiler.
    """
    change = diff.change
    if change.shows_none or diff.is_same or any(is_paced_by_ends(compared.graph) for compared in diff.parts):
        return ""
    before, after = (_host_events(compared) for compared in diff.parts)
    more_events = before - after
    shorter_us = change.before_us - change.after_us
    if abs(more_events) * _EVENT_US < (1 - LIMITS.nearly_all) * abs(shorter_us):
        return ""
    job = "before" if more_events > 0 else "after"
    smaller = "smaller" if more_events * shorter_us > 0 else "larger"
    events = f"{abs(more_events):,.0f} more events of host code {'per step' if diff.unit == 'step' else 'per rank'}"
    took = time_text(abs(more_events) * _EVENT_US)
    return (
        f"Caution: the job {job} has {events}, and recording takes about {time_text(_EVENT_US)} for each event, {took} "
        f"in all: without a profiler, the difference is {smaller}."
    )


def _host_events(compared: ComparedPart) -> float:
    """Return how many events of host code a step of a rank has, or a rank where no steps are compared."""
    acts = compared.graph.activities
    kinds = acts.kind[compared.activities]
    recorded = ~acts.on_device[compared.activities] & ~of_kinds(kinds, (ActivityKind.STEP, *ADDED))
    return float(np.count_nonzero(recorded)) / compared.repeats
