"""What ``htagraph what-if`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htagraph.output.phrases import category_words, time_text

if TYPE_CHECKING:
    import pandas as pd

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


def sentences(after: Outcome, bounds: pd.DataFrame) -> list[str]:
    """Return how long the job would take, how sure that is, and what bounds it then.

    Args:
        after: the outcome of all changes together.
        bounds: shares of the critical path before and after, by category, rank and kernel.
    """
    return [_gain(after), *_noise(after), *_bound(after, bounds)]


def _gain(after: Outcome) -> str:
    old, new = time_text(after.baseline_ns / 1000), time_text(after.makespan_ns / 1000)
    if abs(after.speedup - 1) < _MIN_SPEEDUP_CHANGE:
        return f"The job would take as long as before ({new}, not {old}): nothing waits for what was changed."
    if not after.makespan_ns:
        return f"The job would take no time instead of {old}: nothing that takes time is left."
    how = f"{after.speedup:.2f} times as fast" if after.speedup >= 1 else f"{1 / after.speedup:.2f} times as long"
    start = f"The job would take {new} instead of {old}: {how}"
    low, high = f"{after.low:.2f}", f"{after.high:.2f}"
    if low == high:
        return f"{start}."
    return f"{start} (90 % interval of the speedup: {low} to {high})."


def _noise(after: Outcome) -> list[str]:
    if not after.state.jitter:
        return []
    low, high = time_text(after.p50_ns / 1000), time_text(after.p99_ns / 1000)
    return [f"With noise, half of the runs take less than {low}, and 99 % less than {high}."]


def _bound(after: Outcome, bounds: pd.DataFrame) -> list[str]:
    """Say what bounds the job before and after."""
    by_category = bounds[bounds["group"] == "category"]
    if not len(by_category):
        return []
    before, now = (
        by_category.iloc[int(by_category[f"{when}_share_percent"].to_numpy().argmax())] for when in ("before", "after")
    )
    ranks = bounds[bounds["group"] == "rank"].sort_values("after_share_percent", ascending=False, kind="stable")
    most = len(after.baseline.ranks) > 1 and len(ranks) and ranks["after_share_percent"].iloc[0] > _MIN_RANK_PERCENT
    where = f", mostly on rank {ranks.iloc[0]['key']}" if most else ""
    share = f"{now['after_share_percent']:.0f} % of the critical path{where}"
    name, name_before = category_words(str(now["key"])), category_words(str(before["key"]))
    if name == name_before:
        return [f"It would still be bound by {name}: {share}."]
    return [f"It would then be bound by {name} ({share}) instead of {name_before}."]
