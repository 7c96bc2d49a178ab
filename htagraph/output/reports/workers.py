"""Jobs whose ranks lie with workers: what commands with ``--scheduler`` print."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pandas as pd

from htagraph.analyses.kernel_breakdown import kernel_breakdown
from htagraph.analyses.step_times import step_times
from htagraph.analyses.stragglers import TABLE as STRAGGLERS
from htagraph.analyses.temporal_breakdown import temporal_breakdown
from htagraph.cluster.job import DistributedJob
from htagraph.core.tables import Col, Table
from htagraph.findings.finding import JUDGES, MEASURES
from htagraph.findings.verbs import workers as findings
from htagraph.graph.measures.ledger import Part
from htagraph.output.recording import lacking_parts, notes_on_ranks
from htagraph.output.report import Report, drawn, gives, top_rows, with_shares, wording_of
from htagraph.queries.inputs import inputs_of, issues_of, window_us

__all__ = ["job_report", "job_stragglers_report"]

_MISSING: Final = Table("Ranks that this answer lacks", Col("rank file why", "any"))
_STEPS: Final = Table("Step times over all ranks", Col("step ranks", "int64"), Col("min_us median_us max_us"))
_PATH: Final = Table("Critical path by what it is spent on", Col("spent_on", "str"), Col("total_us share_percent"))
_RANKS: Final = STRAGGLERS.only(
    "rank blamed_us share_percent waits_us late_count own_step_us step_excess_us step_error_us slow slow_steps "
    "slow_excess_us cause"
)
"""The columns that a job of digests has."""


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
    moments, time = job.moments, temporal_breakdown(job)
    slow, path = moments.stragglers(), _path(moments.critical_path(), moments.classes)
    tables = {
        "missing": _MISSING.frame(list(job.missing)),
        "steps": step_times(job).groupby("step", as_index=False).agg(
            ranks=("rank", "size"), min_us=("duration_us", "min"), median_us=("duration_us", "median"),
            max_us=("duration_us", "max"),
        ),
        "time_by_rank": time.sort_values("idle_us", ascending=False, kind="stable", ignore_index=True),
        "kernels": kernel_breakdown(job, by="job"),
        "critical_path": path,
        "stragglers": _RANKS.ranked(slow.to_frame()),
    }  # fmt: skip
    brief = {name: top_rows(tables[name], top) for name in ("missing", "time_by_rank", "kernels", "stragglers")}
    brief = {name: brief.get(name, table) for name, table in tables.items()}
    brief["time_by_rank"] = with_shares(brief["time_by_rank"])
    makespan_us = moments.makespan_ns() / 1000
    notes, lost = _ledger(job)
    sentences = [*findings.missing(job), *notes]
    figures = {"makespan_us": makespan_us, "straggler": slow.straggler}
    if lost & JUDGES:
        figures["makespan_us"] = math.nan
        _withhold("critical_path", tables, brief)
    else:
        sentences += findings.spent(makespan_us, path)
    if lost & MEASURES:
        figures["straggler"] = None
        _withhold("stragglers", tables, brief)
    else:
        sentences += findings.late(slow)
    report = _report(job, "summary", tables, brief, sentences, figures)
    return replace(report, plot=lambda: drawn("temporal_breakdown", tables["time_by_rank"]))


@gives(
    "stragglers --scheduler", {"missing": _MISSING, "stragglers": _RANKS},
    figures=(Col("straggler", "int64?"), Col("total_wait_us")),
)  # fmt: skip
def job_stragglers_report(job: DistributedJob, *, top: int = 10) -> Report:
    """Return for which rank of a job on workers the others wait: ranks that are missing, and stragglers."""
    slow = job.moments.stragglers()
    tables = {"missing": _MISSING.frame(list(job.missing)), "stragglers": _RANKS.ranked(slow.to_frame())}
    figures = {"straggler": slow.straggler, "total_wait_us": slow.total_wait_us}
    brief = {name: top_rows(table, top) for name, table in tables.items()}
    notes, lost = _ledger(job)
    sentences = [*findings.missing(job), *notes]
    if lost & MEASURES:
        figures = {"straggler": None, "total_wait_us": math.nan}
        _withhold("stragglers", tables, brief)
    else:
        sentences += findings.late(slow)
    return _report(job, "stragglers", tables, brief, sentences, figures)


class _RanksLedger(NamedTuple):
    notes: list[str]
    """The parts that ranks lack, as sentences."""
    lost: frozenset[Part]


def _ledger(job: DistributedJob) -> _RanksLedger:
    """Return the parts that the recordings of the ranks lack, each rank read alone."""
    lacking = lacking_parts(job)
    return _RanksLedger(notes_on_ranks(lacking), frozenset(Part[name] for name in lacking["part"]))


def _withhold(name: str, tables: dict[str, pd.DataFrame], brief: dict[str, pd.DataFrame]) -> None:
    """Take all rows of a table that rests on a missing part."""
    tables[name] = tables[name].head(0)
    brief[name] = brief[name].head(0)


def _report(
    job: DistributedJob,
    command: str,
    tables: dict[str, pd.DataFrame],
    brief: dict[str, pd.DataFrame],
    sentences: list[str],
    figures: dict[str, Any],
) -> Report:
    """Return a report of a command on a job; columns on slow ranks are shown only if some rank is slow."""
    if not brief["stragglers"]["slow"].any():
        brief["stragglers"] = brief["stragglers"].drop(columns=["slow", "slow_steps", "slow_excess_us", "cause"])
    graph, shown = job.moments.graph, {name: table for name, table in brief.items() if len(table)}
    return Report(
        command, inputs_of(graph), issues_of(job), window_us(graph), tables, sentences, figures, shown,
        wording_of(f"{command} --scheduler").titles,
    )  # fmt: skip


def _path(segments: pd.DataFrame, classes: tuple[str, ...]) -> pd.DataFrame:
    """Return the length of the critical path by what it is spent on."""
    total = float(segments["duration_us"].sum())
    by_class = {name: float(segments[f"{name}_us"].sum()) for name in classes}
    by_class["other"] = max(total - sum(by_class.values()), 0.0)
    table = pd.DataFrame({"spent_on": list(by_class), "total_us": list(by_class.values())})
    return table.assign(share_percent=100 * table["total_us"] / (total or float("nan")))
