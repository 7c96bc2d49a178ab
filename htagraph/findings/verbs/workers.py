"""Sentences of a job on workers: missing ranks, what the time is spent on, and whom ranks wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from htagraph.findings.limits import MAX_LISTED
from htagraph.findings.phrases import and_list, time_text, waits_text, why_nobody

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.cluster.job import DistributedJob
    from htagraph.queries.straggler import RankStragglers

__all__ = ["late", "missing", "spent"]

_SPENT_ON: Final = {
    "computation": "computation", "host": "spent on the host", "communication": "communication",
    "other": "none of computation, host and communication",
}  # fmt: skip


def missing(job: DistributedJob) -> list[str]:
    """Return which ranks the answers lack."""
    if not job.missing:
        return []
    named = [f"rank {each.rank} ({each.why})" for each in job.missing[:MAX_LISTED]]
    more = len(job.missing) - len(named)
    every = and_list([*named, f"{more} more"] if more else named)
    return [f"{len(job.ranks)} ranks answered; missing are {every}. Waits for missing ranks are not known."]


def spent(makespan_us: float, path: pd.DataFrame) -> list[str]:
    """Return how long the job takes, and what most of its critical path is spent on."""
    takes = f"The job takes {time_text(makespan_us)}."
    if not path["total_us"].any():
        return [takes]
    most = path.sort_values("total_us", ascending=False).iloc[0]
    return [takes, f"Of the critical path, {most['share_percent']:.0f} % is {_SPENT_ON[str(most['spent_on'])]}."]


def late(slow: RankStragglers) -> list[str]:
    """Return which rank the others wait for, or why nobody can tell."""
    total = time_text(slow.total_wait_us)
    if not slow.total_wait_us:
        return ["No rank waits for another."]
    if slow.straggler is None:
        return [f"Ranks wait {waits_text(slow)}; but {why_nobody(slow)}."]
    row = slow.ranks[slow.ranks["rank"] == slow.straggler].iloc[0]
    return [f"Rank {slow.straggler} is the straggler: {row['share_percent']:.0f} % of all waiting ({total}) is for it."]
