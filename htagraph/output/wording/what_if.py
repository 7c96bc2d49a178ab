"""What ``htagraph what-if`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.output.phrases import cause_words, time_text

if TYPE_CHECKING:
    from htagraph.queries.path_segments import Bound
    from htagraph.whatif.outcome import Outcome

__all__ = ["TITLES", "sentences"]

TITLES = {
    "prediction": "Prediction",
    "changes": "Effect of each change, added to those above it",
    "step_times": "Step times, from the first rank's start to the last rank's end",
    "bounds_category": "Critical path before and after, by category",
    "bounds_rank": "Critical path before and after, by rank",
    "bounds_kernel": "Critical path before and after, by kernel",
}
"""Titles by the name of the table."""
_MIN_RANK_PERCENT = 50
"""Percent of the path from which its rank is named: more than half. Doubled, no rank is."""
_MIN_SPEEDUP_CHANGE = 0.005
"""Distance of a speedup from 1; chosen: a speedup is shown with two digits, and less would show as 1.00. Doubled, 0.9 %
of change is called none."""


def sentences(after: Outcome, before: Bound, now: Bound) -> list[str]:
    """Return how long the job would take, how sure that is, and what bounds it then.

    Args:
        after: the outcome of all changes together.
        before: what bounds the job as recorded.
        now: what bounds it as predicted.
    """
    return [_gain(after), *_noise(after), *_bound(before, now)]


def _gain(after: Outcome) -> str:
    old, new = time_text(after.baseline_ns / 1000), time_text(after.makespan_ns / 1000)
    if abs(after.speedup - 1) < _MIN_SPEEDUP_CHANGE:
        was = "" if new == old else f", not {old}"
        return f"The job would take as long as before ({new}{was}): hardly anything waits for what was changed."
    if not after.makespan_ns:
        return f"The job would take no time instead of {old}: nothing that takes time is left."
    how = f"{after.speedup:.2f} times as fast" if after.speedup >= 1 else f"{1 / after.speedup:.2f} times as long"
    start = f"The job would take {new} instead of {old}{_per_step(after)}: {how}"
    low, high = f"{after.low:.2f}", f"{after.high:.2f}"
    if low == high:
        return f"{start}."
    return f"{start} (90 % interval of the speedup: {low} to {high})."


def _per_step(after: Outcome) -> str:
    """Return the time of a step, as predicted and as recorded, where there are several that cover the recording."""
    from htagraph.graph.measures.steps import whole_steps  # with arrays, which help needs not

    if whole_steps(after.baseline) < 2:
        return ""
    old, new = (time_text(ns / 1000) for ns in (after.baseline_mean_step_ns, after.mean_step_ns))
    return f", {new} instead of {old} per step"


def _noise(after: Outcome) -> list[str]:
    if not after.state.jitter:
        return []
    low, high = time_text(after.p50_ns / 1000), time_text(after.p99_ns / 1000)
    return [f"With noise, half of the runs take less than {low}, and 99 % less than {high}."]


def _bound(before: Bound, now: Bound) -> list[str]:
    """Say what bounds the job before and after."""
    if not now.cause:
        return []
    rank, most = next(iter(now.ranks.items()))
    where = f", mostly on rank {rank}" if len({*before.ranks, *now.ranks}) > 1 and most > _MIN_RANK_PERCENT else ""
    share = f"{now.causes[now.cause]:.0f} % of the critical path{where}"
    name, name_before = (cause_words(bound.cause, bound.shares) for bound in (now, before))
    if now.cause == before.cause:
        return [f"It would still be bound by {name}: {share}."]
    return [f"It would then be bound by {name} ({share}) instead of {name_before}."]
