"""The report on a job whose ranks lie with workers: what commands with ``--scheduler`` print."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from htagraph.analyses.kernel_breakdown import kernel_breakdown
from htagraph.analyses.step_times import step_times
from htagraph.analyses.stragglers import ENOUGH_STEPS
from htagraph.analyses.temporal_breakdown import temporal_breakdown
from htagraph.cluster.job import DistributedJob
from htagraph.core.tables import Col, Table
from htagraph.findings.phrases import and_list, plural, time_text
from htagraph.output.columns import with_shares
from htagraph.output.report import Report, gives, wording_of
from htagraph.queries.inputs import inputs_of, window_us
from htagraph.queries.rank_digests.digest_stragglers import RankStragglers

__all__ = ["job_report", "job_stragglers_report"]

_MISSING: Final = Table("Ranks that this answer lacks", Col("rank file why", "any"))
_STEPS: Final = Table("Step times over all ranks", Col("step ranks", "int64"), Col("min_us median_us max_us"))
_PATH: Final = Table("Critical path by what it is spent on", Col("spent_on", "str"), Col("total_us share_percent"))
_RANKS: Final = Table(
    "Ranks that others wait for",
    Col("rank", "int64"),
    Col("blamed_us share_percent waits_us"),
    Col("late_count", "int64"),
    Col("own_step_us step_excess_us step_error_us"),
    Col("slow", "bool"),
    Col("slow_steps", "int64"),
    Col("slow_excess_us"),
    Col("cause", "str"),
)
_SPENT_ON: Final = {
    "computation": "computation", "host": "spent on the host", "communication": "communication",
    "other": "none of computation, host and communication",
}  # fmt: skip
_NAMED: Final = 4
"""Missing ranks that a sentence names. Chosen: a line. Doubled, the sentence takes two."""
_CHARGED: Final = 2
"""Ranks that a sentence names as those that most waiting is for. Chosen. Doubled, it names ranks that matter less."""
_MOSTLY_PERCENT: Final = 50
"""Percent of all waiting from which these ranks are named. It cannot be doubled."""


@gives(
    "summary --scheduler",
    {
        "missing": _MISSING, "steps": _STEPS, "time_by_rank": "analyses.temporal_breakdown.TABLE",
        "kernels": "analyses.kernel_breakdown.JOB", "critical_path": _PATH, "stragglers": _RANKS,
    },
    figures=(Col("makespan_us"), Col("straggler", "int64?")),
    titles={"time_by_rank": "Time by rank, most idle first"},
)  # fmt: skip
def job_report(job: DistributedJob, *, top: int = 5) -> Report:
    """Return the main answers about a job on workers: ranks that are missing, steps, time, kernels, path, stragglers.

    Example:
        >>> import htagraph as hg
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(2) as workers:
        ...     report = job_report(hg.load("data/demo", engine=workers))
        >>> sorted(report.tables)
        ['critical_path', 'kernels', 'missing', 'steps', 'stragglers', 'time_by_rank']
    """
    moments = job.moments
    slow, path = moments.stragglers(), _path(moments.critical_path(), moments.classes)
    tables = {
        "missing": _missing(job),
        "steps": _steps(step_times(job)),
        "time_by_rank": temporal_breakdown(job).sort_values(
            "idle_us", ascending=False, kind="stable", ignore_index=True
        ),
        "kernels": kernel_breakdown(job, by="job"),
        "critical_path": path,
        "stragglers": _ranks(slow),
    }
    brief = {
        name: table.head(top) if name not in ("steps", "critical_path") else table for name, table in tables.items()
    }
    brief["time_by_rank"] = with_shares(brief["time_by_rank"])
    brief["stragglers"] = _shown(brief["stragglers"])
    sentences = [
        *_lacking(job),
        f"The job takes {time_text(moments.makespan_ns() / 1000)}.",
        *_spent(path),
        *_late(slow),
    ]
    figures = {"makespan_us": moments.makespan_ns() / 1000, "straggler": slow.straggler}
    return _report(job, "summary", tables, brief, sentences, figures)


@gives(
    "stragglers --scheduler", {"missing": _MISSING, "stragglers": _RANKS},
    figures=(Col("straggler", "int64?"), Col("total_wait_us")),
)  # fmt: skip
def job_stragglers_report(job: DistributedJob, *, top: int = 10) -> Report:
    """Return for which rank of a job on workers the others wait: ranks that are missing, and stragglers."""
    slow = job.moments.stragglers()
    tables = {"missing": _missing(job), "stragglers": _ranks(slow)}
    figures = {"straggler": slow.straggler, "total_wait_us": slow.total_wait_us}
    brief = {"missing": tables["missing"].head(top), "stragglers": _shown(tables["stragglers"].head(top))}
    return _report(job, "stragglers", tables, brief, [*_lacking(job), *_late(slow)], figures)


def _report(
    job: DistributedJob,
    command: str,
    tables: dict[str, pd.DataFrame],
    brief: dict[str, pd.DataFrame],
    sentences: list[str],
    figures: dict[str, Any],
) -> Report:
    """Return a report of a command on a job: its tables, those of them that a reader is shown, and what it says."""
    issues = pd.DataFrame(
        [(issue.rank, issue.file, issue.what, issue.detail, issue.count) for issue in job.issues],
        columns=["rank", "file", "what", "detail", "count"],
    )
    graph = job.moments.graph
    return Report(
        command, inputs_of(graph), issues, window_us(graph), tables, sentences, figures,
        {name: table for name, table in brief.items() if len(table)}, wording_of(f"{command} --scheduler").titles,
    )  # fmt: skip


def _missing(job: DistributedJob) -> pd.DataFrame:
    return _MISSING.frame(list(job.missing))


def _ranks(slow: RankStragglers) -> pd.DataFrame:
    """Return a row per rank, the one that the others wait for longest first."""
    return slow.to_frame().sort_values("blamed_us", ascending=False, kind="stable", ignore_index=True)


def _shown(ranks: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of stragglers without what only slow ranks have, if none is slow."""
    return ranks if ranks["slow"].any() else ranks.drop(columns=["slow", "slow_steps", "slow_excess_us", "cause"])


