"""Why steps take longer or shorter after than before: the sentences of ``htagraph diff`` and `diff`."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.analyses.differences.diff import Diff
from htagraph.analyses.differences.step_change import StepChange
from htagraph.core.naming import short_name
from htagraph.findings.differences.categories import CATEGORIES_OF_PATH
from htagraph.findings.differences.causes import CAUSES
from htagraph.findings.differences.changed_step import CHANGED_STEP
from htagraph.findings.differences.first_steps import FIRST_STEPS
from htagraph.findings.differences.lost_parts import LOST_PARTS
from htagraph.findings.differences.nothing_there import NOTHING_THERE
from htagraph.findings.differences.only_one_job import ONLY_ONE_JOB
from htagraph.findings.differences.other_work import OTHER_WORK
from htagraph.findings.differences.pair import ComparedJobs, JobPair
from htagraph.findings.differences.python_of_one_job import PYTHON_OF_ONE_JOB
from htagraph.findings.differences.recording_cost import RECORDING_COST
from htagraph.findings.differences.regions import REGIONS
from htagraph.findings.differences.replaced_kernels import REPLACED_KERNELS
from htagraph.findings.differences.rest import REST
from htagraph.findings.differences.steps_of_one_job import STEPS_OF_ONE_JOB
from htagraph.findings.differences.unlike_jobs import UNLIKE_JOBS
from htagraph.findings.differences.words import cut, more_or_less
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import Suggestion, and_list, command_line, plural, spoken, time_text

__all__ = [
    "DIFFERENCES", "OF_EMPTY", "OF_INCOMPLETE", "OF_OTHER_WORK", "UNLIKE", "claims_of_diff", "compare_sentences",
    "diff_sentences", "gate", "incomplete_limit", "next_action", "too_long", "unlike",
]  # fmt: skip

UNLIKE = (UNLIKE_JOBS, PYTHON_OF_ONE_JOB, STEPS_OF_ONE_JOB)
"""Facts in which two jobs differ, and which change times by themselves."""
DIFFERENCES = (
    LOST_PARTS, *UNLIKE, CHANGED_STEP, RECORDING_COST, CAUSES, REST, CATEGORIES_OF_PATH, REGIONS, ONLY_ONE_JOB,
    REPLACED_KERNELS, FIRST_STEPS,
)  # fmt: skip
"""The findings on two recordings of one program, in the order of reading."""
OF_OTHER_WORK = (OTHER_WORK, LOST_PARTS, *UNLIKE, CHANGED_STEP, ONLY_ONE_JOB, REPLACED_KERNELS)
"""The findings on two programs."""
OF_INCOMPLETE = (LOST_PARTS, CHANGED_STEP)
"""The findings on recordings that cannot be compared."""
OF_EMPTY = (CHANGED_STEP, NOTHING_THERE)
"""The findings where nothing was recorded in a job."""
_KINDS = {
    "added": "only in the job after", "removed": "only in the job before", "more": "more often", "fewer": "less often",
    "same": "as often as before",
}  # fmt: skip
"""Kinds of change in words."""


def claims_of_diff(pair: JobPair) -> list[tuple[Finding, Claim]]:
    """Return the claims on two jobs with their findings, the answer first."""
    findings: Sequence[Finding] = DIFFERENCES
    if pair.empty:
        findings = OF_EMPTY
    elif pair.comparison.lost:
        findings = OF_INCOMPLETE
    elif pair.is_other_work:
        findings = OF_OTHER_WORK
    return [(finding, claim) for finding in findings for claim in pair.claims(finding.when)]


def diff_sentences(diff: Diff) -> list[str]:
    """Return why the steps of one job take longer than those of the other, the most important first."""
    return [finding.whole(claim) for finding, claim in claims_of_diff(JobPair(diff))]


def next_action(inputs: Sequence[str], *, is_same: bool) -> list[str]:
    """Return the command that plans changes of the job after; none where steps take as long as before."""
    if is_same:
        return []
    return [Suggestion("To see what to change in the job after", command_line("plan", inputs[1:]))]


def unlike(parts: Sequence[ComparedPart]) -> list[str]:
    """Return the facts in which two jobs differ, and how to make the jobs comparable."""
    jobs = ComparedJobs(parts)
    return [finding.whole(claim) for finding in UNLIKE for claim in jobs.claims(finding.when)]


def gate(change: StepChange, limit: str, limit_percent: float, *, fails: bool) -> str:
    """Return the sentence about a limit of the step time, exceeded or not, or that the recordings cannot tell."""
    if change.is_empty:
        return f"Nothing was recorded in one of the jobs, so {limit} counts as exceeded."
    if change.is_incomplete:
        return incomplete_limit(limit, fails=fails)
    times = f"a usual step takes {time_text(change.after_us)} instead of {time_text(change.before_us)}, {change.text()}"
    if change.cannot_tell(limit_percent):
        rest = "so it counts as exceeded" if fails else "so it does not fail without --strict"
        more = f"about {change.steps_to_tell(limit_percent):,} steps of each job, or several runs"
        more = "more runs" if max(change.runs) > 1 else more
        return f"The recordings cannot tell whether {limit} is exceeded, {rest}: {times}. To tell, record {more}."
    several = f" ({change.runs[0]} runs before, {change.runs[1]} after)" if max(change.runs) > 1 else ""
    if fails:
        return f"Too long: {times}{several}, which exceeds {limit}."
    return f"Limit {limit} is not exceeded: {times}{several}."


def too_long(what: str, before_us: float, after_us: float, limit: str, *, exceeded: bool | None = True) -> str:
    """Return the sentence about a limit of ``--fail-on``, exceeded, not, or None: may be; times per usual step, µs."""
    times = f"{what} is {time_text(after_us)} instead of {time_text(before_us)}"
    if exceeded is None:
        return f"The recordings cannot tell whether {limit} is exceeded: {times}, and steps of a job differ as much."
    return f"Too long: {times}, which exceeds {limit}." if exceeded else f"Limit {limit} is not exceeded: {times}."


def incomplete_limit(limit: str, *, fails: bool) -> str:
    """Return the sentence about a limit of a category, where one of the recordings lacks a part of the job."""
    rest = "so it counts as exceeded" if fails else "so it does not fail without --strict"
    return f"The recordings cannot tell whether {limit} is exceeded, {rest}: one of them is incomplete."


def compare_sentences(table: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return how many names differ, which changed most, and what says why."""
    if not len(table):
        return ["Neither job has an activity."]
    counts = table["change"].value_counts()
    kinds = [f"{int(counts[kind]):,} {words}" for kind, words in _KINDS.items() if counts.get(kind)]
    occur = "occurs" if len(table) == 1 else "occur"
    row = table.iloc[int(table["change_per_step_us"].abs().argmax())]
    change = float(row["change_per_step_us"])
    return spoken(
        f"{plural(len(table), 'name')} {occur} per rank and step: {and_list(kinds)}.",
        f"{cut(short_name(row['name']))} takes {more_or_less(change)} per rank and step, with what lies in it."
        if change
        else "",
        Suggestion("To see why steps take another time", command_line("diff", inputs)),
    )
