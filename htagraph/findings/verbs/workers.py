"""Sentences of a job on workers: missing ranks, what the time is spent on, and whom ranks wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from htagraph.core.statistics import MOST
from htagraph.findings.limits import MAX_LISTED, SHORT_LIST
from htagraph.findings.phrases import and_list, plural, time_text

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
        return [f"Ranks wait {total} for each other (summed over ranks){_most_charged(slow)}, but {_why_not(slow)}."]
    row = slow.ranks[slow.ranks["rank"] == slow.straggler].iloc[0]
    return [f"Rank {slow.straggler} is the straggler: {row['share_percent']:.0f} % of all waiting ({total}) is for it."]


def _most_charged(slow: RankStragglers) -> str:
    ranks = slow.ranks.sort_values("share_percent", ascending=False, kind="stable").head(SHORT_LIST)
    named = [f"rank {rank} ({share:.0f} %)" for rank, share in zip(ranks["rank"], ranks["share_percent"], strict=True)]
    return f", most of it for {and_list(named)}" if ranks["share_percent"].sum() > 100 * MOST else ""


def _why_not(slow: RankStragglers) -> str:
    """Return why no rank is the straggler."""
    if slow.serves is not None:
        return f"rank {slow.serves} does work that no other rank does, and the others wait for its result"
    if slow.ranks["slow"].any():
        rank = int(slow.ranks.loc[slow.ranks["slow"], "rank"].iloc[0])
        return f"rank {rank}, which is slower than its peers, does not explain most of it"
    if slow.few_steps:
        return f"from {plural(slow.steps, 'step')} nobody can tell whether a rank is slow or was late by chance"
    return "no single rank is shown to be slower than its peers beyond chance"