def _steps(table: pd.DataFrame) -> pd.DataFrame:
    """Return how long each step takes, over the ranks."""
    return table.groupby("step", as_index=False).agg(
        ranks=("rank", "size"), min_us=("duration_us", "min"), median_us=("duration_us", "median"),
        max_us=("duration_us", "max"),
    )  # fmt: skip


def _path(segments: pd.DataFrame, classes: tuple[str, ...]) -> pd.DataFrame:
    """Return the length of the critical path by what it is spent on."""
    total = float(segments["duration_us"].sum())
    by_class = {name: float(segments[f"{name}_us"].sum()) for name in classes}
    by_class["other"] = max(total - sum(by_class.values()), 0.0)
    table = pd.DataFrame({"spent_on": list(by_class), "total_us": list(by_class.values())})
    return table.assign(share_percent=100 * table["total_us"] / (total or float("nan")))


def _lacking(job: DistributedJob) -> list[str]:
    if not job.missing:
        return []
    named = [f"rank {each.rank} ({each.why})" for each in job.missing[:_NAMED]]
    more = len(job.missing) - len(named)
    every = and_list([*named, f"{more} more"] if more else named)
    return [f"{len(job.ranks)} ranks answered; missing are {every}. Waits for missing ranks are not known."]


def _spent(path: pd.DataFrame) -> list[str]:
    if not path["total_us"].any():
        return []
    most = path.sort_values("total_us", ascending=False).iloc[0]
    return [f"Of the critical path, {most['share_percent']:.0f} % is {_SPENT_ON[str(most['spent_on'])]}."]


def _late(slow: RankStragglers) -> list[str]:
    total = time_text(slow.total_wait_us)
    if not slow.total_wait_us:
        return ["No rank waits for another."]
    if slow.straggler is None:
        return [f"Ranks wait {total} for each other (summed over ranks){_most_charged(slow)}, but {_why_not(slow)}."]
    row = slow.ranks[slow.ranks["rank"] == slow.straggler].iloc[0]
    return [f"Rank {slow.straggler} is the straggler: {row['share_percent']:.0f} % of all waiting ({total}) is for it."]


def _most_charged(slow: RankStragglers) -> str:
    ranks = slow.ranks.sort_values("share_percent", ascending=False, kind="stable").head(_CHARGED)
    named = [f"rank {rank} ({share:.0f} %)" for rank, share in zip(ranks["rank"], ranks["share_percent"], strict=True)]
    return f", most of it for {and_list(named)}" if ranks["share_percent"].sum() > _MOSTLY_PERCENT else ""


def _why_not(slow: RankStragglers) -> str:
    """Return why no rank is the straggler."""
    if slow.serves is not None:
        return f"rank {slow.serves} does work that no other rank does, and the others wait for its result"
    if slow.ranks["slow"].any():
        rank = int(slow.ranks.loc[slow.ranks["slow"], "rank"].iloc[0])
        return f"rank {rank}, which is slower than its peers, does not explain most of it"
    if slow.steps < ENOUGH_STEPS:
        return f"from {plural(slow.steps, 'step')} nobody can tell whether a rank is slow or was late by chance"
    return "no single rank is shown to be slower than its peers beyond chance"
